"""Report where the preferred clusters of a workload have no effect on its binding."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.preferences import describe_unused, make_unknown_finding, make_unused_finding, read_names
from gitsched.model.document import Document
from gitsched.model.finding import Finding
from gitsched.model.scheduling import Assignment
from gitsched.schedule import pipeline
from gitsched.schedule.fleet import find_feasible

if TYPE_CHECKING:
    from gitsched.apis.karmada.binding.resource_binding import SchedulingPass
    from gitsched.apis.karmada.state import KarmadaState
    from gitsched.model.scheduling import AffinityGroup, Request

ATTACHED = "no policy selects it, so it goes where the workloads that depend on it go: annotate these"


def find_preference_findings(state: KarmadaState, template: Document, last: SchedulingPass | None) -> Iterator[Finding]:
    """Yield the findings about the annotation of a workload after the last pass over it; None if no policy selects it."""
    names = yield from read_names(template)
    if not names:
        return
    unknown = [name for name in names if name not in state.fleet.index]
    if unknown:
        yield make_unknown_finding(template, unknown, state.fleet.names, "Cluster")
    if last is None:
        yield make_unused_finding(template, ATTACHED)
        return
    known = [name for name in names if name in state.fleet.index]
    reason = _find_reason(state, template, last, known) if known else ""
    if reason:
        yield make_unused_finding(template, reason)


def _find_reason(state: KarmadaState, template: Document, last: SchedulingPass, names: list[str]) -> str:
    """Return why some preferred clusters have no effect; "" if there is nothing to report."""
    request, outcome = last.request, last.outcome
    match request.division:
        case "static":
            return "static weights divide the replicas among all clusters that its policy allows"
        case "duplicated" | "everywhere" if not request.spread_constraints:
            return "its policy chooses all clusters that it allows; limit their number with spread constraints"
    placed = outcome.replicas_by_cluster
    running = tuple(Assignment(name, count or 0) for name, count in placed.items())
    fresh = request._replace(fresh=True, first_group=0, previous=running)
    decision = pipeline.schedule(fresh, state.fleet)
    rescheduled = {target.name for target in decision.assignments if target.replicas or not request.divides}
    group = next((group for group in request.groups if group.name == decision.group), request.groups[0])
    stays = [name for name in names if name in rescheduled and name not in placed]
    left = [name for name in names if name not in rescheduled and name not in placed]
    parts = dict(_explain_left(state, fresh, group, left, rescheduled.difference(names)))
    return describe_unused(template, parts, stays, placed)


def _explain_left(
    state: KarmadaState, request: Request, group: AffinityGroup, names: list[str], others: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield why each of these clusters would not be chosen. A cluster that is not needed, because others come before it, is left out."""
    feasible = find_feasible(request, group, state.fleet)
    for name in names:
        index = state.fleet.index[name]
        if not feasible >> index & 1:
            result = pipeline.explain_candidate(request, group, state.fleet, index)
            where = f" in group {group.name}" if group.name else ""
            yield name, f"not allowed{where}: {result.reason or 'cluster(s) did not pass the filters'}"
        elif others:
            yield name, "without capacity for it, or left out by the spread constraints"
