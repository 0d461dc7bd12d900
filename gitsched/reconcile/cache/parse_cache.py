"""Cache parsed files by blob id, in memory and in one SQLite file that all processes of a user share."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from contextlib import closing
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path

from gitsched.manifests.parsed_file import ParsedFile
from gitsched.reconcile.cache.storage import check_cache_directory, identify_build, is_private

_log = logging.getLogger("gitsched.reconcile")
_CREATE_TABLE = "CREATE TABLE IF NOT EXISTS parsed (key TEXT PRIMARY KEY, file TEXT NOT NULL) WITHOUT ROWID"
_DIGEST_LENGTH = 32
"""Of the digest in front of each row."""


class ParseCache:
    """Files by key, in memory and in one SQLite file that all processes of a user share.

    The rows vouch for themselves against accidents only, so a file that others can write to is left alone. Permanent where the
    whole directory was committed by whoever wrote what is checked out.
    """

    def __init__(self, cache: Path) -> None:
        check_cache_directory(cache)
        self._warned = False
        self._path = cache / f"parsed-{identify_build()}.sqlite3"
        self._files: dict[str, ParsedFile] = {}
        self._unsaved: dict[str, ParsedFile] = {}

    def load(self, keys: Iterable[str]) -> None:
        """Bring what the disk knows of these keys into memory, in one go."""
        missing = [key for key in keys if key not in self._files]
        if not missing or not os.path.lexists(self._path) or not self._is_private():
            return
        import sqlite3  # only where there is something to load

        try:
            with closing(sqlite3.connect(self._path, timeout=5)) as connection:
                for start in range(0, len(missing), 500):
                    part = missing[start : start + 500]
                    query = f"SELECT key, file FROM parsed WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608 - only marks
                    for key, text in connection.execute(query, part):
                        self._files[key] = _decode(key, text)
        except (sqlite3.Error, ValueError, TypeError) as error:
            _log.warning("the cache %s is not readable and will be made anew: %s", self._path, error)
            self._path.unlink(missing_ok=True)

    def _is_private(self) -> bool:
        """Whether nobody else can have written the file, or the directory while there is none; if so, that is told once."""
        there = os.path.lexists(self._path)
        mine = is_private(self._path if there else self._path.parent)
        if not mine and not self._warned:
            self._warned = True
            _log.warning("others can write to the cache %s: it is not used; let its directory be this user's alone", self._path)
        return mine

    def get(self, key: str) -> ParsedFile | None:
        return self._files.get(key)

    def put(self, key: str, file: ParsedFile) -> None:
        self._files[key] = self._unsaved[key] = file

    def __len__(self) -> int:
        return len(self._files)

    def clear(self) -> None:
        """Let go of what is in memory; what was saved is found again on disk."""
        self._files.clear()

    def save(self) -> None:
        """Write what is new. A disk that refuses is told of, not raised: the run does not need it."""
        if not self._unsaved or (self._path.parent.exists() and not self._is_private()):
            return
        import sqlite3

        rows = [
            (key, _encode(key, file)) for key, file in sorted(self._unsaved.items(), key=itemgetter(0))
        ]  # in the order of the table
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=5)) as connection, connection:
                connection.execute("PRAGMA synchronous = OFF")  # a cache: what a crash of the machine spoils is made anew
                connection.execute(_CREATE_TABLE)
                self._path.chmod(0o600)
                connection.executemany("INSERT OR REPLACE INTO parsed VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            _log.warning("the cache %s was not written: %s", self._path, error)
        self._unsaved.clear()


def _encode(key: str, file: ParsedFile) -> str:
    """A file as JSON, behind a digest of that: a disk that forgets a bit must not turn one valid document into another."""
    text = json.dumps(file.to_json(), separators=(",", ":"))
    return f"{_compute_digest(key, text)}{text}"


def _decode(key: str, row: str) -> ParsedFile:
    """What was packed; ValueError when it is not that any more."""
    text = row[_DIGEST_LENGTH:]
    if _compute_digest(key, text) != row[:_DIGEST_LENGTH]:
        raise ValueError("a row is not what was written")
    return ParsedFile.from_json(json.loads(text))


def _compute_digest(key: str, text: str) -> str:
    return blake2b(f"{key}\n{text}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST_LENGTH // 2).hexdigest()
