"""Find the commits of the source that ask for what is withheld."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gitsched.decide.guard.guard_settings import GuardRecord, read_guard_record
from gitsched.decide.guard.large_changes import compute_digest
from gitsched.model.errors import GitschedError
from gitsched.model.history import HistoryFilter
from gitsched.model.scheduling import WITHHELD_REASON
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.output.history_records import CommitRecords, identify_recorded
from gitsched.reconcile.review.run_sources import find_run_sources, list_source_changes
from gitsched.reconcile.source.source_notes import find_reconciled
from gitsched.render.format_versions import FORMAT_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gitsched.git import Repository
    from gitsched.model.commit import Commit
    from gitsched.model.history import PlacementMove, SourceChange
    from gitsched.reconcile.output.history_records import HistoryBranch
    from gitsched.reconcile.review.narrowed_sources import SourceNarrowing
    from gitsched.render.run_metadata import RunMetadata

MAX_RUNS: Final = 20
"""Output commits that are read."""


class WithholdingRun(NamedTuple):
    """A commit of the output branch, with its record and what that says about the guard."""

    commit: Commit
    record: RunMetadata | None
    guard: GuardRecord


class PlannedRequest(NamedTuple):
    """What a plan of a newer commit of the source would withhold: the digest, the last commit that was reconciled, and the newer one."""

    digest: str
    reconciled: str
    source: str


def list_withholding_runs(output: HistoryBranch) -> list[WithholdingRun]:
    """Return the commits of an output branch since the run that was the first to withhold something, the newest first, and the one before
    that run, if they are among the latest."""
    found, repository = list[WithholdingRun](), output.repository
    for commit in repository.list_first_parents(output.head or None, MAX_RUNS):
        try:
            record = read_run_record(repository, commit.tree, output.prefix)
        except GitschedError:
            break
        found.append(WithholdingRun(commit, record, read_guard_record(record.guard) if record is not None else GuardRecord()))
        if not found[-1].guard.digest:
            break
    return found


def list_requests(
    source: Repository, output: HistoryBranch, runs: Sequence[WithholdingRun], planned: PlannedRequest | None = None
) -> tuple[SourceChange, ...]:
    """Return the commits of the source with which the withheld changes became those of the newest run, or of what is `planned`, the newest
    first. Where they became again what they were before, the commits between do not count."""
    found: dict[str, tuple[SourceChange, ...]] = {}

    def add(digest: str, earlier: str, newest: str) -> None:
        if digest in found:
            while next(reversed(found)) != digest:
                found.popitem()
        else:
            found[digest] = list_source_changes(source, earlier, newest) if earlier not in ("", newest) else ()

    for before, run in pairwise((None, *reversed(runs))):
        if run is None or run.record is None or not run.guard.digest:
            continue
        earlier = run.guard.base
        if before is not None and before.record is not None:
            earlier = find_reconciled(output.repository, before.commit.oid, output.branch, output.prefix, before.record).source
        add(run.guard.digest, earlier, run.record.source)
    if planned is not None:
        add(*planned)
    return tuple(dict.fromkeys(change for sources in reversed(found.values()) for change in sources))


def list_requests_before(
    source: Repository, output: HistoryBranch, parent: Commit, moves: Iterable[PlacementMove]
) -> tuple[SourceChange, ...]:
    """Return the commits of the source that asked for what was withheld up to a commit of the output branch; none if nothing of the
    `moves` after it was withheld."""
    if not any(map(was_withheld, moves)):
        return ()
    before = output._replace(head=parent.oid)
    return list_requests(source, before, list_withholding_runs(before))


def list_carried_out(
    narrowing: SourceNarrowing, output: HistoryBranch, commit: Commit, parent: Commit, moves: Iterable[PlacementMove]
) -> list[PlacementMove]:
    """Return those `moves` of a commit of the output branch that the guard had withheld as they are now: all if the commit carries out
    exactly what its `parent` says was withheld, else those that no commit of the source concerns since the run before. Another change of a
    workload is the decision of the newer commit, whatever was withheld before."""
    withheld = [found for found in moves if was_withheld(found)]
    if not withheld:
        return []
    record = read_run_record(output.repository, parent.tree, output.prefix)
    all_moves, _ = CommitRecords(output, HistoryFilter(), lambda _: FORMAT_VERSION).read_moves(commit, parent)
    carried_out = sorted((found.move for found in all_moves if was_withheld(found)), key=lambda move: move.key)
    if record is not None and compute_digest(carried_out) == read_guard_record(record.guard).digest:
        return withheld
    newer = find_run_sources(output, narrowing.source, commit, parent, withheld, withheld=False).commits
    return [found for found in withheld if not narrowing.concerns_any(newer, (identify_recorded(found.move.key),))]


def was_withheld(found: PlacementMove) -> bool:
    """Return whether a change of a workload was withheld before it moved."""
    return found.reason_before.startswith(WITHHELD_REASON)
