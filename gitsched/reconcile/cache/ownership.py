"""Who can have written the files of the cache: only a file and a directory that no other user can write to is used."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

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
    try:
        cache.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Permanent(f"the cache directory {cache} cannot be used: its symbolic links have no end") from error
    for path in dict.fromkeys((Path(os.path.abspath(cache)), cache.resolve())):  # noqa: PTH100 - links on the way are checked, too
        root = next((parent for parent in path.parents if (parent / ".git").exists()), None)
        if root is not None and _is_committed(root, path.relative_to(root)):
            raise Permanent(
                f"the cache directory {cache} is part of the commit that is checked out in {root}, so the author of that commit chose its "
                "content: name a directory elsewhere with --cache-dir or XDG_CACHE_HOME"
            )


def _is_committed(root: Path, path: Path) -> bool:
    """Return whether the commit that is checked out has an entry at a path, or a link on the way to it."""
    from gitsched.git import Repository  # few cache directories are in a worktree

    try:
        repository = Repository(root)
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
