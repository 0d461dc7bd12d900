"""Reasons in detail: the rule that excludes a cluster, the capacity of each cluster, and how replicas were divided."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.document import Document, get_field
from gitsched.model.explanation import ReplicaShare
from gitsched.model.finding import FieldOrigin, Pointer, format_count, format_names
from gitsched.model.quantity import describe_amount
from gitsched.model.scheduling import CLUSTER_FIELD, REGION_FIELD, Affinity, AffinityGroup, Request, SpreadConstraint
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from gitsched.schedule.assignment import RankedCandidates, ReplicaDivision, Unschedulable, compute_static_weights, plan_divisions
from gitsched.schedule.dispenser import dispense, list_last_rounds, prefers_descending
from gitsched.schedule.estimator import PODS, Capacity, estimate_replicas
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.spread_constraints import score_regions

_SHOWN_ROUNDS = 5
"""Number of last rounds of the dispenser that are shown: they decide which clusters get the remaining replicas."""

_MODE_TEXTS = {
    "fresh": "Fresh: present replicas count as free capacity and are otherwise ignored",
    "scale up": "Scale up: present replicas stay, and the rest is divided by free capacity",
    "scale down": "Scale down: by the replicas that each cluster has now",
    "kept": "Nothing to divide: all replicas are assigned already and stay where they are",
}


def describe_capacity(request: Request, cluster: str, capacity: Capacity | None) -> str:
    """Say how many replicas fit on a cluster and how that is computed; "" when capacity does not matter."""
    if request.division == "everywhere" or not request.replicas:
        return ""
    if capacity is None:
        return "capacity unknown, assumed to be sufficient"
    requested = request.find_resource_request(cluster)
    fits = estimate_replicas(capacity, requested)
    pods = format_count(max(capacity.free.get(PODS, 0), 0), "pod")
    if capacity.grades and requested is not None:
        return f"capacity for {fits}: {pods}, {format_count(sum(grade.nodes for grade in capacity.grades), 'modelled node')}"
    limits = [_describe_resource(capacity, resource, amount) for resource, amount in requested or () if resource != PODS]
    return f"capacity for {fits}: {', '.join([pods, *limits])}"


def _describe_resource(capacity: Capacity, resource: str, amount: int) -> str:
    available = capacity.free.get(resource)
    if available is None:
        return f"no {resource}"
    free = max(available, 0)
    return f"{resource} {describe_amount(resource, free)} / {describe_amount(resource, amount)} = {free // amount}"


def describe_selection(request: Request, fleet: Fleet, ranked: RankedCandidates, chosen: list[int]) -> list[str]:
    """Say which of the feasible clusters the workload prefers, which the spread constraints select, in order of preference, and which
    maxGroups leaves out; nothing without either."""
    after = "" if request.fresh or not request.previous else ", after those that it has"
    preferred = ", ".join(fleet.names[i] for i in ranked.preferred)
    first = [f"Preferred clusters come first{after}: {preferred}"] if preferred else []
    if not request.spread_constraints:
        return first
    spreads = {spread.field: spread for spread in request.spread_constraints}
    names = ", ".join(fleet.names[i] for i in chosen)
    spread = [f"Spread over {_describe_spread(spreads[field])}: {names}" for field in (CLUSTER_FIELD,) if field in spreads]
    lines = [*first, *spread]
    if spreads.keys() == {CLUSTER_FIELD} and len(chosen) >= spreads[CLUSTER_FIELD].maximum:
        lines += _describe_left_out(fleet, ranked, chosen)
    if REGION_FIELD in spreads:
        cluster = spreads.get(CLUSTER_FIELD) or SpreadConstraint(CLUSTER_FIELD, 0, 0)
        selected = {name for i in chosen for name in fleet.candidates[i].fields.get(REGION_FIELD, ())[:1]}
        regions = score_regions(request, fleet, ranked, spreads[REGION_FIELD], cluster)
        lines += [
            f"{'selected' if region.name in selected else 'not selected'}: region {region.name}, score {region.score}, "
            f"clusters {', '.join(fleet.names[i] for i in region.members)}"
            for region in sorted(regions, key=lambda region: (-region.total, region.name))
        ]
    return lines


def _describe_left_out(fleet: Fleet, ranked: RankedCandidates, chosen: list[int]) -> list[str]:
    left = sorted(fleet.names[i] for i in ranked.order if i not in chosen)
    return [f"maxGroups of clusters leaves out {format_names(left)}"] if left else []


def _describe_spread(spread: SpreadConstraint) -> str:
    return f"{spread.minimum} to {spread.maximum} {spread.field}s"


def describe_division(
    request: Request, fleet: Fleet, ranked: RankedCandidates, chosen: list[int], assigned: Mapping[str, int]
) -> tuple[list[str], tuple[ReplicaShare, ...]]:
    """Say by which rule replicas are divided, with the last rounds of the dispenser; and each cluster's weight and share."""
    match request.division:
        case "everywhere":
            rule = "It has no replicas to divide: every cluster that passes gets the manifest."
            return [rule], tuple(ReplicaShare(name) for name in assigned)
        case "duplicated":
            all_replicas = "the replica, whether or not it fits"
            if request.replicas != 1:
                all_replicas = f"all {request.replicas} replicas, whether or not they fit"
            rule = f"Duplicated: every cluster that passes gets {all_replicas}."
            return [rule], tuple(ReplicaShare(name, None, count) for name, count in assigned.items())
        case "static":
            weights = compute_static_weights(request, fleet, sorted(chosen))
            lines = [f"Divided by static weight, without regard to capacity: {_describe_dispenser(request, request.replicas)}"]
            lines += _describe_rounds(request, fleet, request.replicas, [(i, weight) for i, weight in weights.items() if weight])
            return lines, tuple(
                ReplicaShare(fleet.names[i], weight, assigned.get(fleet.names[i], 0)) for i, weight in weights.items()
            )
    try:
        divisions = plan_divisions(request, fleet, ranked, chosen)
    except Unschedulable:
        return [], ()
    lines = []
    all_weights: dict[int, int] = {}
    for division in divisions:
        lines += _describe_group_division(request, fleet, division, len(ranked.tiers) > 1)
        all_weights |= dict(division.weighted.pairs)
    shares = (
        ReplicaShare(fleet.names[i], all_weights.get(i), assigned.get(fleet.names[i], 0)) for i in sorted({*all_weights, *chosen})
    )
    return lines, tuple(share for share in shares if share.replicas or share.weight is not None)


