"""Schemas of the fields that gitsched writes, as in the CRDs of source-controller v1, kustomize-controller v1, helm-controller v2 and
Argo CD v3. An API server drops fields that a CRD does not have without an error, so that the schemas allow no others."""

from __future__ import annotations

from typing import Any

import jsonschema

DURATION = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"


def strict(*required: str, **members: Any) -> dict[str, Any]:
    """Return the schema of an object with these members only."""
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": members}


TEXT, FLAG, LISTED = {"type": "string", "minLength": 1}, {"type": "boolean"}, {"type": "array", "minItems": 1}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
NAMED = strict("name", name=TEXT)
NAME = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"}
PATCHES = LISTED | {
    "items": strict("patch", patch=TEXT, target=strict(group=TEXT, version=TEXT, kind=TEXT, name=TEXT, namespace=TEXT))
}
SOURCE = strict("kind", "name", kind={"enum": ["OCIRepository", "GitRepository", "Bucket", "ExternalArtifact"]}, name=TEXT)


def kind(version: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = strict(
        "name", "namespace", name=NAME, namespace=TEXT, annotations=TEXTS, labels=TEXTS, finalizers=LISTED | {"items": TEXT}
    )
    return strict(
        "apiVersion", "kind", "metadata", "spec", apiVersion={"const": version}, kind={"const": name}, metadata=metadata, spec=spec
    )


APPLICATION_SOURCE = strict(
    "repoURL",
    repoURL=TEXT,
    targetRevision=TEXT,
    path=TEXT,
    directory=strict(recurse=FLAG),
    kustomize=strict(patches=PATCHES),
    helm=strict(releaseName=TEXT, valueFiles=LISTED | {"items": TEXT}, valuesObject={"type": "object"}, namespace=TEXT),
)
APPLICATION_SPEC = strict(
    "destination",
    "project",
    destination=strict(name=TEXT, server={"pattern": "^https?://"}, namespace=TEXT),
    project=TEXT,
    source=APPLICATION_SOURCE,
    syncPolicy=strict(automated=strict(prune=FLAG, selfHeal=FLAG), syncOptions=LISTED | {"items": TEXT}),
)

SCHEMAS = {
    "GitRepository": kind(
        "source.toolkit.fluxcd.io/v1",
        "GitRepository",
        strict(
            "interval",
            "url",
            interval={"pattern": DURATION},
            url={"pattern": "^(http|https|ssh)://.*$"},
            ref=strict(branch=TEXT, commit={"type": "string", "pattern": "^[0-9a-f]{40,64}$"}),
            sparseCheckout=LISTED | {"items": TEXT},
            secretRef=NAMED,
            ignore=TEXT,
            verify=strict("secretRef", mode={"enum": ["head", "HEAD", "Tag", "TagAndHEAD"]}, secretRef=NAMED),
        ),
    ),
    "Kustomization": kind(
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        strict(
            "interval",
            "prune",
            "sourceRef",
            interval={"pattern": DURATION},
            path={"pattern": "^\\./"},
            prune=FLAG,
            wait=FLAG,
            decryption=strict("provider", provider={"enum": ["sops"]}, secretRef=NAMED),
            serviceAccountName=TEXT,
            patches=PATCHES,
            postBuild=strict(substitute=TEXTS),
            sourceRef=SOURCE,
        ),
    ),
    "HelmRelease": kind(
        "helm.toolkit.fluxcd.io/v2",
        "HelmRelease",
        strict(
            "interval",
            "chart",
            interval={"pattern": DURATION},
            chart=strict(
                "spec",
                spec=strict(
                    "chart",
                    "sourceRef",
                    chart=TEXT,
                    reconcileStrategy={"enum": ["ChartVersion", "Revision"]},
                    valuesFiles=LISTED | {"items": TEXT},
                    sourceRef=strict("kind", "name", kind={"enum": ["HelmRepository", "GitRepository", "Bucket"]}, name=TEXT),
                ),
            ),
            releaseName=TEXT | {"maxLength": 53},
            targetNamespace=TEXT | {"maxLength": 63},
            install=strict(createNamespace=FLAG),
            upgrade=strict(crds={"enum": ["Skip", "Create", "CreateReplace"]}),
            serviceAccountName=TEXT,
            values={},
            postRenderers=LISTED | {"items": strict(kustomize=strict(patches=PATCHES))},
        ),
    ),
    "Application": kind("argoproj.io/v1alpha1", "Application", APPLICATION_SPEC),
    "ApplicationSet": kind(
        "argoproj.io/v1alpha1",
        "ApplicationSet",
        strict(
            "generators",
            "template",
            goTemplate=FLAG,
            goTemplateOptions={"type": "array", "items": {"enum": ["missingkey=error"]}},
            generators=LISTED
            | {
                "items": strict(
                    "git",
                    git=strict(
                        "repoURL",
                        "revision",
                        repoURL=TEXT,
                        revision=TEXT,
                        requeueAfterSeconds={"type": "integer"},
                        files=LISTED | {"items": strict("path", path=TEXT)},
                        directories=LISTED | {"items": strict("path", path=TEXT)},
                    ),
                )
            },
            syncPolicy=strict(
                applicationsSync={"enum": ["create-only", "create-update", "create-delete", "sync"]},
                preserveResourcesOnDeletion=FLAG,
            ),
            template=strict(
                "metadata",
                "spec",
                metadata=strict("name", name=TEXT, annotations={"type": "object", "additionalProperties": TEXT}),
                spec=APPLICATION_SPEC,
            ),
            templatePatch=TEXT,
        ),
    ),
}

GROUP_KINDS = {"type": "array", "items": strict("group", "kind", group={"type": "string"}, kind=TEXT)}
SCHEMAS["AppProject"] = kind(
    "argoproj.io/v1alpha1",
    "AppProject",
    strict(
        description=TEXT,
        sourceRepos=LISTED | {"items": TEXT},
        destinations={"type": "array", "items": strict(name=TEXT, server=TEXT, namespace=TEXT)},
        clusterResourceWhitelist=GROUP_KINDS,
        namespaceResourceWhitelist=GROUP_KINDS,
        namespaceResourceBlacklist=GROUP_KINDS,
    ),
)


def validate(body: dict[str, Any]) -> None:
    """Validate an object against the schema of its kind."""
    jsonschema.validate(body, SCHEMAS[body["kind"]])
