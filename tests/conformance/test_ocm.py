"""Recorded results of Open Cluster Management's placement controller.

ocm.jsonl.xz has one JSON object per line: `resources` and `previous` are the arguments of `gitsched.schedule`, `now` is the time,
`expect` the result. For misconfigured Placements only the error is compared: upstream's decisions depend on timing.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gitsched
from gitsched.decide.python_api import Schedule
from gitsched.model.time import parse_time
from tests.tables import each_row

Body = Mapping[str, Any]
PLACEMENT = "cluster.open-cluster-management.io/placement"
ASPECTS = ("status", "reason", "message")


def recorded() -> Iterator[Body]:
    with lzma.open(Path(__file__).with_name("ocm.jsonl.xz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


CASES = list(recorded())


def run(case: Body) -> Schedule:
    return gitsched.schedule(case["resources"], previous=case.get("previous") or [], now=parse_time(case["now"]))


def list_errors(result: Schedule) -> set[tuple[str, str, str]]:
    return {finding.resource for finding in result.findings if finding.severity == "error" and finding.resource}


def is_rejected_upstream(expectation: Body) -> bool:
    misconfigured = (expectation.get("conditions") or {}).get("PlacementMisconfigured", {}).get("status") == "True"
    return bool(misconfigured or expectation.get("panic") or expectation.get("error"))


def expected(expectation: Body) -> dict[str, Any]:
    """Return the recorded result of a Placement with the keys of `observed`, without keys that are not recorded."""
    facts: dict[str, Any] = {"decisions": expectation["decisions"]}
    if expectation.get("numberOfSelectedClusters") is not None:
        facts["selected"] = expectation["numberOfSelectedClusters"]
    if expectation.get("conditions"):
        facts["conditions"] = {
            kind: {name: condition.get(name) for name in ASPECTS} for kind, condition in expectation["conditions"].items()
        }
    if expectation.get("groups") is not None:
        facts["groups"] = [(g["name"], g["index"], len(g["clusters"]), g.get("objects") or []) for g in expectation["groups"]]
    if expectation.get("scores"):
        facts["scores"] = expectation["scores"]
    return facts


def observed(result: Schedule, namespace: str, name: str) -> dict[str, Any]:
    """Return the result of a Placement."""
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


@each_row("case", CASES)
def test_the_outcome_equals_that_of_the_placement_controller(case: Body) -> None:
    result = run(case)
    errors = list_errors(result)
    for expectation in case["expect"].get("rejected", ()):
        assert (expectation["kind"], expectation.get("namespace") or "", expectation["name"]) in errors, expectation.get("errors")
    for text in (case["expect"].get("wakeups") or {}).values():
        wakeup = parse_time(text)
        assert wakeup is not None
        assert result.next_wakeup is not None
        assert result.next_wakeup <= wakeup
    for expectation in case["expect"]["placements"]:
        if expectation.get("skipped"):
            continue
        if is_rejected_upstream(expectation):
            assert errors, "misconfigured, but there is no finding"
            continue
        facts, result_facts = expected(expectation), observed(result, expectation["namespace"], expectation["name"])
        assert {name: result_facts[name] for name in facts} == facts


def test_all_recorded_cases_are_run() -> None:
    assert len(CASES) == len({case["id"] for case in CASES}) == 400
