"""The state of the last plan: typed rows, in memory and in a store, of which a new process reads only those that a change affects.

A state is valid only for the trees, options and build that it was written for. Any store may be lost at any time.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from gitsched.apis.capabilities import DependencyTracking
from gitsched.apis.policy_api import PolicyEngine
from gitsched.model.cluster_facts import NO_FACTS, AppliedFacts
from gitsched.model.document import Document, Key, workload_sort_key
from gitsched.model.errors import GitschedError
from gitsched.model.fault import describe_fault
from gitsched.model.finding import FieldOrigin, Location
from gitsched.model.system_errors import is_bug
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache import document_rows
from gitsched.reconcile.cache.failed_builds import FailedBuilds
from gitsched.reconcile.cache.reading_rules import ReadingRules
from gitsched.reconcile.cache.row_format import (
    CLUSTER,
    DOCUMENTS,
    SEPARATOR,
    WORKLOAD,
    CorruptCacheError,
    Row,
    Shards,
    deserialize,
    flatten_row,
    list_cluster_rows,
    list_document_rows,
    list_workload_rows,
    restore_row,
    serialize,
    serialize_engines,
)
from gitsched.reconcile.cache.shared_rows import SharedRows
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord

if TYPE_CHECKING:
    from gitsched.decide.incremental.plan_contents import PlanContents
    from gitsched.decide.incremental.plan_state import ClusterRow, StateChanges, Totals, WorkloadRow
    from gitsched.decide.relations.plan_relations import PlanRelations
    from gitsched.model.template_index import TemplateEntry, TemplateIndex
    from gitsched.reconcile.cache.plan_file import PlanFile, RowStore

_log = logging.getLogger("gitsched.reconcile")
_PATHS, _ENGINES, _QUERY = "paths", "engines", "query"
_ALL = "all"
"""The kind of a shared row that has all rows of the kind that is its name."""
HEADER = "header"
"""The kind of the only row that a run reads if nothing has changed."""


class PlanCacheHeader(NamedTuple):
    """`cache_key` identifies the build and the use of the cache. The plan led from `source_tree` to `output_tree`. `kinds` are the kinds of
    the API documents, as (group, kind); `facts` are those of the facts branches. Source files may come and go, without an effect on other
    files, as the `reading_rules` allow; None where any may have one. `rule_locations` are the lines of the rules that findings are about,
    so that no file is parsed for a finding that stays. `settled` are the broken files, with the source commit of the version that the
    output branch keeps of each; None for one without an earlier version. `builds` says how roots were built, and `failed_builds` are those
    that failed."""

    cache_key: str
    source_tree: str
    output_tree: str
    kinds: tuple[tuple[str, str], ...]
    totals: Totals
    facts: AppliedFacts = NO_FACTS
    reading_rules: ReadingRules | None = None
    rule_locations: Mapping[FieldOrigin, Location | None] = {}
    settled: Mapping[str, str | None] = {}
    builds: BuildRecord = NOTHING_BUILT
    failed_builds: FailedBuilds = {}

    def is_same_state(self, other: PlanCacheHeader) -> bool:
        """Return whether another header has the same state, whatever the times at which both were checked."""
        return self == other._replace(totals=other.totals._replace(now=self.totals.now))


class LazyDocuments(Mapping[tuple[str, str], tuple[Document, ...]]):
    """API documents by kind; each kind is read on demand."""

    def __init__(self, kinds: Iterable[tuple[str, str]], read: Callable[[tuple[str, str]], tuple[Document, ...]]) -> None:
        self._kinds, self._read = tuple(kinds), read

    def __getitem__(self, kind: tuple[str, str]) -> tuple[Document, ...]:
        if kind not in self._kinds:
            raise KeyError(kind)
        return self._read(kind)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


class PlanCache:
    """Rows of a plan state: see `gitsched.decide.incremental.plan_state.PlanRows`. Without a store they are lost with the process."""

    def __init__(self, header: PlanCacheHeader, store: RowStore | None, shared: SharedRows | None = None) -> None:
        self.header, self.store = header, store
        self._shared, self.known_decisions = shared, shared.decisions if shared is not None else None
        self._is_writable = store is not None
        self._workloads: dict[Key, WorkloadRow | None] = {}
        self._clusters: dict[str, ClusterRow | None] = {}
        self._templates: Shards[TemplateEntry] = Shards("templates", self._select_row)
        self._relations: PlanRelations | None = None
        self._api_documents: dict[tuple[str, str], tuple[Document, ...]] = {}
        self._paths = ""
        self._engines: tuple[PolicyEngine, ...] | None = None
        self._complete = False
        self._saved_revision = 0
        self._unsaved: set[tuple[str, str]] = set()
        self._changed_documents: dict[str, Any] = {}
        self._saved_header: PlanCacheHeader | None = None

    @classmethod
    def create(cls, header: PlanCacheHeader, store: RowStore | None, contents: PlanContents) -> PlanCache:
        """Return the state of a complete plan."""
        made = cls(header, store)
        made._workloads.update(contents.workloads)
        made._clusters.update(contents.clusters)
        made._api_documents.update(contents.api_documents)
        made._templates.fill(contents.templates)
        made._relations, made._engines, made._complete = contents.relations, contents.engines, True
        made._paths = SEPARATOR.join(("", *contents.paths, ""))
        contents.relations.save()
        contents.relations.store.read_from(made._read_query_row)
        return made

    @classmethod
    def open(cls, store: RowStore, key: str, *, is_key_checked: bool = False, shared: SharedRows | None = None) -> PlanCache | None:
        """Return the state in a store; None unless it has this key. A caller that has checked the key handles CorruptCacheError, too."""
        try:
            stored = store.read(HEADER, "")
            header = _read_header(stored) if shared is None else shared.open(stored, _read_header)
        except CorruptCacheError as error:
            if is_key_checked:
                raise
            store.discard(error)
            return None
        if header is None or not (is_key_checked or header.cache_key == key):
            return None
        cache = cls(header._replace(cache_key=key), store, shared)
        cache._saved_header = cache.header
        return cache

    @property
    def is_new(self) -> bool:
        """Whether this is the state of a complete plan that no store has yet."""
        return self._saved_header is None

    def read_workload(self, key: Key) -> WorkloadRow | None:
        if key not in self._workloads and not self._complete:
            self._workloads[key] = self._select_row(WORKLOAD, SEPARATOR.join(key), restore_row)
        return self._workloads.get(key)

    def read_cluster(self, name: str) -> ClusterRow | None:
        if name not in self._clusters and not self._complete:
            self._clusters[name] = self._select_row(CLUSTER, name)
        return self._clusters.get(name)

    def list_clusters(self) -> Iterator[tuple[str, ClusterRow]]:
        """Yield the row of every cluster with a directory, by name."""
        if not self._complete:
            rows = [(name, data) for name, data in self._read_all(CLUSTER) if name not in self._clusters]
            self._clusters |= {name: self._decode(data) for name, data in rows}
        yield from sorted((name, row) for name, row in self._clusters.items() if row is not None)

    def list_workloads(self) -> Iterator[WorkloadRow]:
        if not self._complete:
            self._load_workloads()
        keys = sorted((key for key, row in self._workloads.items() if row is not None), key=workload_sort_key)
        yield from (row for key in keys if (row := self._workloads[key]) is not None)

    def _load_workloads(self) -> None:
        """Load all workloads from the store."""
        if self._shared is not None:
            self._workloads = {**self._shared.read(_ALL, WORKLOAD, partial(self._decode_workloads, {})), **self._workloads}
        else:
            self._workloads |= self._decode_workloads(self._workloads)

    def _decode_workloads(self, known: Container[Key]) -> dict[Key, WorkloadRow]:
        rows = [(Key(*name.split(SEPARATOR)), data) for name, data in self._read_all(WORKLOAD)]
        return {key: self._decode(data, restore_row) for key, data in rows if key not in known}

    @property
    def relations(self) -> PlanRelations:
        """The relations of the plan."""
        if self._relations is None:
            from gitsched.decide.relations.plan_relations import PlanRelations  # only where objects have changed

            self._relations = PlanRelations(self._read_query_row)
            if self._relations.database.is_new:
                raise self._discard(CorruptCacheError("there is no database of relations"))
        return self._relations

    def _list_query_rows(self) -> list[Row]:
        rows = self._relations.store.take_rows() if self._relations is not None else {}
        return [(_QUERY, name, 0, data) for name, data in sorted(rows.items())]

    def _read_query_row(self, name: str) -> bytes | None:
        return self.store.read(_QUERY, name) if self.store is not None else None

    @property
    def template_index(self) -> TemplateIndex:
        return self._templates

    def has_source_file(self, path: str) -> bool:
        """Return whether the plan read a source file. Of many files, `list_source_files` tells sooner."""
        return SEPARATOR not in path and f"{SEPARATOR}{path}{SEPARATOR}" in self._load_paths()

    def list_source_files(self) -> frozenset[str]:
        return frozenset(self._load_paths().split(SEPARATOR))

    def _load_paths(self) -> str:
        if not self._paths:
            self._paths = self._select_row(_PATHS, "") or SEPARATOR
        return self._paths

    @property
    def engines(self) -> tuple[PolicyEngine, ...]:
        """The policy engines of the plan, which continue with `update`."""
        if self._engines is None:
            self._engines = self._select_row(_ENGINES, "") or ()
        return self._engines

    @property
    def api_documents(self) -> Mapping[tuple[str, str], tuple[Document, ...]]:
        """The documents that the engines read, by (group, kind)."""
        return LazyDocuments(self.header.kinds, self._load_kind)

    def _load_kind(self, kind: tuple[str, str]) -> tuple[Document, ...]:
        if kind not in self._api_documents:
            self._api_documents[kind] = document_rows.read_rows(kind, partial(self._select_row, DOCUMENTS))
        return self._api_documents[kind]

    def update(self, changes: StateChanges, header: PlanCacheHeader) -> None:
        """Change some rows and the header. Call this only when the output branch is at the output tree of the header."""
        self._workloads.update(changes.workloads)
        self._clusters.update(changes.clusters)
        self._templates.update(changes.templates)
        if changes.facts is not None:
            self.relations.assign(changes.facts, header.totals.config)
            self.relations.save()
        for kind, documents in changes.api_documents.items():
            self._changed_documents |= document_rows.list_changed_rows(kind, self._load_kind(kind), documents)
            self._api_documents[kind] = documents
        self._unsaved.update((WORKLOAD, SEPARATOR.join(key)) for key in changes.workloads)
        self._unsaved.update((CLUSTER, name) for name in changes.clusters)
        if changes.added_paths or changes.removed_paths:
            paths = (set(self._load_paths().split(SEPARATOR)) | changes.added_paths) - changes.removed_paths - {""}
            self._paths = SEPARATOR.join(("", *sorted(paths), ""))
            self._unsaved.add((_PATHS, ""))
        if changes.engines is not None:
            self._engines = changes.engines
            self._unsaved.add((_ENGINES, ""))
        self.header = header

    def _list_changed_rows(self) -> Iterator[Row]:
        """Yield the rows that changed since they were written; without content if they are removed."""
        for kind, name in sorted(self._unsaved):
            row: Any
            if kind == WORKLOAD:
                found = self._workloads.get(Key(*name.split(SEPARATOR)))
                row = None if found is None else flatten_row(found)
            elif kind == CLUSTER:
                row = self._clusters.get(name)
            elif kind == _PATHS:
                row = self._paths
            else:
                yield (kind, name, 0, serialize_engines(self._engines))
                continue
            yield (kind, name, 0, serialize(row) if row is not None else None)
        for name, documents in self._changed_documents.items():
            yield (DOCUMENTS, name, 0, serialize(documents) if documents is not None else None)
        yield from (*self._list_query_rows(), *self._templates.list_rows())

    def save(self) -> None:
        """Write the changes to the store. Log a failure instead of raising it: a run works without the store."""
        store = self.store if self._is_writable else None
        if store is None or (self._saved_header is not None and self.header.is_same_state(self._saved_header)):
            return
        try:
            if self._saved_header is None:
                store.create(self._list_rows())
                self._saved_revision = _sum_revisions(self.engines)
            else:
                self._write_changes(store)
        except (pickle.PicklingError, TypeError, AttributeError, CorruptCacheError) as error:
            _log.debug("the state of this plan cannot be stored: %s", error)
            self._is_writable = False
        except (GitschedError, OSError) as error:
            _log.warning("the state of this plan was not stored: %s", error)
        except Exception as error:
            if not is_bug(error):
                raise
            _log.warning("%s while the state of this plan was stored; report this bug with the id", describe_fault(error))
            self._is_writable = False
        else:
            if self._relations is not None and self._is_writable and not self._complete:
                self._relations.database.forget_pages()
        self._saved_header = self.header
        self._unsaved.clear()
        self._changed_documents.clear()

    def move(self, file: PlanFile, store: RowStore) -> None:
        """Write the changes to the file that is the store, and all of its rows to another store, which takes its place."""
        self.save()
        if self._is_writable:
            store.create(file.list_rows())
            self.store = store
            file.remove()

    def _list_rows(self) -> Iterable[Row]:
        """Return all rows of a complete plan, about in the order of their kinds and names, in which a store writes them. The rows of
        documents, clusters and workloads, which are many, are made one by one."""
        engines = serialize_engines(self._engines)
        deserialize(engines)  # fail now for engines that could not be read back
        single: tuple[Row, ...] = (
            (_ENGINES, "", 0, engines),
            (HEADER, "", 0, serialize(self.header)),
            (_PATHS, "", 0, serialize(self._paths)),
        )
        return chain(
            list_document_rows(self._api_documents),
            list_cluster_rows(self._clusters),
            single,
            self._list_query_rows(),
            self._templates.list_rows(every=True),
            list_workload_rows(self._workloads),
        )

    def _write_changes(self, store: RowStore) -> None:
        """Write the changed rows, only if the stored state is still the one that this cache was read from or has written."""
        saved, revision = self._saved_header, _sum_revisions(self._engines or ())

        def is_known(data: bytes | None) -> bool:
            found = _read_header(data)
            return found is not None and saved is not None and found[:3] == saved[:3]

        if revision != self._saved_revision:
            self._unsaved.add((_ENGINES, ""))
        rows = list(self._list_changed_rows())
        rows.append((HEADER, "", 0, serialize(self.header)))
        # The state of another process stays as it is, and this cache continues in memory only.
        self._is_writable = store.update(rows, is_known)
        self._saved_revision = revision

    def _select_row(self, kind: str, name: str, restore: Callable[[Any], Any] | None = None) -> Any:
        def read() -> Any:
            data = self.store.read(kind, name) if self.store is not None else None
            return None if data is None else self._decode(data, restore)

        if self._shared is None or kind == _ENGINES:  # engines continue, each with its plan
            return read()
        return self._shared.read(kind, name, read)

    def _read_all(self, kind: str) -> Iterable[tuple[str, bytes]]:
        return self.store.read_all(kind) if self.store is not None else ()

    def _decode(self, data: bytes, restore: Callable[[Any], Any] | None = None) -> Any:
        try:
            value = deserialize(data)
            return value if restore is None else restore(value)
        except CorruptCacheError as error:
            raise self._discard(error) from error

    def _discard(self, error: CorruptCacheError) -> CorruptCacheError:
        if self.store is not None:
            self.store.discard(error)
        return error


def _read_header(data: bytes | None) -> PlanCacheHeader | None:
    header = deserialize(data) if data is not None else None
    return header if isinstance(header, PlanCacheHeader) else None


def _sum_revisions(engines: Iterable[PolicyEngine]) -> int:
    return sum(engine.revision for engine in engines if isinstance(engine, DependencyTracking))
