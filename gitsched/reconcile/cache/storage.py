"""Protect cache files: check their owner and the build of gitsched that wrote them. A file is read only if no other user can write to
it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from gitsched import __version__
from gitsched.decide.registry import policy_apis
from gitsched.git import open_repository
from gitsched.model.errors import Permanent

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
