"""Open Cluster Management's own outcomes: each case is an input that its real controller was given, and what it decided.

ocm.jsonl.xz holds one JSON object a line: `resources` and `previous` are what `gitsched.schedule` takes, `now` the moment, `expect` the
outcome. Where upstream drops or keeps decisions by chance, because a Placement is misconfigured, only the refusal is compared.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import gitsched
from gitsched.decide.python_api import Schedule
from gitsched.model.time import parse_time

Body = Mapping[str, Any]
PLACEMENT = "cluster.open-cluster-management.io/placement"
ASPECTS = ("status", "reason", "message")


def recorded() -> Iterator[Body]:
    with lzma.open(Path(__file__).with_name("ocm.jsonl.xz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


CASES = list(recorded())


def run(case: Body) -> Schedule:
    return gitsched.schedule(case["resources"], previous=case.get("previous") or [], now=parse_time(case["now"]))


def refusals(result: Schedule) -> set[tuple[str, str, str]]:
    return {finding.resource for finding in result.findings if finding.severity == "error" and finding.resource}


def is_refused_upstream(want: Body) -> bool:
    misconfigured = (want.get("conditions") or {}).get("PlacementMisconfigured", {}).get("status") == "True"
    return bool(misconfigured or want.get("panic") or want.get("error"))


def expected(want: Body) -> dict[str, Any]:
    """What a case says of one Placement, under the names of `observed`; what it is silent about is absent."""
    facts: dict[str, Any] = {"decisions": want["decisions"]}
    if want.get("numberOfSelectedClusters") is not None:
        facts["selected"] = want["numberOfSelectedClusters"]
    if want.get("conditions"):
        facts["conditions"] = {kind: {name: said.get(name) for name in ASPECTS} for kind, said in want["conditions"].items()}
    if want.get("groups") is not None:
        facts["groups"] = [(g["name"], g["index"], len(g["clusters"]), g.get("objects") or []) for g in want["groups"]]
    if want.get("scores"):
        facts["scores"] = want["scores"]
    return facts


def observed(result: Schedule, namespace: str, name: str) -> dict[str, Any]:
    """The same of a Placement that was decided here."""
    documents = [body for body in result.documents if body["metadata"].get("namespace") == namespace]
    (placement,) = (body for body in documents if body["kind"] == "Placement" and body["metadata"]["name"] == name)
    slices = [d for d in documents if d["kind"] == "PlacementDecision" and d["metadata"]["labels"].get(PLACEMENT) == name]
    slices.sort(key=lambda body: int(body["metadata"]["name"].rpartition("-")[2]))
    status = placement["status"]
    return {
        "decisions": [entry["clusterName"] for body in slices for entry in body["status"]["decisions"]],
        "selected": status["numberOfSelectedClusters"],
        "conditions": {condition["type"]: {aspect: condition[aspect] for aspect in ASPECTS} for condition in status["conditions"]},
        "groups": [
            (group["decisionGroupName"], group["decisionGroupIndex"], group["clusterCount"], group["decisions"])
            for group in status["decisionGroups"]
        ],
        "scores": {verdict.name: verdict.total for verdict in result.explain("Placement", name, namespace) if verdict.eligible},
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_the_outcome_equals_that_of_the_placement_controller(case: Body) -> None:
    result = run(case)
    refused = refusals(result)
    for want in case["expect"].get("rejected", ()):
        assert (want["kind"], want.get("namespace") or "", want["name"]) in refused, want.get("errors")
    for at in (case["expect"].get("wakeups") or {}).values():
        moment = parse_time(at)
        assert moment is not None
        assert result.next_wakeup is not None
        assert result.next_wakeup <= moment
    for want in case["expect"]["placements"]:
        if want.get("skipped"):
            continue
        if is_refused_upstream(want):
            assert refused, "misconfigured, but nothing says so"
            continue
        facts, got = expected(want), observed(result, want["namespace"], want["name"])
        assert {name: got[name] for name in facts} == facts


def test_every_case_is_run() -> None:
    assert len(CASES) == len({case["id"] for case in CASES}) == 400
