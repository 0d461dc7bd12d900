"""Listen on sockets and serve HTTP/1.1 to untrusted clients: each request has one deadline, one size limit and one response. h11
parses; `http_routes` answers."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import os
import re
import resource
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from http import HTTPStatus
from typing import Protocol, runtime_checkable

import h11

from gitsched.model.errors import Permanent
from gitsched.named_tuples import NamedTuple

_ADDRESS = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]*)):([0-9]{1,5})")
_BACKLOG = 128
_EXHAUSTED_ERRNOS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""Errors of a process or machine that can open no more connections for now."""
_UNAVAILABLE_ERRNOS = {errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL}
"""Errors of an address family that this machine does not support, such as IPv6; one of several addresses may fail with them."""


def listen(address: str) -> list[socket.socket]:
    """Open sockets for `HOST:PORT`, `[IPv6]:PORT` or `:PORT` (all addresses of this machine); port 0 is any free port.

    Permanent with a message for the operator when that fails.
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
        failure: OSError | None = None
        for family, _, _, _, sockaddr in dict.fromkeys(found):
            # The second address family uses the port that the first one got.
            bound_port = sockets[0].getsockname()[1] if sockets and port == 0 else port
            try:
                sockets.append(opened.enter_context(_bind_socket(family, (sockaddr[0], bound_port, *sockaddr[2:]))))
            except OSError as error:
                failure = error
                if error.errno not in _UNAVAILABLE_ERRNOS:
                    break
        if failure is not None and (not sockets or failure.errno not in _UNAVAILABLE_ERRNOS):
            raise Permanent(f"cannot listen on {address}: {os.strerror(failure.errno or 0)}") from failure
        opened.pop_all()
        return sockets


def reserve_files() -> None:
    """Raise the limit of open files, where it is too low for the connections and a run.

    Permanent with the command that raises it if this process may not.
    """
    needed = MAX_CONNECTIONS + MAX_STREAMS + RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise Permanent(
            f"a process that listens needs {needed} open files, and this one may have {hard}: raise the limit with "
            f"`ulimit -n {needed}`, or LimitNOFILE={needed} in a unit of systemd"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def format_address(opened: socket.socket) -> str:
    """Return the address of a socket as text."""
    host, port = opened.getsockname()[:2]
    return f"[{host}]:{port}" if opened.family == socket.AF_INET6 else f"{host}:{port}"


def is_loopback(opened: socket.socket) -> bool:
    """Return whether only this machine can connect to a socket."""
    return ipaddress.ip_address(opened.getsockname()[0].partition("%")[0]).is_loopback


def _bind_socket(family: int, sockaddr: tuple[str | int, ...]) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(sockaddr)
        opened.listen(_BACKLOG)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


REQUEST_TIMEOUT = 10.0
"""Seconds for a complete exchange, from the first byte to the last; forges do not wait longer either."""
RESPONSE_TIMEOUT = 30.0
"""Seconds for a response that is computed in another thread."""
MAX_HEADER_BYTES = 1 << 14
MAX_BODY_BYTES = 25 << 20
"""Limits in bytes of a request's head and body; GitHub's largest body has 25 MB."""
MAX_CONNECTIONS = 64
"""Open connections at a time. A new connection closes the oldest one, so that slow clients cannot block probes."""
MAX_STREAMS = 16
"""Open streams of events at a time; the next one is rejected, and a stream is not closed by a new connection."""
RESERVED_FILES = 256
"""Open files that a process that listens keeps for its runs."""
STREAM_TIMEOUT = 10.0
"""Seconds for a client to take what is written to its stream; a slower one is dropped."""
HEARTBEAT_INTERVAL = 15.0
"""Seconds between two comments in a stream without events, so that proxies keep it open and a lost client is noticed."""
MAX_STREAM_SECONDS = 3600.0
"""Seconds after which a stream ends; its client connects again."""
_POLL_INTERVAL = 0.25
_READ_SIZE = 1 << 16
_ACCEPT_PAUSE = 0.5
"""Seconds until the next attempt after one of these errors."""
_LINGER_TIMEOUT = 1.0
"""Seconds for a client to read a response that was sent before its request was read completely."""

Headers = Sequence[tuple[bytes, bytes]]


class HttpResponse(NamedTuple):
    """`headers` are additional to length and type."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class RequestBody(Protocol):
    """Receives the body of a request in parts."""

    def feed(self, data: bytes) -> None:
        """Receive the next bytes."""

    def respond(self) -> HttpResponse | Future[HttpResponse]:
        """Return the response after the complete body, or a future with it."""


@runtime_checkable
class HttpStream(Protocol):
    """A response without an end."""

    content_type: str

    def read(self) -> bytes:
        """Return what is new, b"" if nothing is. Called several times a second."""


class HttpHandler(Protocol):
    """The application that the server serves."""

    def handle(self, method: bytes, path: bytes, headers: Headers) -> HttpResponse | RequestBody | HttpStream:
        """Return the response to a request's head, the object that receives its body, or a stream. Header names are in lower case."""


