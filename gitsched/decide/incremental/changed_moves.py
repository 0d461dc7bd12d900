"""The moves of an incremental plan, and whether they may exceed a limit of the guard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.plan_result import list_moves
from gitsched.model.document import read_annotations

if TYPE_CHECKING:
    from gitsched.apis.gitsched.guard_config import GuardConfig
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.changes import Move
    from gitsched.model.document import Key
    from gitsched.model.template_index import TemplateIndex


class ChangedMoves(NamedTuple):
    """All moves of a plan, first those of placed workloads, and the `removed` workloads with their records."""

    moves: tuple[Move, ...]
    removed: Mapping[Key, RemovedPlacement]


def list_changed_moves(changes: IncrementalChanges) -> ChangedMoves | None:
    """Return the moves of an incremental plan; None if a workload may continue another one under a new name."""
    moves = tuple(list_moves(changes.outcomes.values(), changes.had_workloads))
    removed: Mapping[Key, RemovedPlacement] = {}
    if changes.removed:
        from gitsched.decide.incremental.removed_rows import list_row_moves, read_row_removals  # most changes remove nothing

        found = read_row_removals(changes.removed, changes.totals, changes.continued.records, changes.snapshot)
        if found is None or _continue_others(changes):
            return None
        removed = found
        moves = (*moves, *list_row_moves(removed.values(), changes.snapshot))
    return ChangedMoves(moves, removed)


def may_exceed_limits(changes: IncrementalChanges, moves: Iterable[Move], config: GuardConfig) -> bool:
    """Return whether moves of placed workloads may exceed a limit of the guard. What is read of other workloads says at most how many."""
    from gitsched.decide.guard.large_changes import list_guarded_moves, may_exceed_limit  # most changes move nothing

    totals = changes.totals
    replicas = sum(facts.replicas for facts in totals.first_clusters.values())
    guarded = list_guarded_moves(moves, changes.continued.engines)
    count_placed = cache(partial(_count_placed, changes.rows.template_index))  # changes of replicas alone do not need it

    def count(scope: str, name: str) -> int:
        return count_placed()[scope, name]

    return may_exceed_limit(guarded, totals.workload_count, replicas, config, count)


def _count_placed(index: TemplateIndex) -> Counter[tuple[str, str]]:
    """Return the number of workloads that stay where they are, by scope of the guard and its name."""
    entries = ((key, entry.placement) for key, entry in index.items())
    settled = [
        (key.namespace, found.clusters) for key, found in entries if found is not None and found.is_settled and found.clusters
    ]
    sizes = Counter({("fleet", ""): len(settled)})
    sizes.update(("namespace", namespace) for namespace, _ in settled)
    sizes.update(("cluster", cluster) for _, clusters in settled for cluster in clusters)
    return sizes


def _continue_others(changes: IncrementalChanges) -> bool:
    """Return whether a workload may continue a removed one under a new name."""
    from gitsched.decide.renames import RENAMED_FROM  # most changes remove nothing

    annotated = (entry.annotations for _, entry in changes.rows.template_index.items())
    return any(RENAMED_FROM in found for found in (*annotated, *(read_annotations(one.body) for one in changes.documents.values())))
