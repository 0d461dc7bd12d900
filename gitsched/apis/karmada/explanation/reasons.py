"""Reasons in detail: the rule that excludes a cluster, the capacity of each cluster, and how replicas were divided."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.model.document import Document, get_field
from gitsched.model.explanation import ReplicaShare
from gitsched.model.finding import FieldOrigin, Pointer
from gitsched.model.quantity import format_count
from gitsched.model.scheduling import Affinity, AffinityGroup, Request, SpreadConstraint
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from gitsched.schedule.assignment import ReplicaDivision, Unschedulable, compute_static_weights, plan_divisions
from gitsched.schedule.dispenser import dispense, list_last_rounds, prefers_descending
from gitsched.schedule.estimator import PODS, Capacity, estimate_replicas
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.spread_constraints import CLUSTER_FIELD, REGION_FIELD, RankedCandidates, score_regions

_SHOWN_ROUNDS = 5
"""The last rounds of the dispenser are shown: they decide who gets what is left over."""

_MODE_TEXTS = {
    "fresh": "Fresh: what is there now counts as room, and is otherwise forgotten",
    "scale up": "Scale up: what is there stays, and the rest is divided by room",
    "scale down": "Scale down: by what each cluster has now",
    "kept": "Nothing to divide: all replicas are placed already, and stay where they are whatever room there is",
}


def describe_capacity(request: Request, room: Capacity | None) -> str:
    """How many replicas fit on a cluster and by what arithmetic; "" where it does not matter."""
    if request.division == "everywhere" or not request.replicas:
        return ""
    if room is None:
        return "room unknown, taken to be enough"
    fits = estimate_replicas(room, request.resource_request)
    pods = f"{max(room.free.get(PODS, 0), 0)} pods"
    if room.grades and request.resource_request is not None:
        return f"room for {fits}: {pods}, {sum(grade.nodes for grade in room.grades)} modelled nodes"
    limits = [_describe_resource(room, resource, amount) for resource, amount in request.resource_request or ()]
    return f"room for {fits}: {', '.join([pods, *limits])}"


def _describe_resource(room: Capacity, resource: str, amount: int) -> str:
    free = room.free.get(resource)
    if free is None:
        return f"no {resource}"
    return f"{resource} {format_amount(resource, max(free, 0))} / {format_amount(resource, amount)} = {max(free, 0) // amount}"


def format_amount(resource: str, count: int) -> str:
    """An amount of a resource (cpu in thousandths) as Kubernetes writes it."""
    return format_count(resource, count, binary=resource != "cpu")


def describe_selection(request: Request, fleet: Fleet, survey: RankedCandidates, chosen: list[int]) -> list[str]:
    """What spread constraints made of the clusters that fit, in the order of preference; nothing where there are none."""
    if not request.spread_constraints:
        return []
    spreads = {spread.field: spread for spread in request.spread_constraints}
    names = ", ".join(fleet.names[i] for i in chosen)
    lines = [f"Spread over {_describe_spread(spreads[field])}: {names}" for field in (CLUSTER_FIELD,) if field in spreads]
    if REGION_FIELD in spreads:
        cluster = spreads.get(CLUSTER_FIELD) or SpreadConstraint(CLUSTER_FIELD, 0, 0)
        taken = {name for i in chosen for name in fleet.candidates[i].fields.get(REGION_FIELD, ())[:1]}
        regions = score_regions(request, fleet, survey, spreads[REGION_FIELD], cluster)
        lines += [
            f"{'taken' if region.name in taken else 'not taken'}: region {region.name}, score {region.score}, "
            f"clusters {', '.join(fleet.names[i] for i in region.members)}"
            for region in sorted(regions, key=lambda region: (-region.score, region.name))
        ]
    return lines


def _describe_spread(spread: SpreadConstraint) -> str:
    return f"{spread.minimum} to {spread.maximum} {spread.field}s"


def describe_division(
    request: Request, fleet: Fleet, survey: RankedCandidates, chosen: list[int], seats: Mapping[str, int]
) -> tuple[list[str], tuple[ReplicaShare, ...]]:
    """By which rule replicas were divided, with the rounds that decided who got the last ones; and each cluster's weight and share."""
    match request.division:
        case "everywhere":
            rule = "It has no replicas to divide: every cluster that passes gets the manifest."
            return [rule], tuple(ReplicaShare(name) for name in seats)
        case "duplicated":
            rule = f"Duplicated: every cluster that passes gets all {request.replicas} replicas."
            return [rule], tuple(ReplicaShare(name, None, count) for name, count in seats.items())
        case "static":
            weights = compute_static_weights(request, fleet, sorted(chosen))
            lines = [f"Divided by static weight: {_describe_dispenser(request, request.replicas)}"]
            lines += _describe_rounds(request, fleet, request.replicas, [(i, weight) for i, weight in weights.items() if weight])
            return lines, tuple(ReplicaShare(fleet.names[i], weight, seats.get(fleet.names[i], 0)) for i, weight in weights.items())
    try:
        divisions = plan_divisions(request, fleet, survey, chosen)
    except Unschedulable:
        return [], ()
    lines = []
    weighed: dict[int, int] = {}
    for number, division in enumerate(divisions):
        lines += _describe_group_division(request, fleet, division, number, len(survey.tiers) > 1)
        weighed |= dict(division.weights)
    shares = (ReplicaShare(fleet.names[i], weighed.get(i), seats.get(fleet.names[i], 0)) for i in sorted({*weighed, *chosen}))
    return lines, tuple(share for share in shares if share.replicas or share.weight is not None)


