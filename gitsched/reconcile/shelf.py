"""The ledger of the last plan, in memory and in one SQLite file, so that a new process reads only the rows that a change touches.

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

from gitsched.apis.world import Session
from gitsched.git import Output
from gitsched.model.document import Document, Key
from gitsched.plan.deciding import list_relating
from gitsched.plan.ledger import Place, Sums, Trace
from gitsched.reconcile.build import identify_build
from gitsched.reconcile.custody import is_private
from gitsched.reconcile.packing import Damaged, pack, pack_sessions, unpack

if TYPE_CHECKING:
    import sqlite3

_log = logging.getLogger("gitsched.reconcile")
_TABLE = "CREATE TABLE rows (kind TEXT, name TEXT, position INTEGER, data BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID"
_PUT = "INSERT INTO rows VALUES (?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data"
_PATHS = "\n"
Row = tuple[str, str, int, bytes]
T = TypeVar("T")


class Head(NamedTuple):
    """`stamp` names what the ledger was made by and for, `source` and `output` the trees that it leads from and to, `kinds` what settings
    there are, as (group, kind)."""

    stamp: str
    source: str
    output: str
    kinds: tuple[tuple[str, str], ...]
    sums: Sums


class Kinds(Mapping[tuple[str, str], tuple[Document, ...]]):
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


class Shelf:
    """See `gitsched.plan.ledger.Rows`. One that is not `lasting` has no file: its sessions cannot go on in another process."""

    def __init__(self, path: Path, head: Head, *, lasting: bool = True) -> None:
        self._path, self.head, self._lasting = path, head, lasting
        self._traces: dict[Key, Trace | None] = {}
        self._places: dict[str, Place | None] = {}
        self._settings: dict[tuple[str, str], tuple[Document, ...]] = {}
        self._paths = ""
        self._sessions: tuple[Session, ...] | None = None
        self._connection: sqlite3.Connection | None = None
        self._complete = False
        self._version = 0
        self._learned = 0
        self._unsaved: list[Callable[[], Iterable[Row]]] = []
        self._on_disk: Head | None = None

    def __del__(self) -> None:
        # Left to itself, sqlite keeps a file open beyond the life of its connection, and a process has only so many.
        if self._connection is not None:
            self._connection.close()

    def fill(
        self,
        paths: Iterable[str],
        traces: Mapping[Key, Trace],
        places: Mapping[str, Place],
        settings: Mapping[tuple[str, str], tuple[Document, ...]],
        sessions: tuple[Session, ...],
    ) -> None:
        """Take everything that a whole plan leaves; `paths` are the source files that were read."""
        self._traces.update(traces)
        self._places.update(places)
        self._paths = _PATHS.join(("", *paths, ""))
        self._settings.update(settings)
        self._sessions, self._complete = sessions, True

    @classmethod
    def open(cls, path: Path, stamp: str) -> Shelf | None:
        """The ledger on disk; None where there is none for this stamp."""
        if not is_private(path):
            return None
        import sqlite3  # only where there is something to load

        connection = None
        try:
            connection = sqlite3.connect(path, timeout=5, isolation_level=None)
            version = _read_version(connection)
            head = _read_head(connection)
            if head is not None and head.stamp == stamp:
                shelf = cls(path, head)
                shelf._connection, shelf._on_disk, shelf._version = connection, head, version
                connection = None
                return shelf
        except (sqlite3.Error, Damaged) as error:
            _forget(path, error)
        finally:
            if connection is not None:
                connection.close()
        return None

    def trace(self, key: Key) -> Trace | None:
        if key not in self._traces and not self._complete:
            self._traces[key] = self._fetch("trace", _PATHS.join(key))
        return self._traces.get(key)

    def place(self, name: str) -> Place | None:
        if name not in self._places and not self._complete:
            self._places[name] = self._fetch("place", name)
        return self._places.get(name)

    def traces(self) -> Iterator[Trace]:
        if not self._complete:
            self._read_traces()
        yield from (trace for trace in self._traces.values() if trace is not None)

    def _read_traces(self) -> None:
        """All that are on disk, in their order."""

        def read(connection: sqlite3.Connection) -> dict[Key, Trace | None]:
            rows = connection.execute("SELECT name, data FROM rows WHERE kind = 'trace' ORDER BY position")
            found = ((Key(*name.split(_PATHS)), data) for name, data in rows)
            return {key: self._traces.get(key) or unpack(data) for key, data in found}

        self._traces = {**self._ask(read, {}), **self._traces}

    def holds(self, path: str) -> bool:
        """Whether a source file was read for the ledger."""
        if not self._paths:
            self._paths = self._fetch("paths", "") or _PATHS
        return _PATHS not in path and f"{_PATHS}{path}{_PATHS}" in self._paths

    @property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions of the ledger, for `renew` to take them on."""
        if self._sessions is None:
            self._sessions = self._fetch("sessions", "") or ()
        return self._sessions

    @property
    def documents(self) -> Mapping[tuple[str, str], tuple[Document, ...]]:
        """The documents that the sessions read, by (group, kind)."""
        return Kinds(self.head.kinds, self._read_kind)

    def _read_kind(self, kind: tuple[str, str]) -> tuple[Document, ...]:
        if kind not in self._settings:
            self._settings[kind] = self._fetch("settings", _PATHS.join(kind)) or ()
        return self._settings[kind]

    def amend(self, traces: Mapping[Key, Trace], places: Mapping[str, Place], head: Head) -> None:
        """Go on to another head, with these rows changed."""
        self._traces.update(traces)
        self._places.update(places)
        self.head = head
        self._unsaved.append(lambda: [*_trace_rows(traces), *_place_rows(places)])

    def save(self) -> None:
        """Bring the file up to date. A disk that refuses is told of, not raised: nobody needs the file."""
        if not self._lasting or self._on_disk == self.head:
            return
        import sqlite3

        try:
            if self._on_disk is None:
                self._write_all()
            else:
                self._write_changes()
        except (pickle.PicklingError, TypeError, AttributeError, Damaged) as error:
            _log.debug("the ledger of this plan cannot be kept: %s", error)
            self._lasting = False
        except (sqlite3.Error, OSError) as error:
            _log.warning("the cache %s was not written: %s", self._path, error)
        self._on_disk = self.head
        self._unsaved.clear()

    def _write_all(self) -> None:
        """Beside its place first: whoever reads meanwhile has the old file or the new one."""
        import sqlite3

        sessions = pack_sessions(self._sessions)
        unpack(sessions)  # one that cannot be taken out again is better not put away
        rows = [
            ("head", "", 0, pack(self.head)),
            ("paths", "", 0, pack(self._paths)),
            ("sessions", "", 0, sessions),
            *(("settings", _PATHS.join(kind), 0, pack(documents)) for kind, documents in self._settings.items()),
            *_trace_rows(self._traces),
            *_place_rows(self._places),
        ]
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._path.with_suffix(f".{os.getpid()}")
        fresh.unlink(missing_ok=True)
        connection = sqlite3.connect(fresh, isolation_level=None)
        fresh.chmod(0o600)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", _TABLE, "BEGIN"):
            connection.execute(statement)
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", sorted(rows))  # in the order of the table
        connection.execute("COMMIT")
        connection.close()
        fresh.replace(self._path)
        self._learned = _count_learned(self.sessions)

    def _write_changes(self) -> None:
        """In one transaction, and only if the file is still what this ledger comes from."""
        import sqlite3

        connection, learned = self._connection, _count_learned(self._sessions or ())
        if connection is None:
            connection = sqlite3.connect(self._path, timeout=5, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        found = _read_head(connection)
        mine = found is not None and self._on_disk is not None and found[:3] == self._on_disk[:3]
        if mine:
            connection.executemany(_PUT, [row for rows in self._unsaved for row in rows()])
            if learned != self._learned:
                connection.execute(_PUT, ("sessions", "", 0, pack_sessions(self._sessions)))
            connection.execute(_PUT, ("head", "", 0, pack(self.head)))
        connection.execute("COMMIT")
        self._connection, self._learned = connection, learned
        # Somebody else's file stays as it is, and this ledger lives on in this process alone.
        self._lasting = mine

    def _fetch(self, kind: str, name: str) -> Any:
        def read(connection: sqlite3.Connection) -> Any:
            found = connection.execute("SELECT data FROM rows WHERE kind = ? AND name = ?", (kind, name)).fetchone()
            return unpack(found[0]) if found else None

        return self._ask(read, None)

    def _ask(self, read: Callable[[sqlite3.Connection], T], nothing: T) -> T:
        """Read from the file, if it is still the one that the head was read from."""
        if self._connection is None:
            return nothing
        import sqlite3

        try:
            found = read(self._connection)
            version = _read_version(self._connection)
        except (sqlite3.Error, Damaged) as error:
            _forget(self._path, error)
            raise Damaged from error
        if version != self._version:
            raise Damaged("another process has gone on from these rows")
        return found


def _read_version(connection: sqlite3.Connection) -> int:
    """A number that changes when another connection writes to the file."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def _read_head(connection: sqlite3.Connection) -> Head | None:
    found = connection.execute("SELECT data FROM rows WHERE kind = 'head'").fetchone()
    head = unpack(found[0]) if found else None
    return head if isinstance(head, Head) else None


def _count_learned(sessions: Iterable[Session]) -> int:
    return sum(session.learned for session in list_relating(sessions))


def _trace_rows(traces: Mapping[Key, Trace | None]) -> Iterator[Row]:
    return (("trace", _PATHS.join(key), at, pack(trace)) for at, (key, trace) in enumerate(traces.items()) if trace is not None)


def _place_rows(places: Mapping[str, Place | None]) -> Iterator[Row]:
    return (("place", name, 0, pack(place)) for name, place in places.items() if place is not None)


def _forget(path: Path, error: Exception) -> None:
    _log.warning("the cache %s is not readable and will be made anew: %s", path, error)
    path.unlink(missing_ok=True)


def stamp(source: str, output: Output, prefix: str, paths: tuple[str, ...]) -> str:
    """What a ledger is made by and for: this program, and what tells one use of it from another on this machine."""
    parts = (identify_build(), source, output.repository.common, output.branch, str(output.remote), prefix, *paths)
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
