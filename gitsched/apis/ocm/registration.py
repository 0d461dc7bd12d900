"""Open Cluster Management's entry in the registry of policy APIs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.export import Export, ExportInput, ExportOption, ExportResult
from gitsched.apis.ocm.names import (
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
    DeliveryReports,
    DocumentValidator,
    PolicyAPI,
    PolicyEngine,
    RecordDescription,
    RemovedWorkload,
    ScoreInput,
    ScoreMeasurement,
    StarterFiles,
    WorkloadSelector,
)
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import ApiKinds, Body, Key

if TYPE_CHECKING:
    from gitsched.apis.adoption import HubObjects
    from gitsched.apis.cluster_format import ClusterFormat
    from gitsched.model.scheduling import RecordedDecision


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.ocm.engine import OcmEngine  # most repositories have no Placement

    return OcmEngine(snapshot)


def _apply_defaults(body: Body) -> Body:
    from gitsched.apis.ocm.defaulting import default  # most repositories have no document of it

    return default(body)


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    from gitsched.apis.ocm.validation import VALIDATORS  # most repositories have no document of it

    return VALIDATORS.get((group, kind))


def _describe_record(key: Key, record: Body) -> RecordedDecision | None:
    from gitsched.apis.ocm.previous_decisions import describe_decision  # most repositories have no record of it

    return describe_decision(key, record)


def _list_reporting_clusters(documents: Iterable[Body]) -> set[str]:
    from gitsched.apis.ocm.rollout import list_reporting_clusters  # only rollouts that wait for commit statuses need it

    return list_reporting_clusters(documents)


def _list_measurements(definition: Body) -> list[ScoreMeasurement]:
    from gitsched.apis.ocm.cluster_scores import read_score_definitions  # only `gitsched scores` needs it

    return [
        ScoreMeasurement(one.name, one.source, one.spec, ("spec", "scores", index, one.source))
        for index, one in enumerate(read_score_definitions(definition))
    ]


def _build_score_documents(wanted: ScoreInput) -> list[Body]:
    from gitsched.apis.ocm.cluster_scores import build_documents  # as above

    return build_documents(wanted)


def _is_current(before: Body, document: Body, now: datetime) -> bool:
    from gitsched.apis.ocm.cluster_scores import is_current  # only services that receive scores need it

    return is_current(before, document, now)


def _read_removed_workload(record: Body) -> RemovedWorkload | None:
    from gitsched.apis.ocm.removed_workload import read_removed_workload  # most plans remove nothing

    return read_removed_workload(record)


def _make_export(found: ExportInput) -> ExportResult:
    from gitsched.apis.ocm.export import make_export  # only `gitsched export` needs it

    return make_export(found)


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


def _load_hub_objects() -> HubObjects:
    from gitsched.apis.ocm.adoption import HUB_OBJECTS  # only `gitsched adopt` needs it

    return HUB_OBJECTS


def _load_starter() -> StarterFiles:
    from gitsched.apis.ocm.starter import STARTER  # only `gitsched init` needs it

    return STARTER


def _list_selectors(bodies: Iterable[Body]) -> Iterable[WorkloadSelector]:
    """Return the objects that follow a Placement: they name it in an annotation."""
    return [WorkloadSelector(annotation=PLACEMENT_LABEL)] if any(body.get("kind") == "Placement" for body in bodies) else []


def _load_cluster_format() -> ClusterFormat:
    from gitsched.apis.ocm.cluster_facts import CLUSTER_FORMAT  # most sources have no collected facts

    return CLUSTER_FORMAT


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
            }
        ),
        templates=frozenset((GROUP, kind) for kind in OTHER_KINDS),
    ),
    create_engine=_create_engine,
    apply_defaults=_apply_defaults,
    find_validator=_find_validator,
    validated_objects={(GITSCHED_GROUP, CLUSTER_SCORES): frozenset()},
    read_removed_workload=_read_removed_workload,
    delivery_reports=DeliveryReports(GROUPS, _list_reporting_clusters, "ocm-statuses-unknown"),
    scoring=ClusterScoring(
        (GITSCHED_GROUP, CLUSTER_SCORES),
        (GROUP, MANAGED_CLUSTER),
        (GROUP, ADDON_SCORE),
        _list_measurements,
        _build_score_documents,
        _is_current,
    ),
    load_cluster_format=_load_cluster_format,
    topology=TOPOLOGY,
    load_starter=_load_starter,
    load_hub_objects=_load_hub_objects,
    export=Export(
        "Print the objects for an OCM hub or for Argo CD's clusterDecisionResource.", _EXPORT_HELP, _make_export, _EXPORT_OPTIONS
    ),
    native_explanation="Open Cluster Management's debug endpoint",
    explained_kinds=("Placement",),
    serializable=True,
    recorded_decisions=RecordDescription(frozenset({(GROUP, PLACEMENT_DECISION)}), _describe_record),
    preferred_targets="cluster",
)