def _describe_group_division(request: Request, fleet: Fleet, division: ReplicaDivision, tiers: bool) -> list[str]:
    where = "" if not tiers else "In the group itself: " if not division.tier else f"In overflow set {division.tier}: "
    where += "On preferred clusters first: " if division.is_preferred else ""
    if division.mode == "kept":
        return [f"{where}{_MODE_TEXTS['kept']}."]
    kind = (
        "Aggregated, over as few clusters as have enough capacity"
        if request.division == "aggregated"
        else "Divided by available replicas"
    )
    kept = ", ".join(f"{fleet.names[i]} {count}" for i, count in sorted(division.assigned.items()))
    stays = f" (stays: {kept})" if kept else ""
    text = f"{where}{kind}. {_MODE_TEXTS[division.mode]}{stays}. {_describe_dispenser(request, division.replicas)}"
    return [text, *_describe_rounds(request, fleet, division.replicas, division.weighted.pairs)]


def _describe_dispenser(request: Request, replicas: int) -> str:
    if prefers_descending(request.identity):
        tie = "to the last name, because the hash of the workload's uid is odd"
    else:
        tie = f"to the first name, because {'the hash of its uid is even' if request.identity else 'it has no uid'}"
    how = "each goes to the largest weight / (2 × replicas so far + 1)"
    return f"{format_count(replicas, 'replica')}, {how}; a tie goes to fewer replicas, then {tie}."


