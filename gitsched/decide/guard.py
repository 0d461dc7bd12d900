"""List the moves of a plan, and refuse a plan that removes too many workloads from all of their clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gitsched.apis.gitsched.config import Config
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.plan_state import PreviousOutput
from gitsched.model.changes import Move
from gitsched.model.document import Body, Key, get_field, parse_api_group
from gitsched.model.scheduling import Outcome

MAX_NAMED_WORKLOADS = 5
"""Workloads that the message of the guard names."""

HadWorkloads = Callable[[str], bool]
"""Whether a cluster received workloads in the previous output. A cluster without a document did not, even where bindings name it."""


def list_moves(outcomes: Iterable[Outcome], had_workloads: HadWorkloads) -> Iterator[Move]:
    """Yield a move for each outcome whose clusters or replicas differ from the previous output, in the order of the outcomes."""
    for outcome in outcomes:
        before, after = _list_previous_replicas(outcome, had_workloads), outcome.replicas_by_cluster
        if before != after:
            yield Move(outcome.key, before, after, describe_reason(outcome))


def describe_reason(outcome: Outcome) -> str:
    """Describe in one line why a workload has its placement."""
    return "; ".join(filter(None, (outcome.reason, outcome.trigger)))


def list_removed_workloads(decisions: DecisionSet, previous: PreviousOutput) -> list[Move]:
    """Return a move for each workload that the previous output placed and that no API places now."""
    recorded = [key for outcome in decisions.outcomes.values() for key, _ in outcome.records]
    moves = []
    for body in previous.list_other_records(recorded):
        move = _make_application_removal(body) or _make_binding_removal(body, decisions)
        if move is not None:
            moves.append(move)
    return moves


def _make_binding_removal(record: Body, decisions: DecisionSet) -> Move | None:
    """The removal of the workload of a ResourceBinding; None where the record names no resource or no cluster."""
    spec = record.get("spec") or {}
    entries = (spec, *(spec.get("requiredBy") or ()))
    clusters, resource = [cluster for entry in entries for cluster in entry.get("clusters") or ()], spec.get("resource")
    if not clusters or not resource:
        return None
    template = Key(
        parse_api_group(str(resource.get("apiVersion"))),
        str(resource.get("kind")),
        str(resource.get("namespace") or ""),
        str(resource.get("name")),
    )
    reason = "it is not in the repository any more"
    if template in decisions.templates:
        reason = "nothing brings it along any more" if spec.get("requiredBy") else "no policy selects it any more"
    own = {str(entry.get("name")): entry.get("replicas") for entry in spec.get("clusters") or ()}
    return Move(template, {**{str(entry.get("name")): None for entry in clusters}, **own}, {}, reason)


def _make_application_removal(record: Body) -> Move | None:
    """The removal of a Krake Application, whose record names its cluster; None for other records."""
    target = get_field(record, "status", "scheduled_to")
    if (record.get("api"), record.get("kind")) != ("kubernetes", "Application") or not isinstance(target, dict):
        return None
    metadata = record.get("metadata") or {}
    key = Key("kubernetes", "Application", str(metadata.get("namespace")), str(metadata.get("name")))
    cluster = f"{target.get('namespace')}.{target.get('name')}"
    return Move(key, {cluster: None}, {}, "it is not in the repository any more")


def _list_previous_replicas(outcome: Outcome, had_workloads: HadWorkloads) -> dict[str, int | None]:
    """The replicas of a workload by cluster in the previous output, without clusters that it was being evicted from."""
    return {
        target.cluster: target.replicas
        for target in outcome.previous_targets
        if not target.evicting and had_workloads(target.cluster)
    }


def check_removal_guard(decided: Iterable[Outcome], had_workloads: HadWorkloads, workload_count: int, config: Config) -> str:
    """Return why the plan is refused, or "". It is refused when too many workloads become unplaced while policies still select them,
    because delivery tools would prune them.

    `decided` are the outcomes that this run decided, of `workload_count` workloads in all.
    """
    lost = [
        outcome
        for outcome in decided
        if outcome.previous_targets and not outcome.replicas_by_cluster and _list_previous_replicas(outcome, had_workloads)
    ]
    percent = 100 * len(lost) / workload_count if workload_count else 0.0
    if len(lost) <= config.guard.max_removals or percent <= config.guard.max_removals_percent:
        return ""
    first = ", ".join(str(outcome.key) for outcome in sorted(lost, key=lambda outcome: outcome.key)[:MAX_NAMED_WORKLOADS])
    more = ", ..." if len(lost) > MAX_NAMED_WORKLOADS else ""
    return f"{len(lost)} of {workload_count} workloads would lose their last placement ({first}{more})"
