"""What findings say of a workload that is not placed, or only in part."""

from __future__ import annotations

from gitsched.apis.karmada.binding.resource_binding import ScheduleResult
from gitsched.apis.karmada.interpreter import ReplicaRequirements
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Document
from gitsched.model.finding import Finding, Severity, format_count, format_part, locate_document
from gitsched.model.quantity import describe_amount
from gitsched.model.scheduling import Assignment, Decision, Request
from gitsched.schedule.assignment import rank_candidates
from gitsched.schedule.estimator import PODS
from gitsched.schedule.fleet import Fleet, find_feasible
from gitsched.schedule.spread_constraints import LACKS_RESOURCE


def describe_quota(state: KarmadaState, template: Document, result: ScheduleResult) -> str:
    """Return which quota stops a workload, and by how much; "" if none does."""
    if state.queue is None or result.reason != "QuotaExceeded":
        return ""
    return f"; {state.queue.quota_refusals.get(template.key)}"


def make_binding_finding(template: Document, severity: Severity, code: str, message: str) -> Finding:
    """Return a finding about a workload."""
    return Finding(severity, code, message, locate_document(template), template.key.resource)


def describe_unplaced_replicas(requirements: ReplicaRequirements, divided: bool, clusters: tuple[Assignment, ...]) -> str:
    """Return how many replicas are not assigned to a cluster; of a workload that is not divided all or none."""
    replicas = requirements.replicas or 0
    missing = replicas - sum(target.replicas for target in clusters) if divided or not clusters else 0
    return f" ({format_part(missing, replicas, 'replica', 'is', 'are')} unplaced)" if missing > 0 else ""


def describe_shortage(request: Request, decision: Decision | None, fleet: Fleet) -> str:
    """Return which cluster comes nearest to what a workload lacks, and the resource that is scarcest there, as a sentence after the
    message; "" if no lack of capacity stops it. Without room for a replica, the one with the largest part of what one requests is the
    nearest. What a cluster "reports" does not count what others of this run take there."""
    if decision is None or (decision.status != "unschedulable" and LACKS_RESOURCE not in decision.message):
        return ""
    group = request.groups[request.first_group]
    ranked = rank_candidates(request, group, fleet, find_feasible(request, group, fleet))
    nearest: tuple[int, float, str] | None = None
    verb = "reports" if request.remaining is None else "has"
    for index in ranked.order:
        known = fleet.candidates[index].capacity if request.remaining is None else request.remaining.read_capacity(index)
        if known is None:
            return ""
        name, fits = fleet.names[index], ranked.allocatable_replicas[index]
        needed = ((resource, amount) for resource, amount in request.find_resource_request(name) or () if amount > 0)
        parts = [(max(known.free.get(resource, 0), 0) / amount, resource, amount) for resource, amount in needed]
        share, resource, amount = min([(max(known.free.get(PODS, 0), 0), PODS, 1), *parts])
        if nearest is None or (fits, share) > nearest[:2]:
            free = describe_amount(resource, max(known.free.get(resource, 0), 0))
            has = f"{verb} {free} {resource} free, and each requests {describe_amount(resource, amount)}"
            if share >= 1 and not fits:
                has = "has no node with enough free for one"
            nearest = fits, share, f"{name} {has}"
    if nearest is None:
        return ""
    room = f"Most room is for {format_count(nearest[0], 'replica')}" if nearest[0] else "No cluster has room for a replica"
    return f"{'' if decision.message.endswith('.') else '.'} {room}: {nearest[2]}."
