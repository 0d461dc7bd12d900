"""Find why workloads had to leave clusters with a commit of the output branch: a drain, or failover."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.apis.added_taints import AddedTaint, read_recorded_taints
from gitsched.decide.cluster_conditions import index_cluster_kinds
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Key
from gitsched.model.history import Departure
from gitsched.model.scheduling import total_replicas
from gitsched.model.taints import split_taint
from gitsched.reconcile.output.history_taints import list_failures, locate_conditions

if TYPE_CHECKING:
    from gitsched.apis.policy_api import EvictionRecords, RecordedEviction
    from gitsched.model.changes import Move
    from gitsched.model.commit import Commit
    from gitsched.model.history import HistoryEntry, PlacementMove, TaintChange
    from gitsched.reconcile.cache.caches import ParseCache
    from gitsched.reconcile.output.history_records import CommitRecords
    from gitsched.reconcile.output.history_taints import ComparedTrees

_UNHEALTHY = "it is unhealthy there"
Taints = Mapping[str, Sequence[AddedTaint]]
"""The taints of clusters that evict workloads."""


def add_departures(
    records: CommitRecords, commit: Commit, parent: Commit, moves: Sequence[PlacementMove], begun: Iterable[TaintChange]
) -> tuple[PlacementMove, ...]:
    """Return moves with the clusters that workloads had to leave, and why. `begun` are the taints of clusters that begin with the commit.

    An API that records evictions knows which moves these are; for another one, a taint counts with the commit with which it begins.
    """
    left = sorted({name for found in moves for name in _list_left(found.move)})
    now, before = (
        {name: {str(one.taint): one for one in _list_taints(records, each, name)} for name in left} for each in (commit, parent)
    )
    new = {(name, text) for name, found in now.items() for text in found if text not in before[name]}
    for change in begun:
        if change.added and change.evicts and change.cluster in now:
            new.add((change.cluster, change.taint))
            now[change.cluster].setdefault(change.taint, AddedTaint(split_taint(change.taint), change.added_by))
    taints = {name: [*found.values()] for name, found in now.items()}
    known: dict[tuple[object, ...], tuple[Departure, ...]] = {}
    return tuple(found._replace(departures=_find_departures(records, commit, parent, found, taints, new, known)) for found in moves)


def _find_departures(
    records: CommitRecords,
    commit: Commit,
    parent: Commit,
    found: PlacementMove,
    taints: Taints,
    new: Collection[tuple[str, str]],
    known: dict[tuple[object, ...], tuple[Departure, ...]],
) -> tuple[Departure, ...]:
    """Return why a workload had to leave clusters: as `known` of another one with the same policy that left the same clusters, unless its
    own record says more."""
    left = tuple(_list_left(found.move))
    if not left:
        return ()
    has_mark = any(records.has_record(commit, each.find_record(found.move.key), each.mark) for each in _list_eviction_records())
    alike = left, found.reason_before, found.move.reason, found.move.key if has_mark else None
    if alike not in known:
        known[alike] = tuple(_list_departures(records, commit, parent, found.move, taints, new))
    return known[alike]


def list_added_taints(
    records: CommitRecords, cache: ParseCache | None, compared: Iterable[ComparedTrees], commit: Commit, parent: Commit
) -> Iterator[TaintChange]:
    """Yield the taints that conditions of clusters added, and those that ended with the condition, with its line in one of the trees; and
    the clusters that failed of APIs without such taints."""
    known = [*compared] if cache is not None else []
    if cache is not None:
        yield from (change for trees in known for change in list_failures(cache, trees))
    changes = list(records.read_added_taints(commit, parent))
    inputs = known if changes else []
    found = locate_conditions(cache, inputs, {each.cluster for each in changes}) if inputs and cache is not None else {}
    branches = {trees.name for trees in inputs if trees.name}
    for change in changes:
        where = found.get(change.cluster, "")
        yield change._replace(location=where, from_facts=where.partition(":")[0] in branches)


def choose_causes(entry: HistoryEntry) -> HistoryEntry:
    """Return an entry with the causes of its moves, at most two. A run records the latest event as its cause, whatever moved."""
    causes = dict[str, None]()
    for found in entry.moves:
        causes |= dict.fromkeys(_choose_cause(entry, one) for one in found.departures)
        if not _only_leaves(found):
            is_late = entry.cause in ("facts", "deadline", "observation") and bool(entry.sources)
            causes |= dict.fromkeys((entry.cause, *(["source"] if is_late else [])))
    if not causes or entry.more_moves or not entry.cause:
        return entry
    first, *others = sorted(causes, key=lambda cause: cause != entry.cause)
    return entry._replace(cause=first, also=next(iter(others), ""))


def _choose_cause(entry: HistoryEntry, one: Departure) -> str:
    """Return the cause with which a workload had to leave a cluster."""
    if one.timed:
        return "deadline"
    if one.since is not None or not one.taint:
        return entry.cause
    return "facts" if not one.is_drain and one.cluster in entry.failed_by_facts else "source"


def _only_leaves(found: PlacementMove) -> bool:
    """Return whether a workload only leaves clusters that it had to leave, with all its replicas."""
    left, totals = _list_left(found.move), {total_replicas(side.values()) for side in (found.move.before, found.move.after) if side}
    return bool(left) and {one.cluster for one in found.departures}.issuperset(left) and len(totals) == 1


def _list_left(move: Move) -> list[str]:
    return sorted(move.before.keys() - move.after.keys())


def _list_taints(records: CommitRecords, commit: Commit, name: str) -> Iterator[AddedTaint]:
    """Yield the recorded taints of a cluster that evict workloads."""
    for (group, kind), topology in index_cluster_kinds().items():
        body = records.read_record(commit, Key(group, kind, "", name)) if topology.taints is not None else None
        for each in read_recorded_taints(body) if body is not None else ():
            if topology.taints is not None and each.taint.effect == topology.taints.drain:
                yield each


def _list_departures(
    records: CommitRecords, commit: Commit, parent: Commit, move: Move, taints: Taints, new: Collection[tuple[str, str]]
) -> Iterator[Departure]:
    left = _list_left(move)
    evictions = _read_evictions(records, commit, parent, move.key, {name: taints[name] for name in left})
    if evictions is None:
        for name in left:
            found = ((str(each.taint) if each.taint.effect else "", each.added_by) for each in taints[name])
            yield from (Departure(name, text, added_by) for text, added_by in found if (name, text) in new)
        return
    for one in evictions:
        if one.cluster in left and not one.taints:
            yield Departure(one.cluster, "", _UNHEALTHY if one.unhealthy else "")
        elif one.cluster in left:
            begun = {each: timed for each, timed in one.taints.items() if (one.cluster, str(each.taint)) in new}
            for each, timed in (begun or one.taints).items():
                yield Departure(one.cluster, str(each.taint), each.added_by, None if begun else each.taint.since, timed)


def _read_evictions(
    records: CommitRecords, commit: Commit, parent: Commit, workload: Key, taints: Taints
) -> list[RecordedEviction] | None:
    """Return why a workload had to leave clusters with a commit, given their taints; None if no API records that."""
    for known in _list_eviction_records():
        key = known.find_record(workload)
        if not records.has_record(parent, key):
            continue
        if not (any(taints.values()) or records.has_record(commit, key, known.mark)):
            return []
        before, after = (records.read_record(each, key) for each in (parent, commit))
        return [*known.read(before, after, taints, commit.time)] if before is not None and after is not None else []
    return None


def _list_eviction_records() -> Iterator[EvictionRecords]:
    """Yield what APIs say about the records of evictions."""
    return (api.commands.evictions for api in policy_apis.values() if api.commands.evictions is not None)
