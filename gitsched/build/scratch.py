"""Run a builder on files in a scratch directory that is deleted afterwards."""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from gitsched.build.process import TEMPORARY, BuildLimits, ProcessResult, run_isolated
from gitsched.build.remote_base import REMOTE
from gitsched.temporary_directory import TemporaryDirectory

MAX_SIZE = 256 << 20
"""Bytes of all files of a run."""
_MAX_ERROR_LENGTH = 600
_REPORTED = re.compile(r"^(?:error|Error): ", re.MULTILINE)
"""How kubectl and kustomize begin an error; a program that cannot start does not."""
_LOGGED = re.compile(r'^E\d{4} [\d:.]+ +\d+ [\w.-]+:\d+\] "command failed" err="(.*)"$', re.MULTILINE)
"""An error as some builds of kubectl log it, with a time and a thread, which differ in each run."""
_ERRORS_OF_MACHINE = (
    *("too many open files", "no space left", "cannot allocate memory", "resource temporarily unavailable", "permission denied"),
    *("operation not permitted", "input/output error", "disk quota exceeded", "read-only file system", "interrupted system call"),
    *("signal: ", "timed out", "timeout", "deadline exceeded", "file too large", "device or resource busy", "stale file handle"),
    *("function not implemented", "text file busy", "exec format error", "argument list too long", "fatal error: ", "runtime: "),
)
"""Texts in errors that another run, or another machine, need not have."""
_QUOTED_INPUT = (
    (re.compile(r"with config: `.*`", re.DOTALL), "with its configuration"),
    (re.compile(r"\[patch: .*\]", re.DOTALL), "the patch"),
    (re.compile(r":? node contents:.*", re.DOTALL), ""),
    (re.compile(r"literal sources \[.*\]: invalid literal source .*, expected", re.DOTALL), "invalid literal source, expected"),
    (re.compile(r"unknown anchor '.*?'"), "unknown anchor"),
)
"""Parts of errors that quote values of the files, which may be those of Secrets, and what is shown in their place."""
_MEMORY = "/dev/shm"  # noqa: S108 - TemporaryDirectory makes a directory of this user alone
_MAX_IN_MEMORY, _ROOM = 4 << 20, 256 << 20
"""Bytes of the files of a run that are kept in memory, and bytes that must be free for it."""


class InputError(str):
    """An error that a program reports about its files: it does so in each run."""


def select_contents(files: Mapping[str, str], blobs: Mapping[str, bytes]) -> dict[str, bytes] | str:
    """Return the contents of files, given by path and blob; the reason if they are too large."""
    contents: dict[str, bytes] = {}
    left = MAX_SIZE
    for path, blob in files.items():
        contents[path] = blobs[blob]
        left -= len(contents[path])
        if left < 0:
            return f"the files have more than {MAX_SIZE} bytes"
    return contents


def run_on_files(
    executable: Path,
    version: str,
    arguments: Sequence[str],
    contents: Mapping[str, bytes],
    limits: BuildLimits,
    programs: Mapping[str, Path] | None = None,
    links: Mapping[str, str] | None = None,
) -> bytes | str:
    """Return what a program prints that sees only these files, or why it failed; see `run_isolated`.

    The reason is an InputError if the files alone cause it. `programs` are executables that it may start, by their path in the directory;
    `links` are symbolic links to directories with files, which are given without links on the way to them.
    """
    with TemporaryDirectory("build", _find_memory(sum(map(len, contents.values())))) as scratch:
        try:
            for path, data in contents.items():
                target = scratch / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
            for path, directory in (links or {}).items():
                (scratch / path).parent.mkdir(parents=True, exist_ok=True)
                (scratch / path).symlink_to(posixpath.relpath(directory, posixpath.dirname(path) or "."))
            if limits.written:
                (scratch / TEMPORARY).mkdir(parents=True)
            if programs:
                (scratch / "dev").mkdir(exist_ok=True)
                (scratch / "dev/null").touch()  # the input of a program that another one starts
            for path, program in (programs or {}).items():
                (scratch / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(program, scratch / path)
            done = run_isolated(executable, arguments, scratch, limits)
        except OSError as error:
            return f"{version} cannot run: {error}"
    if done.exceeded:
        return f"{version} {done.exceeded}"
    if done.exit_code != 0:
        reported = _LOGGED.sub(lambda found: "error: " + found[1].replace("\\n", "\n").replace('\\"', '"'), done.stderr)
        done = done._replace(stderr=reported)
        text = _shorten_error(done.stderr, scratch)
        return InputError(text) if text and _is_about_input(done) else text or f"{version} ended with {done.exit_code}"
    return done.stdout


def _is_about_input(done: ProcessResult) -> bool:
    text = done.stderr.lower()
    return done.exit_code == 1 and bool(_REPORTED.search(done.stderr)) and not any(error in text for error in _ERRORS_OF_MACHINE)


def _find_memory(size: int) -> str | None:
    """Return the file system in memory if it has ample room for files of this size; None for the directory of temporary files."""
    try:
        free = os.statvfs(_MEMORY)
    except OSError:
        return None
    room = free.f_bavail * free.f_frsize
    return _MEMORY if size < _MAX_IN_MEMORY and room > _ROOM and os.access(_MEMORY, os.W_OK | os.X_OK) else None


def _shorten_error(text: str, scratch: Path) -> str:
    """Return an error on one line, without paths of this machine and without values of the files."""
    for quoted, shown in _QUOTED_INPUT:
        text = quoted.sub(shown, text)
    lines = [
        line
        for line in text.replace(f"{scratch}/", "").replace(f"{REMOTE}/", "").replace(str(scratch), ".").splitlines()
        if line.strip()
    ]
    errors = [line for line in lines if not line.startswith(("#", "Warning:"))] or lines
    if any(line.startswith(("fatal error: ", "runtime: ")) for line in errors):
        errors = [line for line in errors if line.startswith(("fatal error: ", "runtime: "))]
    return " ".join(" ".join(errors).removeprefix("error: ").removeprefix("Error: ").split())[:_MAX_ERROR_LENGTH]
