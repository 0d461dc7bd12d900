"""Run commands in forks of a process that has imported gitsched, which takes a tenth of the time of new processes.

A fork has its own environment variables, directory, files, signals and exit code. It shares with the other forks what a process reads
when it starts: a command whose environment differs there runs in a new process. Tests about starting a process start one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

from tests import in_process

ROOT = Path(__file__).parents[1]
COMMAND_LINE = "import sys; from gitsched.cli import main; sys.exit(main())"
LOADED_ON_USE = ("click._textwrap", "grp", "pwd", "pygit2", "sqlite3", "tarfile")
"""Modules that commands import when they need them, beside those of gitsched."""
_SCRIPT = """\
#!{python} -IS
import json, os, socket, sys

variables = {variables!r}
environment = variables | os.environ
if variables != {{name: value for name, value in environment.items() if name.startswith({names!r})}}:
    os.execve({python!r}, [{python!r}, "-c", {program!r}, *sys.argv[1:]], environment)
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
read, write = os.pipe()
socket.send_fds(connection, [b"."], [read, 0, 1, 2])
os.close(read)
with open(write, "w") as request:
    json.dump([{program!r}, sys.argv[1:], os.getcwd(), environment], request)
pid, status = connection.makefile().read().split()
sys.exit(os.waitstatus_to_exitcode(int(status)) % 256)
"""
"""A program that starts in a few milliseconds and lets the server run gitsched."""
_START_VARIABLES = ("LANG", "LC_", "LD_", "PYTHON", "TZ")
"""Beginnings of the names of variables that Python and libc read when a process starts."""
_SERVER = "import sys; from tests.fork_server import serve; serve(sys.argv[1])"
_START_TIMEOUT = 120.0


def _list_start_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_START_VARIABLES)}


class ForkedProcess:
    """The part of subprocess.Popen that tests use."""

    def __init__(self, connection: socket.socket) -> None:
        self._reply = connection.makefile("rb")
        connection.close()
        self.pid = int(self._reply.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._reply], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._reply], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(self._reply.readline()))
            self._reply.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """A process that has imported gitsched and forks for each command. It ends with this process."""

    def __init__(self) -> None:
        self.variables = _list_start_variables(os.environ)
        self._directory = tempfile.mkdtemp(prefix="fork-")  # its path is short, as the address of a socket must be
        self.address = f"{self._directory}/socket"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, self.address],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait_until_started()

    def _wait_until_started(self) -> None:
        end = time.monotonic() + _START_TIMEOUT
        while not Path(self.address).exists():
            assert self._process.poll() is None, "the fork server has failed; its error is above"
            assert time.monotonic() < end, "the fork server does not start"
            time.sleep(0.01)

    def start(
        self, program: str, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], files: Sequence[IO[bytes]]
    ) -> ForkedProcess:
        """Run a program (Python code) with these arguments; `files` are its standard input, output and error output."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.address)
        read, write = os.pipe()
        socket.send_fds(connection, [b"."], [read, *(file.fileno() for file in files)])
        os.close(read)
        with os.fdopen(write, "w") as request:
            json.dump([program, list(arguments), os.fspath(cwd), dict(environment)], request)
        return ForkedProcess(connection)


@functools.cache
def _get_server() -> ForkServer:
    return ForkServer()


def start(
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    files: Sequence[IO[bytes]],
    *,
    program: str = COMMAND_LINE,
    fork: bool = True,
) -> ForkedProcess | subprocess.Popen[bytes]:
    """Start gitsched, or other Python code, with these arguments; in a new process if `fork` is false."""
    server = _get_server()
    if fork and _list_start_variables(environment) == server.variables:
        return server.start(program, arguments, cwd, environment, files)
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, cwd=cwd, env=environment, stdin=files[0], stdout=files[1], stderr=files[2])


