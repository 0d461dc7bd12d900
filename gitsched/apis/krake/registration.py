"""Krake's entry in the registry of policy APIs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitsched.apis.export import Export, ExportInput, ExportOption, ExportResult
from gitsched.apis.krake.names import (
    APPLICATION,
    CLUSTER,
    CORE,
    GLOBAL_CLOUD,
    GROUPS,
    INFRASTRUCTURE,
    MAGNUM_CLUSTER,
    METRIC_KINDS,
    METRICS_PROVIDER_KINDS,
    cluster_directory,
)
from gitsched.apis.krake.secrets import SECRET_FIELDS
from gitsched.apis.krake.settings import SETTINGS
from gitsched.apis.krake.topology import TOPOLOGY
from gitsched.apis.policy_api import (
    DocumentValidator,
    MetricSource,
    PolicyAPI,
    PolicyEngine,
    RecordDescription,
    RemovedWorkload,
    StarterFiles,
)
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import ApiKinds, Body, Key, as_object, get_field

if TYPE_CHECKING:
    from gitsched.apis.adoption import HubObjects
    from gitsched.apis.cluster_format import ClusterFormat
    from gitsched.model.observation import MetricQuery
    from gitsched.model.scheduling import RecordedDecision

_CONSTRAINT_TARGETS = {"Application": "cluster", "Cluster": "cloud"}


def apply_defaults(body: Body) -> Body:
    """Return the body with the constraints that Krake's command line always sends; the same object when it has them."""
    wanted = _CONSTRAINT_TARGETS.get(str(body.get("kind")))
    spec = body.get("spec")
    if wanted is None or body.get("api") != "kubernetes" or not isinstance(spec, dict) or spec.get("constraints") is not None:
        return body
    return {**body, "spec": {**spec, "constraints": {wanted: {}}}}


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.krake.engine import KrakeEngine  # `validate` does not need it

    return KrakeEngine(snapshot)


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    from gitsched.apis.krake.validation import VALIDATORS  # most repositories have no document of it

    return VALIDATORS.get((group, kind))


def _remove_secrets(body: Body) -> Body:
    from gitsched.apis.krake.secrets import remove_secrets  # only copies of broken files need it

    return remove_secrets(body)


def _read_removed_workload(record: Body) -> RemovedWorkload | None:
    target, metadata = get_field(record, "status", "scheduled_to"), as_object(record.get("metadata"))
    if (record.get("api"), record.get("kind")) != APPLICATION or not isinstance(target, dict):
        return None
    from gitsched.apis.krake.status import read_recorded_objects  # most plans remove nothing

    key = Key(*APPLICATION, str(metadata.get("namespace")), str(metadata.get("name")))
    cluster = cluster_directory(str(target.get("namespace")), str(target.get("name")))
    return RemovedWorkload(key, {cluster: None}, objects=read_recorded_objects(record))


def _describe_record(key: Key, record: Body) -> RecordedDecision | None:
    from gitsched.apis.krake.recorded_decisions import describe_record  # most repositories have no record of it

    return describe_record(key, record)


def _list_metric_queries(documents: Iterable[Body]) -> list[MetricQuery]:
    from gitsched.apis.krake.metric_queries import list_metric_queries  # only documents of the group `core` need it

    return list_metric_queries(documents)


def _make_export(found: ExportInput) -> ExportResult:
    from gitsched.apis.krake.api_requests import make_export  # only `gitsched export` needs it

    return make_export(found)


_EXPORT_HELP = """Print the bindings of Clusters to clouds and of MagnumClusters to projects as requests.

The text is commands for a shell: curl with the URL of Krake's API in the variable KRAKE_API, or with --for magnum the openstack client. An
object is created unless it exists, then it is bound. Turn Krake's scheduler off. Applications are not printed, because their manifests are
delivered from the output branch."""
_EXPORT_OPTIONS = (
    ExportOption(
        "for",
        "krake: requests to Krake's API; magnum: creation of the MagnumClusters in their projects.",
        choices=("krake", "magnum"),
        default="krake",
    ),
)


def _load_hub_objects() -> HubObjects:
    from gitsched.apis.krake.adoption import HUB_OBJECTS  # only `gitsched adopt` needs it

    return HUB_OBJECTS


def _load_starter() -> StarterFiles:
    from gitsched.apis.krake.starter import STARTER  # only `gitsched init` needs it

    return STARTER


def _load_cluster_format() -> ClusterFormat:
    from gitsched.apis.krake.cluster_facts import CLUSTER_FORMAT  # most sources have no collected facts

    return CLUSTER_FORMAT


API = PolicyAPI(
    name="krake",
    groups=GROUPS,
    create_engine=_create_engine,
    list_selectors=lambda _: (),
    kinds=ApiKinds(
        cluster_scoped=frozenset(
            (*METRIC_KINDS[:1], *METRICS_PROVIDER_KINDS[:1], GLOBAL_CLOUD, (INFRASTRUCTURE, "GlobalInfrastructureProvider"))
        ),
        unversioned_groups=dict.fromkeys(GROUPS, "krake"),
        secret_fields=SECRET_FIELDS,
    ),
    active_kinds=frozenset({APPLICATION, CLUSTER, MAGNUM_CLUSTER}),
    settings=SETTINGS,
    apply_defaults=apply_defaults,
    find_validator=_find_validator,
    embedded_objects={APPLICATION: ("spec", "manifest")},
    remove_secrets=_remove_secrets,
    read_removed_workload=_read_removed_workload,
    metrics=MetricSource(frozenset({CORE}), _list_metric_queries, "krake-not-asked", "krake-provider-changed"),
    load_cluster_format=_load_cluster_format,
    topology=TOPOLOGY,
    serializable=True,
    recorded_decisions=RecordDescription(frozenset({APPLICATION, CLUSTER, MAGNUM_CLUSTER}), _describe_record),
    preferred_targets="workload",
    load_starter=_load_starter,
    load_hub_objects=_load_hub_objects,
    export=Export(
        "Print the bindings to clouds and projects for Krake's API or Magnum.", _EXPORT_HELP, _make_export, _EXPORT_OPTIONS
    ),
    explained_kinds=("Application", "Cluster", "MagnumCluster"),
    short_names={"app": "Application"},
)
