"""Fixtures for tests with a forge."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

import pytest

from tests.local import PATIENCE, LocalServer


class Received(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class CannedResponse(NamedTuple):
    code: int = 201
    body: str = "{}"
    headers: tuple[tuple[str, str], ...] = ()


class Api(LocalServer):
    """Says `answers` one after the other, then the last one again and again, while `open` is set; `seen` is what it was asked."""

    def __init__(self) -> None:
        self.seen: list[Received] = []
        self.answers = [CannedResponse()]
        self.open = threading.Event()
        self.open.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                outer.seen.append(Received(self.command, self.path, dict(self.headers), json.loads(data)))
                outer.open.wait(PATIENCE)
                said = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                self.send_response(said.code)
                for name, value in said.headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said.body.encode())))
                self.end_headers()
                self.wfile.write(said.body.encode())

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(Handler)


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api()
    yield server
    server.close()


Until = Callable[[Callable[[], bool]], None]


@pytest.fixture
def until() -> Until:
    """Wait for something; the test fails when it does not come."""

    def wait(seen: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not seen():
            assert time.monotonic() < end, f"it did not happen within {PATIENCE:g} seconds"
            time.sleep(0.01)

    return wait
