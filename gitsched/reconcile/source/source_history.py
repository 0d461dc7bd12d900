"""The history of the source since the last run: earlier versions of files, and earlier commits, for what is broken now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from gitsched.decide.guard.guard_settings import read_guard_record
from gitsched.git.history import CommitRange, list_commits_since
from gitsched.model.commit import Commit
from gitsched.model.finding import Finding
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.reconcile.source.file_version import FileVersion
from gitsched.reconcile.source.source_notes import find_earlier_source
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES
from gitsched.render.output_files import kept_path
from gitsched.report.lines import abbreviate_oid

T = TypeVar("T")

INCOMPLETE_HISTORY = "history-incomplete"
"""The code of the finding that not all commits since the last run were searched."""
MAX_COMMITS = 1_000
"""Commits since the last run that are searched for valid versions."""
MAX_FETCHES = 20
"""Commits of a shallow local clone that are fetched one by one."""
MAX_CHANGES = 1_000_000
"""Changed paths of all these commits."""
MAX_VERSIONS = 2_000
"""Earlier versions of files that are read."""
MAX_SIZE = 32 * 1024 * 1024
"""Bytes of the earlier versions that are read."""


def list_introduced(commits: Iterable[Commit], find: Callable[[str], T | None]) -> Iterator[tuple[str, T]]:
    """Yield what commits introduce: what `find` returns for the id of a commit and for none of its parents. What is empty is left out.

    What a commit has in common with a parent is left out, too, because another line of a merge may have changed it.
    """
    for commit in commits:
        found = find(commit.oid)
        if found and all(find(parent) != found for parent in commit.parents):
            yield commit.oid, found


class SourceHistory:
    """Commits of the source between the last run and the planned commit. They are read when something broken asks for them."""

    def __init__(self, context: RunContext, fetched: Fetched) -> None:
        self._source, self._fetched = context.source, fetched
        self._recorded = fetched.record.source if fetched.record is not None else ""
        self._kept_files: Mapping[str, str] = fetched.record.kept_files if fetched.record is not None else {}
        self._fetches = self._changes = self._versions = self._size = 0
        self._incomplete = False

    @cached_property
    def commits(self) -> tuple[Commit, ...]:
        """The commits before the planned one that the last run did not have, the newest first."""
        return self._range.commits

    def list_commits(self, limit: int) -> Iterator[Commit]:
        """Yield at most `limit` of these commits."""
        yield from self.commits[:limit]
        self._incomplete |= self._is_cut_short or len(self.commits) > limit

    def list_versions(self, path: str) -> Iterator[FileVersion]:
        """Yield the earlier versions of a file, the newest first: those since the last run, that of the last run, and the one that the
        output branch keeps."""
        repository = self._source.repository
        seen: set[str] = set()
        for commit in self._commits_by_path.get(path, ()):
            entry = repository.find_entry(commit.tree, path)
            if entry is not None and entry[1] in REGULAR_FILE_MODES and entry[0] not in seen:
                seen.add(entry[0])
                self._versions += 1
                self._size += repository.blob_size(entry[0])
                if self._versions <= MAX_VERSIONS and self._size <= MAX_SIZE:
                    yield FileVersion(repository, entry[0], commit.oid)
        self._incomplete |= self._is_cut_short
        yield from self.list_last_versions(path)

    def list_last_versions(self, path: str) -> Iterator[FileVersion]:
        """Yield the version of a file that the last run had, and the one that the output branch keeps."""
        repository = self._source.repository
        if self._last_tree:
            entry = repository.find_entry(self._last_tree, path)
            if entry is not None and entry[1] in REGULAR_FILE_MODES:
                yield FileVersion(repository, entry[0], self._last)
        kept = self._find_kept(path)
        if kept is not None:
            yield kept

    def is_kept(self, path: str, version: FileVersion) -> bool:
        """Return whether a version of a file is the one that the output branch keeps."""
        kept = self._find_kept(path)
        return kept is not None and kept[1:] == version[1:]

    def _find_kept(self, path: str) -> FileVersion | None:
        output, tree = self._fetched.output.repository, self._fetched.output_tree
        kept = output.find_entry(tree, f"{self._fetched.prefix}{kept_path(path)}") if tree else None
        return None if kept is None else FileVersion(output, kept[0], self._kept_files.get(path, ""))

    def list_changed_or_kept(self, paths: Iterable[str]) -> list[str]:
        """Return those of the paths whose files changed since the last run, or have a version that the output branch keeps."""
        changed = self._source.repository.changed_paths(self._last_tree, self._fetched.source.tree) if self._last_tree else ()
        found = {*changed, *self._kept_files}
        return [path for path in paths if path in found]

    def list_findings(self) -> list[Finding]:
        """Return a finding if something broken was searched for in a history that is not complete."""
        if not self._incomplete and (self._last == self._recorded or not self._last_tree):
            return []
        missing, last = self._range.missing, abbreviate_oid(self._recorded)
        if self._last_tree and self._last != self._recorded:
            what = f"this commit is missing in this clone, and commit {abbreviate_oid(self._last)} of an earlier run counts in its place"
            cure = f"fetch commit {last}, or correct the errors"
        elif missing:
            what = f"commit {abbreviate_oid(missing)} is missing in this clone, and it cannot be fetched alone"
            cure = "fetch the whole history (git fetch --unshallow, or fetch-depth: 0 of actions/checkout)"
        else:
            what, cure = "it is longer than what is searched", "correct the errors"
        message = (
            f"the history of the source since the last run (commit {last}) was not searched completely for valid versions of what is "
            f"broken now: {what}. Changes made since then may not be in effect; {cure}"
        )
        return [Finding("warning", INCOMPLETE_HISTORY, message)]

    @property
    def unverified(self) -> frozenset[str]:
        """The files of which an earlier run did not know whether they had documents, while changes are withheld because of that."""
        record = self._fetched.record
        return frozenset(read_guard_record(record.guard).unverified) if record is not None and record.guard else frozenset()

    @property
    def is_last_unknown(self) -> bool:
        """Whether there was an earlier run, and no source commit or tree of one is available."""
        return self._fetched.record is not None and not self._last_tree

    @cached_property
    def _last(self) -> str:
        """The source commit of the last run. If it is not available, that of the newest earlier run that the output branch names and that
        is available; that of the last run if there is none."""
        if not self._recorded or self._source.fetch_commit(self._recorded):
            return self._recorded
        return find_earlier_source(self._source, self._fetched) or self._recorded

    @cached_property
    def _last_tree(self) -> str:
        """The tree of the source in the last run, or else in an earlier one; "" if none is available."""
        return self._source.repository.commit(self._last).tree if self._last and self._source.fetch_commit(self._last) else ""

    @cached_property
    def _commits_by_path(self) -> dict[str, list[Commit]]:
        """The commits that introduce a version of each path, the newest first: those in which it differs from all parents."""
        repository, found = self._source.repository, dict[str, list[Commit]]()
        for commit in self.commits:
            trees: list[str | None] = [repository.commit(parent).tree for parent in commit.parents if repository.has(parent)]
            changed = [repository.changed_paths(tree, commit.tree) for tree in trees or [None]]
            for path in set(changed[0]).intersection(*changed[1:]):
                found.setdefault(path, []).append(commit)
                self._changes += 1
            if self._changes > MAX_CHANGES:
                break
        return found

    @property
    def _is_cut_short(self) -> bool:
        limits = self._changes > MAX_CHANGES or self._versions > MAX_VERSIONS or self._size > MAX_SIZE
        return limits or self._range.truncated or bool(self._range.missing)

    @cached_property
    def _range(self) -> CommitRange:
        """The commits since the last run; where the history was rewritten since, those after the last common commit."""
        if not self._last:
            return CommitRange()
        planned, repository = self._fetched.source, self._source.repository
        # The files of a worktree, and a merge that is only planned, are no commit yet.
        is_commit = bool(planned.oid) and repository.commit(planned.oid).tree == planned.tree
        if is_commit and planned.oid == self._last:
            return CommitRange()
        found = list_commits_since(self._last, planned.parents, self._read_commit, MAX_COMMITS)
        if found.reached or found.missing:
            return found
        common = repository.find_merge_base(planned.oid or planned.parents[0], self._last) if planned.parents else None
        if common is None:
            return found
        if is_commit and common == planned.oid:
            return CommitRange()  # the branch was reset to an earlier commit
        return list_commits_since(common, planned.parents, self._read_commit, MAX_COMMITS)

    def _read_commit(self, oid: str) -> Commit | None:
        """Return a commit, fetched if the clone is shallow; None if it is not available."""
        source = self._source
        if not source.has(oid) and source.repository.is_shallow:
            if not self._fetches and self._fetched.source.oid:
                source.fetch_history(self._fetched.source.oid, MAX_COMMITS + 1)
            self._fetches += 1
            if not source.has(oid) and (self._fetches > MAX_FETCHES or not source.fetch_commit(oid)):
                self._fetches = MAX_FETCHES
                return None
        return source.repository.commit(oid) if source.has(oid) else None
