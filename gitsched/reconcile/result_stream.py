"""Compute results in copies of this process, and return each as soon as it is there: few results are in memory at once."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import selectors
import signal
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial

from gitsched.decide.garbage_collection import freeze_objects
from gitsched.reconcile.worker_processes import fork, signals_blocked

_log = logging.getLogger("gitsched.reconcile")
_NUMBER, _HEADER = struct.Struct(">Q"), struct.Struct(">QQ")
_AHEAD = 2
"""Items that a process has at once, so that it does not wait for the next one."""
_READ = 1 << 18


class _Worker:
    """A copy of this process, what it computes, and what it has sent of the next result."""

    def __init__(self, child: int, connection: socket.socket) -> None:
        self.child, self.connection = child, connection
        self.items: deque[int] = deque()
        self.received = bytearray()

    def send(self, item: int) -> None:
        self.items.append(item)
        with contextlib.suppress(OSError):  # it has ended, which the next read says
            self.connection.sendall(_NUMBER.pack(item))

    def receive(self) -> list[tuple[int, bytes]] | None:
        """Return the results that are complete; None if the process has ended."""
        try:
            data = self.connection.recv(_READ)
        except OSError:
            data = b""
        if not data:
            return None
        self.received += data
        found = []
        while len(self.received) >= _HEADER.size:
            item, length = _HEADER.unpack_from(self.received)
            end = _HEADER.size + length
            if len(self.received) < end:
                break
            found.append((item, bytes(self.received[_HEADER.size : end])))
            del self.received[:end]
            self.items.remove(item)
        return found


def stream_results(function: Callable[[int], bytes], count: int, processes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the result of each number below `count`, as they come. The items of a process that ends are computed again in this one, where
    an exception of the function is raised.

    `function` must be pure. Copies of this process exist while results are read, and end with it.
    """
    if processes <= 1 or count <= 1:
        yield from ((item, function(item)) for item in range(count))
        return
    workers: list[_Worker] = []
    try:
        _start(workers, function, min(processes, count))
        yield from _collect(workers, function, count)
    finally:
        for worker in workers:
            worker.connection.close()
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(worker.child, signal.SIGKILL)
                os.waitpid(worker.child, 0)


def _start(workers: list[_Worker], function: Callable[[int], bytes], processes: int) -> None:
    for _ in range(processes):
        with contextlib.suppress(OSError):  # without memory or processes, the others compute all items
            mine, theirs = socket.socketpair()
            inherited = [*(worker.connection for worker in workers), mine]
            with theirs, signals_blocked() as signals:
                workers.append(_Worker(fork(partial(_serve, function, theirs, inherited), signals), mine))


def _serve(function: Callable[[int], bytes], connection: socket.socket, inherited: list[socket.socket]) -> None:
    """Compute the items that come, until the connection ends."""
    for other in inherited:
        other.close()  # or the end of the parent would not end the connection
    freeze_objects()
    gc.enable()
    while True:
        data = connection.recv(_NUMBER.size, socket.MSG_WAITALL)
        if len(data) < _NUMBER.size:
            return
        (item,) = _NUMBER.unpack(data)
        result = function(item)
        connection.sendall(_HEADER.pack(item, len(result)) + result)


def _collect(workers: list[_Worker], function: Callable[[int], bytes], count: int) -> Iterator[tuple[int, bytes]]:
    items = iter(range(count))
    abandoned: deque[int] = deque()
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.connection, selectors.EVENT_READ, worker)
        for worker in workers * _AHEAD:
            if (item := next(items, None)) is not None:
                worker.send(item)
        while selector.get_map() and any(worker.items for worker in workers):
            for key, _ in selector.select():
                worker = key.data
                found = worker.receive()
                if found is None:
                    selector.unregister(worker.connection)
                    if worker.items:
                        _log.warning("a process ended before its results were there; they are computed again")
                    abandoned += worker.items
                    worker.items.clear()
                for result in found or ():
                    if (item := next(items, None)) is not None:
                        worker.send(item)
                    yield result
            yield from ((item, function(item)) for item in _take(abandoned))
    yield from ((item, function(item)) for item in (*_take(abandoned), *items))


def _take(items: deque[int]) -> Iterator[int]:
    while items:
        yield items.popleft()
