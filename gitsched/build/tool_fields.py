"""What gitsched makes of each field of the documents of Flux and Argo CD that say how directories are built.

Source: the API types of fluxcd/kustomize-controller, helm-controller, source-controller and source-watcher, and of argoproj/argo-cd.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from gitsched.model.document import Body
from gitsched.named_tuples import NamedTuple

Treatment = Literal["same", "no effect", "differs", "finding", "delivered"]


class FieldRow(NamedTuple):
    """Fields of a kind, and what gitsched makes of them: the `same` as the tool; no effect on what is delivered; something else, which
    `reason` says; a finding where it is set, as it changes what is delivered and gitsched does not read it; or nothing, as the object is
    delivered with the field and the tool in the cluster reads it."""

    kind: str
    fields: str
    treatment: Treatment
    reason: str = ""

    def list_paths(self) -> list[tuple[str, ...]]:
        """Return the paths of the fields below `spec`; `*` is each entry of a list."""
        return [tuple(field.replace("[]", ".*").split(".")) for field in self.fields.split()]


_SOURCE = "Application source"
FIELD_ROWS: Final = (
    FieldRow(
        "Kustomization", "path sourceRef targetNamespace namePrefix nameSuffix patches components ignoreMissingComponents", "same"
    ),
    FieldRow("Kustomization", "patchesStrategicMerge patchesJson6902 images commonMetadata buildMetadata", "same"),
    FieldRow(
        "Kustomization",
        "postBuild.substitute postBuild.substituteFrom postBuild.substituteStrategy",
        "differs",
        "a variable that nothing sets is a finding, not an empty text",
    ),
    FieldRow(
        "Kustomization",
        "decryption",
        "differs",
        "objects that SOPS encrypted are delivered encrypted; what is generated from an encrypted file is a finding",
    ),
    FieldRow(
        "Kustomization",
        "ignore",
        "finding",
        "Flux leaves these paths out of what it applies: remove them from the directory, and this field",
    ),
    FieldRow(
        "Kustomization", "dependsOn deletionPolicy force healthCheckExprs healthChecks interval prune retryInterval", "no effect"
    ),
    FieldRow("Kustomization", "serviceAccount serviceAccountName suspend timeout validation wait", "no effect"),
    FieldRow(
        "Kustomization",
        "kubeConfig",
        "differs",
        "what it builds is placed by policies; as an object of its own it may be destination-unchanged",
    ),
    FieldRow(
        "HelmRelease", "chart chartRef values valuesFrom releaseName targetNamespace storageNamespace postRenderers", "delivered"
    ),
    FieldRow("HelmRelease", "commonMetadata dependsOn driftDetection healthCheckExprs install interval maxHistory", "delivered"),
    FieldRow("HelmRelease", "persistentClient postRenderStrategy rollback serviceAccountName test timeout uninstall", "delivered"),
    FieldRow("HelmRelease", "upgrade waitStrategy", "delivered"),
    FieldRow("HelmRelease", "suspend", "delivered", "a suspended release is placed as any other: Flux does not install it"),
    FieldRow(
        "HelmRelease",
        "kubeConfig",
        "delivered",
        "the cluster that receives the object installs the chart in another one; see destination-unchanged",
    ),
    FieldRow("GitRepository", "url ref", "differs", "they say whether it is this repository; the planned commit is what is built"),
    FieldRow(
        "GitRepository",
        "ignore",
        "differs",
        "files are left out of directories without a kustomization; those that one names are read",
    ),
    FieldRow(
        "GitRepository",
        "include",
        "finding",
        "Flux adds files of other sources to its copy of the repository: commit them, and remove this field",
    ),
    FieldRow("GitRepository", "sparseCheckout", "finding", "Flux has only some directories of the repository: remove this field"),
    FieldRow(
        "GitRepository", "recurseSubmodules", "finding", "Flux has the files of submodules: commit them, and remove this field"
    ),
    FieldRow(
        "GitRepository",
        "accessFrom gitImplementation interval provider proxySecretRef secretRef serviceAccountName suspend timeout verify",
        "no effect",
    ),
    FieldRow(
        "OCIRepository",
        "url ref",
        "differs",
        "they say whether it is this repository; source.deliveryTools.roots says of which directory",
    ),
    FieldRow(
        "OCIRepository",
        "ignore",
        "differs",
        "files are left out of directories without a kustomization; those that one names are read",
    ),
    FieldRow(
        "OCIRepository",
        "certSecretRef insecure interval layerSelector provider proxySecretRef secretRef serviceAccountName suspend timeout verify",
        "no effect",
    ),
    FieldRow(
        "Bucket", "ignore", "differs", "files are left out of directories without a kustomization; those that one names are read"
    ),
    FieldRow(
        "Bucket",
        "prefix",
        "finding",
        "Flux has only the files with this prefix: remove it, and name the directory in `path` of the Kustomizations",
    ),
    FieldRow(
        "Bucket",
        "accessFrom bucketName certSecretRef endpoint insecure interval provider proxySecretRef region secretRef serviceAccountName "
        "sts suspend timeout",
        "no effect",
    ),
    FieldRow(
        "HelmRepository", "accessFrom certSecretRef insecure interval passCredentials provider secretRef suspend", "delivered"
    ),
    FieldRow("HelmRepository", "timeout type url", "delivered"),
    FieldRow(
        "HelmChart", "accessFrom chart helmRepositoryRef ignoreMissingValuesFiles interval name reconcileStrategy", "delivered"
    ),
    FieldRow("HelmChart", "sourceRef suspend valuesFile valuesFiles verify version", "delivered"),
    FieldRow(
        "ExternalArtifact",
        "sourceRef",
        "differs",
        "an artifact is what the ArtifactGenerator in the repository that names it copies, whatever the object refers to",
    ),
    FieldRow("ArtifactGenerator", "sources artifacts[].name artifacts[].copy", "same"),
    FieldRow(
        "ArtifactGenerator",
        "artifacts[].copy[].exclude artifacts[].copy[].strategy pathPattern",
        "differs",
        "what such an artifact has is not known, but for the strategy Overwrite: directories that depend on it are a finding",
    ),
    FieldRow("ArtifactGenerator", "artifacts[].originRevision artifacts[].revision commonMetadata", "no effect"),
    FieldRow("Application", "source sources sourceHydrator.drySource destination.namespace project", "same"),
    FieldRow("Application", "destination.name destination.server", "differs", "policies say which clusters get the objects"),
    FieldRow(
        "Application", "ignoreDifferences info revisionHistoryLimit sourceHydrator.syncSource sourceHydrator.hydrateTo", "no effect"
    ),
    FieldRow("Application", "syncPolicy.automated syncPolicy.retry syncPolicy.syncOptions", "no effect"),
    FieldRow(
        "Application",
        "syncPolicy.managedNamespaceMetadata",
        "finding",
        "Argo CD sets these labels and annotations on the namespace: commit the Namespace with them, and remove this field",
    ),
    FieldRow(_SOURCE, "repoURL path ref", "same"),
    FieldRow(_SOURCE, "targetRevision tagPrefix", "differs", "the planned commit is what is built"),
    FieldRow(_SOURCE, "chart", "differs", "charts of other servers are not built"),
    FieldRow(_SOURCE, "name helm.passCredentials helm.version", "no effect"),
    FieldRow(_SOURCE, "helm.valueFiles helm.parameters helm.fileParameters helm.releaseName helm.values helm.valuesObject", "same"),
    FieldRow(
        _SOURCE, "helm.ignoreMissingValueFiles helm.skipCrds helm.skipSchemaValidation helm.namespace helm.apiVersions", "same"
    ),
    FieldRow(_SOURCE, "helm.kubeVersion", "differs", "without it, the version that gitsched renders for, not that of the cluster"),
    FieldRow(_SOURCE, "helm.skipTests", "differs", "tests of a chart are never delivered"),
    FieldRow(_SOURCE, "kustomize.namePrefix kustomize.nameSuffix kustomize.namespace kustomize.images kustomize.replicas", "same"),
    FieldRow(
        _SOURCE, "kustomize.commonLabels kustomize.commonAnnotations kustomize.commonAnnotationsEnvsubst kustomize.patches", "same"
    ),
    FieldRow(_SOURCE, "kustomize.forceCommonLabels kustomize.forceCommonAnnotations kustomize.labelWithoutSelector", "same"),
    FieldRow(_SOURCE, "kustomize.labelIncludeTemplates kustomize.components kustomize.ignoreMissingComponents", "same"),
    FieldRow(
        _SOURCE,
        "kustomize.version",
        "finding",
        "Argo CD builds with another kustomize, which may print something else: remove this field",
    ),
    FieldRow(
        _SOURCE,
        "kustomize.kubeVersion kustomize.apiVersions",
        "finding",
        "charts in the kustomization are rendered for the version of gitsched: remove this field",
    ),
    FieldRow(_SOURCE, "directory.recurse directory.include directory.exclude directory.disableExtensionFilter", "same"),
    FieldRow(_SOURCE, "ksonnet", "finding", "the versions of Argo CD that are supported do not render ksonnet: remove this field"),
    FieldRow(_SOURCE, "directory.jsonnet plugin", "differs", "what they build is not placed, and is a finding"),
    FieldRow("ApplicationSet", "goTemplate goTemplateOptions template templatePatch generators[].list generators[].git", "same"),
    FieldRow("ApplicationSet", "generators[].matrix generators[].merge generators[].selector", "same"),
    FieldRow(
        "ApplicationSet",
        "generators[].clusters",
        "differs",
        "the clusters are those with a Secret in the repository, and in-cluster",
    ),
    FieldRow("ApplicationSet", "generators[].git.revision", "differs", "the planned commit is what is read"),
    FieldRow(
        "ApplicationSet",
        "generators[].clusterDecisionResource generators[].plugin generators[].pullRequest generators[].scmProvider",
        "differs",
        "what they read is not known: directories that depend on it are a finding",
    ),
    FieldRow(
        "ApplicationSet", "applyNestedSelectors ignoreApplicationDifferences preservedFields strategy syncPolicy", "no effect"
    ),
)
"""One row for each group of fields below `spec`; a source of an Application has rows of its own."""


def list_unread_fields(kind: str, spec: Body) -> Iterator[tuple[str, str]]:
    """Yield the fields that change what is delivered and that gitsched does not read, with what they change. `spec` is that of an object of
    a kind, or a source of an Application."""
    for row in FIELD_ROWS:
        if row.kind == kind and row.treatment == "finding":
            yield from ((".".join(path), row.reason) for path in row.list_paths() if _has_value(spec, path))


def _has_value(body: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    value: Any = body
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value not in (None, "", False, [], {})


SOURCE_KIND: Final = _SOURCE
"""The kind of the rows about a source of an Application."""
