"""Compute a pure function of many items on all cores, in copies of this process that end before the call returns."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_PROCESSES = 8
_BATCH = 5_000
"""Results that a process writes at once; equal objects are shared among them."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_CGROUP_LIMIT = Path("/sys/fs/cgroup/cpu.max")


def count_processes(limit: int = MAX_PROCESSES) -> int:
    """Return how many processes may run at once: 1 where copies of this process would not be safe, or there is one core.

    A copy has only the thread that made it, so a process with several threads makes none; so does one on a system other than Linux, whose
    libraries need not work in a copy.
    """
    if not hasattr(os, "memfd_create") or threading.active_count() > 1:
        return 1
    return min(len(os.sched_getaffinity(0)), _read_cgroup_limit(limit), limit)


def _read_cgroup_limit(otherwise: int) -> int:
    """Return the number of cores that the container may use, rounded up; another number without a limit."""
    try:
        quota, period = _CGROUP_LIMIT.read_text(encoding="ascii").split()
        return max(1, -(-int(quota) // int(period)))
    except (OSError, ValueError):
        return otherwise


def map_in_processes(function: Callable[[Item], Result | None], items: Sequence[Item], processes: int) -> list[Result | None]:
    """Return the results in the order of the items. None stands for each result that is missing because a process failed.

    `function` must be pure, and its results must be picklable. Each process, this one included, takes every n-th item. An exception of
    `function` in this process is raised; no other process is left then.
    """
    results: list[Result | None] = [None] * len(items)
    children: dict[int, tuple[int, IO[bytes]]] = {}
    try:
        for start in range(1, processes):
            with contextlib.suppress(OSError):  # without memory or processes, its items have no results
                file: IO[bytes] = os.fdopen(os.memfd_create("results"), "w+b")
                with signals_blocked() as signals:
                    compute = partial(_write_results, function, items[start::processes], file, os.getpid())
                    children[fork(compute, signals)] = start, file
        results[::processes] = [function(item) for item in items[::processes]]
        for child, (start, file) in list(children.items()):
            _, status = os.waitpid(child, 0)
            del children[child]
            if status == 0:
                results[start::processes] = _read_results(file)
            file.close()
    finally:
        for child, (_, file) in children.items():
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it ended just before
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            file.close()
    return results


@contextlib.contextmanager
def signals_blocked() -> Iterator[set[signal.Signals]]:
    """Let signals that end a process wait, and return those that wait anyway. A copy would run the handlers of this process, and an
    exception of a handler would lose the id of a copy."""
    before = {signal.Signals(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)}
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def fork(run: Callable[[], object], signals: Iterable[signal.Signals]) -> int:
    """Start a copy of this process that calls a function and ends. Return its id.

    The caller blocks signals; in the copy, only `signals` stay blocked.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        gc.disable()  # it would write to, and so copy, the memory of every object
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        run()
        code = 0
    finally:
        os._exit(code)  # without the handlers, buffers and tracebacks of this process's code


def _write_results(function: Callable[[Item], Result | None], items: Sequence[Item], file: IO[bytes], parent: int) -> None:
    """Write the results to a file, in a copy of a process that ends when its parent does."""
    results: list[Result | None] = []
    for item in items:
        if os.getppid() != parent:
            os._exit(1)
        results.append(function(item))
        if len(results) == _BATCH:
            pickle.dump(results, file, pickle.HIGHEST_PROTOCOL)
            results = []
    pickle.dump(results, file, pickle.HIGHEST_PROTOCOL)
    file.flush()


def _read_results(file: IO[bytes]) -> list[Any]:
    file.seek(0)
    results: list[Any] = []
    while True:
        try:
            results += pickle.load(file)  # noqa: S301 - only a copy of this process can have written it
        except EOFError:
            return results
