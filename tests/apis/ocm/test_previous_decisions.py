"""Decisions of the previous output."""

from __future__ import annotations

from datetime import UTC, datetime

from gitsched.apis.ocm.names import GROUP, decision_key, placement_key
from gitsched.apis.ocm.previous_decisions import (
    DecisionBasis,
    DecisionIndex,
    describe_decision,
    merge_decisions,
    read_basis,
    write_basis,
)
from gitsched.decide.recorded_decisions import describe_records
from gitsched.model.document import Document, Key
from tests.builders.ocm import Body


def decision(number: int, owner: str, *clusters: str) -> tuple[Key, Body]:
    name = f"{owner}-decision-{number}"
    body: Body = {
        "metadata": {
            "name": name,
            "labels": {f"{GROUP}/placement": owner},
            "ownerReferences": [{"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "name": owner}],
        },
        "status": {"decisions": [{"clusterName": cluster, "reason": ""} for cluster in clusters]},
    }
    return decision_key("ns", name), body


DECISIONS = [decision(10, "p", "dub"), decision(2, "p", "ash", "bru"), decision(1, "q", "ash"), decision(1, "gone", "ash")]
PLACEMENTS = frozenset({("ns", "p"), ("ns", "q")})


def test_decisions_are_in_the_order_of_their_numbers() -> None:
    index = DecisionIndex(DECISIONS, PLACEMENTS)
    assert index.find(("ns", "p")).clusters == ("ash", "bru", "dub")


def count_others(index: DecisionIndex) -> dict[str, int]:
    return {name: count for name, count in index.count_other_decisions(("ns", "q")).items() if count}


def test_decisions_of_deleted_placements_and_own_decisions_are_not_counted() -> None:
    index = DecisionIndex(DECISIONS, PLACEMENTS)
    assert count_others(index) == {"ash": 1, "bru": 1, "dub": 1}
    index.update(("ns", "p"), [decision(1, "p", "cph")])
    assert count_others(index) == {"cph": 1}
    assert not index.has_changed(("ns", "p"), [decision(1, "p", "cph")])


def test_decisions_in_the_source_are_used_for_placements_without_output() -> None:
    source = [Document(key, f"{GROUP}/v1beta1", body) for key, body in (decision(1, "p", "cph"), decision(1, "q", "dub"))]
    merged = merge_decisions([decision(1, "q", "ash")], source)
    assert merged == [decision(1, "q", "ash"), decision(1, "p", "cph")]


def test_the_decisions_of_a_placement_are_described_as_one() -> None:
    found = describe_records(DECISIONS[:3])
    assert {decision.subject: [target.name for target in decision.targets] for decision in found} == {
        placement_key("ns", "p"): ["ash", "bru", "dub"],
        placement_key("ns", "q"): ["ash"],
    }
    assert {(decision.api, decision.target_kind) for decision in found} == {("ocm", "cluster")}


def test_a_target_names_its_decision_group_if_there_are_several() -> None:
    key, body = decision(2, "p", "ash")
    for labels, group in (
        ({f"{GROUP}/decision-group-name": "canary", f"{GROUP}/decision-group-index": "0"}, "canary"),
        ({f"{GROUP}/decision-group-index": "2"}, "group 2"),
        ({f"{GROUP}/decision-group-index": "0"}, ""),
    ):
        metadata = {**body["metadata"], "labels": {**body["metadata"]["labels"], **labels}}
        described = describe_decision(key, {**body, "metadata": metadata})
        assert described is not None
        assert [target.group for target in described.targets] == [group]
    assert describe_decision(key, {"status": body["status"]}) is None


def test_a_basis_is_read_back() -> None:
    basis = DecisionBasis("0123", datetime(2026, 3, 2, 8, tzinfo=UTC))
    assert read_basis(write_basis(basis)[1]) == basis
    assert read_basis(None) is None
    assert read_basis({"metadata": {"annotations": {"gitsched.io/decided-at": "2026-03-02T08:00:00Z"}}}) is None
