"""Observation of metrics: parallel queries under one deadline."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import gitsched
from gitsched.model.observation import MetricFailure
from tests.local import PATIENCE
from tests.metrics.conftest import Response, Server, documents, key, vector


def test_queries_run_in_parallel(server: Server) -> None:
    names = [f"m{i}" for i in range(12)]
    barrier = threading.Barrier(len(names), timeout=PATIENCE)

    def respond(received: Any) -> Response:
        barrier.wait()  # times out unless all queries run in parallel
        return vector(received.path.partition("=")[2], "0.5")

    server.handle = respond
    observations = gitsched.observe(documents("prometheus", {"url": server.url}, *names), timeout=PATIENCE)
    assert [observations[key(name)] for name in names] == [0.5] * 12
    assert observations.time is not None


def test_a_metric_is_queried_once(server: Server) -> None:
    server.handle = lambda _: vector("load", "1")
    bodies = documents("prometheus", {"url": server.url}, "load")
    bodies += [{**bodies[1], "metadata": {"name": "load_elsewhere"}}]
    assert gitsched.observe(bodies) == {key("load"): 1.0}
    assert len(server.seen) == 1


def test_all_queries_share_one_deadline(server: Server) -> None:
    def send_slowly(_: Any) -> Response:
        def send_chunks() -> Iterator[bytes]:
            while not stop.wait(0.05):
                yield b" "

        return Response(send_chunks())

    stop = threading.Event()
    server.handle = send_slowly
    observations = gitsched.observe(documents("prometheus", {"url": server.url}, *(f"m{i}" for i in range(40))), timeout=0.4)
    stop.set()  # the deadline passed although the server still sends
    assert len(observations) == 40
    assert all(isinstance(value, MetricFailure) and "in time" in value.error for value in observations.values())


def test_invalid_documents_are_skipped() -> None:
    bodies: list[Any] = [
        {},
        {"api": "core", "kind": "GlobalMetric", "metadata": {"name": "m"}, "spec": {}},
        {"api": "core", "kind": "GlobalMetricsProvider", "metadata": {"name": "p"}, "spec": {"type": "prometheus"}},
        {"api": "core", "kind": "GlobalMetric", "metadata": None, "spec": []},
    ]
    assert gitsched.observe(bodies) == {}
