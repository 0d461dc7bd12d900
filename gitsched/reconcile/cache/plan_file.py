"""The rows of a plan state in one SQLite file, so that a new process reads only the rows that a change affects.

The file is a cache: it may be deleted at any time. It is read only where no other user could have written it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from gitsched.reconcile.cache.ownership import is_private
from gitsched.reconcile.cache.row_format import CorruptCacheError, Row
from gitsched.reconcile.cache.storage import SET_PAGE_SIZE, discard_file, remove_temporary_files

_log = logging.getLogger("gitsched.reconcile")
_CREATE_TABLE = "CREATE TABLE rows (kind TEXT, name TEXT, position INTEGER, data BLOB, PRIMARY KEY (kind, name)) WITHOUT ROWID"
_UPSERT = "INSERT INTO rows VALUES (?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data"
_DELETE = "DELETE FROM rows WHERE kind = ? AND name = ?"
_NAMES = "names"
"""The kind of the rows that say which names the rows of each kind have: a checksum of a row cannot say that another one is missing."""
T = TypeVar("T")


class RowStore(Protocol):
    """Rows of a plan state by kind and name. Reading raises CorruptCacheError once the rows are no longer those that were opened."""

    def read(self, kind: str, name: str) -> bytes | None:
        """Return the content of a row."""
        ...

    def read_all(self, kind: str) -> Iterable[tuple[str, bytes]]:
        """Return the names and contents of all rows of a kind, by position."""
        ...

    def create(self, rows: Iterable[Row]) -> None:
        """Write all rows of a new state."""
        ...

    def update(self, rows: Iterable[Row], is_known: Callable[[bytes | None], bool], /) -> bool:
        """Write changed rows. Return False, and write nothing, unless the stored header is the one that the state was read with."""
        ...

    def discard(self, error: Exception) -> None:
        """Report that the stored rows are not readable, so that they are not read again."""
        ...


class PlanFile:
    """A RowStore in a SQLite file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._version = 0
        self._complete_kinds: set[str] = set()

    def close(self) -> None:
        """Close the file, which sqlite keeps open until then: a process has a limited number of open files."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        # Possibly in another thread, whose garbage collection found this object: see `_connect`.
        self.close()

    @classmethod
    def open(cls, path: Path) -> PlanFile | None:
        """Return the file if it exists and is readable."""
        if not is_private(path):
            return None
        file = cls(path)
        try:
            file._connection = _connect(path)
            file._version = _read_version(file._connection)
        except sqlite3.Error as error:
            file.discard(error)
            return None
        return file

    def read(self, kind: str, name: str) -> bytes | None:
        """See `RowStore`."""

        def select(connection: sqlite3.Connection) -> bytes | None:
            found = connection.execute("SELECT data FROM rows WHERE kind = ? AND name = ?", (kind, name)).fetchone()
            if found is None and kind not in self._complete_kinds:
                _check_names(connection, kind, _select_names(connection, kind))
                self._complete_kinds.add(kind)
            return found[0] if found else None

        return self._query(select, None)

    def read_all(self, kind: str) -> list[tuple[str, bytes]]:
        """See `RowStore`."""

        def select(connection: sqlite3.Connection) -> list[tuple[str, bytes]]:
            rows = connection.execute("SELECT name, data FROM rows WHERE kind = ? ORDER BY position, name", (kind,)).fetchall()
            _check_names(connection, kind, (name for name, _ in rows))
            return rows

        return self._query(select, [])

    def list_rows(self) -> list[Row]:
        """Return all rows of all kinds."""

        def select(connection: sqlite3.Connection) -> list[Row]:
            for kind in _select_names(connection, _NAMES):
                _check_names(connection, kind, _select_names(connection, kind))
            return connection.execute("SELECT kind, name, position, data FROM rows WHERE kind != ?", (_NAMES,)).fetchall()

        self._open_connection()
        return self._query(select, [])

    def create(self, rows: Iterable[Row]) -> None:
        """Write a new file and rename it: other processes read either the old file or the new one. OSError if that fails."""
        try:
            self._create(rows)
        except sqlite3.Error as error:
            raise OSError(f"the cache {self.path} was not written: {error}") from error

    def _create(self, rows: Iterable[Row]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_temporary_files(self.path, replaced=True)
        temporary = self.path.with_suffix(f".{os.getpid()}")
        temporary.unlink(missing_ok=True)
        connection = sqlite3.connect(temporary, isolation_level=None)
        temporary.chmod(0o600)
        for statement in (SET_PAGE_SIZE, "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", _CREATE_TABLE, "BEGIN"):
            connection.execute(statement)
        sums = Counter[str]()
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", _add_names(rows, sums))  # one by one: all are many megabytes
        connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", _list_sums(sums))
        connection.execute("COMMIT")
        connection.close()
        temporary.replace(self.path)

    def update(self, rows: Iterable[Row], is_known: Callable[[bytes | None], bool], /) -> bool:
        """Write changed rows in one transaction. OSError if that fails. See `RowStore`."""
        try:
            return self._update(rows, is_known)
        except sqlite3.Error as error:
            raise OSError(f"the cache {self.path} was not written: {error}") from error
        except CorruptCacheError as error:
            self.discard(error)
            raise

    def _update(self, rows: Iterable[Row], is_known: Callable[[bytes | None], bool], /) -> bool:
        remove_temporary_files(self.path, replaced=False)
        connection = self._open_connection()
        connection.execute("BEGIN IMMEDIATE")
        found = connection.execute("SELECT data FROM rows WHERE kind = 'header'").fetchone()
        known = is_known(found[0] if found else None)
        if known:
            written = list(rows)
            connection.executemany(_UPSERT, [*_update_sums(connection, written), *(row for row in written if row[3] is not None)])
            connection.executemany(_DELETE, [row[:2] for row in written if row[3] is None])
        connection.execute("COMMIT")
        return known

    def _open_connection(self) -> sqlite3.Connection:
        """Return the connection. After `create` there is none yet."""
        if self._connection is None:
            self._connection = _connect(self.path)
            self._version = _read_version(self._connection)
        return self._connection

    def discard(self, error: Exception) -> None:
        """Delete the file."""
        _log.warning("the cache %s is not readable and will be rebuilt: %s", self.path, error)
        discard_file(self.path)

    def remove(self) -> None:
        """Delete the file without a warning, because another store has the rows."""
        self.close()
        discard_file(self.path)

    def _query(self, read: Callable[[sqlite3.Connection], T], default: T) -> T:
        if self._connection is None:
            return default
        try:
            found = read(self._connection)
            version = _read_version(self._connection)
        except (sqlite3.Error, CorruptCacheError) as error:
            self.discard(error)
            raise CorruptCacheError(str(error)) from error
        if version != self._version:
            raise CorruptCacheError("another process has changed these rows")
        return found


def _add_names(rows: Iterable[Row], sums: Counter[str]) -> Iterator[Row]:
    """Yield the rows, and add a number for each of their names to that of its kind."""
    for row in rows:
        sums[row[0]] += _hash_name(row[1])
        yield row


def _hash_name(name: str) -> int:
    """Return a number of a name that is not 0, so that a name less is another sum."""
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) + (1 << 32)


def _list_sums(sums: Mapping[str, int]) -> list[Row]:
    return [(_NAMES, kind, 0, str(number).encode()) for kind, number in sums.items()]


def _update_sums(connection: sqlite3.Connection, rows: Iterable[Row]) -> list[Row]:
    """Return the rows about names as they are after some rows are written."""
    sums = Counter[str]()
    for (kind, name), data in {row[:2]: row[3] for row in rows}.items():
        known = connection.execute("SELECT 1 FROM rows WHERE kind = ? AND name = ?", (kind, name)).fetchone() is not None
        sums[kind] += ((data is not None) - known) * _hash_name(name)
    return _list_sums({kind: number + _read_sum(connection, kind) for kind, number in sums.items() if number})


def _read_sum(connection: sqlite3.Connection, kind: str) -> int:
    """Return what the file says about the names of a kind. Raise CorruptCacheError if that is damaged."""
    found = connection.execute("SELECT data FROM rows WHERE kind = ? AND name = ?", (_NAMES, kind)).fetchone()
    try:
        return int(found[0]) if found is not None else 0
    except (TypeError, ValueError) as error:
        raise CorruptCacheError(f"the names of {kind} rows are not what was written") from error


def _select_names(connection: sqlite3.Connection, kind: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM rows WHERE kind = ?", (kind,))]


def _check_names(connection: sqlite3.Connection, kind: str, names: Iterable[str]) -> None:
    """Raise CorruptCacheError unless the rows of a kind, which have these names, are those that were written."""
    try:
        number = sum(map(_hash_name, names))
    except (AttributeError, UnicodeError) as error:
        raise CorruptCacheError(f"a name of a {kind} row is not what was written") from error
    if number != _read_sum(connection, kind):
        raise CorruptCacheError(f"a {kind} row is missing, or has another name than was written")


def _connect(path: Path) -> sqlite3.Connection:
    """Return a connection that one thread uses, and that any thread may close."""
    return sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)


def _read_version(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection writes to the file."""
    version: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return version
