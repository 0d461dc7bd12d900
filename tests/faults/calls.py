"""Count the calls of a process that touch files, run git, or use libgit2 or SQLite, and let the n-th of them fail or end the process.

Only calls count that touch files below a directory: what Python reads of its own is no part of the run.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import fcntl
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

KILL = "kill"
FAULTS = ("ENOSPC", "EIO", "EINTR", "EACCES", KILL)
"""What happens at the call: it fails with an error of the system, or the process dies."""
GIT_KILLED = "git-killed"
GIT_COMPLETED = "git-completed"
ALL_KILLED = "all-killed"
GIT_FAULTS = (GIT_KILLED, GIT_COMPLETED, ALL_KILLED)
"""What else happens where git is started: git is killed after some milliseconds, or completes and then the process dies, or both are
killed."""
PROGRAM = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); from tests.faults.calls import main; sys.exit(main())"
)

_OS_CALLS = (
    *("chmod", "fsync", "listdir", "lstat", "mkdir", "open", "remove", "rename", "replace", "rmdir", "scandir", "stat", "unlink"),
    *("link", "symlink", "utime"),
)
_FILE_CALLS = ("close", "flush", "read", "readline", "write")
_LIBGIT2_CALLS = ("read", "write", "lookup_reference", "revparse_single", "set_head", "descendant_of", "walk", "__contains__")
_SQLITE_CALLS = ("execute", "executemany", "commit")

_fopen = io.open
_popen = subprocess.Popen
_readlink = os.readlink


class Injection:
    """Counts calls and lets one of them fail. `calls` are the names of all calls so far."""

    def __init__(self, root: str, number: int, fault: str, delay: float) -> None:
        self._root, self._number, self.fault, self.delay = f"{root}/", number, fault, delay
        self.calls: list[str] = []

    def count(self, name: str) -> bool:
        """Count a call, and return whether it is the one to fail."""
        self.calls.append(name)
        return len(self.calls) == self._number

    def concerns(self, target: Any) -> bool:
        """Return whether a path or an open file is below the directory."""
        try:
            if isinstance(target, int):
                return _readlink(f"/proc/self/fd/{target}").startswith(self._root)
            return os.path.abspath(os.fsdecode(target)).startswith(self._root)  # noqa: PTH100 - without a call of the system
        except (OSError, TypeError, ValueError):
            return False

    def make_error(self, subject: Any = None) -> OSError:
        """Return the error of the system; end the process if that is the fault."""
        if self.fault not in FAULTS or self.fault == KILL:  # git was to be killed, and this run started it at another call
            die()
        number = getattr(errno, self.fault)
        return OSError(number, os.strerror(number), *(() if subject is None or isinstance(subject, int) else (subject,)))


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()


def patch_os(injection: Injection) -> None:
    for name in _OS_CALLS:
        setattr(os, name, _wrap(injection, getattr(os, name), f"os.{name}"))
    fcntl.flock = _wrap(injection, fcntl.flock, "flock")  # type: ignore[assignment]

    def open_file(file: Any, *arguments: Any, **options: Any) -> Any:
        if not injection.concerns(file):
            return _fopen(file, *arguments, **options)
        if injection.count(f"open {file if isinstance(file, int) else os.path.basename(os.fsdecode(file))}"):  # noqa: PTH119
            raise injection.make_error(file)
        return _File(injection, _fopen(file, *arguments, **options))

    io.open = builtins.open = open_file  # type: ignore[assignment]


def _wrap(injection: Injection, call: Callable[..., Any], name: str) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **options: Any) -> Any:
        target = arguments[0] if arguments else options.get("path", ".")
        if (options.get("dir_fd") is not None or injection.concerns(target)) and injection.count(name):
            raise injection.make_error(target)
        return call(*arguments, **options)

    return wrapped


class _File:
    """A file whose calls count."""

    def __init__(self, injection: Injection, file: Any) -> None:
        self._injection, self._file = injection, file

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._file, name)
        if name not in _FILE_CALLS:
            return found

        def call(*arguments: Any) -> Any:
            if self._injection.count(f"file.{name}"):
                error = self._injection.make_error()
                if name == "write" and len(arguments[0]) > 1:
                    found(arguments[0][: len(arguments[0]) // 2])
                raise error
            return found(*arguments)

        return call

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Any:
        return iter(self._file)


def patch_git(injection: Injection) -> None:
    class Popen(_popen):  # type: ignore[misc,valid-type]
        def __init__(self, command: Any, *arguments: Any, **options: Any) -> None:
            words = [os.fspath(word) for word in command]
            verb = next((word for word in words[1:] if not word.startswith("-")), "")
            self._chosen = injection.count(f"{os.path.basename(words[0])} {verb}")  # noqa: PTH119
            if self._chosen and injection.fault not in GIT_FAULTS:
                raise injection.make_error(words[0])
            super().__init__(command, *arguments, **options)
            if self._chosen and injection.fault in (GIT_KILLED, ALL_KILLED):
                timer = threading.Timer(injection.delay, self._kill_group)
                timer.daemon = True
                timer.start()

        def _kill_group(self) -> None:
            if self.returncode is None:
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.killpg(self.pid, signal.SIGKILL)
            if injection.fault == ALL_KILLED:
                die()

        def communicate(self, *arguments: Any, **options: Any) -> Any:
            done = super().communicate(*arguments, **options)
            if self._chosen and injection.fault == GIT_COMPLETED:
                die()
            return done

    subprocess.Popen = Popen  # type: ignore[misc]


def patch_libgit2(injection: Injection) -> None:
    import pygit2
    from pygit2.references import References

    def wrap(owner: type, name: str) -> None:
        call = getattr(owner, name)

        def wrapped(*arguments: Any, **options: Any) -> Any:
            if injection.count(f"libgit2 {name}"):
                # libgit2 reports errors of the system as text.
                raise OSError(f"failed in {name}: {injection.make_error().strerror}")
            return call(*arguments, **options)

        setattr(owner, name, wrapped)

    for name in _LIBGIT2_CALLS:
        wrap(pygit2.Repository, name)
    wrap(References, "create")


def patch_sqlite(injection: Injection) -> None:
    messages = {"ENOSPC": "database or disk is full", "EIO": "disk I/O error", "EINTR": "interrupted"}

    class Connection(sqlite3.Connection):
        pass

    def fail(name: str) -> None:
        if injection.count(f"sqlite {name}"):
            injection.make_error()
            raise sqlite3.OperationalError(messages.get(injection.fault, "unable to open database file"))

    def wrap(name: str) -> None:
        call = getattr(sqlite3.Connection, name)

        def wrapped(*arguments: Any, **options: Any) -> Any:
            fail(name)
            return call(*arguments, **options)

        setattr(Connection, name, wrapped)

    for name in _SQLITE_CALLS:
        wrap(name)
    connect = sqlite3.connect

    def open_database(*arguments: Any, **options: Any) -> Any:
        fail("connect")
        return connect(*arguments, factory=Connection, **options)

    sqlite3.connect = open_database  # type: ignore[assignment]


def main() -> int:
    """Run gitsched with a fault: directory, number of the call, fault, seconds until git is killed, file for the names of all calls ("-":
    none), arguments."""
    root, number, fault, delay, names, *arguments = sys.argv[1:]
    from gitsched.cli import main as run

    injection = Injection(root, int(number), fault, float(delay))
    patch_libgit2(injection)
    patch_sqlite(injection)
    patch_git(injection)
    patch_os(injection)
    code = run(arguments)
    if names != "-":
        Path(names).write_text(json.dumps(injection.calls))
    return code
