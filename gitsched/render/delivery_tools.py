"""Flux and Argo CD objects (GitRepository, Kustomization, ApplicationSet) that deliver the output branch to clusters.

Shapes as in the CRDs: GitRepository `source.toolkit.fluxcd.io/v1`, Kustomization `kustomize.toolkit.fluxcd.io/v1`, ApplicationSet
`argoproj.io/v1alpha1`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from gitsched.model.urls import normalize_repository_url
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import CLUSTER_JSON, CLUSTERS, escape_segment

if TYPE_CHECKING:
    from gitsched.model.document import Body

ArgoGenerator = Literal["files", "directories"]
FLUX_DELIVERY: Final = {"interval": "10m", "prune": True, "wait": True}
"""How the Kustomization of a cluster applies its directory."""
ARGO_DELIVERY: Final = {"syncPolicy": {"automated": {"prune": True, "selfHeal": True}}}
"""How the Application of a cluster syncs its directory."""


class OutputBranch(NamedTuple):
    """The location of the output: a URL without credentials, the branch, and the directory in it ("" or "path/")."""

    url: str
    name: str
    prefix: str = ""

    def directory(self, cluster: str) -> str:
        """Return the path of a cluster's directory on the branch."""
        return f"{self.prefix}{CLUSTERS}/{escape_segment(cluster)}"


class FluxOptions(NamedTuple):
    """Options of the Flux objects; `names` are those of the GitRepository and the Kustomization.

    `auth_secret` is the Secret with credentials for the repository; `verify_secret` is the Secret with public keys for signed commits.
    `decryption_secret` is the Secret with the private keys of SOPS. Each is "" for none.
    """

    names: tuple[str, str] = ("placements", "placed")
    namespace: str = "flux-system"
    auth_secret: str = ""
    verify_secret: str = ""
    decryption_secret: str = ""


class ArgoOptions(NamedTuple):
    """Options of the Argo CD object."""

    name: str = "placed"
    namespace: str = "argocd"
    project: str = "default"
    generator: ArgoGenerator = "files"


def make_flux_objects(branch: OutputBranch, cluster: str, options: FluxOptions) -> list[Body]:
    """Return the GitRepository and Kustomization to apply in one cluster. They check out only the directory of that cluster."""
    directory = branch.directory(cluster)
    source, delivery = options.names
    repository: dict[str, Any] = {
        "interval": "1m",
        "url": normalize_repository_url(branch.url),
        "ref": {"branch": branch.name},
        "sparseCheckout": [directory],
    }
    if options.auth_secret:
        repository["secretRef"] = {"name": options.auth_secret}
    if options.verify_secret:
        repository["verify"] = {"mode": "HEAD", "secretRef": {"name": options.verify_secret}}
    kustomization: dict[str, Any] = {
        **FLUX_DELIVERY,
        "sourceRef": {"kind": "GitRepository", "name": source},
        "path": f"./{directory}",
    }
    if options.decryption_secret:
        kustomization["decryption"] = {"provider": "sops", "secretRef": {"name": options.decryption_secret}}
    return [
        _make_object("source.toolkit.fluxcd.io/v1", "GitRepository", source, options.namespace, repository),
        _make_object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", delivery, options.namespace, kustomization),
    ]


def generate_from_git(branch: OutputBranch, kind: str, paths: Iterable[str]) -> Body:
    """Return the fields of an ApplicationSet that generate from `files` or `directories` of the output branch, given their patterns."""
    return {
        "goTemplate": True,
        "goTemplateOptions": ["missingkey=error"],
        "generators": [
            {
                "git": {
                    "repoURL": branch.url,
                    "revision": branch.name,
                    "requeueAfterSeconds": 60,
                    kind: [{"path": f"{branch.prefix}{path}"} for path in paths],
                }
            }
        ],
    }


def make_argocd_objects(branch: OutputBranch, clusters: Sequence[str] | None, options: ArgoOptions) -> list[Body]:
    """Return an ApplicationSet that creates an Application for each of the clusters, or for all clusters if `clusters` is None.

    Argo CD must know the clusters by the same names. Deleting the ApplicationSet or the directory of a cluster does not delete running
    resources.
    """
    directories = ["*"] if clusters is None else [escape_segment(cluster) for cluster in clusters]
    tail, target = (f"/{CLUSTER_JSON}", "{{.name}}") if options.generator == "files" else ("", "{{.path.basename}}")
    spec = {
        **generate_from_git(branch, options.generator, [f"{CLUSTERS}/{directory}{tail}" for directory in directories]),
        "syncPolicy": {"preserveResourcesOnDeletion": True, "applicationsSync": "create-update"},
        "template": {
            "metadata": {
                "name": f"{options.name}-{{{{.path.basenameNormalized}}}}",
                # A commit that changes only directories of other clusters does not invalidate the rendered manifests.
                "annotations": {"argocd.argoproj.io/manifest-generate-paths": "."},
            },
            "spec": {
                "project": options.project,
                "destination": {"name": target},
                # The kustomization.yaml of the directory lists the manifests; cluster.json is not among them.
                "source": {"repoURL": branch.url, "targetRevision": branch.name, "path": "{{.path.path}}"},
                **ARGO_DELIVERY,
            },
        },
    }
    return [_make_object("argoproj.io/v1alpha1", "ApplicationSet", options.name, options.namespace, spec)]


def _make_object(version: str, kind: str, name: str, namespace: str, spec: dict[str, Any]) -> Body:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}