class HttpServer:
    """Serves in a thread of its own until it is closed."""

    def __init__(self, sockets: Sequence[socket.socket], handler: HttpHandler) -> None:
        self._sockets, self._handler = sockets, handler
        self._connections: dict[asyncio.Task[None], asyncio.WriteTransport] = {}
        self._streams: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop accepting requests; requests in progress get their response."""
        with contextlib.suppress(RuntimeError):  # already closed
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(_LINGER_TIMEOUT + 1)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        accepting = [asyncio.create_task(self._accept(opened)) for opened in self._sockets]
        await self._closing.wait()
        for task in accepting:
            task.cancel()
        for opened in self._sockets:
            opened.close()
        if self._connections or self._streams:
            await asyncio.wait({*self._connections, *self._streams}, timeout=_LINGER_TIMEOUT)

    async def _accept(self, listening: socket.socket) -> None:
        """Accept one connection after the other. The oldest open one is closed before the next is accepted, so that a burst does not
        exceed the limit."""
        while True:
            try:
                accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError as error:  # otherwise the client has gone
                await asyncio.sleep(_ACCEPT_PAUSE if error.errno in _EXHAUSTED_ERRNOS else 0)
                continue
            while len(self._connections) >= MAX_CONNECTIONS:
                oldest = next(iter(self._connections))
                self._connections.pop(oldest).abort()
                oldest.cancel()
            try:
                await self._open(accepted)
            except OSError:
                accepted.close()

    async def _open(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_READ_SIZE)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted)
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        self._connections[loop.create_task(self._serve_connection(reader, writer))] = writer.transport

    async def _serve_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT) as deadline:
                await self._handle_connection(reader, writer, deadline)
        except (asyncio.CancelledError, TimeoutError, OSError):
            # The client is too slow, one of too many, or has disconnected: no response is possible.
            writer.transport.abort()
        finally:
            self._connections.pop(task, None)
            self._streams.discard(task)
            writer.close()

    async def _handle_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deadline: asyncio.Timeout
    ) -> None:
        """Serve one request."""
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)
        method, complete = b"", False
        try:
            request = await _read_head(connection, reader)
            if not isinstance(request, h11.Request):
                return  # a connection without a request, such as a TCP probe
            method = request.method
            handled = await self._handle_request(request, connection, reader, writer)
            if isinstance(handled, HttpStream):
                if len(self._streams) < MAX_STREAMS:
                    deadline.reschedule(None)
                    await self._write_stream(handled, connection, reader, writer)
                    return
                handled = HttpResponse(503, b"too many clients wait for events\n", headers=(("Retry-After", "30"),))
            response = handled if isinstance(handled, HttpResponse) else await _wait_for_response(handled, deadline)
            complete = connection.their_state is h11.DONE or not _has_body(request.headers)
        except h11.RemoteProtocolError as error:
            response = HttpResponse(error.error_status_hint, b"malformed HTTP request\n")
        headers = list(
            {
                "Content-Type": response.content_type,
                "Content-Length": str(len(response.body)),
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
                "Connection": "close",
                **dict(response.headers),
            }.items()
        )
        if response.status == HTTPStatus.NOT_MODIFIED:
            headers = [(name, value) for name, value in headers if name not in ("Content-Type", "Content-Length")]
        reason = HTTPStatus(response.status).phrase
        head = connection.send(h11.Response(status_code=response.status, reason=reason, headers=headers)) or b""
        writer.write(head if method == b"HEAD" else head + response.body)
        await writer.drain()
        if not complete:
            await _linger_close(reader, writer)

    async def _write_stream(
        self, stream: HttpStream, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Write a stream until the client or the server ends it."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        self._connections.pop(task, None)  # a new connection does not close it
        self._streams.add(task)
        headers = [
            ("Content-Type", stream.content_type),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Accel-Buffering", "no"),
            ("Connection", "close"),
        ]
        writer.write(connection.send(h11.Response(status_code=200, reason="OK", headers=headers)) or b"")
        end, written_at = loop.time() + MAX_STREAM_SECONDS, loop.time()
        while not self._closing.is_set() and not reader.at_eof() and loop.time() < end:
            data = stream.read()
            if not data and loop.time() - written_at >= HEARTBEAT_INTERVAL:
                data = b": heartbeat\n\n"
            if data:
                writer.write(connection.send(h11.Data(data=data)) or b"")
                async with asyncio.timeout(STREAM_TIMEOUT):
                    await writer.drain()
                written_at = loop.time()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _POLL_INTERVAL)
        writer.write(connection.send(h11.EndOfMessage()) or b"")

    async def _handle_request(
        self, request: h11.Request, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> HttpResponse | HttpStream | Future[HttpResponse]:
        opened = self._handler.handle(request.method, request.target.partition(b"?")[0], list(request.headers))
        if isinstance(opened, HttpResponse | HttpStream):
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
        return HttpResponse(413, f"the body may have at most {MAX_BODY_BYTES} bytes\n".encode())


async def _wait_for_response(response: Future[HttpResponse], deadline: asyncio.Timeout) -> HttpResponse:
    """Wait for a response that takes longer than the exchange, such as one after a push to a remote."""
    deadline.reschedule(asyncio.get_running_loop().time() + RESPONSE_TIMEOUT + REQUEST_TIMEOUT)
    try:
        return await asyncio.wait_for(asyncio.wrap_future(response), RESPONSE_TIMEOUT)
    except TimeoutError:
        return HttpResponse(503, b"there is no result yet; send the request again\n", headers=(("Retry-After", "30"),))


async def _read_head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    """Read the head of a request. RemoteProtocolError with status 431 if it does not end within the limit."""
    received = 0
    while not isinstance(event := connection.next_event(), h11.Event):
        if received == MAX_HEADER_BYTES:
            raise h11.RemoteProtocolError("the head is too long", error_status_hint=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        data = await reader.read(MAX_HEADER_BYTES - received)
        received += len(data)
        connection.receive_data(data)
    return event


async def _read_event(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Event:
    while not isinstance(event := connection.next_event(), h11.Event):
        connection.receive_data(await reader.read(_READ_SIZE))
    return event


def _has_body(headers: Headers) -> bool:
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)


async def _linger_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read the remaining request before the close: closing a connection with unread bytes resets it, and the response is lost."""
    writer.write_eof()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_TIMEOUT):
            while await reader.read(_READ_SIZE):
                pass
