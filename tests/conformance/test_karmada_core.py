"""Karmada's scheduler core on random input: fleets of up to 45 clusters, every division, spread, overflow and history.

karmada-core.jsonl.xz holds one JSON object a line. What it expects was recorded from the scheduler of Karmada f8fdd02: the reason and the
message of the Scheduled condition, and the clusters where it succeeded.
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import gitsched
from gitsched.model.time import parse_time
from tests.tables import each_row

with lzma.open(Path(__file__).with_name("karmada-core.jsonl.xz"), "rt", encoding="utf-8") as lines:
    CASES = [json.loads(line) for line in lines]


@each_row("case", CASES)
def test_the_decision_equals_that_of_karmadas_core(case: dict[str, Any]) -> None:
    settings = {"missingFacts": "strict", "taintEviction": False, "enableEmptyWorkloadPropagation": case["emptyWorkloads"]}
    now = parse_time(case["now"])
    result = gitsched.schedule(case["resources"], previous=case["previous"], now=now, config={"karmada": settings})
    (binding,) = [document for document in result.documents if document["kind"] == "ResourceBinding"]
    (condition,) = binding["status"]["conditions"]
    expect = case["expect"]
    assert condition["reason"] == expect["reason"]
    if expect["message"]:
        assert condition["message"] == expect["message"]
    if expect["reason"] == "Success":
        targets = binding["spec"].get("clusters") or []
        assert sorted([target["name"], target.get("replicas", 0)] for target in targets) == expect["clusters"]


def test_all_outcomes_are_among_the_cases() -> None:
    assert len(CASES) == 800
    assert {case["expect"]["reason"] for case in CASES} == {"Success", "NoClusterFit", "Unschedulable", "SchedulerError"}
