"""The lock of a private clone: processes take turns at writing its refs, and remove what an interrupted process left behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from gitsched.model.errors import Permanent, Temporary

_LOCK_TIMEOUT = 600.0
_MIN_AGE = 60.0
"""Seconds after the last write of a temporary object from which on its writer counts as dead: objects are written without the lock."""
_TEMPORARY_PREFIXES = ("tmp_", "incoming-", "tmp-")


class CloneLock:
    """An exclusive lock on the private clone at `path`, released when its holder and the git processes that it started have ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = threading.RLock()
        self._handle: int | None = None

    @property
    def handles(self) -> tuple[int, ...]:
        """The open lock file while the lock is held; git processes inherit it."""
        return () if self._handle is None else (self._handle,)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock; Temporary when another process holds it for ten minutes. A thread that holds it may take it again."""
        with self._thread:
            if self._handle is not None:
                yield
                return
            handle = self._open()
            try:
                self._wait(handle)
                _remove_leftovers(self._path)
                self._handle = handle
                yield
            finally:
                self._handle = None
                os.close(handle)

    def _open(self) -> int:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._check_owner()
            return os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Permanent(f"cannot create private clones in {self._path.parent}: {error}") from error

    def _check_owner(self) -> None:
        """Raise Permanent for a directory of another user, who could write hooks and settings into it."""
        for path in (self._path.parent, self._path):
            if path.exists() and path.stat().st_uid != os.geteuid():
                raise Permanent(f"{path} belongs to another user; use another cache directory: --cache-dir")

    def _wait(self, handle: int) -> None:
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise Temporary(f"another process holds the lock on {self._path}") from error
                time.sleep(0.05)
            except OSError as error:
                raise Temporary(f"cannot lock {self._path}: {error}") from error
            else:
                return


def _remove_leftovers(path: Path) -> None:
    """Remove the lock files of interrupted processes: whoever writes refs holds the lock of the clone. Also old temporary objects."""
    oldest = time.time() - _MIN_AGE
    for parent, _, names in os.walk(path / "refs"):
        _remove(Path(parent, name) for name in names if name.endswith(".lock"))
    for directory in (path, path / "objects" / "info", path / "objects" / "pack"):
        _remove(entry for entry in _list(directory) if entry.name.endswith(".lock") or entry.name == "gc.pid")
    for directory in (path / "objects", *_list(path / "objects")):
        _remove(entry for entry in _list(directory) if entry.name.startswith(_TEMPORARY_PREFIXES) and _read_age(entry) < oldest)


def _list(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _read_age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")


def _remove(paths: Iterator[Path]) -> None:
    for path in list(paths):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
