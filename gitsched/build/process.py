"""Run a builder with limits on time, memory and output, in an environment that names nothing of this machine."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_FEWER_COLLECTIONS = "400"
"""GOGC: kustomize collects garbage less often than by default, which saves a fifth of its processor time."""
_LAUNCHER = Path(__file__).with_name("launcher.py")
TEMPORARY = ".gitsched/tmp"
_CHUNK = 1 << 16
_MAX_ERROR = 1 << 16
"""Bytes of error output that are kept."""


class BuildLimits(NamedTuple):
    """Limits of one run: seconds, and bytes of memory and output. `written` are the bytes of each file that it may write."""

    seconds: float = 60.0
    memory: int = 4 << 30
    output: int = 64 << 20
    written: int = 0


DEFAULT_LIMITS = BuildLimits()
EXPIRED = "did not end within"
"""How the message about a program begins that exceeded the limit on time."""
_SECONDS_AFTER = ((100, 1.0), (8, 5.0))
"""The limit on time after a number of builds of one run that exceeded it."""


def choose_limits(expired: int) -> BuildLimits:
    """Return the limits of the next build, given how many builds of this run exceeded the limit on time: the more, the less time it has,
    so that a commit with many endless builds does not keep a run busy for hours."""
    seconds = next((seconds for count, seconds in _SECONDS_AFTER if expired >= count), DEFAULT_LIMITS.seconds)
    return DEFAULT_LIMITS._replace(seconds=seconds)


class ProcessResult(NamedTuple):
    """What a program printed. `exceeded` names the limit that ended it, or is ""."""

    exit_code: int
    stdout: bytes
    stderr: str
    exceeded: str = ""


def run_isolated(executable: Path, arguments: Sequence[str], directory: Path, limits: BuildLimits) -> ProcessResult:
    """Run a program in a directory; `{root}` in the arguments is the path of the directory as the program sees it.

    The program has no network and sees no file outside of the directory, where the machine allows namespaces. If it may write files,
    TMPDIR is TEMPORARY in the directory. Raises OSError if the executable cannot be started.
    """
    descriptor = os.open(executable, os.O_RDONLY | os.O_CLOEXEC)
    try:
        numbers = (str(descriptor), str(directory), str(limits.memory), str(int(limits.seconds) * 4 + 1), str(limits.written))
        command = [sys.executable, "-I", "-S", str(_LAUNCHER), *numbers, executable.name, *arguments]
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env={
                "HOME": "/nonexistent",
                "PATH": "",
                "LC_ALL": "C",
                "TMPDIR": f"{{root}}/{TEMPORARY}" if limits.written else "/nonexistent",
                "GOMEMLIMIT": str(limits.memory // 4),
                "GOGC": _FEWER_COLLECTIONS,
            },
            pass_fds=(descriptor,),
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    try:
        return _read_output(child, limits)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()


def _read_output(child: subprocess.Popen[bytes], limits: BuildLimits) -> ProcessResult:
    assert child.stdout is not None
    assert child.stderr is not None
    deadline = time.monotonic() + limits.seconds
    output, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ, output)
        selector.register(child.stderr, selectors.EVENT_READ, errors)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready and time.monotonic() >= deadline:
                return ProcessResult(-1, b"", _decode(errors), f"{EXPIRED} {limits.seconds:g} seconds")
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.data is output:
                    output += data
                    if len(output) > limits.output:
                        return ProcessResult(-1, b"", _decode(errors), f"printed more than {limits.output} bytes")
                elif len(errors) < _MAX_ERROR:
                    errors += data
    try:
        code = child.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return ProcessResult(-1, b"", _decode(errors), f"{EXPIRED} {limits.seconds:g} seconds")
    return ProcessResult(code, bytes(output), _decode(errors))


def _decode(data: bytearray) -> str:
    return data.decode("utf-8", "backslashreplace")
