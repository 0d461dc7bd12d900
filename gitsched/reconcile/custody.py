"""Whose the cache is: what others could have written is not believed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gitsched.git import open_repository
from gitsched.model.errors import Permanent

_TREE = 0o040000


def is_private(path: Path) -> bool:
    """Whether a file or directory is there, and nobody but this user can have written it, or put it where it is."""
    try:
        found = [path.stat(), path.parent.stat()] if not path.is_dir() else [path.stat()]
    except OSError:
        return False
    return all(status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for status in found)


def check_cache(cache: Path) -> None:
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
    ways = (repository.entry(tree, Path(*path.parts[:count]).as_posix()) for count in range(1, len(path.parts)))
    return repository.entry(tree, path.as_posix()) is not None or any(way is not None and way[1] != _TREE for way in ways)
