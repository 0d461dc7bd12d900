"""Detect changes between two source trees that allow an incremental plan: only known, valid files changed their content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from gitsched.apis.gitsched.config import FILE
from gitsched.decide.catalog import RawDocument, resolve_key
from gitsched.decide.incremental_plan import SourceDiff
from gitsched.decide.plan_state import Totals
from gitsched.decide.registry import reserved_groups
from gitsched.git import Repository, TreeEntry
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome
from gitsched.reconcile.cache.plan_cache import PlanCache
from gitsched.reconcile.cache.serialization import CorruptCacheError
from gitsched.reconcile.source_tree import REGULAR_FILE_MODES, SourceFile, SourceReader, read_source_file

MAX_CHANGED_FILES = 20
"""One file in so many, and as many, may have changed for this to be worth while."""


class LazyTemplates(Mapping[Key, Document]):
    """All templates of a source; but for those that were read already, they are found when somebody asks for one, and all read when
    somebody asks for all, or for one that has no trace."""

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
    """Outcomes of an amended plan. Rows that cannot be read any more, when somebody asks at last, are made `anew`, to the same effect."""

    def __init__(self, known: Mapping[Key, Outcome], anew: Callable[[], Mapping[Key, Outcome]]) -> None:
        self._known, self._plan_again, self._count = known, anew, len(known)

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


def read_source_diff(repository: Repository, tree: str, shelf: PlanCache, reader: SourceReader, now: datetime) -> SourceDiff | None:
    """What differs from the ledger's source tree, and what is due anyway; None where more than known templates differs."""
    sums = shelf.header.totals
    if not repository.has(shelf.header.source_tree):
        return None
    changed = repository.changed_paths(shelf.header.source_tree, tree)
    due = {key for key, moment in sums.wakeups.items() if moment <= now} | sums.unstable
    if len(changed) + len(due) > MAX_CHANGED_FILES + sums.workload_count // MAX_CHANGED_FILES:
        return None
    reader.prefetch(
        TreeEntry(path, entry[0], entry[1]) for path in changed if (entry := repository.find_entry(shelf.header.source_tree, path))
    )
    documents: dict[Key, Document] = {}
    findings = {}
    for path in changed:
        was, page = (_read_file_at(repository, at, path, reader) for at in (shelf.header.source_tree, tree))
        if path == FILE or not shelf.has_source_file(path) or was is None or page is None:
            return None
        found = _match_documents(was.documents, page.documents, sums)
        if found is None:
            return None
        documents.update(found)
        findings[path] = page.findings
    for key in sorted(due - documents.keys()):
        document = find_template(repository, tree, shelf, reader, key)
        if document is None:
            return None
        documents[key] = document
    return SourceDiff(documents, findings)


def find_template(repository: Repository, tree: str, shelf: PlanCache, reader: SourceReader, key: Key) -> Document | None:
    """A workload's document in the file that it was read from; None where it has no trace, or the file something else by now."""
    trace = shelf.read_workload(key)
    page = _read_file_at(repository, tree, trace.source_path, reader) if trace is not None else None
    found = _match_documents(page.documents, page.documents, shelf.header.totals) if page is not None else None
    return found.get(key) if found else None


def _read_file_at(repository: Repository, tree: str, path: str, reader: SourceReader) -> SourceFile | None:
    entry = repository.find_entry(tree, path)
    if entry is None or entry[1] not in REGULAR_FILE_MODES:
        return None
    page = read_source_file(path, entry[0], reader)
    return page if page.independent else None


def _match_documents(before: Iterable[RawDocument], after: Iterable[RawDocument], sums: Totals) -> dict[Key, Document] | None:
    """The documents of a file by identity, if they have the same identities as before and are templates, all of them."""
    was, now = list(before), list(after)
    if [loose[3:] for loose in was] != [loose[3:] for loose in now]:
        return None
    found = {}
    for loose in now:
        key = resolve_key(loose, sums.kind_scopes)
        if key is None or loose.group in reserved_groups() or loose.kind == "CustomResourceDefinition":
            return None
        found[key] = Document(key, loose.api_version, loose.body, loose.origin)
    return found
