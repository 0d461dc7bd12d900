"""Label selectors and the syntax of labels."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.model.labels import is_label_key, is_label_value, parse_selector, parse_selector_text
from tests.tables import each_row

MATCHES = """
- {selector: {},                                                                 selects: [none, a1, a2, b1]}
- {selector: {matchLabels: {}},                                                  selects: [none, a1, a2, b1]}
- {selector: {matchLabels: null, matchExpressions: null},                        selects: [none, a1, a2, b1]}
- {selector: {matchLabels: {a: "1"}},                                            selects: [a1]}
- {selector: {matchLabels: {a: "1", b: "1"}},                                    selects: []}
- {selector: {matchLabels: {a: ""}},                                             selects: []}
- {selector: {matchExpressions: [{key: a, operator: In, values: ["1", "2"]}]},   selects: [a1, a2]}
- {selector: {matchExpressions: [{key: a, operator: NotIn, values: ["1"]}]},     selects: [none, a2, b1]}
- {selector: {matchExpressions: [{key: a, operator: Exists}]},                   selects: [a1, a2]}
- {selector: {matchExpressions: [{key: a, operator: Exists, values: []}]},       selects: [a1, a2]}
- {selector: {matchExpressions: [{key: a, operator: DoesNotExist}]},             selects: [none, b1]}
- selector: {matchLabels: {a: "1"}, matchExpressions: [{key: a, operator: NotIn, values: ["1"]}]}
  selects: []
- selector: {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: NotIn, values: ["2"]}]}
  selects: [a1]
"""
REFUSED = """
- [a list]
- text
- null
- {matchLabels: {a b: "1"}}
- {matchLabels: {a: "1 2"}}
- {matchLabels: {a: 1}}
- {matchLabels: {"": "1"}}
- {matchExpressions: [{key: a, operator: In}]}
- {matchExpressions: [{key: a, operator: In, values: []}]}
- {matchExpressions: [{key: a, operator: NotIn, values: []}]}
- {matchExpressions: [{key: a, operator: Exists, values: ["1"]}]}
- {matchExpressions: [{key: a, operator: DoesNotExist, values: ["1"]}]}
- {matchExpressions: [{key: a, operator: Gt, values: ["1"]}]}
- {matchExpressions: [{key: a, operator: in, values: ["1"]}]}
- {matchExpressions: [{key: a, operator: In, values: ["-"]}]}
- {matchExpressions: [{key: a, operator: In, values: text}]}
- {matchExpressions: [{operator: Exists}]}
- {matchExpressions: [text]}
"""
LABELS = {"none": {}, "a1": {"a": "1"}, "a2": {"a": "2"}, "b1": {"b": "1"}}


@each_row("case", yaml.safe_load(MATCHES))
def test_a_selector_matches_as_in_kubernetes(case: dict[str, Any]) -> None:
    selector = parse_selector(case["selector"])
    assert selector is not None
    assert [name for name, labels in LABELS.items() if selector.matches(labels)] == case["selects"]


@each_row("value", yaml.safe_load(REFUSED))
def test_a_selector_that_kubernetes_rejects_is_none(value: Any) -> None:
    assert parse_selector(value) is None


def test_equal_selectors_compare_equal_however_they_are_written() -> None:
    one = {"matchLabels": {"b": "1", "a": "2"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["y", "x", "x"]}]}
    other = {"matchExpressions": [{"operator": "In", "key": "c", "values": ["x", "y"]}], "matchLabels": {"a": "2", "b": "1"}}
    assert parse_selector(one) == parse_selector(other)


@each_row(
    ("text", "valid"),
    [
        ("a", True),
        ("A.b-c_d9", True),
        ("a" * 63, True),
        ("a" * 64, False),
        ("example.com/a", True),
        (f"{'a' * 253}/a", True),
        (f"{'a' * 254}/a", False),
        ("Example.com/a", False),
        ("example.com/", False),
        ("/a", False),
        ("a/b/c", False),
        ("-a", False),
        ("a-", False),
        ("a..b/c", False),
        ("ä", False),
        ("a\n", False),
        ("", False),
        (None, False),
        (1, False),
    ],
)
def test_a_label_key(text: Any, valid: bool) -> None:
    assert is_label_key(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [("", True), ("a", True), ("1.2_3-4", True), ("a" * 64, False), ("-", False), ("a/b", False), ("a\n", False), (1, False)],
)
def test_a_label_value(text: Any, valid: bool) -> None:
    assert is_label_value(text) is valid


@each_row(
    ("text", "requirements"),
    [
        ("app=web", [("app", "In", ("web",))]),
        ("app==web, tier != back", [("app", "In", ("web",)), ("tier", "NotIn", ("back",))]),
        ("tier in (b, a),env notin (dev)", [("tier", "In", ("a", "b")), ("env", "NotIn", ("dev",))]),
        ("example.com/team,!legacy", [("example.com/team", "Exists", ()), ("legacy", "DoesNotExist", ())]),
        ("in in (in)", [("in", "In", ("in",))]),
        ("app=", [("app", "In", ("",))]),
        *((text, None) for text in ("", ",", "app=web,", "a b", "app in", "app in ()x", "=web", "a=(b)", "a=b c=d", "-a", "!a=b")),
    ],
)
def test_a_selector_is_written_as_for_kubectl(text: str, requirements: list[tuple[str, str, tuple[str, ...]]] | None) -> None:
    selector = parse_selector_text(text)
    assert (list(map(tuple, selector.requirements)) if selector is not None else None) == requirements