def _describe_rounds(request: Request, fleet: Fleet, replicas: int, weights: list[tuple[int, int]]) -> list[str]:
    """Return the last rounds, and the clusters that rounding gave more than their exact proportion."""
    weights = sorted(weights)
    names, numbers = [fleet.names[i] for i, _ in weights], [weight for _, weight in weights]
    total = sum(numbers)
    if len(weights) < 2 or not total:
        return []
    descending = prefers_descending(request.identity)
    rounds = list_last_rounds(replicas, numbers, _SHOWN_ROUNDS, descending)
    omitted = rounds[0].seat - 1 if rounds else 0
    lines = [f"{format_count(omitted, 'replica')} before these: in the same way, not listed"] if omitted else []
    for last in rounds:
        quotient = f"{numbers[last.party]} / {2 * last.before + 1} = {last.quotient:.4g}"
        lines.append(f"replica {last.seat}: {names[last.party]}, {quotient}")
    assigned = dispense(replicas, numbers, descending)
    rounded_up = [name for name, weight, count in zip(names, numbers, assigned, strict=True) if count * total > replicas * weight]
    if rounded_up:
        lines.append(f"More than the exact proportion: {', '.join(rounded_up)}")
    return lines


def find_excluding_rule(
    filter_name: str,
    candidate: Candidate,
    request: Request,
    group: AffinityGroup,
    policy: PropagationPolicy,
    cluster: Document | None,
) -> FieldOrigin | None:
    """Return the field by which a filter rejected a candidate; None when no document has one."""
    match filter_name:
        case "ClusterAffinity":
            return _make_rule(policy.document, _affinity_pointer(candidate, request, group))
        case "SpreadConstraint":
            return _make_rule(policy.document, ("spec", "placement", "spreadConstraints"))
        case "TaintToleration":
            return _make_rule(cluster, _taint_pointer(candidate, request, cluster))
        case "APIEnablement":
            return _make_rule(cluster, ("status", "apiEnablements"))
        case "ClusterEviction":
            return _find_eviction_rule(candidate, request, policy, cluster)
        case "":  # the Cluster is being deleted, or its document is invalid
            return _make_rule(cluster, ("metadata", "deletionTimestamp"))
    return None


def _make_rule(document: Document | None, pointer: Pointer) -> FieldOrigin | None:
    return FieldOrigin(document.origin, pointer) if document is not None and document.origin is not None else None


def _affinity_pointer(candidate: Candidate, request: Request, group: AffinityGroup) -> Pointer:
    placement: Pointer = ("spec", "placement")
    term = (*placement, "clusterAffinities", request.groups.index(group)) if group.name else (*placement, "clusterAffinity")
    if group.affinity is None or group.overflow:
        return term
    return (*term, find_failing_member(group.affinity, candidate))


def find_failing_member(affinity: Affinity, candidate: Candidate) -> str:
    """Return the first member of an affinity that does not match a candidate."""
    if affinity.names and candidate.name not in affinity.names:
        return "clusterNames"
    if candidate.name in affinity.exclude:
        return "exclude"
    if affinity.invalid or (affinity.labels is not None and not affinity.labels.matches(candidate.labels)):
        return "labelSelector"
    return "fieldSelector"


def _taint_pointer(candidate: Candidate, request: Request, cluster: Document | None) -> Pointer:
    for taint in candidate.taints:
        if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in request.tolerations):
            return _locate_taint(taint, cluster)
    return ("spec", "taints")


def _locate_taint(taint: Taint, cluster: Document | None) -> Pointer:
    """Return where a taint is defined; one that is not in spec.taints follows from the conditions."""
    written = (get_field(cluster.body, "spec", "taints") if cluster is not None else None) or ()
    known = (i for i, entry in enumerate(written) if (entry.get("key"), entry.get("effect")) == (taint.key, taint.effect))
    index = next(known, None)
    return ("status", "conditions") if index is None else ("spec", "taints", index)


def _find_eviction_rule(
    candidate: Candidate, request: Request, policy: PropagationPolicy, cluster: Document | None
) -> FieldOrigin | None:
    """Return the taint that evicted the workload, or the toleration that has expired."""
    for taint in candidate.taints:
        if taint.effect != NO_EXECUTE:
            continue
        for number, toleration in enumerate(request.tolerations):
            if toleration.tolerates(taint):
                return _make_rule(policy.document, ("spec", "placement", "clusterTolerations", number))
        return _make_rule(cluster, _locate_taint(taint, cluster))
    return None
