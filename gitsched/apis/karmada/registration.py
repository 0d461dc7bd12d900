"""Karmada's entry in the registry of policy APIs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.karmada.names import (
    APPS_GROUP,
    CLUSTER,
    CLUSTER_BINDING,
    CLUSTER_GROUP,
    CLUSTER_OVERRIDE,
    CLUSTER_POLICY,
    GROUPS,
    POLICY_GROUP,
    REBALANCER,
    RECORD_KINDS,
    TAINT_POLICY,
    TAINT_POLICY_NO_EXECUTE,
    WORK_GROUP,
)
from gitsched.apis.karmada.settings import SETTINGS
from gitsched.apis.karmada.topology import TOPOLOGY
from gitsched.apis.policy_api import DocumentValidator, PolicyAPI, PolicyEngine, RemovedWorkload, StarterFiles, WorkloadSelector
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import ApiKinds, Body, as_object, list_objects, parse_api_group

if TYPE_CHECKING:
    from gitsched.apis.adoption import HubObjects
    from gitsched.apis.cluster_format import ClusterFormat
    from gitsched.apis.gitsched.config import Config

_PROXY_FIELDS = frozenset(("proxyHeader", "proxyURL"))


def _create_engine(snapshot: Snapshot) -> PolicyEngine:
    from gitsched.apis.karmada.engine import KarmadaEngine  # `validate` does not need it

    return KarmadaEngine(snapshot)


def _apply_defaults(body: Body) -> Body:
    from gitsched.apis.karmada.defaulting import apply_defaults  # not needed when all documents come from the cache

    return apply_defaults(body)


def _list_ignored_codes(config: Config) -> frozenset[str]:
    allowed = config.settings_of(SETTINGS).allow_no_execute_taint_policy
    return frozenset({TAINT_POLICY_NO_EXECUTE}) if allowed else frozenset()


def _find_validator(group: str, kind: str) -> DocumentValidator | None:
    from gitsched.apis.karmada.validation.admission import VALIDATORS  # not needed when all documents come from the cache

    return VALIDATORS.get((group, kind))


def _remove_secrets(body: Body) -> Body:
    """Return a Cluster without its proxy, whose address and header may carry a password and which no decision reads."""
    spec = body.get("spec")
    group = str(body.get("apiVersion")).partition("/")[0]
    if group != CLUSTER_GROUP or not isinstance(spec, dict) or _PROXY_FIELDS.isdisjoint(spec):
        return body
    return {**body, "spec": {name: value for name, value in spec.items() if name not in _PROXY_FIELDS}}


def _read_removed_workload(record: Body) -> RemovedWorkload | None:
    from gitsched.apis.karmada.binding.removed_workload import read_removed_workload  # most plans remove nothing

    return read_removed_workload(record)


def _list_selectors(bodies: Iterable[Body]) -> Iterator[WorkloadSelector]:
    """Yield what policies select; everything if one brings dependencies along."""
    for body in bodies:
        if body.get("kind") not in ("PropagationPolicy", CLUSTER_POLICY):
            continue
        spec = as_object(body.get("spec"))
        if spec.get("propagateDeps") is True:
            yield WorkloadSelector()
        for selector in list_objects(spec.get("resourceSelectors")):
            group = parse_api_group(str(selector.get("apiVersion") or ""))
            yield WorkloadSelector(group, str(selector.get("kind") or ""), str(selector.get("name") or ""))


def _load_hub_objects() -> HubObjects:
    from gitsched.apis.karmada.adoption import HUB_OBJECTS  # only `gitsched adopt` needs it

    return HUB_OBJECTS


def _load_starter() -> StarterFiles:
    from gitsched.apis.karmada.starter import STARTER  # only `gitsched init` needs it

    return STARTER


def _load_cluster_format() -> ClusterFormat:
    from gitsched.apis.karmada.cluster.facts import CLUSTER_FORMAT  # most sources have no collected facts

    return CLUSTER_FORMAT


API = PolicyAPI(
    name="karmada",
    groups=GROUPS,
    create_engine=_create_engine,
    kinds=ApiKinds(
        cluster_scoped=frozenset(
            {
                (APPS_GROUP, REBALANCER),
                (CLUSTER_GROUP, CLUSTER),
                (POLICY_GROUP, CLUSTER_OVERRIDE),
                (POLICY_GROUP, CLUSTER_POLICY),
                (POLICY_GROUP, TAINT_POLICY),
                (WORK_GROUP, CLUSTER_BINDING),
            }
        )
    ),
    active_records=RECORD_KINDS,
    settings=SETTINGS,
    apply_defaults=_apply_defaults,
    find_validator=_find_validator,
    remove_secrets=_remove_secrets,
    read_removed_workload=_read_removed_workload,
    list_ignored_codes=_list_ignored_codes,
    list_selectors=_list_selectors,
    load_cluster_format=_load_cluster_format,
    topology=TOPOLOGY,
    load_starter=_load_starter,
    load_hub_objects=_load_hub_objects,
    explained_kinds=("Cluster", "WorkloadRebalancer"),
    absence_codes=frozenset({"karmada-selects-nothing", "karmada-cluster-unknown"}),
    serializable=True,
    preferred_targets="workload",
)
