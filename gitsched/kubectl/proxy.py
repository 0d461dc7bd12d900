"""Read from the API server of one cluster through `kubectl proxy`, so that kubectl's credentials work, with limits on time and size."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import selectors
import socket
import subprocess
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from gitsched.kubectl.client import KubectlClient, KubectlOptions, MissingObject, classify_error
from gitsched.model.document import Body, get_field
from gitsched.model.errors import Permanent, Temporary
from gitsched.named_tuples import NamedTuple
from gitsched.temporary_directory import TemporaryDirectory

MAX_ANSWER = 32 * 1024 * 1024
"""Bytes of one answer."""
MAX_VALUES = 2_000_000
"""Values of one answer, by the commas between them: parsed, small values need some hundred times the memory of their bytes."""
PAGE_SIZE = 250
"""Objects that one request for a list asks for."""
_CHUNK = 1 << 16
_START_TIMEOUT = 20.0
"""Seconds in which `kubectl proxy` must listen."""
_EXIT_TIMEOUT = 5.0
_PROMPT = b"Please enter Username"
"""The beginning of what kubectl prints to stdout, without a line end, where it has no credentials."""
_MAX_SOCKET_PATH = 100
"""Bytes of the path of a Unix socket that every system accepts."""
_MAX_MESSAGE = 300
_JSON = "application/json"


class Answer(NamedTuple):
    """The status and the bytes of an answer."""

    status: int
    data: bytes


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class ClusterReader:
    """GET requests to one cluster, for use as a context manager. `kubectl proxy` listens on a socket that only this user can reach.

    `seconds` limit everything that is done with it together. Every method raises Permanent, Temporary or MissingObject, with what the
    server or kubectl said.
    """

    def __init__(self, options: KubectlOptions, seconds: float) -> None:
        self.options, self._end = options, time.monotonic() + seconds
        self._seconds = seconds
        self._directory: TemporaryDirectory | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: _UnixConnection | None = None

    def __enter__(self) -> ClusterReader:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._stop()

    def get(self, path: str, accept: str = _JSON) -> Body:
        """Return the object at a path."""
        answer = self.request(path, accept)
        _check_status(path, answer)
        return _parse_object(path, answer.data)

    def list_objects(self, path: str, *, limit: int, page: int = PAGE_SIZE, **query: str) -> Iterator[Body]:
        """Yield the objects of a list, which is read in pages. Raises Permanent if there are more than `limit`."""
        count, token = 0, ""
        while True:
            parameters = {**query, "limit": str(page), **({"continue": token} if token else {})}
            found = self.get(f"{path}?{urlencode(parameters)}")
            items = found.get("items")
            if not isinstance(items, list):
                raise Permanent(f"{path} has no list of items: the server does not answer as Kubernetes does")
            count += len(items)
            if count > limit:
                raise Permanent(f"{path} has more than {limit} objects")
            yield from (item for item in items if isinstance(item, dict))
            token, last = str(get_field(found, "metadata", "continue") or ""), token
            if not token:
                return
            if token == last or not items:
                raise Permanent(f"{path} never ends: the server repeats a page")

    def request(self, path: str, accept: str = _JSON) -> Answer:
        """Return the answer to a request, whatever its status is."""
        connection = self._connect()
        try:
            connection.request("GET", path, headers={"Accept": accept, "Accept-Encoding": "identity"})
            response = connection.getresponse()
            data = self._read(path, connection, response)
        except TimeoutError as error:
            self._close()
            raise self._make_timeout(path) from error
        except (OSError, http.client.HTTPException) as error:
            self._close()
            raise Temporary(f"GET {path}: {type(error).__name__}: {str(error)[:_MAX_MESSAGE]}{self._read_errors()}") from error
        if response.will_close:
            self._close()
        return Answer(response.status, data)

    def _read(self, path: str, connection: _UnixConnection, response: http.client.HTTPResponse) -> bytes:
        """Read an answer in pieces, so that a server that sends one byte at a time does not outlast the limit."""
        data = bytearray()
        end = min(self._end, time.monotonic() + self.options.timeout)
        while piece := response.read1(_CHUNK):
            data += piece
            if len(data) > MAX_ANSWER:
                self._close()
                raise Permanent(f"GET {path}: the answer has more than {MAX_ANSWER} bytes")
            if time.monotonic() > end:
                raise TimeoutError
            if connection.sock is not None:
                connection.sock.settimeout(max(0.05, end - time.monotonic()))
        response.close()
        return bytes(data)

    def _connect(self) -> _UnixConnection:
        left = self._end - time.monotonic()
        if left <= 0:
            raise Temporary(f"the cluster did not answer everything within {self._seconds:g} s")
        if self._connection is None:
            assert self._directory is not None, "used as a context manager"
            self._connection = _UnixConnection(self._socket, min(left, self.options.timeout))
        else:
            self._connection.timeout = min(left, self.options.timeout)
            if self._connection.sock is not None:
                self._connection.sock.settimeout(self._connection.timeout)
        return self._connection

    @property
    def _socket(self) -> str:
        assert self._directory is not None
        return str(self._directory.path / "socket")

    def _start(self) -> None:
        self._directory = TemporaryDirectory("proxy")
        if len(os.fsencode(self._socket)) > _MAX_SOCKET_PATH:
            self._directory.close()
            self._directory = TemporaryDirectory("proxy", "/tmp")  # noqa: S108 - only this user may enter it
        options = self.options
        if options.context:
            KubectlClient(options).check_context()
        where = [f"--{name}={value}" for name, value in (("context", options.context), ("kubeconfig", options.kubeconfig)) if value]
        command = [options.executable, "proxy", *where, f"--unix-socket={self._socket}", "--append-server-path"]
        with (self._directory.path / "errors").open("wb") as errors:
            try:
                # In the group of this process: an interrupt from the terminal ends kubectl, too, and so the waits for its answers.
                self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
            except FileNotFoundError as error:
                raise Permanent(f"{options.executable} is not on the PATH: install kubectl, or name it with --kubectl") from error
            except OSError as error:
                raise Permanent(f"{options.executable} cannot be run: {error.strerror}") from error
        self._wait_until_it_listens(self._process)

    def _wait_until_it_listens(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the line that kubectl prints when it listens. A prompt, such as for a user name, is no line."""
        assert process.stdout is not None
        limit = min(_START_TIMEOUT, max(0.1, self._end - time.monotonic()))
        end, printed = time.monotonic() + limit, b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in printed:
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise Temporary(f"kubectl proxy did not start within {limit:g} s{self._read_errors()}")
                piece = os.read(process.stdout.fileno(), _CHUNK)
                printed = (printed + piece)[-_CHUNK:]
                if piece:
                    continue
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_EXIT_TIMEOUT)
                if printed.startswith(_PROMPT):
                    raise Permanent(
                        "kubectl proxy asks for a user name: the kubeconfig has no credentials for the context; check its user"
                    )
                raise classify_error("proxy", self._read_errors().removeprefix(": ") or "it ended without a message")

    def _read_errors(self) -> str:
        """Return the last line that kubectl printed to stderr, after a colon; "" if there is none."""
        if self._directory is None:
            return ""
        try:
            text = (self._directory.path / "errors").read_bytes()[-4096:].decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line for line in text.splitlines() if line.strip()]
        return f": {lines[-1][:_MAX_MESSAGE]}" if lines else ""

    def _make_timeout(self, path: str) -> Temporary:
        limit = min(self.options.timeout, self._seconds)
        return Temporary(f"GET {path}: no complete answer within {limit:g} s{self._read_errors()}")

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _stop(self) -> None:
        self._close()
        process = self._process
        if process is not None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_EXIT_TIMEOUT)
            if process.stdout is not None:
                process.stdout.close()
        if self._directory is not None:
            self._directory.close()


