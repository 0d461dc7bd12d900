"""When a decision is certainly the same if it is made again with the binding that it wrote."""

from __future__ import annotations

from gitsched.apis.karmada import names
from gitsched.apis.karmada.autoscalers import NO_AUTOSCALERS
from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.apis.karmada.failover.state_preservation import PRESERVED_STATE
from gitsched.apis.karmada.policy.propagation_policy import PolicyPlacement
from gitsched.apis.karmada.reschedule_triggers import NO_TRIGGERS
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Body, Document
from gitsched.model.scheduling import Outcome
from gitsched.model.variants import BUNDLE_KIND
from gitsched.schedule.spread_constraints import CLUSTER_FIELD

_UNUSUAL_FIELDS = frozenset(("gracefulEvictionTasks", "requiredBy", "rescheduleTriggeredAt", "suspension"))


def are_bindings_plain(state: KarmadaState) -> bool:
    """Return whether nothing but policies, clusters and workloads has an effect on bindings: no eviction, failback, rebalance, override
    or autoscaler. Without taints that evict, `find_failover` returns None for bindings without eviction tasks."""
    settings, snapshot = state.settings, state.snapshot
    return (
        settings.failback.mode == "Never"
        and not settings.preemption
        and not (snapshot.fixed or snapshot.has_adopted)
        and not (state.may_evict or state.overrides.policies or state.has_dependencies or state.has_followers)
        and state.autoscalers is NO_AUTOSCALERS
        and state.reschedule_triggers is NO_TRIGGERS
    )


def is_repeated(state: KarmadaState, template: Document, outcome: Outcome) -> bool:
    """Return whether a workload is placed so that deciding it again changes nothing. The scheduler starts with the group that it is in.

    A workload whose replicas are divided keeps its clusters if none of the triggers applies. Any other one is scheduled again: its own
    clusters pass the filters again and are ranked first, so a limit of the number of clusters selects them.
    """
    if len(outcome.records) != 1 or template.key[:2] == BUNDLE_KIND or template.key in state.snapshot.variants:
        return False
    body = outcome.records[0][1]
    spec, annotations = body["spec"], body["metadata"]["annotations"]
    policy, _ = state.find_policy(template, body)
    if (
        policy is None
        or policy.is_lazy
        or policy.has_prerequisites
        or policy.key.title != outcome.policy
        or annotations.get(names.APPLIED_PLACEMENT_ANNOTATION) != policy.applied_placement
    ):
        return False
    return (
        outcome.records[0][0] == binding_key(template.key)
        and (outcome.api, outcome.state, outcome.time) == (names.API_NAME, "placed", state.snapshot.at)
        and not (outcome.trigger or outcome.released or outcome.absent or outcome.held or outcome.wakeup)
        and _UNUSUAL_FIELDS.isdisjoint(spec)
        and PRESERVED_STATE not in annotations
        and _is_successful(body)
        and not state.failover.purges_directly(policy)
        and _keeps_clusters(state, policy.placement, outcome.group, spec)
    )


def _is_successful(binding: Body) -> bool:
    return [condition.get("reason") for condition in binding["status"].get("conditions", ())] == ["Success"]


def _keeps_clusters(state: KarmadaState, placement: PolicyPlacement, group_name: str, spec: Body) -> bool:
    group, clusters = placement.groups[placement.find_group_index(group_name)], spec.get("clusters", [])
    if group.name != group_name or not all(entry["name"] in state.fleet.index for entry in clusters):
        return False
    is_workload = bool(spec.get("replicas")) or "replicaRequirements" in spec
    if not (is_workload and placement.is_divided):
        return not group.overflow and all(spread.field == CLUSTER_FIELD for spread in placement.spreads)
    assigned = sum(entry.get("replicas", 0) for entry in clusters)
    return assigned == (spec.get("replicas") or 0) and state.leaving_clusters.isdisjoint(entry["name"] for entry in clusters)
