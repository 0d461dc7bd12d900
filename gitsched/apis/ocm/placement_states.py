"""The current decisions of Placements, as their workloads read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from gitsched.apis.ocm.placement_findings import describe_no_decision, describe_skipped
from gitsched.apis.ocm.previous_decisions import DecisionIndex
from gitsched.apis.ocm.scheduling import SchedulingRun
from gitsched.model.document import Body, Key, get_field
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Fleet


class PlacementState(NamedTuple):
    """The current decisions of a Placement, its clustersPerDecisionGroup, when the decisions can change without a commit, and why
    they have no cluster."""

    decisions: Sequence[tuple[Key, Body]]
    clusters_per_group: object = None
    wakeup: datetime | None = None
    reason: str = ""


def list_placement_states(
    run: SchedulingRun, broken: Iterable[Key], fleet: Fleet, previous: DecisionIndex
) -> Iterator[tuple[Key, PlacementState]]:
    """Yield the state of every Placement; skipped and `broken` ones keep their previous decisions."""
    for key, result in run.results.items():
        reason = "" if _have_clusters(result.decisions) else describe_no_decision(result, fleet)
        yield key, PlacementState(result.decisions, result.placement.clusters_per_group, result.wakeup, reason)
    for key, skipped in run.skipped.items():
        decisions = previous.find((key.namespace, key.name)).records(key.namespace)
        reason = "" if _have_clusters(decisions) else f"it is not scheduled: {describe_skipped(skipped)}"
        yield key, PlacementState(decisions, skipped.placement.clusters_per_group, reason=reason)
    for key in broken:
        decisions = previous.find((key.namespace, key.name)).records(key.namespace)
        yield key, PlacementState(decisions, reason="" if _have_clusters(decisions) else "its document is invalid")


def _have_clusters(decisions: Sequence[tuple[Key, Body]]) -> bool:
    return any(get_field(body, "status", "decisions") for _, body in decisions)
