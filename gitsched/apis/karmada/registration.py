"""Karmada's entry in the registry of policy APIs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gitsched.apis.karmada.names import (
    APPS_GROUP,
    CLUSTER,
    CLUSTER_BINDING,
    CLUSTER_GROUP,
    CLUSTER_OVERRIDE,
    CLUSTER_POLICY,
    CONFIG_GROUP,
    CUSTOMIZATION,
    GROUPS,
    INTERPRETER_WEBHOOK,
    POLICY,
    POLICY_GROUP,
    REBALANCER,
    RECORD_KINDS,
    REMEDY_GROUP,
    TAINT_POLICY,
    WORK_GROUP,
)
from gitsched.apis.karmada.settings import SETTINGS
from gitsched.apis.karmada.topology import TOPOLOGY
from gitsched.apis.policy_api import CommandSupport, EvictionRecords, PolicyAPI, WorkloadSelector
from gitsched.apis.registered import Registered
from gitsched.model.document import ApiKinds, Body, as_object, list_objects, parse_api_group

_PROXY_FIELDS = frozenset(("proxyHeader", "proxyURL"))


def _remove_secrets(body: Body) -> Body:
    """Return a Cluster without its proxy, whose address and header may carry a password and which no decision reads."""
    spec = body.get("spec")
    group = str(body.get("apiVersion")).partition("/")[0]
    if group != CLUSTER_GROUP or not isinstance(spec, dict) or _PROXY_FIELDS.isdisjoint(spec):
        return body
    return {**body, "spec": {name: value for name, value in spec.items() if name not in _PROXY_FIELDS}}


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


API = PolicyAPI(
    name="karmada",
    groups=GROUPS,
    create_engine=Registered("gitsched.apis.karmada.engine", "KarmadaEngine"),
    kinds=ApiKinds(
        cluster_scoped=frozenset(
            {
                (APPS_GROUP, REBALANCER),
                (CLUSTER_GROUP, CLUSTER),
                (CONFIG_GROUP, CUSTOMIZATION),
                (CONFIG_GROUP, INTERPRETER_WEBHOOK),
                (POLICY_GROUP, CLUSTER_OVERRIDE),
                (POLICY_GROUP, CLUSTER_POLICY),
                (POLICY_GROUP, TAINT_POLICY),
                (REMEDY_GROUP, "Remedy"),
                ("search.karmada.io", "ResourceRegistry"),
                (WORK_GROUP, CLUSTER_BINDING),
            }
        ),
        priority_classes=dict.fromkeys(
            ((POLICY_GROUP, POLICY), (POLICY_GROUP, CLUSTER_POLICY)), ("spec", "schedulePriority", "priorityClassName")
        ),
    ),
    active_records=RECORD_KINDS,
    settings=SETTINGS,
    apply_defaults=Registered("gitsched.apis.karmada.defaulting", "apply_defaults"),
    find_validator=Registered("gitsched.apis.karmada.validation.admission", "find_validator"),
    remove_secrets=_remove_secrets,
    read_removed_workload=Registered("gitsched.apis.karmada.binding.removed_workload", "read_removed_workload"),
    list_selectors=_list_selectors,
    load_cluster_format=Registered("gitsched.apis.karmada.cluster.facts", "CLUSTER_FORMAT").load,
    topology=TOPOLOGY,
    absence_codes=frozenset({"karmada-selects-nothing", "karmada-cluster-unknown", "karmada-workload-affinity-unused"}),
    serializable=True,
    preferred_targets="workload",
    commands=CommandSupport(
        load_starter=Registered("gitsched.apis.karmada.starter", "STARTER").load,
        load_hub_objects=Registered("gitsched.apis.karmada.adoption", "HUB_OBJECTS").load,
        explained_kinds=("Cluster", "WorkloadRebalancer"),
        evictions=EvictionRecords(
            b"ApplicationFailure",
            Registered("gitsched.apis.karmada.binding.resource_binding", "binding_key"),
            Registered("gitsched.apis.karmada.failover.recorded_evictions", "list_recorded_evictions"),
        ),
    ),
)
