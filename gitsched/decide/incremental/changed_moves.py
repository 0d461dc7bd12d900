"""The moves of an incremental plan, and whether they may exceed a limit of the guard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from gitsched.apis.registered import Registered
from gitsched.decide.plan_result import list_moves
from gitsched.model.changes import RENAMED_FROM
from gitsched.model.document import read_annotations
from gitsched.model.errors import NeedsCompletePlan
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import status_path

if TYPE_CHECKING:
    from gitsched.apis.gitsched.guard_config import GuardConfig
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.decide.renames import RenameRequests
    from gitsched.model.changes import Move
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateIndex

_FIND_MISTAKEN = Registered("gitsched.decide.guard.mistaken_selections", "find_mistaken_selections")


class ChangedMoves(NamedTuple):
    """All moves of a plan, first those of placed workloads, the `removed` workloads with their records, and which workloads `renames` say
    that they continue."""

    moves: tuple[Move, ...]
    removed: Mapping[Key, RemovedPlacement]
    renames: RenameRequests | None = None


def list_changed_moves(changes: IncrementalChanges) -> ChangedMoves:
    """Return the moves of an incremental plan. Raise NeedsCompletePlan if a record cannot be read, if a tenant names a workload that one of
    its continues, if a removed workload stays in its clusters, or if its policy may no longer select it by mistake."""
    moves = tuple(list_moves(changes.outcomes.values(), changes.had_workloads))
    if not changes.removed:
        return ChangedMoves(moves, {})
    from gitsched.decide.removals import list_removal_moves, read_removed_placements  # most changes remove nothing

    snapshot, written = changes.snapshot, {key for key, _ in changes.continued.records}
    gone = [key for key, _ in changes.totals.engines.records if key not in written]
    gone += [key for row in changes.removed.values() for key in row.record_keys]
    records = [body for key in sorted(gone, key=status_path) if (body := snapshot.previous.get(key)) is not None]
    renames = list_renames(changes)
    if len(records) < len(gone):
        raise NeedsCompletePlan("the record of a removed workload cannot be read")
    if renames.names and snapshot.tenancy is not None:
        raise NeedsCompletePlan("a workload of a tenant continues another one")
    removed = read_removed_placements(records)
    if any(entry.workload.preservation is not None for entry in removed.values()):
        raise NeedsCompletePlan("a removed workload stays in its clusters")
    removals = tuple(list_removal_moves(removed.values(), snapshot.templates, {}))
    if _FIND_MISTAKEN(removals, removed, changes.continued.engines):
        raise NeedsCompletePlan("a policy may no longer select a workload by mistake")
    return ChangedMoves((*moves, *removals), removed, renames)


def may_exceed_limits(changes: IncrementalChanges, moves: tuple[Move, ...], config: GuardConfig) -> bool:
    """Return whether moves of placed workloads may exceed a limit of the guard. What is read of other workloads says at most how many."""
    if not any(move.before for move in moves):
        return False
    from gitsched.decide.guard.large_changes import list_guarded_moves, may_exceed_limit  # most changes move nothing

    totals = changes.totals
    staying = frozenset(key for key, outcome in changes.outcomes.items() if outcome.stays_placed)
    # Of these it is not known how many replicas stay.
    keeps_some = bool(staying or totals.held or totals.overview.state_counts.get("stale"))
    replicas = 0 if keeps_some else sum(facts.replicas for facts in totals.overview.first_clusters.values())
    guarded = list_guarded_moves(moves, changes.continued.engines)
    count_placed = cache(partial(_count_placed, changes.rows.template_index, staying))  # changes of replicas alone do not need it

    def count(scope: str, name: str) -> int:
        return count_placed()[scope, name]

    return may_exceed_limit(guarded, totals.overview.workload_count, replicas, config, count)


def _count_placed(index: TemplateIndex, staying: Collection[Key]) -> Counter[tuple[str, str]]:
    """Return the number of workloads that were placed, by scope of the guard and its name, without some and those that are not settled."""
    entries = ((key, entry.placement) for key, entry in index.items())
    settled = [
        (key.namespace, found.clusters)
        for key, found in entries
        if found is not None and found.is_settled and found.clusters and key not in staying
    ]
    sizes = Counter({("fleet", ""): len(settled)})
    sizes.update(("namespace", namespace) for namespace, _ in settled)
    sizes.update(("cluster", cluster) for _, clusters in settled for cluster in clusters)
    return sizes


def list_renames(changes: IncrementalChanges) -> RenameRequests:
    """Return which workloads say that they continue others. Those that were not decided again were placed before."""
    from gitsched.decide.renames import RenameRequests  # most changes remove nothing

    names = {key: entry.annotations.get(RENAMED_FROM, "") for key, entry in changes.rows.template_index.items()}
    names |= {key: read_annotations(document.body).get(RENAMED_FROM, "") for key, document in changes.documents.items()}

    def find_outcome(key: Key) -> Outcome | None:
        outcome = changes.find_outcome(key)
        return outcome if outcome is None or key in changes.outcomes else outcome._replace(previous_targets=outcome.targets)

    return RenameRequests({key: name for key, name in names.items() if name}, find_outcome, changes.snapshot.templates)
