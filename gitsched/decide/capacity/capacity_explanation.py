"""What `explain` says about capacity: what is left for a workload in its turn, and who has taken the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.capacity.capacity_takers import name_taker
from gitsched.decide.capacity.requested_capacity import PodsByCluster, find_reader, list_free
from gitsched.model.capacity_use import CapacityUse, add_requests
from gitsched.model.explanation import Explanation, ExplanationTable
from gitsched.model.quantity import describe_amount
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.capacity_ledger import sum_pods
from gitsched.schedule.shared_capacity import SharedCapacity

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.capacity_use import Requests
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome

_MAX_ROWS = 10
"""Rows of one cluster."""


class PlacedWorkloads(NamedTuple):
    """The workloads of a plan with their templates. `find_running` returns the replicas of one before the plan is carried out, and
    `list_keys` those that may be in some clusters."""

    outcomes: Mapping[Key, Outcome]
    templates: Mapping[Key, Document]
    find_running: Callable[[Key], Mapping[str, int | None]]
    list_keys: Callable[[Collection[str]], Iterable[Key]]


class _Taken(NamedTuple):
    workload: Key
    requests: Requests
    is_new: bool


class ExplainedCapacity:
    """The capacity of clusters for explanations of one plan. `find_use` finds what workloads use after it, for those that the plan does not
    place again; None to explain only those that it does."""

    def __init__(
        self, decisions: DecisionSet, placed: PlacedWorkloads | None = None, find_use: Callable[[], CapacityUse] | None = None
    ) -> None:
        outcomes, self._decisions, self._find_use = decisions.outcomes, decisions, find_use
        self._placed = placed or PlacedWorkloads(
            outcomes, decisions.templates, lambda key: outcomes[key].previous_replicas, lambda _: outcomes
        )
        self._reader = find_reader(decisions.engines, decisions.variants.__contains__)
        self._turns = {} if decisions.shared is None else decisions.shared.turns
        self._taken: dict[str, list[_Taken]] = {}

    def share(self, template: Document, outcome: Outcome | None) -> None:
        """Let a workload that the plan does not place again be explained with what the plan leaves."""
        if self._reader is None or self._find_use is None or outcome is None or self._has_turn(outcome):
            return
        self._reader.engine.share_capacity(template, SharedCapacity(list_free(self._reader, self._find_use())))

    def add(self, found: Explanation, outcome: Outcome | None) -> Explanation:
        """Return an explanation with a table of who has taken what of its clusters, and with the findings that say so."""
        if self._reader is None or outcome is None or not (self._has_turn(outcome) or self._find_use is not None):
            return found
        own = {one.code for one in outcome.findings}
        findings = (*outcome.findings, *(one for one in found.findings if one.code not in own))
        names = {candidate.result.name for candidate in found.candidates if candidate.result.eligible}
        rows = tuple(self._list_rows(outcome.key, names & self._reader.clusters.keys()))
        title = "Capacity taken before it" if self._has_turn(outcome) else "Capacity taken by others"
        table = ExplanationTable(title, ("cluster", "taken", "by"), rows)
        return found._replace(findings=findings, tables=(*found.tables, table) if rows else found.tables)

    def _has_turn(self, outcome: Outcome) -> bool:
        """Return whether this run places a workload, so that what was placed before it counts."""
        return outcome.key in self._turns

    def _list_rows(self, workload: Key, clusters: Collection[str]) -> Iterator[tuple[str, str, str]]:
        """Yield who took what of clusters: the largest parts of each."""
        self._read(clusters)
        turns, own = self._turns, self._turns.get(workload)
        for name in sorted(clusters):
            taken: dict[str, list[Requests]] = {}
            for key, requests, is_new in self._taken.get(name, ()):
                if key != workload and not (is_new and own is not None and key in turns and turns[key] > own):
                    who = f"{name_taker(key, workload, self._decisions.tenancy)}, {'this run' if is_new else 'earlier runs'}"
                    taken.setdefault(who, []).append(requests)
            rows = sorted(((add_requests(parts), who) for who, parts in taken.items()), key=_sort_largest)
            yield from ((name, _format(requests), who) for requests, who in rows[:_MAX_ROWS])
            if len(rows) > _MAX_ROWS:
                yield name, _format(add_requests(requests for requests, _ in rows[_MAX_ROWS:])), f"{len(rows) - _MAX_ROWS} more"

    def _read(self, clusters: Collection[str]) -> None:
        """Read what is taken of clusters that were not read before."""
        new, reader = set(clusters) - self._taken.keys(), self._reader
        if not new or reader is None:
            return
        outcomes, templates, find_running, list_keys = self._placed
        self._taken |= {name: [] for name in new}

        def add(key: Key, pods: PodsByCluster, *, is_new: bool) -> None:
            for name, groups in pods.items():
                if name in new:
                    self._taken[name].append(_Taken(key, sum_pods(groups), is_new))

        for key in list_keys(new):
            outcome, template = outcomes.get(key), templates.get(key)
            if outcome is None or template is None:
                continue
            before = find_running(key)
            staying = {name: count for name, count in before.items() if name in new}
            if staying:
                add(key, reader.measure(outcome, template, staying), is_new=False)
            if outcome.replicas_by_cluster != before:
                add(key, reader.measure_added(outcome, template, before), is_new=True)


def _sort_largest(row: tuple[dict[str, int], str]) -> tuple[int, str]:
    requests, who = row
    return -requests.get("cpu", 0), who


def _format(requests: Requests) -> str:
    return ", ".join(f"{describe_amount(name, amount)} {name}" for name, amount in sorted(requests.items())) or "-"
