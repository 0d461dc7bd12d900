"""Cache the state of the last plan, in memory and in one SQLite file, so that a new process reads only the rows that a change
affects.

The file is a cache: it may be deleted at any moment, it counts only for the very trees, settings and program that it was written for, and
it is read only where nobody but its owner could have written it.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gitsched.apis.engine import PolicyEngine
from gitsched.decide.decisions import list_dependency_trackers
from gitsched.decide.plan_state import ClusterRow, Totals, WorkloadRow
from gitsched.git import OutputRepository
from gitsched.model.document import Document, Key
from gitsched.reconcile.cache.storage import (
    CorruptCacheError,
    deserialize,
    identify_build,
    is_private,
    serialize,
    serialize_engines,
)

if TYPE_CHECKING:
    import sqlite3

_log = logging.getLogger("gitsched.reconcile")
_CREATE_TABLE = "CREATE TABLE rows (kind TEXT, name TEXT, position INTEGER, data BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID"
_UPSERT = "INSERT INTO rows VALUES (?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data"
_SEPARATOR = "\n"
Row = tuple[str, str, int, bytes]
T = TypeVar("T")


class PlanCacheHeader(NamedTuple):
    """`stamp` names what the ledger was made by and for, `source` and `output` the trees that it leads from and to, `kinds` what settings
    there are, as (group, kind)."""

    cache_key: str
    source_tree: str
    output_tree: str
    kinds: tuple[tuple[str, str], ...]
    totals: Totals


class LazyDocuments(Mapping[tuple[str, str], tuple[Document, ...]]):
    """Documents by kind, each kind read when somebody asks for it."""

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
    """See `gitsched.decide.plan_state.PlanRows`. One that is not `lasting` has no file: its sessions cannot go on in another process."""

    def __init__(self, path: Path, head: PlanCacheHeader, *, persistent: bool = True) -> None:
        self._path, self.header, self._persistent = path, head, persistent
        self._workloads: dict[Key, WorkloadRow | None] = {}
        self._clusters: dict[str, ClusterRow | None] = {}
        self._api_documents: dict[tuple[str, str], tuple[Document, ...]] = {}
        self._paths = ""
        self._engines: tuple[PolicyEngine, ...] | None = None
        self._connection: sqlite3.Connection | None = None
        self._complete = False
        self._version = 0
        self._saved_revision = 0
        self._unsaved: list[Callable[[], Iterable[Row]]] = []
        self._saved_header: PlanCacheHeader | None = None

    def __del__(self) -> None:
        # Left to itself, sqlite keeps a file open beyond the life of its connection, and a process has only so many.
        if self._connection is not None:
            self._connection.close()

    def fill(
        self,
        paths: Iterable[str],
        traces: Mapping[Key, WorkloadRow],
        places: Mapping[str, ClusterRow],
        settings: Mapping[tuple[str, str], tuple[Document, ...]],
        sessions: tuple[PolicyEngine, ...],
    ) -> None:
        """Take everything that a whole plan leaves; `paths` are the source files that were read."""
        self._workloads.update(traces)
        self._clusters.update(places)
        self._paths = _SEPARATOR.join(("", *paths, ""))
        self._api_documents.update(settings)
        self._engines, self._complete = sessions, True

    @classmethod
    def open(cls, path: Path, stamp: str) -> PlanCache | None:
        """The ledger on disk; None where there is none for this stamp."""
        if not is_private(path):
            return None
        import sqlite3  # only where there is something to load

        connection = None
        try:
            connection = sqlite3.connect(path, timeout=5, isolation_level=None)
            version = _read_version(connection)
            head = _read_header(connection)
            if head is not None and head.cache_key == stamp:
                shelf = cls(path, head)
                shelf._connection, shelf._saved_header, shelf._version = connection, head, version
                connection = None
                return shelf
        except (sqlite3.Error, CorruptCacheError) as error:
            _delete_corrupt(path, error)
        finally:
            if connection is not None:
                connection.close()
        return None

    def read_workload(self, key: Key) -> WorkloadRow | None:
        if key not in self._workloads and not self._complete:
            self._workloads[key] = self._select_row("trace", _SEPARATOR.join(key))
        return self._workloads.get(key)

    def read_cluster(self, name: str) -> ClusterRow | None:
        if name not in self._clusters and not self._complete:
            self._clusters[name] = self._select_row("place", name)
        return self._clusters.get(name)

    def list_workloads(self) -> Iterator[WorkloadRow]:
        if not self._complete:
            self._load_workloads()
        yield from (trace for trace in self._workloads.values() if trace is not None)

    def _load_workloads(self) -> None:
        """All that are on disk, in their order."""

        def read(connection: sqlite3.Connection) -> dict[Key, WorkloadRow | None]:
            rows = connection.execute("SELECT name, data FROM rows WHERE kind = 'trace' ORDER BY position")
            found = ((Key(*name.split(_SEPARATOR)), data) for name, data in rows)
            return {key: self._workloads.get(key) or deserialize(data) for key, data in found}

        self._workloads = {**self._query(read, {}), **self._workloads}

    def has_source_file(self, path: str) -> bool:
        """Whether a source file was read for the ledger."""
        if not self._paths:
            self._paths = self._select_row("paths", "") or _SEPARATOR
        return _SEPARATOR not in path and f"{_SEPARATOR}{path}{_SEPARATOR}" in self._paths

    @property
    def engines(self) -> tuple[PolicyEngine, ...]:
        """The sessions of the ledger, for `renew` to take them on."""
        if self._engines is None:
            self._engines = self._select_row("sessions", "") or ()
        return self._engines

    @property
    def api_documents(self) -> Mapping[tuple[str, str], tuple[Document, ...]]:
        """The documents that the sessions read, by (group, kind)."""
        return LazyDocuments(self.header.kinds, self._load_kind)

    def _load_kind(self, kind: tuple[str, str]) -> tuple[Document, ...]:
        if kind not in self._api_documents:
            self._api_documents[kind] = self._select_row("settings", _SEPARATOR.join(kind)) or ()
        return self._api_documents[kind]

    def update(self, traces: Mapping[Key, WorkloadRow], places: Mapping[str, ClusterRow], head: PlanCacheHeader) -> None:
        """Go on to another head, with these rows changed."""
        self._workloads.update(traces)
        self._clusters.update(places)
        self.header = head
        self._unsaved.append(lambda: [*_list_workload_rows(traces), *_list_cluster_rows(places)])

    def save(self) -> None:
        """Bring the file up to date. A disk that refuses is told of, not raised: nobody needs the file."""
        if not self._persistent or self._saved_header == self.header:
            return
        import sqlite3

        try:
            if self._saved_header is None:
                self._write_all()
            else:
                self._write_changes()
        except (pickle.PicklingError, TypeError, AttributeError, CorruptCacheError) as error:
            _log.debug("the ledger of this plan cannot be kept: %s", error)
            self._persistent = False
        except (sqlite3.Error, OSError) as error:
            _log.warning("the cache %s was not written: %s", self._path, error)
        self._saved_header = self.header
        self._unsaved.clear()

    def _write_all(self) -> None:
        """Beside its place first: whoever reads meanwhile has the old file or the new one."""
        import sqlite3

        sessions = serialize_engines(self._engines)
        deserialize(sessions)  # one that cannot be taken out again is better not put away
        rows = [
            ("head", "", 0, serialize(self.header)),
            ("paths", "", 0, serialize(self._paths)),
            ("sessions", "", 0, sessions),
            *(("settings", _SEPARATOR.join(kind), 0, serialize(documents)) for kind, documents in self._api_documents.items()),
            *_list_workload_rows(self._workloads),
            *_list_cluster_rows(self._clusters),
        ]
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._path.with_suffix(f".{os.getpid()}")
        fresh.unlink(missing_ok=True)
        connection = sqlite3.connect(fresh, isolation_level=None)
        fresh.chmod(0o600)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", _CREATE_TABLE, "BEGIN"):
            connection.execute(statement)
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", sorted(rows))  # in the order of the table
        connection.execute("COMMIT")
        connection.close()
        fresh.replace(self._path)
        self._saved_revision = _sum_revisions(self.engines)

    def _write_changes(self) -> None:
        """In one transaction, and only if the file is still what this ledger comes from."""
        import sqlite3

        connection, learned = self._connection, _sum_revisions(self._engines or ())
        if connection is None:
            connection = sqlite3.connect(self._path, timeout=5, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        found = _read_header(connection)
        mine = found is not None and self._saved_header is not None and found[:3] == self._saved_header[:3]
        if mine:
            connection.executemany(_UPSERT, [row for rows in self._unsaved for row in rows()])
            if learned != self._saved_revision:
                connection.execute(_UPSERT, ("sessions", "", 0, serialize_engines(self._engines)))
            connection.execute(_UPSERT, ("head", "", 0, serialize(self.header)))
        connection.execute("COMMIT")
        self._connection, self._saved_revision = connection, learned
        # Somebody else's file stays as it is, and this ledger lives on in this process alone.
        self._persistent = mine

    def _select_row(self, kind: str, name: str) -> Any:
        def read(connection: sqlite3.Connection) -> Any:
            found = connection.execute("SELECT data FROM rows WHERE kind = ? AND name = ?", (kind, name)).fetchone()
            return deserialize(found[0]) if found else None

        return self._query(read, None)

    def _query(self, read: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Read from the file, if it is still the one that the head was read from."""
        if self._connection is None:
            return nothing
        import sqlite3

        try:
            found = read(self._connection)
            version = _read_version(self._connection)
        except (sqlite3.Error, CorruptCacheError) as error:
            _delete_corrupt(self._path, error)
            raise CorruptCacheError from error
        if version != self._version:
            raise CorruptCacheError("another process has gone on from these rows")
        return found


