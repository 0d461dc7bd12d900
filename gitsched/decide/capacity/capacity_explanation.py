"""The table of `explain` about what other workloads have taken of clusters before one of them was decided."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from gitsched.decide.capacity.capacity_takers import name_taker
from gitsched.decide.capacity.requested_capacity import PodsByCluster, find_reader
from gitsched.model.capacity_use import add_requests
from gitsched.model.explanation import Explanation, ExplanationTable
from gitsched.model.quantity import format_resource_amount
from gitsched.schedule.capacity_ledger import sum_pods

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.capacity_use import Requests
    from gitsched.model.document import Key
    from gitsched.schedule.shared_capacity import CapacityShare

_MAX_ROWS = 10
"""Rows of one cluster."""


def add_capacity(found: Explanation, decisions: DecisionSet, workload: Key) -> Explanation:
    """Return an explanation with a table of who had taken what of its clusters before a workload was decided, and with the findings that
    say so."""
    shared, outcome = decisions.shared, decisions.outcomes.get(workload)
    if shared is None or workload not in shared.shares or outcome is None:
        return found
    own = {one.code for one in outcome.findings}
    findings = (*outcome.findings, *(one for one in found.findings if one.code not in own))
    names = {candidate.result.name for candidate in found.candidates if candidate.result.eligible}
    rows = tuple(_list_rows(decisions, shared.shares[workload], workload, names))
    table = ExplanationTable("Capacity taken before it", ("cluster", "taken", "by"), rows)
    return found._replace(findings=findings, tables=(*found.tables, table) if rows else found.tables)


def _list_rows(
    decisions: DecisionSet, share: CapacityShare, workload: Key, clusters: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield who took what of clusters: the largest parts of each."""
    reader = find_reader(decisions.engines, decisions.variants.__contains__)
    if reader is None:
        return
    taken: dict[tuple[str, str], dict[str, int]] = {}

    def add(key: Key, pods: PodsByCluster, when: str) -> None:
        who = name_taker(key, workload, decisions.tenancy)
        for name, group in pods.items():
            entry = name, f"{who}, {when}"
            taken[entry] = add_requests((taken.get(entry, {}), sum_pods(group)))

    for key, outcome in decisions.outcomes.items():
        before = {name: count for name, count in outcome.previous_replicas.items() if name in clusters}
        if before and key != workload and key in decisions.templates:
            add(key, reader.measure(outcome, decisions.templates[key], before), "earlier runs")
    for entry in share.shared.taken[: share.position]:
        if entry.candidate in clusters:
            add(entry.workload, {entry.candidate: entry.pods}, "this run")
    for name in sorted({name for name, _ in taken}):
        rows = sorted(((requests, who) for (one, who), requests in taken.items() if one == name), key=_sort_largest)
        yield from ((name, _format(requests), who) for requests, who in rows[:_MAX_ROWS])
        if len(rows) > _MAX_ROWS:
            yield name, _format(add_requests(requests for requests, _ in rows[_MAX_ROWS:])), f"{len(rows) - _MAX_ROWS} more"


def _sort_largest(row: tuple[dict[str, int], str]) -> tuple[int, str]:
    requests, who = row
    return -requests.get("cpu", 0), who


def _format(requests: Requests) -> str:
    return (
        ", ".join(f"{format_resource_amount(name, amount, binary=False)} {name}" for name, amount in sorted(requests.items()))
        or "-"
    )
