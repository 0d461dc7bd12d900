"""Tolerations tolerate as in Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from gitsched.model.taints import Taint, Toleration, parse_taint, parse_toleration
from tests.tables import each_row

TAINT = {"key": "power", "value": "off", "effect": "NoExecute"}
TABLE = """
- {toleration: {key: power, operator: Equal, value: "off", effect: NoExecute}, tolerates: true}
- {toleration: {key: power, value: "off"},                                     tolerates: true}
- {toleration: {key: power, operator: Exists},                                 tolerates: true}
- {toleration: {operator: Exists},                                             tolerates: true}
- {toleration: {operator: Exists, effect: NoExecute},                          tolerates: true}
- {toleration: {operator: Exists, effect: NoSchedule},                         tolerates: false}
- {toleration: {key: power, operator: Exists, value: other},                   tolerates: true}
- {toleration: {key: power, value: "on"},                                      tolerates: false}
- {toleration: {key: power},                                                   tolerates: false}
- {toleration: {key: noise, operator: Exists},                                 tolerates: false}
- {toleration: {value: "off"},                                                 tolerates: true}
- {toleration: {key: power, operator: Lt, value: "off"},                       tolerates: false}
- {toleration: {key: power, operator: Gt, value: "off"},                       tolerates: false}
- {toleration: {key: power, operator: exists},                                 tolerates: false}
- {toleration: {},                                                             tolerates: false}
"""


@each_row("case", yaml.safe_load(TABLE))
def test_a_toleration_tolerates(case: dict[str, Any]) -> None:
    assert parse_toleration(case["toleration"]).tolerates(parse_taint(TAINT)) is case["tolerates"]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (TAINT, "power=off:NoExecute"),
        ({"key": "power", "effect": "NoSchedule"}, "power:NoSchedule"),
        ({"key": 1, "effect": None}, ":"),
        ("nonsense", ":"),
        (None, ":"),
    ],
)
def test_a_taint_is_formatted_as_in_kubectl(entry: Any, text: str) -> None:
    assert str(parse_taint(entry)) == text


@pytest.mark.parametrize(
    ("seconds", "read"), [(0, 0), (-1, -1), (300, 300), (None, None), (True, None), ("300", None), (1.5, None)]
)
def test_only_an_integer_of_seconds_is_parsed(seconds: Any, read: int | None) -> None:
    assert parse_toleration({"tolerationSeconds": seconds}) == Toleration("", "", "", "", read)


def test_time_added_is_parsed_if_it_is_a_timestamp() -> None:
    assert parse_taint({**TAINT, "timeAdded": "soon"}) == Taint("power", "off", "NoExecute", None)
    since = parse_taint({**TAINT, "timeAdded": "2026-01-01T01:00:00+01:00"}).since
    assert since is not None
    assert since.isoformat() == "2026-01-01T00:00:00+00:00"
