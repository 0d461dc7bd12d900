"""Compare the changes of a run with those of several reviewed plans together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from gitsched.diff.plans import FileChange, compute_plan_digest, list_leaving_paths
from gitsched.model.changes import Move, RecordChange
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import object_path
from gitsched.report.lines import format_clusters, format_key, list_limited
from gitsched.report.summary import format_targets

MAX_UNREVIEWED = 10
"""The number of unreviewed changes that are listed."""

K = TypeVar("K")
V = TypeVar("V")


class PlanChanges(NamedTuple):
    """The changes of one plan: workloads that move, changed manifests and recorded decisions."""

    moves: tuple[Move, ...] = ()
    files: tuple[FileChange, ...] = ()
    records: tuple[RecordChange, ...] = ()

    @property
    def digest(self) -> str:
        """The digest of the plan."""
        return compute_plan_digest(self.moves, self.files, self.records)

    def list_manifests(self) -> dict[str, str | None]:
        """Return the new content of the manifests that the digest covers, by path; None for a removed one."""
        leaving = list_leaving_paths(self.moves)
        return {entry.path: entry.content or entry.after for entry in self.files if entry.path not in leaving}


def list_unreviewed(total: PlanChanges, reviewed: Sequence[PlanChanges]) -> list[str]:
    """Return lines about the changes that are in no reviewed plan.

    The plans are in the order in which they were merged. A workload that two of them move goes the way of both.
    """
    moves = _combine((m.key, (dict(m.before), dict(m.after))) for plan in reviewed for m in plan.moves)
    records = _combine(((r.subject, r.target_kind), (r.before, r.after)) for plan in reviewed for r in plan.records)
    unreviewed = [move for move in total.moves if (dict(move.before), dict(move.after)) not in moves.get(move.key, ())]
    lines = [f"{format_key(move.key)}: {format_clusters(move.before)} -> {format_clusters(move.after)}" for move in unreviewed]
    lines += [
        f"{format_key(change.subject)}, {change.target_kind}: {format_targets(change.before)} -> {format_targets(change.after)}"
        for change in total.records
        if (change.before, change.after) not in records.get((change.subject, change.target_kind), ())
    ]
    manifests = {entry for plan in reviewed for entry in plan.list_manifests().items()}
    named = {object_path(cluster, move.key) for move in unreviewed for cluster in (*move.before, *move.after)}
    lines += [entry[0] for entry in total.list_manifests().items() if entry not in manifests and entry[0] not in named]
    return list_limited(lines, MAX_UNREVIEWED)


def _combine(changes: Iterable[tuple[K, tuple[V, V]]]) -> Mapping[K, list[tuple[V, V]]]:
    """Return the changes of each key, and those that result from one after the other."""
    found: dict[K, list[tuple[V, V]]] = {}
    for key, (before, after) in changes:
        known = found.setdefault(key, [])
        known += [(first, after) for first, last in known if last == before]
        known.append((before, after))
    return found
