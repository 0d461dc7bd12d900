"""Mistakes in Open Cluster Management's documents are findings with a place, and evacuate nothing."""

from __future__ import annotations

import copy
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gitsched
from gitsched.model.time import parse_time
from tests.apis.ocm.test_choices import chosen, managed, placement, sets

CASES = Path(__file__).parents[2] / "conformance" / "ocm.jsonl.xz"
ODD: list[Any] = [None, 0, -1, 1.5, True, "", [], {}, "x" * 300, "é\n", [None], [{}], {"a": None}, 10**30, "9999-12-31T23:59:59Z"]


def small_cases() -> list[dict[str, Any]]:
    with lzma.open(CASES, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if len(line) < 6000][:80]


SMALL = small_cases()


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside: its container and its key."""
    if isinstance(value, dict):
        own = [(value, key) for key in value]
    elif isinstance(value, list):
        own = [(value, index) for index in range(len(value))]
    else:
        return []
    return own + [spot for container, key in own for spot in spots(container[key])]


@given(st.data())
@settings(deadline=None, max_examples=150)
def test_nothing_that_stands_in_a_document_is_an_exception(data: st.DataObject) -> None:
    case = copy.deepcopy(data.draw(st.sampled_from(SMALL)))
    for documents in (case["resources"], case.get("previous") or []):
        for _ in range(data.draw(st.integers(0, 3))):
            places = [spot for body in documents for spot in spots(body)]
            if places:
                container, key = places[data.draw(st.integers(0, len(places) - 1))]
                container[key] = data.draw(st.sampled_from(ODD))
    now = parse_time(case["now"])
    first = gitsched.schedule(case["resources"], previous=case.get("previous") or [], now=now)
    gitsched.schedule(case["resources"], previous=first.documents, now=now)


def test_a_misspelt_member_of_the_metadata_is_told() -> None:
    body = managed("dub")
    body["metadata"]["labls"] = {"env": "prod"}
    assert [finding.message for finding in gitsched.validate([body])] == [
        "metadata.labls: the field 'labls' is unknown and ignored; did you mean 'labels'?"
    ]


def test_a_claim_needs_no_name() -> None:
    body = managed("dub")
    body["status"] = {"clusterClaims": [{"value": "x"}, {"name": "y"}]}
    assert chosen([*sets(), body, placement(None)]) == ["dub"]


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        (
            {"celSelector": {"celExpressions": ["true", "managedCluster.foo("]}},
            "unexpected end of the expression, in the expression managedCluster.foo(",
        ),
        ({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "in"}]}}, "'in' is not a valid operator"),
        ({"celSelector": {"celExpressions": ["math.abs(1) == 1"]}}, "the function abs() at character 5 is not supported"),
    ],
)
def test_a_misconfigured_placement_keeps_what_it_has_and_says_why(predicate: dict[str, Any], said: str) -> None:
    fleet = [*sets(), managed("dub"), managed("par")]
    before = gitsched.schedule([*fleet, placement(1)], now=parse_time("2026-03-02T08:00:00Z"))
    broken = placement(2, predicates=[{"requiredClusterSelector": predicate}])
    assert chosen([*fleet, broken], previous=list(before.documents)) == ["dub"]
    findings = gitsched.schedule([*fleet, broken], previous=before.documents).findings
    assert [said in finding.message for finding in findings if finding.severity == "error"] == [True]
