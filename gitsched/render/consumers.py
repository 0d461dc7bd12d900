"""The objects with which Flux and Argo CD take the output branch: what a person would write by hand, for this fleet.

Shapes as in the CRDs: GitRepository `source.toolkit.fluxcd.io/v1`, Kustomization `kustomize.toolkit.fluxcd.io/v1`, ApplicationSet
`argoproj.io/v1alpha1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from gitsched.model.document import Body
from gitsched.render.layout import CLUSTER_FACTS, CLUSTERS, segment

Generator = Literal["files", "directories"]

_SCP = re.compile(r"([^/:]+):(?!/)(.+)")


class Branch(NamedTuple):
    """Where delivery tools find the output: a URL without secrets, the branch, and the directory in it, "" or "path/"."""

    url: str
    name: str
    prefix: str = ""

    def directory(self, cluster: str) -> str:
        """A cluster's directory on the branch."""
        return f"{self.prefix}{CLUSTERS}/{segment(cluster)}"


class FluxChoice(NamedTuple):
    """What people choose about Flux's objects; `names` are those of GitRepository and Kustomization.

    `access` is the Secret with the credentials for the repository, `keys` the one with the public keys that commits must be signed
    with; "" for none.
    """

    names: tuple[str, str] = ("placements", "placed")
    namespace: str = "flux-system"
    access: str = ""
    keys: str = ""


class ArgoChoice(NamedTuple):
    """What people choose about Argo CD's object."""

    name: str = "placed"
    namespace: str = "argocd"
    project: str = "default"
    generator: Generator = "files"


def flux_objects(branch: Branch, cluster: str, choice: FluxChoice) -> list[Body]:
    """GitRepository and Kustomization, to be applied in that cluster. Only its own directory is checked out there."""
    directory = branch.directory(cluster)
    source, delivery = choice.names
    repository: dict[str, Any] = {
        "interval": "1m",
        "url": _SCP.sub(r"ssh://\1/\2", branch.url) if "://" not in branch.url else branch.url,  # Flux knows no host:path
        "ref": {"branch": branch.name},
        "sparseCheckout": [directory],
    }
    if choice.access:
        repository["secretRef"] = {"name": choice.access}
    if choice.keys:
        repository["verify"] = {"mode": "HEAD", "secretRef": {"name": choice.keys}}
    kustomization = {
        "interval": "10m",
        "sourceRef": {"kind": "GitRepository", "name": source},
        "path": f"./{directory}",
        "prune": True,
        "wait": True,
    }
    return [
        _object("source.toolkit.fluxcd.io/v1", "GitRepository", source, choice.namespace, repository),
        _object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", delivery, choice.namespace, kustomization),
    ]


def argocd_objects(branch: Branch, clusters: Sequence[str] | None, choice: ArgoChoice) -> list[Body]:
    """One ApplicationSet, to be applied beside Argo CD: an Application for each of these clusters, or (None) for each that there is.

    Argo CD must know the clusters by the same names. Deleting the ApplicationSet, or a cluster's directory, deletes nothing that runs.
    """
    places = ["*"] if clusters is None else [segment(cluster) for cluster in clusters]
    tail, target = (f"/{CLUSTER_FACTS}", "{{.name}}") if choice.generator == "files" else ("", "{{.path.basename}}")
    spec = {
        "goTemplate": True,
        "goTemplateOptions": ["missingkey=error"],
        "generators": [
            {
                "git": {
                    "repoURL": branch.url,
                    "revision": branch.name,
                    "requeueAfterSeconds": 60,
                    choice.generator: [{"path": f"{branch.prefix}{CLUSTERS}/{place}{tail}"} for place in places],
                }
            }
        ],
        "syncPolicy": {"preserveResourcesOnDeletion": True, "applicationsSync": "create-update"},
        "template": {
            "metadata": {
                "name": f"{choice.name}-{{{{.path.basenameNormalized}}}}",
                # A commit that touches other clusters' directories renders nothing anew.
                "annotations": {"argocd.argoproj.io/manifest-generate-paths": "."},
            },
            "spec": {
                "project": choice.project,
                "destination": {"name": target},
                # The directory's kustomization.yaml says what to apply; cluster.json is not in it.
                "source": {"repoURL": branch.url, "targetRevision": branch.name, "path": "{{.path.path}}"},
                "syncPolicy": {"automated": {"prune": True, "selfHeal": True}},
            },
        },
    }
    return [_object("argoproj.io/v1alpha1", "ApplicationSet", choice.name, choice.namespace, spec)]


def _object(version: str, kind: str, name: str, namespace: str, spec: dict[str, Any]) -> Body:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
