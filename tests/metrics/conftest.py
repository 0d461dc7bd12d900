"""A local server that acts as a metrics provider, and documents of metrics that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

import pytest

from gitsched.model.observation import MetricFailure, Observations
from tests.local import LocalServer

Handle = Callable[["Received"], "Response"]


class Received(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: str


class Response(NamedTuple):
    """`body` may be an iterator of chunks, which are produced while they are sent."""

    body: str | Iterator[bytes] = ""
    status: int = 200
    media: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


class Server(LocalServer):
    """A server that responds with the result of `handle` and records the requests in `seen`."""

    def __init__(self) -> None:
        self.seen: list[Received] = []
        self.handle: Handle = lambda _: Response("{}")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def respond(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                request = Received(self.command, self.path, dict(self.headers), body)
                outer.seen.append(request)
                response = outer.handle(request)
                self.send_response(response.status)
                for name, text in response.headers:
                    self.send_header(name, text)
                if response.media:
                    self.send_header("Content-Type", response.media)
                self.end_headers()
                chunks = [response.body.encode()] if isinstance(response.body, str) else response.body
                try:
                    for chunk in chunks:
                        self.wfile.write(chunk)
                        self.wfile.flush()
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the client closed the connection

            do_GET = do_POST = respond

            def log_message(self, *_: Any) -> None: ...

        super().__init__(Handler)


@pytest.fixture
def other_server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def vector(metric: str, value: str) -> Response:
    """Return Prometheus' response with one series."""
    return Response(
        f'{{"status":"success","data":{{"resultType":"vector","result":[{{"metric":{{"__name__":"{metric}"}},"value":[1,"{value}"]}}]}}}}'
    )


def documents(kind: str, spec: dict[str, Any], *metrics: str) -> list[dict[str, Any]]:
    """Return a GlobalMetricsProvider `p` of a type, and GlobalMetrics of the same name as the provider's metrics."""
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


def find_error(observations: Observations, metric: str = "load") -> str:
    """Return the error of a metric that failed."""
    failure = observations[key(metric)]
    assert isinstance(failure, MetricFailure), failure
    return failure.error
