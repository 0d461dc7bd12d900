"""Other tools that say where workloads run, or how much they may use: their API groups and files, and what gitsched has in their place.

gitsched reads none of their documents. docs/development/other-tools.md has for each one a table of its fields, under the name of the tool.
"""

from __future__ import annotations

from typing import Final

from gitsched.named_tuples import NamedTuple


class ForeignAPI(NamedTuple):
    """A tool: what it does, as a clause behind "which"; what to write instead, as an imperative; the API groups of its documents.

    Groups below these are its own as well. With `kinds`, only these are. `files` are names of its files.
    """

    name: str
    purpose: str
    instead: str
    groups: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def documentation(self) -> str:
        """The section of the documentation about its fields."""
        return f"docs/development/other-tools.md#{self.name.lower().replace(' ', '-')}"


_POLICIES: Final = "write a PropagationPolicy or a Placement that selects the same clusters"
FOREIGN_APIS: Final = (
    ForeignAPI(
        "Rancher Fleet",
        "delivers bundles of Git repositories to clusters",
        "write Bundles with the clusters of their targets",
        ("fleet.cattle.io",),
        files=("fleet.yaml", "fleet.yml"),
    ),
    ForeignAPI("Sveltos", "deploys charts and manifests to clusters that a selector matches", _POLICIES, ("projectsveltos.io",)),
    ForeignAPI("KubeFleet", "places resources of a hub on its member clusters", _POLICIES, ("kubernetes-fleet.io",)),
    ForeignAPI("Clusternet", "distributes objects of a hub to child clusters", _POLICIES, ("clusternet.io",)),
    ForeignAPI("KubeAdmiral", "propagates objects of a hub to member clusters", _POLICIES, ("kubeadmiral.io",)),
    ForeignAPI("KubeFed", "propagates federated objects to member clusters", _POLICIES, ("kubefed.io",)),
    ForeignAPI("KubeStellar", "binds objects to clusters of an inventory", _POLICIES, ("kubestellar.io",)),
    ForeignAPI("Liqo", "offloads namespaces to peer clusters", _POLICIES, ("liqo.io",)),
    ForeignAPI("Admiralty", "runs pods of one cluster in others", _POLICIES, ("multicluster.admiralty.io",)),
    ForeignAPI("KubeVela", "deploys components to clusters that its policies name", _POLICIES, ("core.oam.dev",)),
    ForeignAPI(
        "Kueue",
        "queues jobs of a cluster by quota, and of several with MultiKueue",
        "place Jobs with a policy, and limit what tenants request with a Tenant",
        ("kueue.x-k8s.io",),
    ),
    ForeignAPI(
        "ClusterProfile",
        "is the list of clusters of SIG Multicluster",
        "describe the clusters as Clusters or ManagedClusters, or have gitsched collect read the ClusterProfiles of a hub",
        ("multicluster.x-k8s.io",),
        ("ClusterProfile", "PlacementDecision"),
    ),
    ForeignAPI(
        "Cluster API add-ons",
        "apply manifests and charts to clusters that a selector matches",
        "place the objects or Bundles with a policy",
        ("addons.cluster.x-k8s.io",),
    ),
    ForeignAPI(
        "Red Hat ACM",
        "deploys applications and policies of a hub to its managed clusters",
        "write a Placement, and place the objects themselves",
        ("apps.open-cluster-management.io", "policy.open-cluster-management.io"),
    ),
    ForeignAPI(
        "Kargo",
        "promotes versions from stage to stage with commits",
        "keep it: what it commits to the source is placed as any other commit",
        ("kargo.akuity.io",),
    ),
    ForeignAPI(
        "kluctl",
        "deploys projects to the clusters of its targets",
        "write Bundles with the clusters of its targets",
        ("kluctl.io",),
        files=(".kluctl.yaml", ".kluctl.yml"),
    ),
    ForeignAPI(
        "Helmfile",
        "installs releases of charts in a cluster",
        "write Bundles of charts",
        files=("helmfile.yaml", "helmfile.yaml.gotmpl"),
    ),
)
"""The tools, in the order in which they are named."""


def find_foreign_api(group: str, kind: str) -> ForeignAPI | None:
    """Return the tool that has the documents of a kind."""
    dotted = f".{group}"
    for api in FOREIGN_APIS:
        if any(dotted.endswith(f".{own}") for own in api.groups) and (not api.kinds or kind in api.kinds):
            return api
    return None
