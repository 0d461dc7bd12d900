"""The three-way merge of manifests: what a change does, and what is specific to a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.decide.rollouts.content_merge import merge_values


@pytest.mark.parametrize(
    ("base", "one", "other", "merged"),
    [
        ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}),
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 3}, {"a": 2, "b": 3}),
        ({"a": 1}, {}, {"a": 1, "b": 1}, {"b": 1}),
        ({}, {"a": {"b": 1}}, {"c": 1}, {"a": {"b": 1}, "c": 1}),
        ([1, 2], [1, 3], [4, 2], [4, 3]),
        ("docker.io/web:2", "docker.io/web:1", "mirror.eu/web:2", "mirror.eu/web:1"),
        ("web:2", "web:1", "mirror.eu/web:2", "mirror.eu/web:1"),
        ("a/web:2", "a/web:2@sha256:1", "b/web:2", "b/web:2@sha256:1"),
        (True, 1, True, 1),
    ],
)
def test_both_changes_are_merged(base: Any, one: Any, other: Any, merged: Any) -> None:
    assert merge_values(base, one, other) == (merged, ())
    assert merge_values(base, other, one) == (merged, ())


@pytest.mark.parametrize(
    ("base", "one", "other", "fields"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 2}}, {"a": {"b": 3}}, ("a.b",)),
        ({"a": ["x:1", "y"]}, {"a": ["x:2", "y"]}, {"a": ["x:3", "y"]}, ("a[0]",)),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [3]}, ("a",)),
        ({"a": 1}, {}, {"a": 2}, ("a",)),
        ({"a": "10"}, {"a": "11"}, {"a": "20"}, ("a",)),
    ],
)
def test_of_two_changes_of_one_field_the_first_counts(base: Any, one: Any, other: Any, fields: tuple[str, ...]) -> None:
    assert merge_values(base, one, other) == (one, fields)
