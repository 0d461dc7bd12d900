"""A server on this machine that plays a provider, and the documents of metrics that are asked there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

import pytest

from tests.local import LocalServer

Handle = Callable[["Received"], "Response"]


class Received(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: str


class Response(NamedTuple):
    """`body` may come in pieces, each made when it is sent."""

    body: str | Iterator[bytes] = ""
    status: int = 200
    media: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Server(LocalServer):
    """Answers with what `handle` gives, and remembers what it was asked."""

    def __init__(self) -> None:
        self.seen: list[Received] = []
        self.handle: Handle = lambda _: Response("{}")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                received = Received(self.command, self.path, dict(self.headers), body)
                outer.seen.append(received)
                response = outer.handle(received)
                self.send_response(response.status)
                for name, text in response.headers:
                    self.send_header(name, text)
                if response.media:
                    self.send_header("Content-Type", response.media)
                self.end_headers()
                pieces = [response.body.encode()] if isinstance(response.body, str) else response.body
                try:
                    for piece in pieces:
                        self.wfile.write(piece)
                        self.wfile.flush()
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client had enough

            do_GET = do_POST = answer

            def log_message(self, *_: Any) -> None: ...

        super().__init__(Handler)


@pytest.fixture
def rival() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def vector(metric: str, value: str) -> Response:
    """What Prometheus says about one metric."""
    return Response(
        f'{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{"__name__":"{metric}"}},"value":[1,"{value}"]}}]}}}}'
    )


def documents(kind: str, spec: dict[str, Any], *metrics: str) -> list[dict[str, Any]]:
    """A global provider of a kind, named `p`, and metrics from there, each named as on the provider."""
    provider = {"api": "core", "kind": "GlobalMetricsProvider", "metadata": {"name": "p"}, "spec": {"type": kind, kind: spec}}
    return [provider] + [
        {
            "api": "core",
            "kind": "GlobalMetric",
            "metadata": {"name": metric},
            "spec": {"min": 0, "max": 1, "allowed_values": [], "provider": {"name": "p", "metric": metric}},
        }
        for metric in metrics
    ]


def key(metric: str) -> tuple[str, str, str, str]:
    return ("GlobalMetricsProvider", "", "p", metric)
