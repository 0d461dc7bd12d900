"""A real Dask scheduler and workers as processes, for `gitsched simulate --dask`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOSTILE = '''\
"""Loaded by a worker: in place of a shard it returns what the file MODE says."""
import builtins, os, signal
from pathlib import Path
from gitsched.cli import dask_worker

directory = Path(os.environ["HOSTILE"])
compute = dask_worker.compute_shard

class Payload:
    """A pickle of this creates a file with the id of the process that loads it."""
    def __reduce__(self):
        return eval, (f"(open('{directory}/' + str(__import__('os').getpid()), 'w').close(), ValueError('x'))[1]",)

class PayloadError(Exception):
    def __reduce__(self):
        return Payload.__reduce__(self)

def compute_shard(task):
    mode = (directory / "MODE").read_text()
    if mode == "result":
        return Payload()
    if mode == "inner result":
        return [b"", {"a": Payload()}]
    if mode == "exception":
        raise PayloadError("no")
    if mode == "text":
        return "text"
    if mode == "garbage":
        return b"\\x80\\x04\\xff"
    if mode == "problem":
        return b'{"problem": "red \\\\u001b[31m text"}'
    if mode == "other plan":
        return compute(task).replace(b'"cluster"', b'"zone"', 1)
    if mode == "more results":
        data = compute(task)
        return data + data.splitlines()[-1]
    if mode == "print":
        import distributed
        distributed.print("written by a worker")
        return compute(task)
    if mode == "die once":
        try:
            (directory / "died").touch(exist_ok=False)
        except FileExistsError:
            return compute(task)
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(task)

def dask_setup(worker):
    dask_worker.compute_shard = compute_shard
    compute_shard.__module__, compute_shard.__qualname__ = "gitsched.cli.dask_worker", "compute_shard"
'''


@contextmanager
def run_cluster(
    directory: Path,
    *,
    workers: int = 1,
    hostile: bool = False,
    tls: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield the address of a scheduler that has its workers. Those that are `hostile` do what the file MODE in the directory says."""
    directory.mkdir(exist_ok=True)
    known, port = directory / "scheduler.json", directory / "hostile.py"
    protocol = ["--protocol", "tls", "--tls-ca-file", tls["ca"], "--tls-cert", tls["cert"], "--tls-key", tls["key"]] if tls else []
    common = {**os.environ, "HOSTILE": str(directory), "XDG_CACHE_HOME": str(directory / "cache")}
    port.write_text(HOSTILE)
    with ExitStack() as stack:
        start = ["--scheduler-file", str(known), "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *protocol]
        stack.enter_context(run_process("scheduler", start, directory, common))
        wait_for("scheduler", lambda: read_address(known))
        address = read_address(known)
        options = [address, "--nthreads", "1", "--no-dashboard", "--local-directory", str(directory), *protocol]
        options += ["--nworkers", str(workers)] if workers > 1 else ["--no-nanny"]
        options += ["--preload", str(port)] if hostile else []
        if workers:
            stack.enter_context(run_process("worker", options, directory, common))
            wait_for("workers", lambda: (directory / "worker.log").read_text().count("Registered to:") >= workers)
        yield address


@contextmanager
def run_process(kind: str, options: list[str], directory: Path, environment: Mapping[str, str]) -> Iterator[None]:
    log = (directory / f"{kind}.log").open("ab")
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
        log.close()


def read_address(known: Path) -> str:
    """Return the address that a scheduler has written to a file; "" if it has not yet."""
    try:
        return str(json.loads(known.read_text())["address"])
    except (OSError, ValueError):
        return ""


def wait_for(what: str, is_there: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not is_there():
        assert time.monotonic() < end, f"no {what} after a minute"
        time.sleep(0.05)
