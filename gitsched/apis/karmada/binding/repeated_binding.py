"""When a decision is certainly the same if it is made again with the binding that it wrote."""

from __future__ import annotations

from gitsched.apis.karmada import names
from gitsched.apis.karmada.autoscalers import NO_AUTOSCALERS
from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.apis.karmada.failover.state_preservation import PRESERVED_STATE
from gitsched.apis.karmada.policy.policy_options import find_missing_prerequisite
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.policy.request_class import build_request_class
from gitsched.apis.karmada.reschedule_triggers import NO_TRIGGERS
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Body, Document
from gitsched.model.scheduling import CLUSTER_FIELD, Outcome
from gitsched.model.variants import BUNDLE_KIND
from gitsched.schedule.request_classes import RequestClass, find_feasible_of_class

_UNUSUAL_FIELDS = frozenset(("components", "gracefulEvictionTasks", "requiredBy", "rescheduleTriggeredAt", "suspension"))


def are_bindings_plain(state: KarmadaState) -> bool:
    """Return whether nothing but policies, clusters, workloads, groups and quotas has an effect on bindings: no eviction, rebalance,
    override or autoscaler. Without taints that evict, a binding without eviction tasks stays where it is."""
    snapshot = state.snapshot
    return (
        not state.settings.preemption
        and not (snapshot.fixed or snapshot.has_adopted)
        and not (state.may_evict or state.overrides.policies)
        and state.autoscalers is NO_AUTOSCALERS
        and state.reschedule_triggers is NO_TRIGGERS
        and not state.interpreted_kinds
    )


def is_repeated(state: KarmadaState, template: Document, outcome: Outcome) -> bool:
    """Return whether a workload is placed so that deciding it again changes nothing. The scheduler starts with the group that it is in.

    A workload whose replicas are divided keeps its clusters if none of the triggers applies. Any other one is scheduled again, if the
    filters let the same clusters pass. Its own rank first, so a limit of the number of clusters selects them. No earlier group can get it
    back if it is in the first one.
    """
    if len(outcome.records) != 1 or template.key[:2] == BUNDLE_KIND or template.key in state.snapshot.variants:
        return False
    body = outcome.records[0][1]
    spec, annotations = body["spec"], body["metadata"]["annotations"]
    policy, _ = state.find_policy(template, body)
    if (
        policy is None
        or policy.key.title != outcome.policy
        or annotations.get(names.APPLIED_PLACEMENT_ANNOTATION) != policy.applied_placement
        or _may_wait(state, template, policy)
    ):
        return False
    return (
        outcome.records[0][0] == binding_key(template.key)
        and (outcome.api, outcome.state, outcome.time) == (names.API_NAME, "placed", state.snapshot.at)
        and not _is_changing(outcome)
        and _UNUSUAL_FIELDS.isdisjoint(spec)
        and PRESERVED_STATE not in annotations
        and _is_successful(body)
        and not state.failover.purges_directly(policy)
        and _keeps_clusters(state, template, policy, outcome.group, spec)
    )


def _is_changing(outcome: Outcome) -> bool:
    """Return whether more happens to a workload than that it is placed."""
    if outcome.trigger or outcome.released or outcome.absent or outcome.held or outcome.wakeup:
        return True
    return any(target.waits for target in outcome.targets)


def _may_wait(state: KarmadaState, template: Document, policy: PropagationPolicy) -> bool:
    """Return whether a policy may not apply as it is now, or not yet."""
    if policy.is_lazy:
        return True
    if policy.has_prerequisites and find_missing_prerequisite(policy, template, state.overrides, state.snapshot.templates):
        return True
    return state.queue is not None and state.queue.refuses_update(template)


def _is_successful(binding: Body) -> bool:
    return [condition.get("reason") for condition in binding["status"].get("conditions", ())] == ["Success"]


def _keeps_clusters(state: KarmadaState, template: Document, policy: PropagationPolicy, group_name: str, spec: Body) -> bool:
    placement, fleet, clusters = policy.placement, state.fleet, [entry["name"] for entry in spec.get("clusters", [])]
    position = placement.find_group_index(group_name)
    group = placement.groups[position]
    if group.name != group_name or not all(name in fleet.index for name in clusters):
        return False
    if position and state.settings.failback.mode != "Never":
        return False
    is_workload = bool(spec.get("replicas")) or "replicaRequirements" in spec
    if is_workload and placement.is_divided:
        assigned = sum(entry.get("replicas", 0) for entry in spec.get("clusters", []))
        return assigned == (spec.get("replicas") or 0) and state.leaving_clusters.isdisjoint(clusters)
    if state.queue is not None and state.queue.find_groups(template):
        return False
    api, division = (template.api_version, template.key.kind), placement.division if is_workload else "everywhere"
    request = build_request_class(state, policy, api, division, position)
    feasible = fleet.get_or_compute(
        ("feasible", policy.key, api, division, position), lambda: find_feasible_of_class(request, group, fleet)
    )
    if feasible is None or group.overflow:
        return False
    chosen = fleet.mask(clusters)
    return _selects(request, feasible.select(chosen), chosen)


def _selects(request: RequestClass, feasible: int, chosen: int) -> bool:
    """Return whether the spread constraints select what was chosen before, which ranks first, of the feasible candidates."""
    if chosen & ~feasible:
        return False
    if not request.spread_constraints:
        return chosen == feasible
    spread, count = request.spread_constraints[-1], feasible.bit_count()
    if any(one.field != CLUSTER_FIELD for one in request.spread_constraints):
        return False
    return spread.minimum <= count and chosen.bit_count() == min(count, spread.maximum)
