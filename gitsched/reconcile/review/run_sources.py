"""Find the commits of the source that a run of the output branch followed: those that may have caused what it moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gitsched.decide.guard.guard_settings import read_guard_record
from gitsched.git.history import list_commits_since
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.fetch import read_run_record
from gitsched.reconcile.output.output_edits import find_cause, is_written_by_run, list_earlier_edits
from gitsched.reconcile.source.reverted_files import is_text
from gitsched.reconcile.source.source_commits import describe_source_commit, find_change, find_source_commit, shorten_text
from gitsched.reconcile.source.source_notes import find_reconciled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitsched.git import Repository
    from gitsched.model.commit import Commit
    from gitsched.model.history import PlacementMove, SourceChange
    from gitsched.reconcile.output.history_records import HistoryBranch
    from gitsched.render.run_metadata import RunMetadata

MAX_COMMITS: Final = 200
"""Commits of the source that are read for a run, and commits of the output branch that are searched for the start of a rollout."""


class RunSources(NamedTuple):
    """The cause of a run, and the commits of the source and those of people on the output branch that it followed, the newest first.
    `replaced` are those whose changes were withheld until the first ones decided otherwise."""

    cause: str
    commits: tuple[SourceChange, ...] = ()
    edits: tuple[SourceChange, ...] = ()
    replaced: tuple[SourceChange, ...] = ()


def find_run_sources(
    output: HistoryBranch,
    source: Repository,
    commit: Commit,
    parent: Commit,
    moves: Iterable[PlacementMove],
    *,
    withheld: bool = True,
) -> RunSources:
    """Return what caused a commit of the output branch, with these `moves`.

    The run before may have planned later commits than gitsched.json names, without a change. Where this run carries out what the guard
    withheld before, the commits that asked for it count, too, unless none of the moves was `withheld`.
    """
    repository = output.repository
    record, before = (read_run_record(repository, each.tree, output.prefix) for each in (commit, parent))
    if record is None or not is_written_by_run(commit):
        return RunSources("")
    earlier = _find_earlier(output, parent, record, before, withheld=withheld)
    edits = list_earlier_edits(repository, output.prefix, parent)
    is_same = record.source == earlier and before is not None and record.facts == before.facts
    cause = find_cause(commit, edits, [found.move.key for found in moves], is_same=is_same)
    if cause == "records" or record.source == earlier:
        return RunSources(cause, (), edits.commits)
    return RunSources(cause, list_source_changes(source, earlier, record.source), edits.commits)


def _find_earlier(output: HistoryBranch, parent: Commit, record: RunMetadata, before: RunMetadata | None, *, withheld: bool) -> str:
    """Return the last commit of the source that was carried out before a run; "" if it is not known."""
    if before is None:
        return ""
    guard = read_guard_record(before.guard)
    if withheld and guard.digest and guard.digest != read_guard_record(record.guard).digest:
        return guard.base
    return find_reconciled(output.repository, parent.oid, output.branch, output.prefix, before).source


def list_source_changes(source: Repository, earlier: str, newest: str) -> tuple[SourceChange, ...]:
    """Return the commits of the source after an earlier one, "" if that is not known, that may change what is planned, the newest first.

    A merge into the branch counts as one commit. Commits that change nothing but texts for readers are left out, unless all of them do.
    """
    if not source.has_commit(newest):
        return (find_source_commit(source, newest),)
    commits = _list_branch(source, earlier, newest)
    changing = [each for each in commits if _changes_plan(source, each)]
    return tuple(describe_change(source, each) for each in changing or commits)


def describe_change(source: Repository, commit: Commit) -> SourceChange:
    """Return what reports say of a commit of the source, of a merge also the authors of the commits that it brought into the branch."""
    change = describe_source_commit(commit)
    if not change.is_merge:
        return change
    first, *others = commit.parents
    bases = (
        (other, source.find_merge_base(first, other)) for other in others if source.has_commit(first) and source.has_commit(other)
    )
    brought = (one for other, base in bases if base is not None for one in list_commits(source, base, other))
    names = dict.fromkeys(shorten_text(one.author_name) for one in brought)
    return change._replace(merged=tuple(name for name in names if name not in ("", change.author)))


def _list_branch(source: Repository, earlier: str, newest: str) -> list[Commit]:
    """Return the commits of the branch since an earlier one, without those that merges brought; all of them where that one came with a
    merge or is not available."""
    if not earlier:
        return [source.commit(newest)]
    found: list[Commit] = []
    for commit in source.list_first_parents(newest, MAX_COMMITS):
        if commit.oid == earlier:
            return found
        found.append(commit)
    return [*list_commits(source, earlier, newest)] or [source.commit(newest)]


def list_commits(source: Repository, earlier: str, newest: str) -> tuple[Commit, ...]:
    """Return all commits after an earlier one, the newest first, as far as they are available."""

    def read(oid: str) -> Commit | None:
        return source.commit(oid) if source.has_commit(oid) else None

    return list_commits_since(earlier, [newest], read, MAX_COMMITS).commits


def _changes_plan(source: Repository, commit: Commit) -> bool:
    """Return whether a commit changes files other than texts for readers; also of one whose parent is not available."""
    change = find_change(source, commit.oid)
    return change is None or not all(map(is_text, change.paths))
