"""Read the files that differ between two source trees, as documents that are added, removed or changed."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.decide.incremental.changed_documents import (
    FileDocuments,
    SourceDiff,
    concern_everything,
    identify_documents,
    pair_documents,
)
from gitsched.decide.incremental.plan_contents import may_select
from gitsched.decide.registry import apis_by_group
from gitsched.git import Repository, TreeEntry
from gitsched.manifests.charts import CHART_FILE
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.manifests.parsed_file import MANY_FILES
from gitsched.manifests.sourceignore import IGNORE_FILE
from gitsched.model.document import Document, Key, parse_api_group
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.tenants import TENANT_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.plan_cache import PlanCache
from gitsched.reconcile.source.file_selection import FileSelection
from gitsched.reconcile.source.source_reader import (
    SourceReader,
    is_manifest_path,
    list_release_charts,
    names_paths,
    read_source_file,
)
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES, SUBMODULE_MODE

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.apis.capabilities import DocumentPair
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.reconcile.cache.caches import SourceFile
    from gitsched.reconcile.cache.reading_rules import ReadingRules

MAX_CHANGED_FILES = 100
"""An incremental plan is made for at most so many changed files and workloads to decide again, and half of the workloads: to decide two
thirds of them again costs about as much as a complete plan."""
_PLAIN_PATH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*/)*[A-Za-z0-9_][A-Za-z0-9._-]*")
_SPECIAL_NAMES = (*KUSTOMIZATION_NAMES, CHART_FILE, IGNORE_FILE)
MISSING_TREE = "the source tree of the last plan is missing"
MANY_CHANGES = "many files or workloads change"
SEVERAL_DOCUMENTS = "an object has several documents, or a broken one"
SELECTS_BROKEN = "a changed document may select an object that is broken or has several documents"
CONCERNS_ALL = "a changed document of gitsched may concern all workloads"
_CONCERNS_OTHERS = "{} may concern other files"
Version = tuple[str, int] | None
"""Blob and mode of a file in a tree; None where the tree does not have it."""


class _FileChange(NamedTuple):
    """A file in two trees; None where it has none."""

    path: str
    before: SourceFile | None
    after: SourceFile | None


def find_limit(workload_count: int) -> int:
    """Return for how many files or workloads an incremental plan is made, of so many workloads."""
    return MAX_CHANGED_FILES + workload_count // 2


def list_due(totals: Totals, now: datetime) -> frozenset[Key]:
    """Return the workloads that are decided again whether anything changed or not."""
    wakeups = (*totals.wakeups.items(), *totals.withheld_wakeups.items())
    return frozenset(key for key, wakeup in wakeups if wakeup <= now and key not in totals.engines.own) | totals.unstable


def read_source_diff(
    repository: Repository,
    tree: str,
    cache: PlanCache,
    totals: Totals,
    reader: SourceReader,
    finder: TemplateFinder,
    due: frozenset[Key],
) -> SourceDiff:
    """Return the documents that changed since the last plan with some `totals`, and those that are `due`. Raise NeedsCompletePlan if
    anything else changed."""
    last_tree = cache.header.source_tree
    if not repository.has(last_tree):
        raise NeedsCompletePlan(MISSING_TREE)
    changed = repository.changed_paths(last_tree, tree)
    if len(changed) + len(due) > find_limit(totals.overview.workload_count):
        raise NeedsCompletePlan(MANY_CHANGES)
    files = _read_changed_files(repository, tree, changed, cache, reader)
    settings = None
    if any(file.path == FILE for file in files):
        from gitsched.reconcile.incremental.changed_settings import read_changed_settings  # few commits change settings

        own = next(file for file in files if file.path == FILE)
        if own.before is None or own.after is None:
            raise NeedsCompletePlan("the settings come or go")
        settings = read_changed_settings(own.before, own.after, totals)
    templates, api_documents = _pair_files([file for file in files if file.path != FILE], cache)
    if _hides_policies(api_documents, cache):
        raise NeedsCompletePlan("no document of a policy API is left")
    documents = {key: after for key, (_, after) in templates.items() if after is not None}
    for key in sorted(due - templates.keys()):
        documents[key] = require_document(key, finder.find(key))
    findings = {file.path: file.after.findings if file.after is not None else () for file in files}
    added = frozenset(file.path for file in files if file.before is None)
    removed = frozenset(file.path for file in files if file.after is None)
    return SourceDiff(documents, findings, templates, api_documents, added, removed, settings)


def require_document(key: Key, document: Document | None) -> Document:
    """Return the document of a workload that has to be decided again. Raise NeedsCompletePlan if there is none."""
    if document is None:
        raise NeedsCompletePlan(f"{key} has to be decided again, and the source does not have it as one document")
    return document


def _read_changed_files(
    repository: Repository, tree: str, changed: list[str], cache: PlanCache, reader: SourceReader
) -> list[_FileChange]:
    """Return the changed files that can contain documents. Raise NeedsCompletePlan if one of them concerns other files."""
    header, versions = cache.header, list[tuple[str, Version, Version]]()
    rules, ignored = header.reading_rules, header.totals.config.source.ignore
    selection = FileSelection(rules, repository, ignored, header.source_tree, tree) if rules is not None else None
    for path in changed:
        before, after = (repository.find_entry(at, path) for at in (header.source_tree, tree))
        if before is not None and after is not None and before[1] == after[1] == SUBMODULE_MODE:
            continue  # it is not read
        if path in header.settled or path.endswith(_SPECIAL_NAMES) or not _are_regular(before, after):
            raise NeedsCompletePlan(_CONCERNS_OTHERS.format(path))
        is_known = before is not None and cache.has_source_file(path)
        if selection is None:
            if not is_known or after is None:
                raise NeedsCompletePlan(_CONCERNS_OTHERS.format(path))
        else:
            if (before is None or after is None) and not selection.may_come_or_go(path):
                raise NeedsCompletePlan(_CONCERNS_OTHERS.format(path))
            if not is_known and path != FILE and not selection.includes(path):
                if not (selection.may_change(path) and selection.may_hide(path, is_new=before is None)):
                    raise NeedsCompletePlan(_CONCERNS_OTHERS.format(path))
                continue
            if not is_known and (before is not None or _PLAIN_PATH.fullmatch(path) is None):
                raise NeedsCompletePlan(_CONCERNS_OTHERS.format(path))
        versions.append((path, before, after))
    reader.prefetch(TreeEntry(path, *one) for path, *both in versions for one in both if one is not None)
    files = []
    for path, before, after in versions:
        read = [read_source_file(path, one[0], reader) if one is not None else None for one in (before, after)]
        if any(file is not None and not file.independent for file in read):
            raise NeedsCompletePlan(f"{path} is broken, or depends on other files")
        if any(file is not None and names_paths(file) for file in read):
            raise NeedsCompletePlan(f"{path} says what delivery tools build")
        if list_release_charts(read[0]) != list_release_charts(read[1]):
            raise NeedsCompletePlan(f"{path} names other charts")
        files.append(_FileChange(path, *read))
    if rules is not None and rules.definitions and not _keep_resource_findings(files, rules, repository, tree, reader):
        raise NeedsCompletePlan("a custom resource does not follow its definition")
    return files


def has_same_documents(repository: Repository, old_tree: str, new_tree: str) -> bool:
    """Return whether two trees of a source with reading rules differ only in files that no plan reads. False where one is missing."""
    if old_tree == new_tree:
        return True
    if not (repository.has(old_tree) and repository.has(new_tree)):
        return False
    changed = repository.changed_paths(old_tree, new_tree)
    if len(changed) > MAX_CHANGED_FILES or any(path.endswith(_SPECIAL_NAMES) or is_manifest_path(path) for path in changed):
        return False
    return all(_are_regular(*(repository.find_entry(tree, path) for tree in (old_tree, new_tree))) for path in changed)


def _are_regular(*versions: Version) -> bool:
    return all(version is None or version[1] in REGULAR_FILE_MODES for version in versions)


def _keep_resource_findings(
    files: list[_FileChange], rules: ReadingRules, repository: Repository, tree: str, reader: SourceReader
) -> bool:
    """Return whether nothing is found about the changed custom resources by the definitions of the source."""
    found = [
        (file, {(one.group, one.kind) for read in (file.before, file.after) if read is not None for one in read.documents})
        for file in files
    ]
    for file, kinds in found:
        paths = {rules.definitions[kind] for kind in kinds if kind in rules.definitions}
        if not paths:
            continue
        from gitsched.reconcile.source.custom_resources import has_findings  # few changes are of custom resources

        definitions = [read_file_at(repository, tree, path, reader) for path in sorted(paths)]
        if has_findings([file.before, file.after], definitions):
            return False
    return True


def _hides_policies(changed: Mapping[Key, DocumentPair], cache: PlanCache) -> bool:
    """Return whether the last document of a policy API goes, so that files with rules may hide all of them, which is a finding."""
    gone = {key for key, (_, after) in changed.items() if after is None}
    rules = cache.header.reading_rules
    if not gone or rules is None or not (rules.ignore_files or cache.header.totals.config.source.ignore):
        return False
    kinds = (kind for kind in cache.header.kinds if kind[0] in apis_by_group)
    return all(document.key in gone for kind in kinds for document in cache.api_documents[kind])


def _pair_files(files: list[_FileChange], cache: PlanCache) -> tuple[dict[Key, DocumentPair], dict[Key, DocumentPair]]:
    """Return the changed templates and documents of policy APIs. Raise NeedsCompletePlan if only a complete plan can tell what a change
    means."""
    rules, totals = cache.header.reading_rules, cache.header.totals
    scopes = totals.source.kind_scopes
    before, after = FileDocuments(), FileDocuments()
    for file in files:
        pair = None if file.before is None or file.after is None else (file.before, file.after)
        same = pair is not None and [one[3:] for one in pair[0].documents] == [one[3:] for one in pair[1].documents]
        if not same and not (rules is not None and (pair is None or all(map(_is_plain, pair)))):
            raise NeedsCompletePlan(f"{file.path} has other objects, or content that is not documents")
        for read, found in ((file.before, before), (file.after, after)):
            declared = None if rules is None or same else _list_declared(rules, totals)
            if read is not None and not identify_documents(read.documents, scopes, found, declared):
                raise NeedsCompletePlan(f"{file.path} has a document that concerns others")
    several = totals.source.repeated | totals.source.unused
    if any(not several.isdisjoint(found) for side in (before, after) for found in (side.templates, side.api)):
        raise NeedsCompletePlan(SEVERAL_DOCUMENTS)
    templates, api_documents = pair_documents(before.templates, after.templates), pair_documents(before.api, after.api)
    if may_select(api_documents.values(), totals.source.unused):
        raise NeedsCompletePlan(SELECTS_BROKEN)
    if api_documents and rules is None:
        raise NeedsCompletePlan("other policies may need other builds")
    if concern_everything(key for key in api_documents if not (totals.owners and key[:2] == TENANT_KIND)):
        raise NeedsCompletePlan(CONCERNS_ALL)
    index, known = cache.template_index, cache.api_documents
    if any(old is None and key in index for key, (old, _) in templates.items()):
        raise NeedsCompletePlan(SEVERAL_DOCUMENTS)
    kinds = {key[:2] for key, (old, _) in api_documents.items() if old is None}
    taken = {document.key for kind in kinds if kind in known for document in known[kind]}
    if any(old is None and key in taken for key, (old, _) in api_documents.items()):
        raise NeedsCompletePlan(SEVERAL_DOCUMENTS)
    return templates, api_documents


def _list_declared(rules: ReadingRules, totals: Totals) -> frozenset[tuple[str, str]]:
    """Return the custom kinds of the source whose scope does not depend on how objects are written."""
    if not totals.source.kind_scopes:
        return frozenset()
    from gitsched.kinds.table import is_namespaced  # many sources have no custom kinds

    declared = rules.declared | {(parse_api_group(kind.api_version), kind.kind) for kind in totals.config.kinds}
    return frozenset(kind for kind in totals.source.kind_scopes if kind in declared or is_namespaced(*kind) is not None)


def _is_plain(file: SourceFile) -> bool:
    """Return whether a file has documents only, or nothing: other content in the place of documents leaves these in force."""
    return file.file.status in ("resources", "empty") and not file.file.others


class TemplateFinder:
    """Finds the templates of a source tree by identity. Reads each file once, because many workloads can share a file."""

    def __init__(
        self,
        repository: Repository,
        tree: str,
        cache: PlanCache,
        reader: SourceReader,
        read_all: Callable[[], Mapping[Key, Document]],
    ) -> None:
        self._repository, self._tree, self._cache, self._reader = repository, tree, cache, reader
        self._read_all = functools.cache(read_all)
        self._files: dict[str, Mapping[Key, Document]] = {}
        self._read_count, self._sources = 0, frozenset[str]()

    def find(self, key: Key) -> Document | None:
        """Return a template from its source file; None if the plan does not know it or the file has other documents now. Of a broken file,
        and beside builds that fail, it is the last valid one, which `read_all` returns with all others."""
        entry, header = self._cache.template_index.get(key), self._cache.header
        if entry is not None and (header.failed_builds or entry.path in header.settled):
            return self._read_all().get(key)
        if entry is None or not (entry.path in self._sources or self._cache.has_source_file(entry.path)):
            return None
        if entry.path not in self._files:
            self._files[entry.path] = self._read(entry.path)
        return self._files[entry.path].get(key)

    def _read(self, path: str) -> Mapping[Key, Document]:
        entry = self._repository.find_entry(self._tree, path)
        if entry is None or entry[1] not in REGULAR_FILE_MODES:
            return {}
        self._read_count += 1
        if self._read_count == MANY_FILES:  # the rest may follow
            self._sources = self._cache.list_source_files()
            paths = {entry.path for entry in self._cache.template_index.values()}
            self._reader.load(one for one in self._repository.entries(self._tree) if one.path in paths)
        self._reader.prefetch([TreeEntry(path, *entry)])
        file, found = read_source_file(path, entry[0], self._reader), FileDocuments()
        usable = file.independent and identify_documents(file.documents, self._cache.header.totals.source.kind_scopes, found)
        return found.templates if usable else {}


def read_file_at(repository: Repository, tree: str, path: str, reader: SourceReader) -> SourceFile | None:
    """Return a file of a tree; None if it is missing, broken or depends on other files."""
    entry = repository.find_entry(tree, path)
    if entry is None or entry[1] not in REGULAR_FILE_MODES:
        return None
    file = read_source_file(path, entry[0], reader)
    return file if file.independent else None
