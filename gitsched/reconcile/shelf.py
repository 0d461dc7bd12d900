"""The ledger of the last plan, in memory and in one SQLite file, so that a new process reads only the rows that a change touches.

The file is a cache: it may be deleted at any moment, it counts only for the very trees, settings and program that it was written for, and
it is read only where nobody but its owner could have written it.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gitsched import __version__
from gitsched.apis.gitsched.config import Config
from gitsched.apis.world import Session, World
from gitsched.git import Output
from gitsched.model.document import Document, Key
from gitsched.model.time import EPOCH
from gitsched.plan.ledger import Place, Sums, Trace

if TYPE_CHECKING:
    import sqlite3

_log = logging.getLogger("gitsched.reconcile")
_TABLE = "CREATE TABLE rows (kind TEXT, name TEXT, position INTEGER, data BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID"
_PUT = "INSERT INTO rows VALUES (?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data"
_SAFE = frozenset({"builtins", "collections", "copyreg", "datetime", "functools", "re", "types"})
_PATHS = "\n"
Row = tuple[str, str, int, bytes]


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
        self._unsaved: list[Callable[[], Iterable[Row]]] = []
        self._on_disk: Head | None = None

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
        self._sessions = sessions

    @classmethod
    def open(cls, path: Path, stamp: str) -> Shelf | None:
        """The ledger on disk; None where there is none for this stamp."""
        if not _is_private(path):
            return None
        import sqlite3  # only where there is something to load

        try:
            connection = sqlite3.connect(path, timeout=5, isolation_level=None)
            found = connection.execute("SELECT data FROM rows WHERE kind = 'head'").fetchone()
            head = _load(found[0]) if found else None
        except (sqlite3.Error, *_DAMAGED) as error:
            _forget(path, error)
            return None
        if not isinstance(head, Head) or head.stamp != stamp:
            return None
        shelf = cls(path, head)
        shelf._connection, shelf._on_disk = connection, head
        return shelf

    def trace(self, key: Key) -> Trace | None:
        if key not in self._traces and self._connection is not None:
            self._traces[key] = self._fetch("trace", _PATHS.join(key))
        return self._traces.get(key)

    def place(self, name: str) -> Place | None:
        if name not in self._places and self._connection is not None:
            self._places[name] = self._fetch("place", name)
        return self._places.get(name)

    def traces(self) -> Iterator[Trace]:
        if self._connection is None:
            yield from (trace for trace in self._traces.values() if trace is not None)
            return
        for name, data in self._connection.execute("SELECT name, data FROM rows WHERE kind = 'trace' ORDER BY position"):
            known = self._traces.get(Key(*name.split(_PATHS)))
            yield known or _load(data)

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
        if self._on_disk == self.head or not self._lasting:
            return
        import sqlite3

        try:
            if self._on_disk is None:
                self._write_all()
            else:
                self._write_changes()
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            _log.debug("the ledger of this plan cannot be kept: %s", error)
        except (sqlite3.Error, OSError) as error:
            _log.warning("the cache %s was not written: %s", self._path, error)
        self._on_disk = self.head
        self._unsaved.clear()

    def _write_all(self) -> None:
        """Beside its place first: whoever reads meanwhile has the old file or the new one."""
        import sqlite3

        rows = [
            ("head", "", 0, _dump(self.head)),
            ("paths", "", 0, _dump(self._paths)),
            ("sessions", "", 0, _dump(self._sessions, World)),
            *(("settings", _PATHS.join(kind), 0, _dump(documents)) for kind, documents in self._settings.items()),
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
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
        connection.close()
        fresh.replace(self._path)

    def _write_changes(self) -> None:
        """In one transaction, and only if the file is still what this ledger comes from."""
        import sqlite3

        connection, known = self._connection, self._on_disk or self.head
        if connection is None:
            connection = self._connection = sqlite3.connect(self._path, timeout=5, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        found = connection.execute("SELECT data FROM rows WHERE kind = 'head'").fetchone()
        if found and _load(found[0])[:3] == known[:3]:
            connection.executemany(_PUT, [row for rows in self._unsaved for row in rows()])
            connection.execute(_PUT, ("head", "", 0, _dump(self.head)))
        connection.execute("COMMIT")

    def _fetch(self, kind: str, name: str) -> Any:
        if self._connection is None:
            return None
        import sqlite3

        try:
            found = self._connection.execute("SELECT data FROM rows WHERE kind = ? AND name = ?", (kind, name)).fetchone()
            return _load(found[0]) if found else None
        except (sqlite3.Error, *_DAMAGED) as error:
            _forget(self._path, error)
            raise Damaged from error


class Damaged(Exception):
    """A row cannot be read: the ledger is worth nothing."""


def _trace_rows(traces: Mapping[Key, Trace | None]) -> Iterator[Row]:
    return (("trace", _PATHS.join(key), at, _dump(trace)) for at, (key, trace) in enumerate(traces.items()) if trace is not None)


def _place_rows(places: Mapping[str, Place | None]) -> Iterator[Row]:
    return (("place", name, 0, _dump(place)) for name, place in places.items() if place is not None)


class _Pickler(pickle.Pickler):
    """Leaves worlds out: they hold a repository, and the next run has its own."""

    def persistent_id(self, value: Any) -> str | None:
        return "world" if isinstance(value, World) else None


class _Unpickler(pickle.Unpickler):
    """Knows nothing but this package's types and plain values, whatever a file asks for."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] != "gitsched" and module not in _SAFE:
            raise pickle.UnpicklingError(f"{module}.{name} is none of ours")
        return super().find_class(module, name)

    def persistent_load(self, _identity: Any) -> World:
        """A world in which nothing is: what a session compares with its old one is other now."""
        return World({}, {}, frozenset(), {}, Config(), EPOCH, EPOCH)


_DAMAGED = (pickle.UnpicklingError, AttributeError, EOFError, ImportError, IndexError, KeyError, TypeError, ValueError)


def _dump(value: Any, apart: type | None = None) -> bytes:
    if apart is None:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def _load(data: bytes) -> Any:
    return _Unpickler(io.BytesIO(data)).load()


def _is_private(path: Path) -> bool:
    """Whether a file is there, and nobody but this user can have written it."""
    try:
        found = [path.stat(), path.parent.stat()]
    except OSError:
        return False
    return all(status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for status in found)


def _forget(path: Path, error: Exception) -> None:
    _log.warning("the cache %s is not readable and will be made anew: %s", path, error)
    path.unlink(missing_ok=True)


def stamp(source: str, output: Output, prefix: str, paths: tuple[str, ...]) -> str:
    """What a ledger is made by and for: this program, and what tells one use of it from another on this machine."""
    parts = (__version__, _fingerprint(), source, output.repository.common, output.branch, str(output.remote), prefix, *paths)
    return sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


@cache
def _fingerprint() -> str:
    """The program's own files as they are now: somebody who works on it must not meet rows of an earlier state."""
    root = Path(__file__).parents[1]
    found = [sys.version]
    for directory, _, files in os.walk(root):
        for name in sorted(files):
            if name.endswith(".py"):
                status = os.stat(os.path.join(directory, name))  # noqa: PTH116, PTH118 - hundreds of files, in each process
                found.append(f"{name}:{status.st_size}:{status.st_mtime_ns}")
    return "\n".join(sorted(found))