def _read_version(connection: sqlite3.Connection) -> int:
    """A number that changes when another connection writes to the file."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def _read_header(connection: sqlite3.Connection) -> PlanCacheHeader | None:
    found = connection.execute("SELECT data FROM rows WHERE kind = 'head'").fetchone()
    head = deserialize(found[0]) if found else None
    return head if isinstance(head, PlanCacheHeader) else None


def _sum_revisions(sessions: Iterable[PolicyEngine]) -> int:
    return sum(session.revision for session in list_dependency_trackers(sessions))


def _list_workload_rows(traces: Mapping[Key, WorkloadRow | None]) -> Iterator[Row]:
    return (
        ("trace", _SEPARATOR.join(key), at, serialize(trace)) for at, (key, trace) in enumerate(traces.items()) if trace is not None
    )


def _list_cluster_rows(places: Mapping[str, ClusterRow | None]) -> Iterator[Row]:
    return (("place", name, 0, serialize(place)) for name, place in places.items() if place is not None)


def _delete_corrupt(path: Path, error: Exception) -> None:
    _log.warning("the cache %s is not readable and will be made anew: %s", path, error)
    path.unlink(missing_ok=True)


def make_cache_key(source: str, output: OutputRepository, prefix: str, paths: tuple[str, ...]) -> str:
    """What a ledger is made by and for: this program, and what tells one use of it from another on this machine."""
    parts = (identify_build(), source, output.repository.common_dir, output.branch, str(output.remote), prefix, *paths)
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