def _check_status(path: str, answer: Answer) -> None:
    """Raise the error of an answer whose status is not 200."""
    if answer.status == http.HTTPStatus.OK:
        return
    message = f"GET {path}: {answer.status} {_describe_failure(answer.data)}"
    if answer.status == http.HTTPStatus.NOT_FOUND:
        raise MissingObject(message)
    if answer.status in (http.HTTPStatus.REQUEST_TIMEOUT, http.HTTPStatus.TOO_MANY_REQUESTS) or answer.status >= 500:
        raise Temporary(message)
    raise Permanent(message)


def _describe_failure(data: bytes) -> str:
    """Return the message of a Status object, else the beginning of the text, on one line."""
    text = data[: 1 << 16].decode("utf-8", "replace")
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(text)
        text = str(found.get("message") or "") if isinstance(found, dict) else text
    return " ".join(text.split())[:_MAX_MESSAGE]


def _parse_object(path: str, data: bytes) -> Body:
    """Parse a JSON object. NaN and infinity, which JSON does not have, are errors."""
    if data.count(b",") > MAX_VALUES:
        raise Permanent(f"GET {path}: the answer has more than {MAX_VALUES} values")
    try:
        found = json.loads(data, parse_constant=_reject_constant)
    except (ValueError, RecursionError) as error:
        raise Permanent(f"GET {path}: the answer is no JSON: {str(error)[:100]}") from error
    if not isinstance(found, dict):
        raise Permanent(f"GET {path}: the answer is no JSON object")
    return found


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
