"""Verify that the cache directory belongs to this user and cannot be written by others, and identify the build of gitsched that
wrote a cache file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path

from gitsched import __version__
from gitsched.git import open_repository
from gitsched.model.errors import Permanent

_TREE_MODE = 0o040000


def is_private(path: Path) -> bool:
    """Whether a file or directory is there, and nobody but this user can have written it, or put it where it is."""
    try:
        found = [path.stat(), path.parent.stat()] if not path.is_dir() else [path.stat()]
    except OSError:
        return False
    return all(status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for status in found)


def check_cache_directory(cache: Path) -> None:
    """Permanent for a cache that has been committed to the work tree that it lies in: whoever wrote the commit says what is in it.

    The files of a checkout belong to whoever checked it out, so that their owner tells nothing.
    """
    for path in dict.fromkeys((Path(os.path.abspath(cache)), cache.resolve())):  # noqa: PTH100 - links on the way are looked at, too
        root = next((parent for parent in path.parents if (parent / ".git").exists()), None)
        if root is not None and _is_committed(root, path.relative_to(root)):
            raise Permanent(
                f"the cache directory {cache} is part of the commit that is checked out in {root}, and whoever wrote that commit says "
                "what is in it: name a directory elsewhere with --cache-dir or XDG_CACHE_HOME"
            )


def _is_committed(root: Path, path: Path) -> bool:
    """Whether the commit that is checked out has anything at a path, or a link on the way to it."""
    try:
        repository = open_repository(root)
    except Permanent:
        return False  # something else of that name, or a repository that git does not trust either
    head = repository.resolve("HEAD")
    if head is None:
        return False
    tree = repository.commit(head).tree
    ways = (repository.find_entry(tree, Path(*path.parts[:count]).as_posix()) for count in range(1, len(path.parts)))
    return repository.find_entry(tree, path.as_posix()) is not None or any(way is not None and way[1] != _TREE_MODE for way in ways)


_SUFFIXES = (".py", ".json")


@cache
def identify_build() -> str:
    """The version, and a digest of what was installed: the same on every machine with the same wheel and the same Python."""
    return identify_package(Path(__file__).parents[2])


def identify_package(package: Path) -> str:
    """As `identify_build`, of a package in any place.

    The installer has written down what is in a wheel. In a checkout there is no such list, and the files' sizes and times tell: whoever
    works on the program must not meet what an earlier state of it left.
    """
    record = package.parent / f"{package.name}-{__version__}.dist-info" / "RECORD"
    installed = record.read_text(encoding="utf-8").splitlines() if record.is_file() else []
    listed = [line for line in installed if line.startswith(f"{package.name}/") and ",sha256=" in line]
    text = "\n".join((sys.version, *sorted(listed or _list_files(package))))
    return f"{__version__}-{blake2b(text.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"


def _list_files(package: Path) -> Iterator[str]:
    for root in (package, package.parent / "schemas"):
        for directory, _, files in os.walk(root):
            for name in files:
                if name.endswith(_SUFFIXES):
                    status = os.stat(os.path.join(directory, name))  # noqa: PTH116, PTH118 - hundreds of files, in each process
                    yield f"{directory[len(str(root)) :]}/{name}:{status.st_size}:{status.st_mtime_ns}"
