"""Of a broken document, only members of the types that its schema says are read."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.decide.validation import validate_document

TAINTS = [{"key": "k", "effect": "NoSchedule"}]
CLUSTER: dict[str, Any] = {
    "apiVersion": "cluster.karmada.io/v1alpha1",
    "kind": "Cluster",
    "metadata": {"name": "ash", "labels": {"a": "b"}},
    "spec": {"syncMode": "Push", "region": "north", "zones": ["a", "b"], "taints": TAINTS},
}
PARTS = [
    # what of the spec is replaced, and what is left of it
    ({"zones": 5}, {"syncMode": "Push", "region": "north", "taints": TAINTS}),
    ({"zones": ["a", 5, "c", 6]}, {**CLUSTER["spec"], "zones": ["a", "c"]}),
    ({"taints": [{"key": 5}, *TAINTS]}, {**CLUSTER["spec"], "taints": [{}, *TAINTS]}),
    ({"syncMode": "Other", "taints": [{"key": "k", "effect": ["x"]}]}, {**CLUSTER["spec"], "syncMode": "Other", "taints": [{"key": "k"}]}),
    ({"taints": TAINTS[0]}, CLUSTER["spec"]),  # the one entry of the list
    ({"taints": {"key": "k", "effect": 5}}, {**CLUSTER["spec"], "taints": [{"key": "k"}]}),
    ({"region": [1], "zones": {}}, {"syncMode": "Push", "taints": TAINTS}),
]  # fmt: skip


@pytest.mark.parametrize(("change", "left"), PARTS)
def test_invalid_members_are_left_out(change: dict[str, Any], left: dict[str, Any]) -> None:
    body = {**CLUSTER, "spec": {**CLUSTER["spec"], **change}}
    result = validate_document(body)
    assert [issue.severity for issue in result.issues] == ["error"] * len(result.issues) != []
    assert {name: part for name, part in result.body["spec"].items() if name in CLUSTER["spec"]} == left
    assert "wrong-type" not in {issue.code for issue in validate_document(result.body).issues}


def test_the_other_members_of_a_document_are_left() -> None:
    body = {**CLUSTER, "spec": [1], "status": {"kubernetesVersion": "v1.36.0", "conditions": 5}}
    left = {name: part for name, part in CLUSTER.items() if name != "spec"}
    assert validate_document(body).body == {**left, "status": {"kubernetesVersion": "v1.36.0"}}


def test_a_document_with_many_invalid_members_is_read_without_them() -> None:
    body = {**CLUSTER, "spec": {**CLUSTER["spec"], "zones": [*[5] * 2_500, "a"]}}
    assert validate_document(body).body["spec"]["zones"] == ["a"]


def test_a_document_whose_invalid_members_are_not_found_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitsched.manifests.typed_part.MAX_ROUNDS", 1)
    body = {**CLUSTER, "spec": {**CLUSTER["spec"], "taints": [{"key": 5}]}}
    assert validate_document(body).body == {name: CLUSTER[name] for name in ("apiVersion", "kind")} | {"metadata": {"name": "ash"}}
