"""Cache files: rows of JSON in SQLite, and the build of gitsched that wrote them. A file is read only if no other user can write to it."""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gitsched import __version__
from gitsched.reconcile.cache.ownership import is_private
from gitsched.reconcile.package_digest import identify_code

_log = logging.getLogger("gitsched.reconcile")
_CREATE_TABLE = "CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
SET_PAGE_SIZE = "PRAGMA page_size = 16384"
"""For a new file of rows of a few kilobytes: smaller pages hold only the start of such a row, and its end takes a page of its own."""
_write_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_DIGEST_LENGTH = 32
"""Characters of the digest at the start of each row."""
_KEYS_OF_QUERY = 500
_MIN_TEMPORARY_AGE = 60.0
"""Seconds after the last write of a temporary file from which on its writer counts as dead."""


class RowFile:
    """JSON values by key in one SQLite file that all processes of a user share.

    The checksums of the rows protect against accidents only, so a file that other users can write to is neither read nor written. A run
    does not need the file: failures are logged. `max_rows` limits the rows; a write beyond it deletes all earlier ones.
    """

    def __init__(self, path: Path, max_rows: int | None = None) -> None:
        self.path, self._max_rows = path, max_rows
        self._warned = False
        self._connection: sqlite3.Connection | None = None
        """Open from the first read of a run to the write that ends it."""

    def read(self, keys: Sequence[str]) -> dict[str, Any]:
        """Return the values of the keys that the file has."""
        if not keys or not os.path.lexists(self.path) or not self._is_private():
            return {}
        found: dict[str, Any] = {}
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self.path, timeout=5, check_same_thread=False)  # any thread may close it
            for start in range(0, len(keys), _KEYS_OF_QUERY):
                part = keys[start : start + _KEYS_OF_QUERY]
                query = f"SELECT key, value FROM rows WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608 - only marks
                rows = self._connection.execute(query, part).fetchall()
                values = json.loads(f"[{','.join(_check(key, row) for key, row in rows)}]")  # at once: equal names are one object
                found.update(zip((key for key, _ in rows), values, strict=True))
        except (sqlite3.Error, ValueError, TypeError) as error:
            self.discard(error)
        return found

    def write(self, values: Mapping[str, Any]) -> None:
        """Add or replace values. This ends a run: the file is closed, also without values."""
        self.close()
        if not values or (self.path.parent.exists() and not self._is_private()):
            return
        rows = ((key, _encode(key, values[key])) for key in sorted(values))  # in the order of the table
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(sqlite3.connect(self.path, timeout=5)) as connection, connection:
                connection.execute("PRAGMA synchronous = OFF")  # a cache: rows that a crash of the machine damages are rebuilt
                connection.execute(SET_PAGE_SIZE)
                connection.execute(_CREATE_TABLE)
                self.path.chmod(0o600)
                if self._max_rows is not None and connection.execute("SELECT count(*) FROM rows").fetchone()[0] > self._max_rows:
                    connection.execute("DELETE FROM rows")
                connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            _log.warning("the cache %s was not written: %s", self.path, error)

    def discard(self, error: Exception) -> None:
        """Delete the file, because it is not readable or a value is not what was expected."""
        self.close()
        _log.warning("the cache %s is not readable and will be rebuilt: %s", self.path, error)
        discard_file(self.path)

    def close(self) -> None:
        """Close the file; the next read opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _is_private(self) -> bool:
        """Return whether only this user can have written the file, or the directory where there is no file. Warn once otherwise."""
        exists = os.path.lexists(self.path)
        private = is_private(self.path if exists else self.path.parent)
        if not private and not self._warned:
            self._warned = True
            _log.warning(
                "others can write to the cache %s: it is not used; make its directory writable for this user only", self.path
            )
        return private


def discard_file(path: Path) -> None:
    """Delete a cache file, or log that it cannot be deleted: a run works without it."""
    try:
        path.unlink(missing_ok=True)
        _delete_journal(path)
    except OSError as error:
        _log.warning("the cache %s cannot be deleted: %s", path, error.strerror)


def _delete_journal(path: Path) -> None:
    """Delete the journal that a killed process left behind. SQLite would restore pages from it into another file of the same name."""
    Path(f"{path}-journal").unlink(missing_ok=True)


def remove_temporary_files(path: Path, *, replaced: bool) -> None:
    """Delete new versions of a cache file, `PATH_STEM.PROCESS_ID`, that killed processes left behind; if the file is about to be
    `replaced`, its journal, too, from which SQLite would restore pages of the old one."""
    oldest = time.time() - _MIN_TEMPORARY_AGE
    with contextlib.suppress(OSError):
        if replaced:
            _delete_journal(path)
        for found in path.parent.glob(f"{glob.escape(path.stem)}.*"):
            process = found.suffix[1:]
            if process.isdecimal() and int(process) != os.getpid() and found.stat().st_mtime < oldest:
                found.unlink()


def _encode(key: str, value: Any) -> str:
    """Return a value as JSON after a digest: a flipped bit on the disk must not turn one valid document into another."""
    text = _write_json(value)
    return f"{_compute_digest(key, text)}{text}"


def _check(key: str, row: str) -> str:
    """Return the JSON of a row. Raise ValueError if the digest does not match."""
    text = row[_DIGEST_LENGTH:]
    if _compute_digest(key, text) != row[:_DIGEST_LENGTH]:
        raise ValueError("a row is not what was written")
    return text


def _compute_digest(key: str, text: str) -> str:
    return blake2b(f"{key}\n{text}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST_LENGTH // 2).hexdigest()


@cache
def identify_build() -> str:
    """Return the version and a digest of what is installed and registered: the same on every machine with the same wheel and Python."""
    return f"{__version__}-{blake2b(identify_code().encode(), digest_size=6).hexdigest()}"
