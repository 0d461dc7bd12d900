"""Run commands of gitsched in this process, one after the other, which takes no time to start.

A command gets its own environment variables, directory, input and outputs, and leaves none of them behind. It shares with the other
commands what a process keeps in memory.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pygit2
from pygit2.enums import ConfigLevel

from gitsched.cli import main
from gitsched.git import process

_NAMES = ("stdin", "stdout", "stderr")
_LEVELS = (ConfigLevel.GLOBAL, ConfigLevel.XDG)
_LOOPS = {"watch"}
"""Commands that set handlers of signals and may run until one comes."""


_checked: list[str | None] = []
"""The PATH of the last command: with another one, the version of git is checked again."""


def can_run(arguments: Sequence[str]) -> bool:
    """Return whether a command can run in this process, which has one directory and one environment for all threads."""
    return threading.current_thread() is threading.main_thread() and not _LOOPS.intersection(arguments)


def run(arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], files: Sequence[IO[bytes]]) -> int:
    """Run a command and return its exit code; `files` are its standard input, output and error output."""
    with ExitStack() as stack:
        for context in (_change_directory(cwd), _change_environment(environment), _replace_streams(files), _keep_logging()):
            stack.enter_context(context)
        if _checked != (path := [os.environ.get("PATH")]):
            process._check_version.cache_clear()
            _checked[:] = path
        try:
            return main(list(arguments))
        except SystemExit as request:
            return request.code if isinstance(request.code, int) else int(request.code is not None)


@contextmanager
def _change_directory(cwd: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(cwd)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _change_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Set the variables, and the directories of git's configuration, which libgit2 has looked up when it was loaded."""
    before, paths = dict(os.environ), [pygit2.settings.search_path[level] for level in _LEVELS]
    _set_variables(environment)
    home = environment.get("HOME", "")
    pygit2.settings.search_path[ConfigLevel.GLOBAL] = home
    pygit2.settings.search_path[ConfigLevel.XDG] = (environment.get("XDG_CONFIG_HOME") or f"{home}/.config") + "/git"
    try:
        yield
    finally:
        _set_variables(before)
        for level, path in zip(_LEVELS, paths, strict=True):
            pygit2.settings.search_path[level] = path


def _set_variables(environment: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


@contextmanager
def _replace_streams(files: Sequence[IO[bytes]]) -> Iterator[None]:
    """Replace the standard streams, also for the processes that the command starts."""
    copies = [os.dup(number) for number in range(3)]
    streams = [getattr(sys, name) for name in _NAMES]
    for number, (name, file, mode) in enumerate(zip(_NAMES, files, "rww", strict=True)):
        os.dup2(file.fileno(), number)
        setattr(sys, name, open(number, mode, encoding="utf-8", errors=_get_errors(name), closefd=False))  # noqa: SIM115
    try:
        yield
    finally:
        for number, (name, stream) in enumerate(zip(_NAMES, streams, strict=True)):
            getattr(sys, name).close()
            setattr(sys, name, stream)
            os.dup2(copies[number], number)
            os.close(copies[number])


def _get_errors(name: str) -> str | None:
    stream: Any = getattr(sys, f"__{name}__")
    return stream.errors if stream is not None else None


@contextmanager
def _keep_logging() -> Iterator[None]:
    logger = logging.getLogger("gitsched")
    before = logger.handlers, logger.level, logger.propagate
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before[0], before[2]
        logger.setLevel(before[1])
