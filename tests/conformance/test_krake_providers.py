"""Exchanges of Krake's own clients with a server: what they sent, and what they made of the answer.

What crashes them is a failure here. A number is compared before it is normalised: its range is judged where it is used.
"""

from __future__ import annotations

import json
import lzma
import threading
from pathlib import Path
from typing import Any

import pytest

import gitsched
from gitsched.model.observation import MetricFailure
from tests.conformance.test_krake import FORMULAS, list_differences, recorded
from tests.local import PATIENCE
from tests.metrics.conftest import Received, Response, Server

with lzma.open(Path(__file__).with_name("krake-providers.jsonl.xz"), "rt", encoding="utf-8") as lines:
    CASES: list[dict[str, Any]] = [json.loads(line) for line in lines]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_queries_and_responses_equal_those_of_krake(case: dict[str, Any], server: Server) -> None:
    answer = case["response"] or {}
    patience = 0.3 if answer.get("delay_s") else PATIENCE

    observed = threading.Event()

    def handle(_: Received) -> Response:
        if answer.get("delay_s"):
            observed.wait(PATIENCE)
        return Response(answer.get("body") or "", answer.get("status", 200), answer.get("content_type") or "")

    server.handle = handle
    provider, metric = case["metric_spec"]["provider"]["name"], case["metric_spec"]["provider"]["metric"]
    spec = json.loads(json.dumps(case["provider_spec"]).replace("${FAKE}", server.url))
    documents = [
        {"api": "core", "kind": "GlobalMetricsProvider", "metadata": {"name": provider}, "spec": spec},
        {"api": "core", "kind": "GlobalMetric", "metadata": {"name": "m"}, "spec": case["metric_spec"]},
    ]
    got = gitsched.observe(documents, timeout=patience)["GlobalMetricsProvider", "", provider, metric]
    observed.set()
    want = case["result"].get("raw")
    if isinstance(want, float | int):
        assert got == pytest.approx(want, abs=1e-9)
    else:
        assert isinstance(got, MetricFailure)
        code = case["result"]["error"].get("code")
        assert code in (got.code, None)
    asked = [(seen.method, seen.path) for seen in server.seen]
    assert asked == [(request["method"], request["path"]) for request in case.get("requests") or ()][: len(asked)]
    if case["type"] == "kafka" and server.seen:
        assert json.loads(server.seen[0].body) == json.loads(case["requests"][0]["body"])
    if case["type"] == "influx" and server.seen:
        assert server.seen[0].headers["Authorization"] == case["requests"][0]["headers"]["Authorization"]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("case", [case for case in recorded("krake.jsonl.xz") if case.get("http")], ids=lambda case: case["id"])
def test_a_decision_from_recorded_responses_equals_that_of_krake(case: dict[str, Any], formula: str, server: Server) -> None:
    def handle(received: Received) -> Response:
        answer = case["http"].get(received.path) or case["http"].get(received.path.partition("?")[0])
        return Response(answer["body"], answer["status"], answer["content_type"]) if answer else Response("no", 404)

    server.handle = handle
    case = json.loads(json.dumps(case).replace("${FAKE}", server.url))
    found = gitsched.observe(case["resources"], timeout=PATIENCE)
    assert found, "a case without metrics of servers would prove nothing"
    found.time = None  # the recorded decisions are those of the moment that the case names
    assert list(list_differences(case, formula, found)) == []