def run(
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    data: str | None = None,
    *,
    program: str = COMMAND_LINE,
    fork: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run gitsched, or other Python code, and return its exit code and what it wrote. gitsched runs in this process if it can."""
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write((data or "").encode())
        stdin.seek(0)
        files = [stdin, stdout, stderr]
        same = fork and program == COMMAND_LINE and _list_start_variables(environment) == _list_start_variables(os.environ)
        if same and in_process.can_run(arguments):
            code = in_process.run(arguments, cwd, environment, files)
        else:
            code = start(arguments, cwd, environment, files, program=program, fork=fork).wait()
        return subprocess.CompletedProcess(["gitsched", *arguments], code, _read_text(stdout), _read_text(stderr))


def write_script(path: Path, program: str = COMMAND_LINE) -> None:
    """Write an executable file that runs gitsched, or other Python code, with this Python."""
    server = _get_server()
    text = _SCRIPT.format(
        python=sys.executable,
        variables=server.variables,
        names=_START_VARIABLES,
        program=program,
        address=server.address,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _read_text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode().replace("\r\n", "\n")


def serve(address: str) -> None:
    """Run each command that arrives at the address in a fork, until the standard input ends."""
    import gitsched
    from gitsched.decide.garbage_collection import collect_garbage

    for module in pkgutil.walk_packages(gitsched.__path__, "gitsched."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in LOADED_ON_USE:
        importlib.import_module(name)
    _fill_caches(Path(address).parent)
    collect_garbage()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address + ".new")
    listener.listen(64)
    Path(address + ".new").rename(address)
    ended, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup.fileno())
    running: dict[int, socket.socket] = {}
    while sys.stdin not in (ready := select.select([sys.stdin, listener, ended], [], [])[0]):
        if ended in ready:
            ended.recv(4096)
            _report_ended(running)
        if listener in ready:
            connection, _ = listener.accept()
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for opened in (listener, ended, wakeup, *running.values()):
                    opened.close()
                _run_request(connection)
            connection.sendall(b"%d\n" % pid)
            running[pid] = connection
    shutil.rmtree(Path(address).parent)


def _fill_caches(directory: Path) -> None:
    """Compile the schemas of the kinds that most tests use, and read the files of the package, once for all forks."""
    import yaml

    import gitsched
    from gitsched.reconcile import package_digest
    from tests.builders.remembered_results import remember_digest

    texts = (path.read_bytes() for path in sorted((ROOT / "examples" / "repo").rglob("*.yaml")))
    gitsched.schedule([body for text in texts for body in yaml.load_all(text, yaml.CSafeLoader) if body])
    package_digest.identify_files()
    package_digest.digest_package = remember_digest(package_digest.digest_package)
    package_digest.digest_package(Path(package_digest.__file__).parents[1], directory)


def _report_ended(running: dict[int, socket.socket]) -> None:
    """Send the exit status of each fork that has ended."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with contextlib.suppress(BrokenPipeError), running.pop(pid) as connection:
                connection.sendall(b"%d\n" % status)


def _run_request(connection: socket.socket) -> NoReturn:
    _, files, _, _ = socket.recv_fds(connection, 1, 4)
    connection.close()
    with os.fdopen(files[0], "rb") as request:
        program, arguments, cwd, environment = json.load(request)
    for number, file in enumerate(files[1:]):
        os.dup2(file, number)
        os.close(file)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *arguments]
    _set_home()
    os._exit(_execute(program))


def _set_home() -> None:
    """Let libgit2 read the configuration below the home directory of this fork: it looks up the directory when it is loaded."""
    from pygit2 import settings
    from pygit2.enums import ConfigLevel

    home = os.environ.get("HOME", "")
    settings.search_path[ConfigLevel.GLOBAL] = home
    settings.search_path[ConfigLevel.XDG] = (os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config") + "/git"


def _execute(program: str) -> int:
    """Execute a program and return its exit code, without the end of the interpreter, which takes longer than most commands."""
    code: object = None
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as request:
        code = request.code
    if isinstance(code, str):
        print(code, file=sys.stderr)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)
