"""Cache the state of the last plan, in memory and in one SQLite file, so that a new process reads only the rows that a change
affects.

The file is a cache: it may be deleted at any time. It is valid only for the trees, options and build that it was written for, and it is
read only where no other user could have written it. Rows are pickles with a checksum that can contain only gitsched's own types, so a
damaged or foreign file cannot run code: it is rejected and written again.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gitsched.apis.capabilities import DependencyTracking
from gitsched.apis.policy_api import EMPTY_SNAPSHOT, PolicyEngine, Snapshot
from gitsched.model.document import Document, Key
from gitsched.model.finding import FieldOrigin, Location
from gitsched.model.system_errors import is_bug
from gitsched.reconcile.cache.storage import discard_file, identify_build, is_private, remove_temporary_files

if TYPE_CHECKING:
    import sqlite3

    from gitsched.decide.plan_state import ClusterRow, Totals, WorkloadRow
    from gitsched.git import OutputRepository

_log = logging.getLogger("gitsched.reconcile")
_CREATE_TABLE = "CREATE TABLE rows (kind TEXT, name TEXT, position INTEGER, data BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID"
_UPSERT = "INSERT INTO rows VALUES (?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data"
_SEPARATOR = "\n"
Row = tuple[str, str, int, bytes]
T = TypeVar("T")


class PlanCacheHeader(NamedTuple):
    """`cache_key` identifies the build and the use of the cache. The plan led from `source_tree` to `output_tree`. `kinds` are the kinds of
    the API documents, as (group, kind); `facts` is the digest of the facts branches. `rule_locations` are the lines of the rules that
    findings are about, so that no file is parsed for a finding that stays."""

    cache_key: str
    source_tree: str
    output_tree: str
    kinds: tuple[tuple[str, str], ...]
    totals: Totals
    facts: str = ""
    rule_locations: Mapping[FieldOrigin, Location | None] = {}

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
    """Rows of a plan state: see `gitsched.decide.plan_state.PlanRows`.

    A cache that is not `persistent` has no file, because its engines cannot continue in another process.
    """

    def __init__(self, path: Path, header: PlanCacheHeader, *, persistent: bool = True) -> None:
        self._path, self.header, self._persistent = path, header, persistent
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
        # Otherwise sqlite keeps the file open after the connection is gone, and a process has a limited number of open files.
        if self._connection is not None:
            self._connection.close()

    def fill(
        self,
        paths: Iterable[str],
        workloads: Mapping[Key, WorkloadRow],
        clusters: Mapping[str, ClusterRow],
        api_documents: Mapping[tuple[str, str], tuple[Document, ...]],
        engines: tuple[PolicyEngine, ...],
    ) -> None:
        """Set the state of a complete plan. `paths` are the source files that were read."""
        self._workloads.update(workloads)
        self._clusters.update(clusters)
        self._paths = _SEPARATOR.join(("", *paths, ""))
        self._api_documents.update(api_documents)
        self._engines, self._complete = engines, True

    @classmethod
    def open(cls, path: Path, key: str) -> PlanCache | None:
        """Return the cache on disk; None if there is no file with this key."""
        if not is_private(path):
            return None
        import sqlite3  # only when there is something to load

        connection = None
        try:
            connection = sqlite3.connect(path, timeout=5, isolation_level=None)
            version = _read_version(connection)
            header = _read_header(connection)
            if header is not None and header.cache_key == key:
                cache = cls(path, header)
                cache._connection, cache._saved_header, cache._version = connection, header, version
                connection = None
                return cache
        except (sqlite3.Error, CorruptCacheError) as error:
            _delete_corrupt(path, error)
        finally:
            if connection is not None:
                connection.close()
        return None

    def read_workload(self, key: Key) -> WorkloadRow | None:
        if key not in self._workloads and not self._complete:
            self._workloads[key] = self._select_row("workload", _SEPARATOR.join(key))
        return self._workloads.get(key)

    def read_cluster(self, name: str) -> ClusterRow | None:
        if name not in self._clusters and not self._complete:
            self._clusters[name] = self._select_row("cluster", name)
        return self._clusters.get(name)

    def list_workloads(self) -> Iterator[WorkloadRow]:
        if not self._complete:
            self._load_workloads()
        yield from (row for row in self._workloads.values() if row is not None)

    def _load_workloads(self) -> None:
        """Load all workloads from disk, in their order."""

        def read(connection: sqlite3.Connection) -> dict[Key, WorkloadRow | None]:
            rows = connection.execute("SELECT name, data FROM rows WHERE kind = 'workload' ORDER BY position")
            found = ((Key(*name.split(_SEPARATOR)), data) for name, data in rows)
            return {key: self._workloads.get(key) or deserialize(data) for key, data in found}

        self._workloads = {**self._query(read, {}), **self._workloads}

    def has_source_file(self, path: str) -> bool:
        """Return whether the plan read a source file."""
        if not self._paths:
            self._paths = self._select_row("paths", "") or _SEPARATOR
        return _SEPARATOR not in path and f"{_SEPARATOR}{path}{_SEPARATOR}" in self._paths

    @property
    def engines(self) -> tuple[PolicyEngine, ...]:
        """The policy engines of the plan, which continue with `update`."""
        if self._engines is None:
            self._engines = self._select_row("engines", "") or ()
        return self._engines

    @property
    def api_documents(self) -> Mapping[tuple[str, str], tuple[Document, ...]]:
        """The documents that the engines read, by (group, kind)."""
        return LazyDocuments(self.header.kinds, self._load_kind)

    def _load_kind(self, kind: tuple[str, str]) -> tuple[Document, ...]:
        if kind not in self._api_documents:
            self._api_documents[kind] = self._select_row("api_documents", _SEPARATOR.join(kind)) or ()
        return self._api_documents[kind]

    def update(self, workloads: Mapping[Key, WorkloadRow], clusters: Mapping[str, ClusterRow], header: PlanCacheHeader) -> None:
        """Change some rows and the header. Call this only when the output branch is at the output tree of the header."""
        self._workloads.update(workloads)
        self._clusters.update(clusters)
        self.header = header
        self._unsaved.append(lambda: [*_list_workload_rows(workloads), *_list_cluster_rows(clusters)])

    def save(self) -> None:
        """Write the changes to the file. Log a failure instead of raising it: a run works without the file."""
        if not self._persistent or (self._saved_header is not None and self.header.is_same_state(self._saved_header)):
            return
        import sqlite3

        try:
            if self._saved_header is None:
                self._write_all()
            else:
                self._write_changes()
        except (pickle.PicklingError, TypeError, AttributeError, CorruptCacheError) as error:
            _log.debug("the state of this plan cannot be cached: %s", error)
            self._persistent = False
        except (sqlite3.Error, OSError) as error:
            _log.warning("the cache %s was not written: %s", self._path, error)
        except Exception as error:
            if not is_bug(error):
                raise
            from gitsched.model.fault import describe_fault  # only after a bug

            _log.warning("%s while the cache %s was written; report this bug with the id", describe_fault(error), self._path)
            self._persistent = False
        self._saved_header = self.header
        self._unsaved.clear()

    def _write_all(self) -> None:
        """Write a new file and rename it: other processes read either the old file or the new one."""
        import sqlite3

        engines = serialize_engines(self._engines)
        deserialize(engines)  # fail now for engines that could not be read back
        rows = [
            ("header", "", 0, serialize(self.header)),
            ("paths", "", 0, serialize(self._paths)),
            ("engines", "", 0, engines),
            *(("api_documents", _SEPARATOR.join(kind), 0, serialize(documents)) for kind, documents in self._api_documents.items()),
            *_list_workload_rows(self._workloads),
            *_list_cluster_rows(self._clusters),
        ]
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_temporary_files(self._path)
        temporary = self._path.with_suffix(f".{os.getpid()}")
        temporary.unlink(missing_ok=True)
        connection = sqlite3.connect(temporary, isolation_level=None)
        temporary.chmod(0o600)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", _CREATE_TABLE, "BEGIN"):
            connection.execute(statement)
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", sorted(rows))  # in the order of the table
        connection.execute("COMMIT")
        connection.close()
        temporary.replace(self._path)
        self._saved_revision = _sum_revisions(self.engines)

    def _write_changes(self) -> None:
        """Write the changed rows in one transaction, only if the file is still the one that this cache was read from."""
        import sqlite3

        connection, revision = self._connection, _sum_revisions(self._engines or ())
        if connection is None:
            connection = sqlite3.connect(self._path, timeout=5, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        found = _read_header(connection)
        unchanged = found is not None and self._saved_header is not None and found[:3] == self._saved_header[:3]
        if unchanged:
            connection.executemany(_UPSERT, [row for rows in self._unsaved for row in rows()])
            if revision != self._saved_revision:
                connection.execute(_UPSERT, ("engines", "", 0, serialize_engines(self._engines)))
            connection.execute(_UPSERT, ("header", "", 0, serialize(self.header)))
        connection.execute("COMMIT")
        self._connection, self._saved_revision = connection, revision
        # A file of another process stays as it is, and this cache continues in memory only.
        self._persistent = unchanged

    def _select_row(self, kind: str, name: str) -> Any:
        def read(connection: sqlite3.Connection) -> Any:
            found = connection.execute("SELECT data FROM rows WHERE kind = ? AND name = ?", (kind, name)).fetchone()
            return deserialize(found[0]) if found else None

        return self._query(read, None)

    def _query(self, read: Callable[[sqlite3.Connection], T], default: T) -> T:
        """Read from the file. Raise CorruptCacheError if it is no longer the file that the header was read from."""
        if self._connection is None:
            return default
        import sqlite3

        try:
            found = read(self._connection)
            version = _read_version(self._connection)
        except (sqlite3.Error, CorruptCacheError) as error:
            _delete_corrupt(self._path, error)
            raise CorruptCacheError from error
        if version != self._version:
            raise CorruptCacheError("another process has changed these rows")
        return found


def _read_version(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection writes to the file."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def _read_header(connection: sqlite3.Connection) -> PlanCacheHeader | None:
    found = connection.execute("SELECT data FROM rows WHERE kind = 'header'").fetchone()
    header = deserialize(found[0]) if found else None
    return header if isinstance(header, PlanCacheHeader) else None


def _sum_revisions(engines: Iterable[PolicyEngine]) -> int:
    return sum(engine.revision for engine in engines if isinstance(engine, DependencyTracking))


def _list_workload_rows(workloads: Mapping[Key, WorkloadRow | None]) -> Iterator[Row]:
    return (
        ("workload", _SEPARATOR.join(key), at, serialize(row)) for at, (key, row) in enumerate(workloads.items()) if row is not None
    )


def _list_cluster_rows(clusters: Mapping[str, ClusterRow | None]) -> Iterator[Row]:
    return (("cluster", name, 0, serialize(row)) for name, row in clusters.items() if row is not None)


def _delete_corrupt(path: Path, error: Exception) -> None:
    _log.warning("the cache %s is not readable and will be rebuilt: %s", path, error)
    discard_file(path)


def make_cache_key(source: str, output: OutputRepository, prefix: str, options: tuple[str, ...]) -> str:
    """Return the key of a plan cache: the build of gitsched, and what distinguishes its uses on this machine."""
    parts = (identify_build(), source, output.repository.common_dir, output.branch, str(output.remote), prefix, *options)
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


_ALLOWED_MODULES = (
    "gitsched.apis.",
    "gitsched.model.",
    "gitsched.decide.",
    "gitsched.kinds.",
    "gitsched.render.",
    "gitsched.schedule.",
    "gitsched.reconcile.cache.plan_cache",
    "gitsched.reconcile.cache.root_documents",
)
"""The modules whose classes may be unpickled: those that do no I/O, and those of caches."""
_ALLOWED_TYPES = frozenset(
    {
        ("collections", "Counter"),
        ("datetime", "date"),
        ("datetime", "datetime"),
        ("datetime", "timedelta"),
        ("datetime", "timezone"),
        ("builtins", "complex"),
        ("builtins", "frozenset"),
        ("builtins", "set"),
    }
)
_DIGEST_SIZE = 16


class CorruptCacheError(Exception):
    """A row cannot be read, so the complete plan cache is discarded."""


def serialize(value: Any) -> bytes:
    """Serialize a value as a row."""
    return _compute_digest(data := pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) + data


def serialize_engines(engines: Any) -> bytes:
    """Serialize policy engines as a row. Snapshots are left out: they hold a repository, and the next run has its own."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(engines)
    return _compute_digest(data := buffer.getvalue()) + data


def deserialize(row: Any) -> Any:
    """Deserialize a row. Raise CorruptCacheError if its checksum is wrong or it contains other types."""
    if not isinstance(row, bytes) or _compute_digest(data := row[_DIGEST_SIZE:]) != row[:_DIGEST_SIZE]:
        raise CorruptCacheError("a row is not what was written")
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise CorruptCacheError(str(error)) from error


def _compute_digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_SIZE).digest()


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> str | None:
        return "snapshot" if isinstance(value, Snapshot) else None


class _Unpickler(pickle.Unpickler):
    """Create only instances of the core's classes and plain values; call no function that a file names."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED_TYPES:
            return super().find_class(module, name)
        found = super().find_class(module, name) if f"{module}.".startswith(_ALLOWED_MODULES) and "." not in name else None
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name} is not an allowed type")
        return found

    def persistent_load(self, _identity: Any) -> Snapshot:
        """Return an empty snapshot, so that an engine finds everything changed against it."""
        return EMPTY_SNAPSHOT
