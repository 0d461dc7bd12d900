"""HTTP for strangers: every request has one deadline, one limit of size and one answer, after which the connection ends.

The grammar is h11's; what is asked for and what is answered is `pages`'.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple, Protocol

import h11

DEADLINE = 10.0
"""Seconds for a whole exchange, from the first byte to the last; forges wait no longer either."""
HEAD = 1 << 14
BODY = 25 << 20
"""Bytes of a request's head, and of its body; GitHub sends no larger one."""
CONNECTIONS = 64
"""Open at once. The oldest makes way for a new one, so that slow clients cannot keep out a probe, which is done at once."""
_CHUNK = 1 << 16
_LINGER = 1.0
"""Seconds for a client to read an answer that came before all of its request was read."""

Headers = Sequence[tuple[bytes, bytes]]


class Answer(NamedTuple):
    """`headers` are those beside the length and the type."""

    status: int
    body: bytes
    media: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class Reading(Protocol):
    """A request whose body is wanted, piece by piece."""

    def feed(self, data: bytes) -> None:
        """The next bytes."""

    def answer(self) -> Answer:
        """What to say, now that all is there."""


class Pages(Protocol):
    """What the server serves."""

    def open(self, method: bytes, path: bytes, headers: Headers) -> Answer | Reading:
        """The answer to a request's head, or what its body is for. Names of headers are in lower case."""


class Server:
    """Serves in a thread of its own until it is closed."""

    def __init__(self, sockets: Sequence[socket.socket], pages: Pages) -> None:
        self._sockets, self._pages = sockets, pages
        self._open: dict[asyncio.Task[None], None] = {}
        self._loop = asyncio.new_event_loop()
        self._end = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more requests; those that are being answered get their answer."""
        with contextlib.suppress(RuntimeError):  # it was closed before
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(_LINGER + 1)

    def _work(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._listen())

    async def _listen(self) -> None:
        servers = [await asyncio.start_server(self._accept, sock=opened, limit=_CHUNK) for opened in self._sockets]
        await self._end.wait()
        for server in servers:
            server.close()
        if self._open:
            await asyncio.wait(self._open, timeout=_LINGER)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = None
        if len(self._open) > CONNECTIONS:
            next(iter(self._open)).cancel()
        try:
            async with asyncio.timeout(DEADLINE):
                await self._exchange(reader, writer)
        except (asyncio.CancelledError, TimeoutError, OSError):
            # Too slow, too many or gone: there is nobody worth an answer.
            writer.transport.abort()
        finally:
            del self._open[task]
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its answer."""
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD)
        method, complete = b"", False
        try:
            request = await _read_event(connection, reader)
            if not isinstance(request, h11.Request):
                return  # a connection without a request: somebody looks whether the port is open
            method = request.method
            answer = await self._answer(request, connection, reader, writer)
            complete = connection.their_state is h11.DONE or not _has_body(request.headers)
        except h11.RemoteProtocolError as error:
            answer = Answer(error.error_status_hint, b"this is no HTTP request that could be read\n")
        headers = [
            ("Content-Type", answer.media),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
            *answer.headers,
        ]
        reason = HTTPStatus(answer.status).phrase
        head = connection.send(h11.Response(status_code=answer.status, reason=reason, headers=headers)) or b""
        writer.write(head if method == b"HEAD" else head + answer.body)
        await writer.drain()
        if not complete:
            await _linger(reader, writer)

    async def _answer(
        self, request: h11.Request, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Answer:
        opened = self._pages.open(request.method, request.target.partition(b"?")[0], list(request.headers))
        if isinstance(opened, Answer):
            return opened
        size = max((int(value) for name, value in request.headers if name == b"content-length"), default=0)
        if size <= BODY and connection.they_are_waiting_for_100_continue:
            writer.write(connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        received = 0
        while max(size, received) <= BODY:
            event = await _read_event(connection, reader)
            if not isinstance(event, h11.Data):
                return opened.answer()
            received += len(event.data)
            opened.feed(bytes(event.data))
        return Answer(413, f"a body has {BODY} bytes at most\n".encode())


async def _read_event(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    while not isinstance(event := connection.next_event(), h11.Event):
        connection.receive_data(await reader.read(_CHUNK))
    return event


def _has_body(headers: Headers) -> bool:
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let the answer arrive: a connection that is closed with unread bytes is reset, and takes the answer with it."""
    writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER):
            while await reader.read(_CHUNK):
                pass
