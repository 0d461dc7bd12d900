"""Open Cluster Management's entry in the registry of policy APIs."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.export import Export, ExportOption
from gitsched.apis.ocm.names import (
    ADDON_GROUP,
    ADDON_KINDS,
    ADDON_SCORE,
    CLUSTER_CLAIM,
    CLUSTER_SCORES,
    CLUSTER_SET,
    DECISION_BASIS,
    GITSCHED_GROUP,
    GROUP,
    GROUPS,
    MANAGED_CLUSTER,
    MANIFEST_WORK_REPLICA_SET,
    OTHER_KINDS,
    PLACEMENT_DECISION,
    PLACEMENT_LABEL,
    ROLLOUT_REPORT,
    WORK_GROUP,
)
from gitsched.apis.ocm.topology import TOPOLOGY
from gitsched.apis.policy_api import (
    ClusterScoring,
    CommandSupport,
    DeliveryReports,
    PolicyAPI,
    RecordDescription,
    WorkloadSelector,
)
from gitsched.apis.registered import Registered
from gitsched.model.document import ApiKinds, Body

_EXPORT_HELP = """Print Placements, PlacementDecisions and workloads as objects for a hub, or for Argo CD.

The Placements have the annotation that keeps the hub's scheduler off, so that it does not replace the decisions. API servers ignore
statuses that are applied with their objects: apply the objects first, then those of --status with `kubectl apply --server-side
--force-conflicts --subresource=status -f -`."""
_EXPORT_OPTIONS = (
    ExportOption(
        "for",
        "hub: Placements, PlacementDecisions and ManifestWorkReplicaSets; works: ManifestWorks; argocd: objects for the"
        " clusterDecisionResource generator.",
        choices=("hub", "works", "argocd"),
        default="hub",
    ),
    ExportOption("status", "Print the statuses, for the subresource status.", flag=True),
    ExportOption("placement", "Only this Placement and its workloads.", metavar="NAMESPACE/NAME"),
    ExportOption("secrets", "Print workloads that contain a Secret, too.", flag=True),
    ExportOption("namespace", "Namespace of Argo CD.", default="argocd", metavar="NAMESPACE"),
    ExportOption("app-url", "Print an ApplicationSet for each Placement, too, which deploys from this repository.", metavar="URL"),
    ExportOption("app-path", "Directory in the repository of --app-url.", default=".", metavar="PATH"),
)


def _list_selectors(bodies: Iterable[Body]) -> Iterable[WorkloadSelector]:
    """Return the objects that follow a Placement: they name it in an annotation."""
    return [WorkloadSelector(annotation=PLACEMENT_LABEL)] if any(body.get("kind") == "Placement" for body in bodies) else []


API = PolicyAPI(
    name="ocm",
    groups=GROUPS,
    list_selectors=_list_selectors,
    selecting_annotation=PLACEMENT_LABEL,
    embedded_objects={(WORK_GROUP, MANIFEST_WORK_REPLICA_SET): ("spec", "manifestWorkTemplate", "workload", "manifests")},
    kinds=ApiKinds(
        cluster_scoped=frozenset(
            {
                (GROUP, MANAGED_CLUSTER),
                (GROUP, CLUSTER_SET),
                (GITSCHED_GROUP, CLUSTER_SCORES),
                (GITSCHED_GROUP, DECISION_BASIS),
                (GITSCHED_GROUP, ROLLOUT_REPORT),
                (GROUP, CLUSTER_CLAIM),
                (WORK_GROUP, "AppliedManifestWork"),
                *((ADDON_GROUP, kind) for kind in ("AddOnTemplate", "ClusterManagementAddOn")),
            }
        ),
        templates=frozenset({*((GROUP, kind) for kind in OTHER_KINDS), *((ADDON_GROUP, kind) for kind in ADDON_KINDS)}),
    ),
    create_engine=Registered("gitsched.apis.ocm.engine", "OcmEngine"),
    apply_defaults=Registered("gitsched.apis.ocm.defaulting", "default"),
    find_validator=Registered("gitsched.apis.ocm.validation", "find_validator"),
    validated_objects={(GITSCHED_GROUP, CLUSTER_SCORES): frozenset()},
    read_removed_workload=Registered("gitsched.apis.ocm.removed_workload", "read_removed_workload"),
    delivery_reports=DeliveryReports(
        GROUPS, Registered("gitsched.apis.ocm.rollout", "list_reporting_clusters"), "ocm-statuses-unknown"
    ),
    scoring=ClusterScoring(
        (GITSCHED_GROUP, CLUSTER_SCORES),
        (GROUP, MANAGED_CLUSTER),
        (GROUP, ADDON_SCORE),
        Registered("gitsched.apis.ocm.cluster_scores", "list_measurements"),
        Registered("gitsched.apis.ocm.cluster_scores", "build_documents"),
        Registered("gitsched.apis.ocm.cluster_scores", "is_current"),
    ),
    load_cluster_format=Registered("gitsched.apis.ocm.cluster_facts", "CLUSTER_FORMAT").load,
    topology=TOPOLOGY,
    serializable=True,
    recorded_decisions=RecordDescription(
        frozenset({(GROUP, PLACEMENT_DECISION)}), Registered("gitsched.apis.ocm.previous_decisions", "describe_decision")
    ),
    preferred_targets="cluster",
    commands=CommandSupport(
        load_starter=Registered("gitsched.apis.ocm.starter", "STARTER").load,
        load_hub_objects=Registered("gitsched.apis.ocm.adoption", "HUB_OBJECTS").load,
        export=Export(
            "Print the objects for an OCM hub or for Argo CD's clusterDecisionResource.",
            _EXPORT_HELP,
            Registered("gitsched.apis.ocm.export", "make_export"),
            _EXPORT_OPTIONS,
        ),
        native_explanation="Open Cluster Management's debug endpoint",
        explained_kinds=("Placement",),
    ),
)
