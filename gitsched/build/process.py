"""Run a builder with limits on time, memory and output, in an environment that names nothing of this machine."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from gitsched.named_tuples import NamedTuple

_FEWER_COLLECTIONS = "400"
"""GOGC: kustomize collects garbage less often than by default, which saves a fifth of its processor time."""
_LAUNCHER = Path(__file__).with_name("launcher.py")
TEMPORARY = ".gitsched/tmp"
_CHUNK = 1 << 16
_MAX_ERROR = 1 << 16
"""Bytes of error output that are kept."""
_MAX_REQUEST = 1 << 16
"""Bytes of the arguments and the environment of a program, as launcher.py reads them."""
_SECONDS_TO_END = 30.0
"""The time in which a killed program ends."""


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


class Launcher:
    """A process that starts programs, one after the other: a copy of it takes less time to start than a process of its own.

    It belongs to the thread that made it, and ends with that.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LAUNCHER), str(other.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"LC_ALL": "C"},
                pass_fds=(other.fileno(),),
                start_new_session=True,
            )

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the process, unless this is a copy of the process that started it."""
        self._socket.close()
        if self.is_running and self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def is_running(self) -> bool:
        """Whether it belongs to this process, and runs."""
        return self.owner == os.getpid() and self._process is not None and self._process.poll() is None

    def start(self, request: Mapping[str, object], descriptors: Sequence[int]) -> int:
        """Start a program, and return its process group; see launcher.py."""
        self._socket.settimeout(None)
        socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
        return self._receive()

    def wait(self, seconds: float) -> int:
        """Return the exit code of the program. Raises TimeoutError."""
        self._socket.settimeout(seconds)
        return self._receive()

    def _receive(self) -> int:
        data = self._socket.recv(_CHUNK)
        if not data:
            raise OSError("the process that starts programs has ended")
        return int(data)


class _OwnLauncher(threading.local):
    launcher: Launcher | None = None


_own = _OwnLauncher()


def _take_launcher() -> Launcher:
    """Return the launcher of this thread, which is then the caller's: one that fails is not used again."""
    launcher, _own.launcher = _own.launcher, None
    return launcher if launcher is not None and launcher.is_running else Launcher()


def run_isolated(executable: Path, arguments: Sequence[str], directory: Path, limits: BuildLimits) -> ProcessResult:
    """Run a program in a directory; `{root}` in the arguments is the path of the directory as the program sees it.

    The program has no network and sees no file outside of the directory, where the machine allows namespaces. If it may write files,
    TMPDIR is TEMPORARY in the directory. Raises OSError if the executable cannot be started.
    """
    request = {
        "directory": str(directory),
        "arguments": [executable.name, *arguments],
        "memory": limits.memory,
        "seconds": int(limits.seconds) * 4 + 1,
        "written": limits.written,
        "environment": {
            "HOME": "/nonexistent",
            "PATH": "",
            "LC_ALL": "C",
            "TZ": "UTC",
            "TMPDIR": f"{{root}}/{TEMPORARY}" if limits.written else "/nonexistent",
            "GOMEMLIMIT": str(limits.memory // 4),
            "GOGC": _FEWER_COLLECTIONS,
        },
    }
    if len(json.dumps(request)) >= _MAX_REQUEST:
        return ProcessResult(-1, b"", "", f"is not started: its arguments have more than {_MAX_REQUEST} bytes")
    with contextlib.ExitStack() as descriptors:

        def close_later(descriptor: int) -> int:
            descriptors.callback(os.close, descriptor)
            return descriptor

        program = close_later(os.open(executable, os.O_RDONLY | os.O_CLOEXEC))
        launcher = _take_launcher()
        output, errors = os.pipe(), os.pipe()
        close_later(output[0])
        close_later(errors[0])
        try:
            group = launcher.start(request, (program, output[1], errors[1]))
        finally:
            os.close(output[1])
            os.close(errors[1])
        deadline = time.monotonic() + limits.seconds
        done = _read_output(output[0], errors[0], deadline, limits)
        code: int | None = None
        if not done.exceeded:
            with contextlib.suppress(TimeoutError):
                code = launcher.wait(max(0.1, deadline - time.monotonic()))
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)  # also what the program started
        if code is None:
            launcher.wait(_SECONDS_TO_END)
            done = done if done.exceeded else ProcessResult(-1, b"", done.stderr, f"{EXPIRED} {limits.seconds:g} seconds")
        _own.launcher = launcher
        return done if code is None else done._replace(exit_code=code)


def _read_output(output: int, errors: int, deadline: float, limits: BuildLimits) -> ProcessResult:
    """Read both outputs to their end, or until a limit is exceeded."""
    read: dict[int, bytearray] = {output: bytearray(), errors: bytearray()}
    with selectors.DefaultSelector() as selector:
        for descriptor in read:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0 else []
            if not ready and time.monotonic() >= deadline:
                return ProcessResult(-1, b"", _decode(read[errors]), f"{EXPIRED} {limits.seconds:g} seconds")
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fd)
                elif key.fd == errors and len(read[errors]) >= _MAX_ERROR:
                    continue
                else:
                    read[key.fd] += data
                    if len(read[output]) > limits.output:
                        return ProcessResult(-1, b"", _decode(read[errors]), f"printed more than {limits.output} bytes")
    return ProcessResult(0, bytes(read[output]), _decode(read[errors]))


def _decode(data: bytearray) -> str:
    return data.decode("utf-8", "backslashreplace")
