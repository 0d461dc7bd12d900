"""The documents that differ between two versions of a source, with what facts branches add to them: for comparisons from the state of the
last run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import FILE
from gitsched.decide.catalog import is_template, resolve_key
from gitsched.decide.incremental.changed_documents import FileDocuments, identify_documents, pair_documents
from gitsched.decide.registry import reserved_groups
from gitsched.model.cluster_facts import NO_FACTS
from gitsched.model.document import Document, Key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.incremental.changed_files import TemplateFinder, find_limit, read_file_at
from gitsched.reconcile.incremental.source_diff import read_templates
from gitsched.reconcile.run import Facts
from gitsched.reconcile.source.file_selection import FileSelection
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.source.source_tree import read_tree

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.apis.capabilities import DocumentPair
    from gitsched.decide.catalog import RawDocument
    from gitsched.reconcile.cache.caches import TreeCache
    from gitsched.reconcile.run import Fetched, RunContext, StateUpdate

Documents = Mapping[Key, Document]


class SourceVersion(NamedTuple):
    """A version of the source: its tree, and the documents of kinds that facts branches complete which differ from those of the state, each
    in the state and in this version."""

    tree: str
    completed: Mapping[Key, DocumentPair] = {}

    def find_completed(self, key: Key, other: SourceVersion) -> Document | None:
        """Return a document that differs from the state in this or another version."""
        return self.completed[key][1] if key in self.completed else other.completed[key][0]


class SourceComparer:
    """Reads the documents that differ between two versions of the source: of the files that differ, or because facts differ; or of complete
    trees, where the plan needed these."""

    def __init__(self, context: RunContext, fetched: Fetched, update: StateUpdate) -> None:
        """`update` is the incremental plan of the fetched commit. Only the state that it started from is read."""
        self._context, self._fetched, self._cache = context, fetched, update.cache
        self._trees = {tree.tree: tree for tree in update.trees}
        config = self._cache.header.totals.config
        self._repository = context.source.repository
        self._reader = SourceReader(self._repository, context.caches.files, config, strict=config.source.strict)
        self._kinds = frozenset[tuple[str, str]]()
        if self._cache.header.facts != NO_FACTS or fetched.facts != Facts():
            from gitsched.reconcile.facts.changed_facts import list_completed_kinds  # few sources have facts branches

            self._kinds = list_completed_kinds()

    @property
    def state(self) -> SourceVersion:
        """The version that the last run has planned."""
        return SourceVersion(self._cache.header.source_tree)

    def find_planned(self, tree: str, update: StateUpdate) -> SourceVersion:
        """Return the version of an incremental plan that started from the same state."""
        changed = update.incremental.decided.diff.api_documents
        return SourceVersion(tree, {key: pair for key, pair in changed.items() if key[:2] in self._kinds})

    def read_version(self, tree: str, facts: Facts, now: datetime, recorded: Mapping[str, str]) -> SourceVersion:
        """Return the version of any tree, with the content of facts branches at a time; see `add_all_facts`."""
        if not self._kinds:
            return SourceVersion(tree)
        from gitsched.reconcile.facts.changed_facts import OtherSource, read_facts_changes  # few sources have facts branches

        stored = self._cache.header.source_tree
        if len({self._repository.find_entry(one, FILE) for one in (stored, tree)}) > 1:
            raise NeedsCompletePlan("settings say which facts count")
        source = OtherSource(tree, pair_documents(*self.read_files(stored, tree)), facts, now, recorded)
        found = read_facts_changes(self._context, self._cache, source)
        if found is None:
            raise NeedsCompletePlan("only all documents of another commit tell which facts they had")
        return SourceVersion(tree, found)

    def read_changes(self, before: SourceVersion, after: SourceVersion) -> tuple[Documents, Documents]:
        """Return the documents that differ, of both versions. Raise NeedsCompletePlan if others may differ."""
        read = self.read_files(before.tree, after.tree)
        if not self._kinds:
            return read
        differing = {
            key
            for key in (*before.completed, *after.completed)
            if before.find_completed(key, after) != after.find_completed(key, before)
        }
        return self._complete(read[0], before, after, differing), self._complete(read[1], after, before, differing)

    def _complete(self, read: Documents, version: SourceVersion, other: SourceVersion, differing: Iterable[Key]) -> Documents:
        """Return the documents of files with those of a version in place of the ones that facts branches complete."""
        found = dict(read)
        for key in read:
            if key[:2] in self._kinds:
                is_known = key in version.completed or key in other.completed
                document = version.find_completed(key, other) if is_known else self._find_stored(key)
                if document is None:
                    raise NeedsCompletePlan(f"a facts branch has {key} in place of a file")
                found[key] = document
        others = [one for key in differing if key not in found and (one := version.find_completed(key, other)) is not None]
        return {**found, **{one.key: one for one in sorted(others, key=_find_position)}}

    def _find_stored(self, key: Key) -> Document | None:
        stored = self._cache.api_documents.get(key[:2], ())
        return next((document for document in stored if document.key == key), None)

    def read_files(self, before: str, after: str) -> tuple[Documents, Documents]:
        """Return the documents of the files that differ between two trees, as these have them."""
        if self._trees:
            return self._compare_trees(self._read_tree(before), self._read_tree(after))
        paths = self._list_paths(before, after)
        return self._read_documents(before, paths), self._read_documents(after, paths)

    def _read_tree(self, tree: str) -> TreeCache:
        if tree not in self._trees:
            read = read_tree(self._context, self._fetched, tree, self._context.caches.tree)
            if read.failed_builds or read.used_versions:
                raise NeedsCompletePlan("what is used of another commit in place of what is broken depends on its history")
            self._trees[tree] = read
        return self._trees[tree]

    def _compare_trees(self, before: TreeCache, after: TreeCache) -> tuple[Documents, Documents]:
        from gitsched.reconcile.incremental.tree_diff import keep_order, list_differing  # few commits change what is built

        if not keep_order(before, after, self._cache.header.totals.source.kind_scopes):
            raise NeedsCompletePlan("the order of documents differs, or which of them are parts of kustomizations")
        first, second = list_differing(before, after)
        return self._identify(first), self._identify(second)

    def _identify(self, documents: Iterable[RawDocument]) -> Documents:
        found, scopes = FileDocuments(), self._cache.header.totals.source.kind_scopes
        documents = tuple(documents)
        if not identify_documents(documents, scopes, found):
            raise NeedsCompletePlan("documents concern others")
        known = {**found.templates, **found.api}
        return {key: known[key] for document in documents if (key := resolve_key(document, scopes)) is not None}

    def _list_paths(self, before: str, after: str) -> list[str]:
        header = self._cache.header
        changed = [] if before == after else self._repository.changed_paths(before, after)
        if len(changed) > 2 * find_limit(header.totals.overview.workload_count):
            raise NeedsCompletePlan("many files differ")
        if header.reading_rules is None:
            if header.failed_builds and changed:
                raise NeedsCompletePlan("files may be those of builds that failed in another commit")
            return changed
        ignored = header.totals.config.source.ignore
        selection = FileSelection(header.reading_rules, self._repository, ignored, header.source_tree, after)
        return [path for path in changed if selection.includes(path)]

    def _read_documents(self, tree: str, paths: Iterable[str]) -> Documents:
        documents: list[RawDocument] = []
        for path in paths:
            if self._repository.find_entry(tree, path) is None:
                continue
            file = read_file_at(self._repository, tree, path, self._reader)
            if file is None:
                raise NeedsCompletePlan(f"{path} concerns other files")
            documents += file.documents
        return self._identify(documents)

    def make_finder(self) -> Callable[[Key], Document | None]:
        """Return what finds the templates of the fetched commit."""
        tree = self._fetched.source.tree
        if self._trees:
            from gitsched.reconcile.incremental.tree_diff import make_finder  # few commits change what is built

            return make_finder(self._read_tree(tree), self._cache.header.totals.source.kind_scopes)
        read_all = partial(read_templates, self._context, self._fetched)
        return TemplateFinder(self._repository, tree, self._cache, self._reader, read_all).find


def _find_position(document: Document) -> tuple[str, int, int]:
    origin = document.origin
    return (origin.path, origin.line, origin.column) if origin is not None else ("", 0, 0)


def select_templates(documents: Documents) -> dict[Key, Document]:
    """Return those of some documents that policies can select."""
    return {key: document for key, document in documents.items() if is_template(*key[:2], reserved_groups)}


def select_api_documents(documents: Documents) -> dict[Key, Document]:
    """Return those of some documents that policy APIs read."""
    return {key: document for key, document in documents.items() if not is_template(*key[:2], reserved_groups)}