def _describe_group_division(request: Request, fleet: Fleet, division: ReplicaDivision, number: int, tiers: bool) -> list[str]:
    where = "" if not tiers else "In the group itself: " if not number else f"In overflow set {number}: "
    if division.mode == "kept":
        return [f"{where}{_MODE_TEXTS['kept']}."]
    kind = "Aggregated, over as few clusters as have room" if request.division == "aggregated" else "Divided by available replicas"
    kept = ", ".join(f"{fleet.names[i]} {count}" for i, count in sorted(division.assigned.items()))
    stays = f" (stays: {kept})" if kept else ""
    text = f"{where}{kind}. {_MODE_TEXTS[division.mode]}{stays}. {_describe_dispenser(request, division.replicas)}"
    return [text, *_describe_rounds(request, fleet, division.replicas, division.weights)]


def _describe_dispenser(request: Request, goal: int) -> str:
    if prefers_descending(request.identity):
        tie = "to the last name, because the hash of the workload's uid is odd"
    else:
        tie = f"to the first name, because {'the hash of its uid is even' if request.identity else 'it has no uid'}"
    how = "each goes to the largest weight / (2 × replicas so far + 1)"
    return f"{goal} replicas, {how}; a tie goes to fewer replicas, then {tie}."


def _describe_rounds(request: Request, fleet: Fleet, goal: int, weights: list[tuple[int, int]]) -> list[str]:
    """The last rounds, and whom rounding favoured."""
    parties = sorted(weights)
    names, votes = [fleet.names[i] for i, _ in parties], [weight for _, weight in parties]
    total = sum(votes)
    if len(parties) < 2 or not total:
        return []
    descending = prefers_descending(request.identity)
    lines = []
    for seat in list_last_rounds(goal, votes, _SHOWN_ROUNDS, descending):
        lines.append(f"replica {seat.seat}: {names[seat.party]}, {votes[seat.party]} / {2 * seat.before + 1} = {seat.quotient:.4g}")
    seats = dispense(goal, votes, descending)
    favoured = [name for name, vote, count in zip(names, votes, seats, strict=True) if count * total > goal * vote]
    if favoured:
        lines.append(f"More than the exact proportion: {', '.join(favoured)}")
    return lines


def find_excluding_rule(
    filter_name: str,
    candidate: Candidate,
    request: Request,
    group: AffinityGroup,
    policy: PropagationPolicy,
    cluster: Document | None,
) -> FieldOrigin | None:
    """The rule by which a filter refused a candidate; None where nothing that somebody wrote did."""
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
        case "":  # the Cluster itself is being deleted, or broken
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
    """The first member of an affinity that does not hold for a candidate."""
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
    """A taint that the document does not have comes from its conditions."""
    written = (get_field(cluster.body, "spec", "taints") if cluster is not None else None) or ()
    known = (i for i, entry in enumerate(written) if (entry.get("key"), entry.get("effect")) == (taint.key, taint.effect))
    index = next(known, None)
    return ("status", "conditions") if index is None else ("spec", "taints", index)


def _find_eviction_rule(
    candidate: Candidate, request: Request, policy: PropagationPolicy, cluster: Document | None
) -> FieldOrigin | None:
    """The taint that evicted; where it is tolerated for a time, the toleration, whose time is over."""
    for taint in candidate.taints:
        if taint.effect != NO_EXECUTE:
            continue
        for number, toleration in enumerate(request.tolerations):
            if toleration.tolerates(taint):
                return _make_rule(policy.document, ("spec", "placement", "clusterTolerations", number))
        return _make_rule(cluster, _locate_taint(taint, cluster))
    return None
