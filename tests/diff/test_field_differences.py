"""Fields in which two documents differ, as text and as data: complete, without secrets."""

from __future__ import annotations

import json
from typing import Any

from gitsched.diff.field_differences import MAX_VALUE_LENGTH, FieldDifference, format_value, list_field_differences, revert_fields
from tests.tables import each_row


def find(before: dict[str, Any], after: dict[str, Any]) -> FieldDifference:
    (found,) = list_field_differences(before, after, 10)
    return found


@each_row(
    ("before", "after", "text"),
    [
        ({"spec": {"replicas": 2}}, {"spec": {"replicas": 4}}, "spec.replicas 2 -> 4"),
        ({"a": "one"}, {"a": "two"}, "a one -> two"),
        ({"a": "1"}, {"a": 1}, 'a "1" -> 1'),
        ({"a": "yes"}, {"a": True}, 'a "yes" -> true'),
        ({"a": ""}, {"a": None}, 'a "" -> null'),
        ({}, {"taints": [{"key": "down", "effect": "NoExecute"}]}, "taints added: [{key: down, effect: NoExecute}]"),
        ({"a": {"b": 1.5}}, {}, "a removed: {b: 1.5}"),
        (
            {"metadata": {"labels": {"tier": "front"}}},
            {"metadata": {"labels": {"tier": "fornt"}}},
            "metadata.labels.tier front -> fornt",
        ),
        ({"data": {"x": "1"}}, {"data": {"x": "2"}}, "data.x changed"),
        ({"spec": {"secretRef": {"name": "x"}}}, {"spec": {"secretRef": {"name": "y"}}}, "spec.secretRef.name changed"),
        ({}, {"auth": "x"}, "auth changed"),
        ({}, {"a": [{"name": "db", "password": "x"}]}, 'a added: [{name: db, password: "..."}]'),
        (
            {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x"}}},
            {"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "y"}}},
            "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration changed",
        ),
    ],
)
def test_a_difference_is_yaml_on_one_line_without_secrets(before: dict[str, Any], after: dict[str, Any], text: str) -> None:
    assert find(before, after).text == text


def test_a_value_is_never_cut_and_complete_as_data() -> None:
    taints = [{"key": f"power-{number}", "effect": "NoExecute"} for number in range(8)]
    change = find({}, {"taints": taints}).change
    assert change.after == f"[{', '.join(f'{{key: power-{number}, effect: NoExecute}}' for number in range(8))}]"
    assert change.values[0] is None
    assert json.loads(change.values[1] or "") == taints


def test_a_long_value_is_shown_by_its_structure() -> None:
    terms = [{"affinityName": "all", "clusterNames": [f"cluster-{number:04}" for number in range(200)]}]
    assert format_value(terms) == "[{affinityName: all, clusterNames: [200 entries]}]"
    assert format_value({f"name-{number:04}": {"a": 1} for number in range(200)}) == "{200 members}"
    assert format_value("x" * (MAX_VALUE_LENGTH + 1)) == f"(text of {MAX_VALUE_LENGTH + 1} characters)"
    assert json.loads(find({}, {"a": terms}).change.values[1] or "") == terms


READY, DISK = {"type": "Ready", "status": "True"}, {"type": "Disk", "status": "True"}


@each_row(
    ("before", "after", "texts"),
    [
        ([READY, DISK], [DISK, {**READY, "status": "False"}], ["status.conditions[1].status True -> False"]),
        ([READY, DISK], [DISK, READY], []),
        ([READY], [DISK, READY], ["status.conditions[0] added: {type: Disk, status: True}"]),
        ([READY, DISK], [DISK], ["status.conditions[1] removed: {type: Ready, status: True}"]),
    ],
)
def test_conditions_are_compared_by_their_types(before: list[Any], after: list[Any], texts: list[str]) -> None:
    old, new = ({"status": {"conditions": conditions}} for conditions in (before, after))
    differences = list_field_differences(old, new, 10)
    assert [one.text.replace('"', "") for one in differences] == texts
    reverted = revert_fields(new, differences, range(len(differences)))["status"]["conditions"]
    assert sorted(reverted, key=str) == sorted(before, key=str)
