"""Listen on sockets and serve HTTP/1.1 to untrusted clients: each request has one deadline, one size limit and one response. h11
parses; `http_routes` answers."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import re
import socket
import threading
from collections.abc import Sequence
from http import HTTPStatus
from typing import NamedTuple, Protocol

import h11

from gitsched.model.errors import Permanent

_ADDRESS = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]*)):([0-9]{1,5})")
_BACKLOG = 128
_UNAVAILABLE_ERRNOS = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}
"""A machine without IPv6 may still name such addresses: one of several may be missing."""


def listen(address: str) -> list[socket.socket]:
    """Sockets for `HOST:PORT`, `[IPv6]:PORT` or `:PORT`, which is every address of this machine; port 0 is any free one.

    Permanent, in words for the operator, where that cannot be.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[3]) > 65535:
        raise Permanent(f"cannot listen on {address!r}: an address is HOST:PORT, [IPv6]:PORT or :PORT")
    host, port = match[1] or match[2] or None, int(match[3])
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise Permanent(f"cannot listen on {address}: {getattr(error, 'strerror', None) or error}") from error
    with contextlib.ExitStack() as opened:
        sockets: list[socket.socket] = []
        refused: OSError | None = None
        for family, _, _, _, place in dict.fromkeys(found):
            # The second family takes the port that the first one was given.
            taken = sockets[0].getsockname()[1] if sockets and port == 0 else port
            try:
                sockets.append(opened.enter_context(_bind_socket(family, (place[0], taken, *place[2:]))))
            except OSError as error:
                refused = error
                if error.errno not in _UNAVAILABLE_ERRNOS:
                    break
        if refused is not None and (not sockets or refused.errno not in _UNAVAILABLE_ERRNOS):
            raise Permanent(f"cannot listen on {address}: {os.strerror(refused.errno or 0)}") from refused
        opened.pop_all()
        return sockets


def format_address(opened: socket.socket) -> str:
    """The address of a socket as people write it."""
    host, port = opened.getsockname()[:2]
    return f"[{host}]:{port}" if opened.family == socket.AF_INET6 else f"{host}:{port}"


def _bind_socket(family: int, place: tuple[str | int, ...]) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(place)
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


REQUEST_TIMEOUT = 10.0
"""Seconds for a whole exchange, from the first byte to the last; forges wait no longer either."""
MAX_HEADER_BYTES = 1 << 14
MAX_BODY_BYTES = 25 << 20
"""Bytes of a request's head, and of its body; GitHub sends no larger one."""
MAX_CONNECTIONS = 64
"""Open at once. The oldest makes way for a new one, so that slow clients cannot keep out a probe, which is done at once."""
_READ_SIZE = 1 << 16
_LINGER_TIMEOUT = 1.0
"""Seconds for a client to read an answer that came before all of its request was read."""

Headers = Sequence[tuple[bytes, bytes]]


class HttpResponse(NamedTuple):
    """`headers` are those beside the length and the type."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class RequestBody(Protocol):
    """A request whose body is wanted, piece by piece."""

    def feed(self, data: bytes) -> None:
        """The next bytes."""

    def respond(self) -> HttpResponse:
        """What to say, now that all is there."""


class HttpHandler(Protocol):
    """What the server serves."""

    def handle(self, method: bytes, path: bytes, headers: Headers) -> HttpResponse | RequestBody:
        """The answer to a request's head, or what its body is for. Names of headers are in lower case."""


class HttpServer:
    """Serves in a thread of its own until it is closed."""

    def __init__(self, sockets: Sequence[socket.socket], pages: HttpHandler) -> None:
        self._sockets, self._handler = sockets, pages
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more requests; those that are being answered get their answer."""
        with contextlib.suppress(RuntimeError):  # it was closed before
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(_LINGER_TIMEOUT + 1)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        servers = [await asyncio.start_server(self._accept, sock=opened, limit=_READ_SIZE) for opened in self._sockets]
        await self._closing.wait()
        for server in servers:
            server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LINGER_TIMEOUT)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks[task] = None
        if len(self._tasks) > MAX_CONNECTIONS:
            next(iter(self._tasks)).cancel()
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                await self._handle_connection(reader, writer)
        except (asyncio.CancelledError, TimeoutError, OSError):
            # Too slow, too many or gone: there is nobody worth an answer.
            writer.transport.abort()
        finally:
            del self._tasks[task]
            writer.close()

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its answer."""
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)
        method, complete = b"", False
        try:
            request = await _read_event(connection, reader)
            if not isinstance(request, h11.Request):
                return  # a connection without a request: somebody looks whether the port is open
            method = request.method
            answer = await self._handle_request(request, connection, reader, writer)
            complete = connection.their_state is h11.DONE or not _has_body(request.headers)
        except h11.RemoteProtocolError as error:
            answer = HttpResponse(error.error_status_hint, b"this is no HTTP request that could be read\n")
        headers = [
            ("Content-Type", answer.content_type),
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
            await _linger_close(reader, writer)

    async def _handle_request(
        self, request: h11.Request, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HttpResponse:
        opened = self._handler.handle(request.method, request.target.partition(b"?")[0], list(request.headers))
        if isinstance(opened, HttpResponse):
            return opened
        size = max((int(value) for name, value in request.headers if name == b"content-length"), default=0)
        if size <= MAX_BODY_BYTES and connection.they_are_waiting_for_100_continue:
            writer.write(connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        received = 0
        while max(size, received) <= MAX_BODY_BYTES:
            event = await _read_event(connection, reader)
            if not isinstance(event, h11.Data):
                return opened.respond()
            received += len(event.data)
            opened.feed(bytes(event.data))
        return HttpResponse(413, f"a body has {MAX_BODY_BYTES} bytes at most\n".encode())


async def _read_event(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    while not isinstance(event := connection.next_event(), h11.Event):
        connection.receive_data(await reader.read(_READ_SIZE))
    return event


def _has_body(headers: Headers) -> bool:
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)


async def _linger_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let the answer arrive: a connection that is closed with unread bytes is reset, and takes the answer with it."""
    writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_TIMEOUT):
            while await reader.read(_READ_SIZE):
                pass
