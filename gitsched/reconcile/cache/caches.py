"""All caches of one process, with the cache of parsed files. The package docstring lists them."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.catalog import RawDocument
from gitsched.decide.plan import InMemoryCaches, Plan, SourceTree
from gitsched.manifests.parsed_file import NOT_YAML, ParsedFile
from gitsched.model.document import Body
from gitsched.model.finding import Finding
from gitsched.model.observation import Observations
from gitsched.reconcile.cache.plan_cache import PlanCache
from gitsched.reconcile.cache.storage import check_cache_directory, identify_build, is_private

if TYPE_CHECKING:
    from gitsched.reconcile.cache.build_cache import BuildCache

_log = logging.getLogger("gitsched.reconcile")
_CREATE_TABLE = "CREATE TABLE IF NOT EXISTS parsed (key TEXT PRIMARY KEY, file TEXT NOT NULL) WITHOUT ROWID"
_DIGEST_LENGTH = 32
"""Characters of the digest at the start of each row."""


class ParseCache:
    """Parsed files by key, in memory and in one SQLite file that all processes of a user share.

    The checksums of the rows protect against accidents only, so a file that other users can write to is neither read nor written. Raise
    Permanent for a cache directory that is part of the checked-out commit.
    """

    def __init__(self, cache: Path) -> None:
        check_cache_directory(cache)
        self._warned = False
        self._path = cache / f"parsed-{identify_build()}.sqlite3"
        self._files: dict[str, ParsedFile] = {}
        self._unsaved: dict[str, ParsedFile] = {}

    def load(self, keys: Iterable[str]) -> None:
        """Load the rows of these keys from disk into memory at once."""
        missing = [key for key in keys if key not in self._files]
        if not missing or not os.path.lexists(self._path) or not self._is_private():
            return
        import sqlite3  # only when there is something to load

        try:
            with closing(sqlite3.connect(self._path, timeout=5)) as connection:
                for start in range(0, len(missing), 500):
                    part = missing[start : start + 500]
                    query = f"SELECT key, file FROM parsed WHERE key IN ({','.join('?' * len(part))})"  # noqa: S608 - only marks
                    for key, text in connection.execute(query, part):
                        self._files[key] = _decode(key, text)
        except (sqlite3.Error, ValueError, TypeError) as error:
            _log.warning("the cache %s is not readable and will be rebuilt: %s", self._path, error)
            self._path.unlink(missing_ok=True)

    def _is_private(self) -> bool:
        """Return whether only this user can have written the file, or the directory where there is no file. Warn once otherwise."""
        exists = os.path.lexists(self._path)
        private = is_private(self._path if exists else self._path.parent)
        if not private and not self._warned:
            self._warned = True
            _log.warning(
                "others can write to the cache %s: it is not used; make its directory writable for this user only", self._path
            )
        return private

    def get(self, key: str) -> ParsedFile | None:
        return self._files.get(key)

    def put(self, key: str, file: ParsedFile) -> None:
        self._files[key] = self._unsaved[key] = file

    def __len__(self) -> int:
        return len(self._files)

    def clear(self) -> None:
        """Remove all entries from memory. Saved entries stay on disk."""
        self._files.clear()

    def save(self) -> None:
        """Write the new entries to disk. Log a failure instead of raising it: the run does not need the file."""
        if not self._unsaved or (self._path.parent.exists() and not self._is_private()):
            return
        import sqlite3

        rows = [
            (key, _encode(key, file)) for key, file in sorted(self._unsaved.items(), key=itemgetter(0))
        ]  # in the order of the table
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=5)) as connection, connection:
                connection.execute("PRAGMA synchronous = OFF")  # a cache: rows that a crash of the machine damages are rebuilt
                connection.execute(_CREATE_TABLE)
                self._path.chmod(0o600)
                connection.executemany("INSERT OR REPLACE INTO parsed VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            _log.warning("the cache %s was not written: %s", self._path, error)
        self._unsaved.clear()


def _encode(key: str, file: ParsedFile) -> str:
    """Return a file as JSON after a digest: a flipped bit on the disk must not turn one valid document into another."""
    text = json.dumps(file, separators=(",", ":"))
    return f"{_compute_digest(key, text)}{text}"


def _decode(key: str, row: str) -> ParsedFile:
    """Return the file of a row. Raise ValueError if the digest does not match."""
    text = row[_DIGEST_LENGTH:]
    if _compute_digest(key, text) != row[:_DIGEST_LENGTH]:
        raise ValueError("a row is not what was written")
    return ParsedFile.from_json(json.loads(text))


def _compute_digest(key: str, text: str) -> str:
    return blake2b(f"{key}\n{text}".encode("utf-8", "surrogatepass"), digest_size=_DIGEST_LENGTH // 2).hexdigest()


MAX_OLD_VERSIONS = 1_000
"""Parsed files that are kept in memory beyond twice those of the last complete plan."""


class SourceFile(NamedTuple):
    """One file of a source tree. `findings` are about its content; `broken`: a document of the file cannot be used; `kustomized`: a
    kustomization changes or may change its objects."""

    blob: str
    file: ParsedFile
    documents: tuple[RawDocument, ...]
    findings: tuple[Finding, ...]
    broken: bool
    kustomized: bool = False

    @property
    def independent(self) -> bool:
        """Whether the file is valid, and depends neither on other files nor on an earlier version of itself."""
        file = self.file
        return not (self.broken or self.kustomized or file.kustomization is not None or file.reason == NOT_YAML)


class TreeCache(NamedTuple):
    """The last source tree: its files by path and its content. It is `valid` where neither a file nor gitsched.yaml is broken;
    `config_valid` is about gitsched.yaml alone. `source_paths` are the files whose documents depend on no other file,
    `built` the documents that kustomize roots build."""

    tree: str
    files: Mapping[str, SourceFile]
    source_tree: SourceTree
    valid: bool
    config_valid: bool
    source_paths: Collection[str] = ()
    built: tuple[RawDocument, ...] = ()


class LastWritten(NamedTuple):
    """The last complete plan that this process committed, and its output tree."""

    output_tree: str
    plan: Plan


@dataclass(slots=True)
class Caches:
    """All caches of one process. `plan_size` is the number of parsed files that the last complete plan needed. `builds` is opened by the
    first build of a kustomize root."""

    directory: Path
    files: ParseCache
    record_bodies: dict[str, Body] = field(default_factory=dict)
    tree: TreeCache | None = None
    decisions: InMemoryCaches = field(default_factory=InMemoryCaches)
    plan: PlanCache | None = None
    last_written: LastWritten | None = None
    metric_values: Observations | None = None
    plan_size: int = 0
    builds: BuildCache | None = None

    def take_plan(self, key: str) -> PlanCache | None:
        """Return the plan cache of this key, from memory or from disk; None if there is none.

        It is removed from here, because an incremental plan changes it. The run puts it back once the plan is published.
        """
        cache, self.plan = self.plan, None
        return cache if cache is not None and cache.header.cache_key == key else PlanCache.open(self.get_plan_path(key), key)

    def get_plan_path(self, key: str) -> Path:
        """Return the file of the plan cache."""
        return self.directory / f"plan-{key[:32]}.sqlite3"

    def save(self) -> None:
        """Write new entries to disk, and discard old versions of files from memory."""
        self.files.save()
        if self.builds is not None:
            self.builds.save()
        if self.plan is not None:
            self.plan.save()
        if len(self.files) > 2 * self.plan_size + MAX_OLD_VERSIONS:
            self.files.clear()
            self.record_bodies.clear()
