"""Protect cache files: check their owner and the build of gitsched that wrote them, and serialize the rows of the plan cache.

A cache file is read only if no other user can write to it. Rows are pickles with a checksum that can contain only gitsched's own types,
so a damaged or foreign file cannot run code: it is rejected and written again.
"""

from __future__ import annotations

import io
import os
import pickle
import stat
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from gitsched import __version__
from gitsched.apis.gitsched.config import Config
from gitsched.apis.policy_api import Snapshot
from gitsched.decide.registry import policy_apis
from gitsched.git import open_repository
from gitsched.model.errors import Permanent
from gitsched.model.time import EPOCH

_TREE_MODE = 0o040000


def is_private(path: Path) -> bool:
    """Return whether a file or directory exists and only this user can have written or replaced it."""
    try:
        statuses = [path.stat(), path.parent.stat()] if not path.is_dir() else [path.stat()]
    except OSError:
        return False
    return all(status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for status in statuses)


def check_cache_directory(cache: Path) -> None:
    """Raise Permanent for a cache directory that is committed to the work tree around it: the author of the commit chose its content.

    The owner of the files does not matter, because files of a checkout belong to the user that checked it out.
    """
    for path in dict.fromkeys((Path(os.path.abspath(cache)), cache.resolve())):  # noqa: PTH100 - links on the way are checked, too
        root = next((parent for parent in path.parents if (parent / ".git").exists()), None)
        if root is not None and _is_committed(root, path.relative_to(root)):
            raise Permanent(
                f"the cache directory {cache} is part of the commit that is checked out in {root}, so the author of that commit chose its "
                "content: name a directory elsewhere with --cache-dir or XDG_CACHE_HOME"
            )


def _is_committed(root: Path, path: Path) -> bool:
    """Return whether the commit that is checked out has an entry at a path, or a link on the way to it."""
    try:
        repository = open_repository(root)
    except Permanent:
        return False  # not a repository, or one that git does not trust
    head = repository.resolve("HEAD")
    if head is None:
        return False
    tree = repository.commit(head).tree
    parents = (repository.find_entry(tree, Path(*path.parts[:count]).as_posix()) for count in range(1, len(path.parts)))
    return repository.find_entry(tree, path.as_posix()) is not None or any(
        parent is not None and parent[1] != _TREE_MODE for parent in parents
    )


_SUFFIXES = (".py", ".json")


@cache
def identify_build() -> str:
    """Return the version and a digest of what is installed and registered: the same on every machine with the same wheel and Python."""
    return identify_package(Path(__file__).parents[2])


def identify_package(package: Path) -> str:
    """As `identify_build`, for a package in any directory.

    For an installed wheel, the digest is of the installer's list of files. A checkout has no such list, so the digest is of sizes and
    times of its files: an edit makes another build.
    """
    record = package.parent / f"{package.name}-{__version__}.dist-info" / "RECORD"
    installed = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    listed = [line for line in installed if line.startswith(f"{package.name}/") and ",sha256=" in line]
    text = "\n".join((sys.version, *(api.name for api in policy_apis.values()), *sorted(listed or _list_files(package))))
    return f"{__version__}-{blake2b(text.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"


def _list_files(package: Path) -> Iterator[str]:
    for root in (package, package.parent / "schemas"):
        for directory, _, files in os.walk(root):
            for name in files:
                if name.endswith(_SUFFIXES):
                    status = os.stat(os.path.join(directory, name))  # noqa: PTH116, PTH118 - hundreds of files, in each process
                    yield f"{directory[len(str(root)) :]}/{name}:{status.st_size}:{status.st_mtime_ns}"


_ALLOWED_MODULES = (
    "gitsched.apis.",
    "gitsched.model.",
    "gitsched.decide.",
    "gitsched.render.",
    "gitsched.schedule.",
    "gitsched.reconcile.cache.plan_cache",
)
"""The modules whose classes may be unpickled: those that do no I/O, and the plan cache's own."""
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
        return Snapshot({}, {}, frozenset(), {}, Config(), EPOCH, EPOCH)
