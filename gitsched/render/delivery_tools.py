"""Flux and Argo CD objects (GitRepository, Kustomization, ApplicationSet) that deliver the output branch to clusters.

Shapes as in the CRDs: GitRepository `source.toolkit.fluxcd.io/v1`, Kustomization `kustomize.toolkit.fluxcd.io/v1`, ApplicationSet
`argoproj.io/v1alpha1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from gitsched.model.document import Body
from gitsched.render.layout import CLUSTER_JSON, CLUSTERS, escape_segment

ArgoGenerator = Literal["files", "directories"]

_SCP_URL = re.compile(r"([^/:]+):(?!/)(.+)")


class OutputBranch(NamedTuple):
    """Where delivery tools find the output: a URL without secrets, the branch, and the directory in it, "" or "path/"."""

    url: str
    name: str
    prefix: str = ""

    def directory(self, cluster: str) -> str:
        """A cluster's directory on the branch."""
        return f"{self.prefix}{CLUSTERS}/{escape_segment(cluster)}"


class FluxOptions(NamedTuple):
    """What people choose about Flux's objects; `names` are those of GitRepository and Kustomization.

    `access` is the Secret with the credentials for the repository, `keys` the one with the public keys that commits must be signed
    with; "" for none.
    """

    names: tuple[str, str] = ("placements", "placed")
    namespace: str = "flux-system"
    auth_secret: str = ""
    verify_secret: str = ""


class ArgoOptions(NamedTuple):
    """What people choose about Argo CD's object."""

    name: str = "placed"
    namespace: str = "argocd"
    project: str = "default"
    generator: ArgoGenerator = "files"


def make_flux_objects(branch: OutputBranch, cluster: str, choice: FluxOptions) -> list[Body]:
    """GitRepository and Kustomization, to be applied in that cluster. Only its own directory is checked out there."""
    directory = branch.directory(cluster)
    source, delivery = choice.names
    repository: dict[str, Any] = {
        "interval": "1m",
        "url": _SCP_URL.sub(r"ssh://\1/\2", branch.url) if "://" not in branch.url else branch.url,  # Flux knows no host:path
        "ref": {"branch": branch.name},
        "sparseCheckout": [directory],
    }
    if choice.auth_secret:
        repository["secretRef"] = {"name": choice.auth_secret}
    if choice.verify_secret:
        repository["verify"] = {"mode": "HEAD", "secretRef": {"name": choice.verify_secret}}
    kustomization = {
        "interval": "10m",
        "sourceRef": {"kind": "GitRepository", "name": source},
        "path": f"./{directory}",
        "prune": True,
        "wait": True,
    }
    return [
        _make_object("source.toolkit.fluxcd.io/v1", "GitRepository", source, choice.namespace, repository),
        _make_object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", delivery, choice.namespace, kustomization),
    ]


def make_argocd_objects(branch: OutputBranch, clusters: Sequence[str] | None, choice: ArgoOptions) -> list[Body]:
    """One ApplicationSet, to be applied beside Argo CD: an Application for each of these clusters, or (None) for each that there is.

    Argo CD must know the clusters by the same names. Deleting the ApplicationSet, or a cluster's directory, deletes nothing that runs.
    """
    places = ["*"] if clusters is None else [escape_segment(cluster) for cluster in clusters]
    tail, target = (f"/{CLUSTER_JSON}", "{{.name}}") if choice.generator == "files" else ("", "{{.path.basename}}")
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
    return [_make_object("argoproj.io/v1alpha1", "ApplicationSet", choice.name, choice.namespace, spec)]


def _make_object(version: str, kind: str, name: str, namespace: str, spec: dict[str, Any]) -> Body:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
