"""Temporary directories of one process. Those that killed processes have left behind are removed by a later one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
import weakref
from itertools import islice
from pathlib import Path
from types import TracebackType

from gitsched.model.errors import Permanent

MAX_ENTRIES = 10_000
"""The entries of a directory among which those of killed processes are searched."""
_VARIABLES, _USUAL = ("TMPDIR", "TEMP", "TMP"), ("/tmp", "/var/tmp", "/usr/tmp")  # noqa: S108 - where Python looks
_SUFFIX = ".gitsched"
_NAME = re.compile(rf"[a-z]+-[a-z0-9_]{{8}}{re.escape(_SUFFIX)}")
_MODE = stat.S_ISVTX | stat.S_IRWXU
"""Marks a directory of this module: its owner alone can set the mode, and sets this one on no other directory."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_searched = set[tuple[int, str]]()
"""Processes, and the directories in which they have removed what others left behind."""


class TemporaryDirectory:
    """A new directory that only this user can enter, in `parent` or in the directory for temporary files. It is removed by `close`, at the
    end of a `with` block, or with this object.

    The process holds a lock (flock) on it, which the system releases when the process ends in whatever way. The first directory that a
    process creates in a parent removes those there that nobody holds. Raises Permanent where there is no directory for temporary files.
    """

    def __init__(self, purpose: str, parent: str | None = None) -> None:
        parent = _find_parent() if parent is None else parent
        if (os.getpid(), parent) not in _searched:
            _searched.add((os.getpid(), parent))
            remove_abandoned(parent)
        self.path = Path(tempfile.mkdtemp(prefix=f"{purpose}-", suffix=_SUFFIX, dir=parent))
        handle = os.open(self.path, _FLAGS)
        with contextlib.suppress(OSError):  # a file system without locks or modes: nobody takes the directory for abandoned
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(handle, _MODE)
        self._remove = weakref.finalize(self, _remove, self.path, handle, os.getpid())

    def close(self) -> None:
        """Remove the directory."""
        self._remove()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()


def _find_parent() -> str:
    """Return the directory for temporary files. Where there is none, Python would take the current directory, which may be a worktree."""
    with contextlib.suppress(FileNotFoundError):
        found = tempfile.gettempdir()
        named = [os.path.realpath(value) for name in _VARIABLES if (value := os.environ.get(name))]
        if found in _USUAL or os.path.realpath(found) in named or not Path(found).samefile("."):
            return found
    raise Permanent(
        "there is no directory for temporary files: mount one at /tmp, or name one in TMPDIR that exists and can be written"
    )


def _remove(path: Path, handle: int, process: int) -> None:
    if os.getpid() == process:  # a copy of the process has the object, too
        shutil.rmtree(path, ignore_errors=True)
    os.close(handle)


def remove_abandoned(parent: str) -> None:
    """Remove the temporary directories of killed processes of this user from a directory, in which others may write, too."""
    with contextlib.suppress(OSError):
        with os.scandir(parent) as entries:
            names = [entry.name for entry in islice(entries, MAX_ENTRIES) if _NAME.fullmatch(entry.name)]
        for name in names:
            with contextlib.suppress(OSError):  # it is none, or its process holds the lock
                _remove_if_abandoned(Path(parent, name))


def _remove_if_abandoned(path: Path) -> None:
    handle = os.open(path, _FLAGS)
    try:
        found = os.fstat(handle)
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & ~stat.S_ISGID == _MODE:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Not by its name, at which somebody else may put another directory now; the last step removes an empty one only.
            shutil.rmtree(".", ignore_errors=True, dir_fd=handle)
            path.rmdir()
    finally:
        os.close(handle)
