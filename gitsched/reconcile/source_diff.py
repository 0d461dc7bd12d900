"""Detect changes between two source trees that allow an incremental plan: only known, valid files changed their content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.apis.policy_api import Snapshot
from gitsched.decide.catalog import build_catalog
from gitsched.decide.decisions import make_holds_loader
from gitsched.decide.guard_settings import GuardRecord, read_guard_record
from gitsched.decide.incremental_plan import IncrementalPlan, PlanState, SourceDiff, make_incremental_plan, match_documents
from gitsched.decide.plan_state import PlanTimes, compute_plan_times
from gitsched.decide.registry import reserved_groups
from gitsched.git import Repository, TreeEntry
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome
from gitsched.model.system_errors import is_bug
from gitsched.reconcile.allowances import read_releases
from gitsched.reconcile.cache.plan_cache import PlanCache
from gitsched.reconcile.cache.row_format import CorruptCacheError
from gitsched.reconcile.fetch import find_output_blob, open_records
from gitsched.reconcile.run import Fetched, Planned, RunContext, StateUpdate
from gitsched.reconcile.source_locations import locate_plan_findings
from gitsched.reconcile.source_reader import SourceReader, read_source_file
from gitsched.reconcile.source_tree import load
from gitsched.reconcile.unread_entries import REGULAR_FILE_MODES
from gitsched.render.run_metadata import NOTHING_BUILT

if TYPE_CHECKING:
    from gitsched.reconcile.cache.caches import SourceFile

MAX_CHANGED_FILES = 20
"""An incremental plan is made for at most so many changed files, and one more for each so many workloads."""


def plan_incrementally(
    context: RunContext,
    fetched: Fetched,
    cache: PlanCache,
    now: datetime,
    plan_source: Callable[[RunContext, Fetched, datetime], Planned],
) -> Planned | None:
    """Plan only what changed since the plan in the cache; None if a complete plan is needed, which `plan_source` makes."""
    times = compute_plan_times(fetched.time, fetched.record.time if fetched.record else None, now)
    header, record = cache.header, fetched.record
    if fetched.frozen or context.settings.guard_limits or context.settings.allowed:
        return None  # the guard has more to say than the limits that the last plan recorded
    if record is not None and record.adopted:
        return None  # each run decides whether adopted objects keep their placement
    if record is not None and record.tenants:
        return None  # documents of one tenant may be in force only because another's is refused
    if record is not None and record.guard and read_guard_record(record.guard) != GuardRecord(header.totals.config.guard):
        return None
    if record is not None and header.totals.varied:
        repository = context.source.repository
        if not (repository.is_shallow or repository.has_ancestor(fetched.source.oid, record.source)):
            return None  # the history was rewritten, so that commits of bundles may be gone
    if (header.output_tree, header.facts) != (fetched.output_tree, fetched.facts.digest) or times.now < header.totals.now:
        return None
    if read_releases(context, fetched) is not None:
        return None  # a release may concern any workload
    try:
        made = _plan_from_cache(context, fetched, times, cache)
    except CorruptCacheError:
        return None
    except Exception as error:
        if not is_bug(error):
            raise
        return None  # the complete plan finds the document on which a bug shows
    if made is None:
        return None
    outcomes = RecoverableOutcomes(made.plan.outcomes, lambda: plan_source(context, fetched, now).plan.outcomes)
    plan = made.plan._replace(outcomes=outcomes)
    if plan.has_rule_findings:
        locations = dict(header.rule_locations)
        plan = locate_plan_findings(plan, context.source.repository, locations)
        rules = {finding.field for finding in made.plan.findings}
        cache.header = header._replace(rule_locations={rule: found for rule, found in locations.items() if rule in rules})
    builds = record.builds if record is not None else NOTHING_BUILT  # no file of a root changed
    return Planned(plan, cache.header.totals.config, StateUpdate(cache, made), builds)


def _plan_from_cache(context: RunContext, fetched: Fetched, times: PlanTimes, cache: PlanCache) -> IncrementalPlan | None:
    totals, repository, tree = cache.header.totals, context.source.repository, fetched.source.tree
    reader = SourceReader(repository, context.caches.files, totals.config, strict=totals.config.source.strict)
    finder = TemplateFinder(repository, tree, cache, reader)
    diff = read_source_diff(repository, tree, cache, reader, finder, times.now)
    if diff is None:
        return None
    templates = LazyTemplates(diff.documents, finder.find, partial(read_templates, context, fetched))
    records = open_records(context, fetched)
    holds = make_holds_loader(templates) if totals.config.guard.hold_stateful else None
    snapshot = Snapshot(cache.api_documents, templates, frozenset(), records, totals.config, *times, load_holds=holds)
    state = PlanState(totals, cache)
    return make_incremental_plan(state, diff, snapshot, partial(find_output_blob, fetched), context.caches.decisions.rendered)


def read_templates(context: RunContext, fetched: Fetched) -> Mapping[Key, Document]:
    source = load(context, fetched, check_output=False)
    return build_catalog(source.documents, source.config.kinds, reserved_groups).templates


class LazyTemplates(Mapping[Key, Document]):
    """All templates of a source. A template is read on demand; all are read when a caller iterates, or looks up one without a row."""

    def __init__(
        self,
        known: Mapping[Key, Document],
        find: Callable[[Key], Document | None],
        read: Callable[[], Mapping[Key, Document]],
    ) -> None:
        self._known, self._find, self._read = dict(known), find, read
        self._all: Mapping[Key, Document] | None = None

    def __getitem__(self, key: Key) -> Document:
        if key not in self._known:
            self._known[key] = (self._find(key) if self._all is None else None) or self._read_all()[key]
        return self._known[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._read_all())

    def __len__(self) -> int:
        return len(self._read_all())

    def _read_all(self) -> Mapping[Key, Document]:
        if self._all is None:
            self._all = self._read()
        return self._all


class RecoverableOutcomes(Mapping[Key, Outcome]):
    """Outcomes of an incremental plan. When a row turns out to be unreadable, a complete plan gives the same outcomes."""

    def __init__(self, known: Mapping[Key, Outcome], plan_again: Callable[[], Mapping[Key, Outcome]]) -> None:
        self._known, self._plan_again, self._count = known, plan_again, len(known)

    def __getitem__(self, key: Key) -> Outcome:
        try:
            return self._known[key]
        except CorruptCacheError:
            self._known = self._plan_again()
            return self._known[key]

    def __iter__(self) -> Iterator[Key]:
        try:
            keys = list(self._known)
        except CorruptCacheError:
            self._known = self._plan_again()
            keys = list(self._known)
        return iter(keys)

    def __len__(self) -> int:
        return self._count


def read_source_diff(
    repository: Repository, tree: str, cache: PlanCache, reader: SourceReader, finder: TemplateFinder, now: datetime
) -> SourceDiff | None:
    """Return the templates whose file changed since the last plan, and those to decide anyway; None if anything else changed."""
    totals, last_tree = cache.header.totals, cache.header.source_tree
    if not repository.has(last_tree):
        return None
    changed = repository.changed_paths(last_tree, tree)
    due = {key for key, wakeup in totals.wakeups.items() if wakeup <= now} | totals.unstable
    if len(changed) + len(due) > MAX_CHANGED_FILES + totals.workload_count // MAX_CHANGED_FILES:
        return None
    reader.prefetch(TreeEntry(path, entry[0], entry[1]) for path in changed if (entry := repository.find_entry(last_tree, path)))
    documents: dict[Key, Document] = {}
    findings = {}
    for path in changed:
        before, after = (read_file_at(repository, at, path, reader) for at in (last_tree, tree))
        if path == FILE or not cache.has_source_file(path) or before is None or after is None:
            return None
        matched = match_documents(before.documents, after.documents, totals.kind_scopes)
        if matched is None:
            return None
        documents.update(matched)
        findings[path] = after.findings
    for key in sorted(due - documents.keys()):
        document = finder.find(key)
        if document is None:
            return None
        documents[key] = document
    return SourceDiff(documents, findings)


class TemplateFinder:
    """Finds the templates of a source tree by identity. Reads each file once, because many workloads can share a file."""

    def __init__(self, repository: Repository, tree: str, cache: PlanCache, reader: SourceReader) -> None:
        self._repository, self._tree, self._cache, self._reader = repository, tree, cache, reader
        self._files: dict[str, Mapping[Key, Document]] = {}

    def find(self, key: Key) -> Document | None:
        """Return the document of a workload from its source file; None if it has no row or the file has other documents now."""
        row = self._cache.read_workload(key)
        if row is None or not self._cache.has_source_file(row.source_path):
            return None
        if row.source_path not in self._files:
            self._files[row.source_path] = self._read(row.source_path)
        return self._files[row.source_path].get(key)

    def _read(self, path: str) -> Mapping[Key, Document]:
        file = read_file_at(self._repository, self._tree, path, self._reader)
        scopes = self._cache.header.totals.kind_scopes
        return (match_documents(file.documents, file.documents, scopes) if file is not None else None) or {}


def read_file_at(repository: Repository, tree: str, path: str, reader: SourceReader) -> SourceFile | None:
    """Return a file of a tree; None if it is missing, broken or depends on other files."""
    entry = repository.find_entry(tree, path)
    if entry is None or entry[1] not in REGULAR_FILE_MODES:
        return None
    file = read_source_file(path, entry[0], reader)
    return file if file.independent else None
