"""Results of kustomize by everything that they depend on, in memory and in one SQLite file that all processes of a user share."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, MutableMapping
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gitsched.reconcile.cache.storage import is_private

_log = logging.getLogger("gitsched.reconcile")
MAX_ROWS = 20_000
"""Results that are kept; beyond it, all are deleted."""
_CREATE_TABLE = "CREATE TABLE IF NOT EXISTS built (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
_DIGEST_LENGTH = 32


class BuildCache:
    """JSON values by key. Rows are checked by a digest; a file that other users can write to is neither read nor written."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "built.sqlite3"
        self._values: dict[str, Any] = {}
        self._unsaved: set[str] = set()

    def load(self, keys: list[str]) -> None:
        """Load the rows of these keys into memory."""
        missing = [key for key in keys if key not in self._values]
        if not missing or not os.path.lexists(self._path) or not is_private(self._path):
            return
        import sqlite3

        try:
            with closing(sqlite3.connect(self._path, timeout=5)) as connection:
                for start in range(0, len(missing), 500):
                    part = missing[start : start + 500]
                    query = f"SELECT key, value FROM built WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608 - only marks
                    self._values.update((key, _decode(key, text)) for key, text in connection.execute(query, part))
        except (sqlite3.Error, ValueError) as error:
            _log.warning("the cache %s is not readable and will be rebuilt: %s", self._path, error)
            self._path.unlink(missing_ok=True)

    def get(self, key: str) -> Any:
        """Return the value of a key that was loaded or set; None if there is none."""
        return self._values.get(key)

    def put(self, key: str, value: Any) -> None:
        """Set a value, which must be JSON."""
        self._values[key] = value
        self._unsaved.add(key)

    def save(self) -> None:
        """Write the new values. Log a failure instead of raising it: a run works without the file."""
        if not self._unsaved or (os.path.lexists(self._path.parent) and not is_private(self._path.parent)):
            return
        import sqlite3

        rows = [(key, _encode(key, self._values[key])) for key in sorted(self._unsaved)]
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=5)) as connection, connection:
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute(_CREATE_TABLE)
                self._path.chmod(0o600)
                if connection.execute("SELECT count(*) FROM built").fetchone()[0] > MAX_ROWS:
                    connection.execute("DELETE FROM built")
                connection.executemany("INSERT OR REPLACE INTO built VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            _log.warning("the cache %s was not written: %s", self._path, error)
        self._unsaved.clear()


class VersionCache(MutableMapping[str, str]):
    """Versions of executables in a build cache."""

    def __init__(self, cache: BuildCache) -> None:
        self._cache = cache

    def __getitem__(self, executable: str) -> str:
        key = f"version {executable}"
        self._cache.load([key])
        found = self._cache.get(key)
        if not isinstance(found, str):
            raise KeyError(executable)
        return found

    def __setitem__(self, executable: str, version: str) -> None:
        self._cache.put(f"version {executable}", version)

    def __delitem__(self, executable: str) -> None:
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def _encode(key: str, value: Any) -> str:
    text = json.dumps(value, separators=(",", ":"))
    return f"{_compute_digest(key, text)}{text}"


def _decode(key: str, row: str) -> Any:
    text = row[_DIGEST_LENGTH:]
    if _compute_digest(key, text) != row[:_DIGEST_LENGTH]:
        raise ValueError("a row is not what was written")
    return json.loads(text)


def _compute_digest(key: str, text: str) -> str:
    return blake2b(f"{key}\n{text}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST_LENGTH // 2).hexdigest()
