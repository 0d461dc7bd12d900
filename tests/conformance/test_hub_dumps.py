"""Recorded cases as pairs of dumps: gitsched decides between two dumps as the real schedulers did, and explains what somebody changed."""

from __future__ import annotations

import copy
import json
import lzma
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gitsched.model.hub_comparison import ComparedDecision, HubComparisonResult
from gitsched.model.time import parse_time
from gitsched.reconcile.shadow.shadow_run import shadow_hub
from tests.builders.hub_dumps import Body, DumpPair, make_pair, write_dump
from tests.search_depth import DEEP

Case = Mapping[str, Any]
STEP = 1 if DEEP else 20
"""Each of so many cases is compared: all of them in a search."""


def read_cases(api: str) -> Iterator[Case]:
    with lzma.open(Path(__file__).with_name(f"{api}.jsonl.xz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def compare(case: Case, pair: DumpPair, directory: Path) -> HubComparisonResult:
    first = write_dump(directory / "first.json", pair.first)
    second = write_dump(directory / "second.json", pair.second)
    return shadow_hub(first, second, pair.settings, parse_time(case["now"]))


@pytest.mark.search
@pytest.mark.parametrize(("api", "all_equal"), [("karmada", 442), ("ocm", 378)])
def test_the_decisions_of_recorded_cases_are_equal(api: str, all_equal: int, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for case in list(read_cases(api))[::STEP]:
        result = compare(case, make_pair(case), tmp_path)
        counts.update(result.counts)
        counts["unexplained"] += result.unexplained
        wrong = [finding.code for finding in result.findings if finding.severity == "error" and finding.code.startswith("shadow-")]
        assert wrong == [], case["id"]
    assert counts["equal"] >= 0.999 * (counts["equal"] + counts["different"])
    assert counts["equal"] >= (all_equal if DEEP else 15)
    assert counts["unexplained"] == 0


def move(body: Body) -> bool:
    """Let a record of the hub have one cluster less or another number of replicas; False if it has none."""
    clusters = (
        (body.get("spec") or {}).get("clusters")
        if body["kind"].endswith("Binding")
        else (body.get("status") or {}).get("decisions")
    )
    if not clusters:
        return False
    if clusters[0].get("replicas"):
        clusters[0]["replicas"] += 1
    else:
        clusters.pop()
    return True


def change_records(pair: DumpPair) -> tuple[DumpPair, int]:
    """Return a pair in which the hub has decided otherwise, and in how many records."""
    second = copy.deepcopy(pair.second)
    kinds = ("ResourceBinding", "ClusterResourceBinding", "PlacementDecision")
    moved = [body for body in second if body["kind"] in kinds and move(body)]
    for body in second:
        if body["kind"] == "Placement" and "status" in body:
            owner = (body["metadata"]["namespace"], body["metadata"]["name"])
            label = "cluster.open-cluster-management.io/placement"
            found = [
                one
                for one in second
                if one["kind"] == "PlacementDecision" and (one["metadata"]["namespace"], one["metadata"]["labels"][label]) == owner
            ]
            body["status"]["numberOfSelectedClusters"] = sum(len(one["status"]["decisions"]) for one in found)
    return pair._replace(second=second), len(moved)


@pytest.mark.search
@pytest.mark.parametrize("api", ["karmada", "ocm"])
def test_what_the_hub_has_decided_otherwise_is_a_difference_with_a_cause(api: str, tmp_path: Path) -> None:
    different: list[ComparedDecision] = []
    expected = 0
    for case in list(read_cases(api))[::STEP]:
        pair, moved = change_records(make_pair(case))
        result = compare(case, pair, tmp_path)
        different += [one for one in result.decisions if one.verdict == "different"]
        expected += moved
        assert not result.unexplained, case["id"]
    assert all(one.causes and all(cause.text for cause in one.causes) for one in different)
    assert len(different) > 0.8 * expected > 0


@pytest.mark.search
def test_a_feature_gate_of_the_hub_is_the_proved_cause_of_what_it_changes(tmp_path: Path) -> None:
    """The hub has run with SchedulingOvercommitProtection or WorkloadAffinity, and the settings do not say so."""
    kinds: Counter[str] = Counter()
    cases = [case for case in read_cases("karmada-gates") if "gate-matters" in case["tags"] and "bindings" in case["expect"]]
    alone = [case for case in cases if not case.get("inFlight") and case["id"][:2] in ("ga", "gb")]
    for case in alone[:: STEP * 2]:
        result = compare(case, make_pair(case), tmp_path)
        for one in result.decisions:
            if one.verdict == "different":
                kinds[one.causes[0].kind if one.causes[0].proved else "shown"] += 1
                assert "featureGates" in one.causes[0].name or not one.causes[0].proved
    assert kinds["setting"] >= 0.9 * kinds.total() > 0
