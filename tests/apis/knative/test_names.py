"""Names of pods, and booleans as Go parses them."""

from __future__ import annotations

import pytest

from gitsched.apis.knative.names import is_true, make_pod_key, read_ordinal
from gitsched.model.document import Key


@pytest.mark.parametrize(
    ("pod", "stateful_set", "ordinal"),
    [
        ("adapter-0", None, 0),
        ("adapter-12", "adapter", 12),
        ("adapter-12", "other", None),
        ("adapter-99999", None, 99_999),
        ("adapter-100000", None, None),
        ("adapter-01", None, None),
        ("adapter", None, None),
    ],
)
def test_the_ordinal_is_read_from_the_name_of_a_pod(pod: str, stateful_set: str | None, ordinal: int | None) -> None:
    assert read_ordinal(pod, stateful_set) == ordinal


def test_the_key_of_a_pod_has_the_name_with_its_ordinal() -> None:
    adapter = Key("apps", "StatefulSet", "events", "adapter")
    assert make_pod_key(adapter, 3) == Key("", "Pod", "events", "adapter-3")


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("T", True), ("1", True), ("yes", False), (True, False), (None, False)]
)
def test_booleans_are_parsed_as_in_go(text: object, value: bool) -> None:
    assert is_true(text) is value
