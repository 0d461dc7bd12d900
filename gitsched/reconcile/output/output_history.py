"""Read the history of the output branch: what each commit moved and why, from its records. No plan is made."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from gitsched import __version__
from gitsched.decide.commit_metadata import CAUSE_TRAILER, SOURCE_TRAILER
from gitsched.decide.guard.guard_settings import read_guard_record
from gitsched.decide.plan_result import mark_awaited, mark_copies
from gitsched.git import Repository
from gitsched.git.history import list_commits_since
from gitsched.git.output import open_output
from gitsched.git.ref_log import list_rewinds
from gitsched.git.remote_refs import find_remote_url
from gitsched.model.changes import RetainedCopy
from gitsched.model.commit import Commit
from gitsched.model.document import Key, as_object
from gitsched.model.errors import GitschedError, Permanent
from gitsched.model.finding import FACTS_STALE, FROZEN, format_count, format_names
from gitsched.model.history import WITHHOLDS, HistoryEntry, HistoryFilter, PlacementMove, SourceChange
from gitsched.model.time import format_time, parse_time
from gitsched.reconcile.fetch import fetch, read_run_record, read_source_config
from gitsched.reconcile.output.deciding_files import DecidingFiles
from gitsched.reconcile.output.departures import add_departures, choose_causes, list_added_taints
from gitsched.reconcile.output.history_names import describe_unknown_names
from gitsched.reconcile.output.history_records import MAX_RECORD, CommitRecords, HistoryBranch
from gitsched.reconcile.output.history_taints import ComparedTrees, compare_inputs, list_taint_changes
from gitsched.reconcile.output.output_edits import (
    find_cause,
    is_written_by_run,
    list_earlier_edits,
    list_edited_workloads,
    name_author,
)
from gitsched.reconcile.review.narrowed_sources import SourceNarrowing
from gitsched.reconcile.review.run_sources import describe_change
from gitsched.reconcile.review.withheld_requests import list_carried_out, list_requests_before
from gitsched.reconcile.run import RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_commits import shorten_text
from gitsched.reconcile.source.source_notes import find_reconciled
from gitsched.reconcile.source.unread_entries import read_regular_file
from gitsched.render.format_versions import FORMAT_VERSION
from gitsched.render.output_files import CLUSTERS, FREEZE, HYDRATOR_METADATA, RUN_METADATA
from gitsched.render.run_metadata import RunMetadata, parse_run_metadata
from gitsched.report.lines import abbreviate_oid
from gitsched.report.retained_copies import describe_ended_copies, describe_retained_copies

if TYPE_CHECKING:
    from gitsched.git.output import OutputRepository
    from gitsched.reconcile.cache.caches import ParseCache

FetchHistory = Callable[[str, int], object]

_log = logging.getLogger("gitsched")
_FETCHED = 100
"""Commits that are fetched at once where a private clone lacks the history of a remote."""
MAX_COMMITS = 100_000
"""Commits of the output branch that are looked at."""
MAX_SOURCES, MAX_FILES = 20, 20
"""Source commits and changed source files of one entry; the others are counted."""
MAX_NAMES = 8
"""Clusters in one note; the others are counted."""
MAX_COPIES = 5
"""Copies that stay for an overlap, and copies that go, of one entry; the others are counted."""
_MAX_SOURCES_COUNTED = 1_000
MAX_TRAILERS = 100
"""Trailers of one commit: anyone who may push can write a message of many megabytes."""
_MAX_REWINDS = 20
_SKEW = timedelta(days=1)
"""How much earlier than its child a commit may be: `since` ends the walk only before that, because clocks of people differ."""


class OutputHistory:
    """The history of an output branch.

    Without a `cache`, files of the source are not read: taints of people are left out, and the lines of others.

    `fetch_output` and `fetch_source` fetch commits with the ones before them, at most so many, into private clones, which have only the
    newest commits; they do nothing for other repositories.

    When the entries have been read, `next` is the commit at which the next page starts, and `end` says why the history ends before its
    beginning; "" otherwise. `newer` counts the commits after `until`, and `has_older` says whether there are any before `since`.
    """

    def __init__(
        self,
        output: HistoryBranch,
        source: Repository,
        chosen: HistoryFilter,
        cache: ParseCache | None = None,
        facts: Repository | None = None,
        fetch_output: FetchHistory = lambda _, __: None,
        fetch_source: FetchHistory = lambda _, __: None,
    ) -> None:
        self._output, self._source, self.chosen, self._cache = output, source, chosen, cache
        self._narrowing = SourceNarrowing(source, cache) if cache is not None else None
        self._facts = facts or source
        self._fetch_output, self._fetch_source = fetch_output, fetch_source
        self._unavailable: set[str] = set()
        self._records = CommitRecords(output, chosen, self._read_version)
        self.next = self.end = ""
        self.newer, self.has_older = 0, False
        self.head = self._resolve(chosen.start) if chosen.start else self._output.head

    @property
    def branch(self) -> str:
        """The name of the output branch."""
        return self._output.branch

    def find_source_url(self) -> str | None:
        """Return the URL of the source, as the clone of it has it; None for a local one."""
        return find_remote_url(self._source, "origin")

    def list_notes(self) -> list[str]:
        """Return when the branch was moved back, as far as this clone knows."""
        if not self._output.is_local:
            return []
        notes: list[str] = []
        for rewind in list_rewinds(self._output.repository, self._output.branch):
            if len(notes) == _MAX_REWINDS:
                notes.append(f"the branch was moved back more than {_MAX_REWINDS} times: `git reflog` lists all moves")
                break
            notes.append(
                f"{format_time(rewind.time)}: the branch was moved from {abbreviate_oid(rewind.old)} to {abbreviate_oid(rewind.new)}; "
                f"`--from {abbreviate_oid(rewind.old)}` shows the commits that it left"
            )
        return notes

    def describe_unknown(self) -> str:
        """Return which name of the filter the newest commit does not have, with similar ones; "" if it has them."""
        return describe_unknown_names(self._output, self._records, self._output.repository.commit(self.head), self.chosen)

    def read_entries(self, limit: int) -> Iterator[HistoryEntry]:
        """Yield at most `limit` entries, the newest first."""
        repository, oid, found = self._output.repository, self.head, 0
        for _ in range(MAX_COMMITS):
            if found >= limit:
                self.next = oid
                return
            commit = repository.commit(oid)
            parent, missing = self._find_parent(commit)
            chosen = self.chosen
            is_older = chosen.since is not None and commit.time < chosen.since
            is_newer = chosen.until is not None and commit.time > chosen.until
            self.has_older, self.newer = self.has_older or is_older, self.newer + is_newer
            if is_older and chosen.since is not None and commit.time < chosen.since - _SKEW:
                return
            if not (is_older or is_newer):
                entry = self._read_entry(commit, parent)
                if entry.moves or entry.records or entry.edited or entry.has_copies or not chosen.selects_moves:
                    found += 1
                    yield entry
            if missing:
                self.end = missing
            if parent is None:
                return
            oid = parent.oid
        self.next, self.end = oid, f"{MAX_COMMITS} commits have been read"

    def _resolve(self, revision: str) -> str:
        found = self._output.repository.resolve(revision)
        if found is None:
            raise Permanent(f"{self._output.repository.root} has no commit {revision!r}: give the id of an output commit")
        return found

    def _find_parent(self, commit: Commit) -> tuple[Commit | None, str]:
        """Return the first parent, and why it cannot be read although there is one."""
        if not commit.parents:
            return None, ""
        repository, oid = self._output.repository, commit.parents[0]
        if not self._has_commit(repository, self._fetch_output, oid):
            is_own = repository.is_shallow and repository.private is None
            cause = "the clone is shallow: `git fetch --unshallow` fetches the rest" if is_own else "it is missing"
            return None, f"commit {abbreviate_oid(oid)} is not available: {cause}"
        try:
            return repository.commit(oid), ""
        except GitschedError as error:
            return None, str(error)

    def _has_commit(self, repository: Repository, fetch: FetchHistory, oid: str) -> bool:
        """Return whether a commit is available, after an attempt to fetch it into a private clone. A failure ends further attempts."""
        if repository.has_commit(oid):
            return True
        if repository.private is None or not repository.is_shallow or repository.path in self._unavailable:
            return False
        try:
            fetch(oid, _FETCHED)
        except GitschedError as error:
            _log.warning("the history of %s is not available: %s", abbreviate_oid(oid), error)
        if not repository.has_commit(oid):
            self._unavailable.add(repository.path)
        return repository.has_commit(oid)

    def _read_entry(self, commit: Commit, parent: Commit | None) -> HistoryEntry:
        """Read what a commit changed. Without its parent, everything that it has counts as new only if it is the first commit."""
        trailers = dict(commit.trailers)
        entry = HistoryEntry(
            commit.oid,
            commit.time,
            shorten_text(name_author(commit)),
            shorten_text(commit.subject),
            shorten_text(trailers.get(CAUSE_TRAILER, "")),
            shorten_text(_summarize(commit)),
            tuple((shorten_text(name), shorten_text(text)) for name, text in commit.trailers[:MAX_TRAILERS]),
        )
        if commit.parents and parent is None:
            entry = entry._replace(notes=("what it changed is not known, because the commit before it is not available",))
        else:
            try:
                moves, more = self._records.read_moves(commit, parent)
                moves = self._add_copies(moves, parent)
                records, unread = self._records.read_record_changes(commit, parent)
                entry = entry._replace(moves=moves, more_moves=more, records=records)
                if parent is not None and not is_written_by_run(commit):
                    entry = entry._replace(edited=tuple(list_edited_workloads(self._records, self._output, commit, parent)))
                if not (entry.moves or entry.records or entry.edited) and self.chosen.selects_moves:
                    if not self._has_copies(commit, parent):
                        return entry
                    entry = entry._replace(has_copies=True)
                entry = entry._replace(notes=tuple(self._list_notes(commit, parent)))
                if len(commit.trailers) > MAX_TRAILERS:
                    note = f"its message has {len(commit.trailers):,} trailers, of which the first {MAX_TRAILERS} are listed"
                    entry = entry._replace(notes=(*entry.notes, note))
                if unread:
                    note = (
                        f"{format_count(unread, 'more recorded decision')} changed, which {'is' if unread == 1 else 'are'} not read"
                    )
                    entry = entry._replace(notes=(*entry.notes, note))
                if parent is not None and not entry.moves:
                    entry = entry._replace(notes=(*entry.notes, *self._describe_changed_files(commit, parent)))
            except GitschedError as error:
                entry = entry._replace(notes=(*entry.notes, f"it cannot be read completely: {error}"))
        try:
            entry = self._add_source(entry, commit, parent)
        except GitschedError as error:
            return entry._replace(notes=(*entry.notes, f"its source cannot be read: {error}"))
        if parent is None:
            return entry
        try:
            compared = compare_inputs(self._source, self._facts, *map(self._read_metadata, (parent, commit)))
            taints = (*entry.taints, *list_added_taints(self._records, self._cache, compared, commit, parent))
            moves = add_departures(self._records, commit, parent, entry.moves, taints)
            known, carried_out = self._narrowing, [*moves]
            if known is not None:
                carried_out = list_carried_out(known, self._output, commit, parent, moves)
            requested = list_requests_before(self._source, self._output, parent, carried_out)
            return choose_causes(entry._replace(taints=taints, moves=moves, requested=requested))
        except GitschedError as error:
            return entry._replace(notes=(*entry.notes, f"the taints of clusters cannot be read: {error}"))

    def _add_copies(self, moves: tuple[PlacementMove, ...], parent: Commit | None) -> tuple[PlacementMove, ...]:
        """Return the moves, those of unplaced workloads with the copies of them that ran in clusters before."""
        record = self._read_metadata(parent) if parent is not None and any(not one.move.before for one in moves) else None
        marked = mark_copies(tuple(one.move for one in moves), record.retained if record is not None else ())
        return tuple(one._replace(move=move) for one, move in zip(moves, marked, strict=True))

    # Other events

    def _list_notes(self, commit: Commit, parent: Commit | None) -> Iterator[str]:
        if parent is not None and len(commit.parents) > 1:
            yield f"it merges {', '.join(map(abbreviate_oid, commit.parents[1:]))}; the moves are those since {abbreviate_oid(parent.oid)}"
        frozen_before, frozen = (self._read_freeze(each) for each in (parent, commit))
        if frozen != frozen_before:
            yield f"placements are frozen: {frozen}" if frozen else "the freeze of placements is lifted"
        record, earlier = self._read_metadata(commit), self._read_metadata(parent) if parent is not None else None
        if record is None:
            yield f"{RUN_METADATA} cannot be read{self._describe_damage(commit)}"
            return
        yield from self._compare_records(record, earlier, commit)
        if earlier is not None and parent is not None:
            added, removed = self._compare_clusters(commit, parent)
            yield from (f"cluster {name} is new" for name in added[:MAX_FILES])
            if len(added) > MAX_FILES:
                yield f"as are {len(added) - MAX_FILES} more"
            yield from (f"the directory of cluster {name} is removed" for name in removed[:MAX_FILES])
            if len(removed) > MAX_FILES:
                yield f"as are those of {len(removed) - MAX_FILES} more"

    def _compare_records(self, record: RunMetadata, earlier: RunMetadata | None, commit: Commit) -> Iterator[str]:
        """Yield how what a run records differs from what the run before recorded: the guard, overlaps, and clusters that are removed."""
        guard, retired = ({}, {}) if earlier is None else (earlier.guard, earlier.retiring)
        digest = read_guard_record(record.guard).digest
        if digest != read_guard_record(guard).digest:
            messages = (one.message.partition(". If ")[0] for one in record.findings if one.code == "changes-withheld")
            what = "; ".join((digest, *messages))
            is_frozen = any(one.code == FROZEN for one in (record if digest else earlier or record).findings)
            by = "the freeze" if is_frozen else "the guard"
            yield f"{by} {WITHHOLDS}{what}" if digest else f"{by} withholds nothing any more"
        yield from self._compare_copies(
            mark_awaited(record.retained, record.findings), () if earlier is None else earlier.retained, commit
        )
        known_messages = {finding.message for finding in earlier.findings} if earlier is not None else set()
        yield from (one.message for one in record.findings if one.code == FACTS_STALE and one.message not in known_messages)
        yield from (f"cluster {name} has no document any more" for name in sorted(record.retiring.keys() - retired.keys()))

    def _has_copies(self, commit: Commit, parent: Commit | None) -> bool:
        """Return whether copies of chosen workloads stay for an overlap from a commit on, or go with it."""
        directory, find = f"{self._output.prefix}{CLUSTERS}", self._output.repository.find_entry
        if parent is None or find(commit.tree, directory) == find(parent.tree, directory):
            return False
        record, earlier = self._read_metadata(commit), self._read_metadata(parent)
        copies, before = (one.retained if one is not None else () for one in (record, earlier))
        return any(True for _ in self._compare_copies(copies, before, commit))

    def _compare_copies(self, copies: Iterable[RetainedCopy], before: Iterable[RetainedCopy], commit: Commit) -> Iterator[str]:
        """Yield which copies stay from a commit on, and which go: none that has become the workload itself."""
        find, tree, prefix = self._output.repository.find_entry, commit.tree, self._output.prefix
        after, former = ({_identify(copy): copy for copy in some if self._selects(copy)} for some in (copies, before))
        begun = [copy for key, copy in after.items() if key not in former]
        left = [copy for key, copy in former.items() if key not in after]
        ended = [copy for copy in left if not any(find(tree, f"{prefix}{path}") for path in copy.paths)]
        yield from (*describe_retained_copies(begun, MAX_COPIES), *describe_ended_copies(ended, MAX_COPIES))

    def _selects(self, copy: RetainedCopy) -> bool:
        return self.chosen.selects_key(copy.workload) and self.chosen.selects_clusters({copy.cluster: copy.replicas}, {})

    def _compare_clusters(self, commit: Commit, parent: Commit) -> tuple[list[str], list[str]]:
        directory = f"{self._output.prefix}{CLUSTERS}"
        now, then = (self._output.repository.list_directory(each.tree, directory).keys() for each in (commit, parent))
        return sorted(now - then), sorted(then - now)

    def _describe_changed_files(self, commit: Commit, parent: Commit) -> Iterator[str]:
        """Yield the clusters whose manifests change although no workload moves."""
        directory = f"{self._output.prefix}{CLUSTERS}"
        now, then = (self._output.repository.list_directory(each.tree, directory) for each in (commit, parent))
        changed = sorted(name for name in now.keys() & then.keys() if now[name] != then[name])
        if changed:
            yield f"manifests of {format_count(len(changed), 'cluster')} change: {format_names(changed, MAX_NAMES)}"

    def _read_freeze(self, commit: Commit | None) -> str:
        entry = self._output.repository.find_entry(commit.tree, f"{self._output.prefix}{FREEZE}") if commit is not None else None
        if entry is None:
            return ""
        data = read_regular_file(self._output.repository, entry, MAX_RECORD) or b""
        lines = data.decode("utf-8", "replace").strip().splitlines()
        return lines[0].strip()[:200] if lines else f"the branch has the file {FREEZE}"

    def _read_metadata(self, commit: Commit) -> RunMetadata | None:
        entry = self._output.repository.find_entry(commit.tree, f"{self._output.prefix}{RUN_METADATA}")
        return self._parse_metadata(entry[0]) if entry is not None else None

    @lru_cache(maxsize=2)  # noqa: B019 - an object for one command; each file is read for its commit and for the next one
    def _parse_metadata(self, blob: str) -> RunMetadata | None:
        try:
            return parse_run_metadata(self._output.repository.blob(blob), __version__)
        except GitschedError:
            return None

    def _describe_damage(self, commit: Commit) -> str:
        try:
            read_run_record(self._output.repository, commit.tree, self._output.prefix)
        except GitschedError as error:
            return f": {error}"
        return ""

    def _read_version(self, commit: Commit) -> int:
        record = self._read_metadata(commit)
        return FORMAT_VERSION if record is None else record.format_version

    # Source

    def _add_source(self, entry: HistoryEntry, commit: Commit, parent: Commit | None) -> HistoryEntry:
        """Add the source commit, and those since the commit before. Where it is missing, the output has its subject and author."""
        record, earlier = self._read_metadata(commit), self._read_metadata(parent) if parent is not None else None
        oid = dict(commit.trailers).get(SOURCE_TRAILER, "")
        if not oid:
            return entry  # no run made the commit
        oid = record.source if record is not None and record.source.startswith(oid) else oid
        if not self._has_source(oid):
            return entry._replace(source=self._read_hydrator_metadata(commit, oid))
        newest = self._source.commit(oid)
        entry = entry._replace(source=describe_change(self._source, newest))
        before = ""
        if earlier is not None and parent is not None:  # later commits may have been planned since, without a change
            output = self._output
            before = find_reconciled(output.repository, parent.oid, output.branch, output.prefix, earlier).source
        if record is not None and earlier is not None and parent is not None:
            edits = list_earlier_edits(self._output.repository, self._output.prefix, parent)
            moved = [found.move.key for found in entry.moves]
            is_same = before == oid and record.facts == earlier.facts
            entry = entry._replace(
                cause=shorten_text(find_cause(commit, edits, moved, is_same=is_same)), edits=edits.commits[:MAX_SOURCES]
            )
        if not before or before == oid:
            return entry
        if not self._has_source(before):
            note = f"source commit {abbreviate_oid(before)} of the commit before is not available, so what the source changed is not known"
            return entry._replace(notes=(*entry.notes, note))
        if self._source.has_ancestor(before, oid):
            note = f"the source went back from {abbreviate_oid(before)} to {abbreviate_oid(oid)}"
            entry = entry._replace(notes=(*entry.notes, note))
        else:
            since = list_commits_since(before, [oid], self._read_source, _MAX_SOURCES_COUNTED)
            sources = tuple(describe_change(self._source, each) for each in since.commits)
            entry = entry._replace(sources=sources[:MAX_SOURCES], more_sources=max(len(sources) - MAX_SOURCES, 0))
            if since.truncated:
                note = f"only {_MAX_SOURCES_COUNTED} of the commits of the source since the commit before are counted"
                entry = entry._replace(notes=(*entry.notes, note))
        try:
            paths = self._source.changed_paths(self._source.commit(before).tree, newest.tree)
        except GitschedError as error:
            return entry._replace(notes=(*entry.notes, f"the source cannot be compared: {error}"))
        return self._add_files(entry, ComparedTrees(self._source, self._source.commit(before).tree, newest.tree, paths))

    def _add_files(self, entry: HistoryEntry, trees: ComparedTrees) -> HistoryEntry:
        """Add the changed files of the source, those first that decide what moved, with taints, and why workloads are gone."""
        paths = list(trees.paths)
        if self._cache is not None:
            entry = entry._replace(taints=list_taint_changes(self._cache, trees))
            removed = [found for found in entry.moves if found.removed]
            if entry.moves and (len(paths) > 1 or removed):
                deciding = DecidingFiles(self._cache, trees, entry.moves, removed)
                paths = deciding.sort(paths, entry.moves)
                entry = entry._replace(moves=tuple(map(deciding.add_removal, entry.moves)))
        return entry._replace(files=tuple(paths[:MAX_FILES]), more_files=max(len(paths) - MAX_FILES, 0))

    def _read_source(self, oid: str) -> Commit | None:
        return self._source.commit(oid) if self._has_source(oid) else None

    def _has_source(self, oid: str) -> bool:
        return self._has_commit(self._source, self._fetch_source, oid)

    def _read_hydrator_metadata(self, commit: Commit, oid: str) -> SourceChange:
        entry = self._output.repository.find_entry(commit.tree, f"{self._output.prefix}{HYDRATOR_METADATA}")
        try:
            value = as_object(json.loads(self._output.repository.blob(entry[0]))) if entry is not None else {}
        except (GitschedError, ValueError, RecursionError):
            value = {}
        if value.get("drySha") != oid:
            return SourceChange(oid)
        subject, author = (text if isinstance(text := value.get(name), str) else "" for name in ("subject", "author"))
        return SourceChange(oid, shorten_text(subject), shorten_text(author.partition(" <")[0]), parse_time(value.get("date")))


def open_history(settings: RunSettings, chosen: HistoryFilter) -> OutputHistory:
    """Fetch the output branch, and return its history. Raise Permanent without an output branch."""
    context = open_context(settings)
    output, prefix, head, facts = _fetch_output(context)
    branch = HistoryBranch(output.branch, output.repository, head, prefix, output.remote is None)
    source = context.source
    return OutputHistory(branch, source.repository, chosen, context.caches.files, facts, output.fetch_history, source.fetch_history)


def open_run_history(settings: RunSettings, branch: str, head: str, prefix: str) -> OutputHistory:
    """Return the history of an output branch that a run has fetched, in repositories of its own: another thread may use those of runs."""
    source = open_context(settings).source
    output = open_output(source, branch=branch, location=settings.output, push=settings.push, cache=settings.cache)
    found = HistoryBranch(branch, output.repository, head, prefix)
    return OutputHistory(
        found, source.repository, HistoryFilter(), fetch_output=output.fetch_history, fetch_source=source.fetch_history
    )


def _fetch_output(context: RunContext) -> tuple[OutputRepository, str, str, Repository | None]:
    """Return the output that earlier runs or the settings name, its directory in the branch, its head, and a repository of its own for
    facts. Damage of the newest records of the branch does not matter here."""
    try:
        fetched = fetch(context, shows_findings=True)
        output, head, prefix, facts = fetched.output, fetched.output_head, fetched.prefix, fetched.facts.repository
    except Permanent:
        config, settings = read_source_config(context).output, context.settings
        branch, facts = settings.output_branch or config.branch, None
        output = open_output(context.source, branch=branch, location=settings.output, push=settings.push, cache=settings.cache)
        head = output.fetch()
        prefix = f"{config.path}/" if config.path else ""
    if head is None:
        raise Permanent(output.describe_missing())
    return output, prefix, head, facts


def _summarize(commit: Commit) -> str:
    """Return the subject; of a run, without the subject of the source commit."""
    if not is_written_by_run(commit):
        return commit.subject
    return commit.subject.removeprefix("place: ").partition(" (")[0]


def _identify(copy: RetainedCopy) -> tuple[Key, str]:
    return copy.workload, copy.cluster
