"""Arguments of plug-ins are read as upstream reads them, before anything is placed."""

from __future__ import annotations

import json

import pytest

from gitsched.apis.knative.scheduler_policies import read_profile

LONG = "1" * 5000


def read(name: str, args: object) -> int | str:
    """The value of the argument, or the message of the one mistake."""
    predicates = json.dumps([{"Name": name, "Args": args}])
    body = {"metadata": {"name": "config-scheduler"}, "data": {"predicates": predicates, "priorities": "[]"}}
    profile, issues = read_profile(body)
    return issues[0].message if issues else profile.predicates[0].value


@pytest.mark.parametrize(
    ("args", "value"),
    [
        ('{"MaxSkew": 2}', 2),
        ('{"maxskew": -1} and more', -1),
        ('{"Max\\u017fkew": 1}', 1),
        ('{"MaxSkew": 1, "MaxSkew": 2}', 2),
        ('{"MaxSkew": 2, "MAXSKEW": null}', 2),
        ("{}", 0),
        (" null", 0),
    ],
)
def test_what_upstream_reads(args: str, value: int) -> None:
    assert read("EvenPodSpread", args) == value


@pytest.mark.parametrize(
    "args",
    [
        None,
        2,
        {"MaxSkew": 2},
        "",
        "[]",
        '{"MaxSkew": 2',
        '{"MaxSkew": 2.0}',
        '{"MaxSkew": "2"}',
        '{"MaxSkew": NaN}',
        '{"MaxSkew": 2147483648}',
        f'{{"MaxSkew": {LONG}}}',
        '{"MaxSkew": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"NumPartitions": 2}',
    ],
    ids=lambda args: str(args)[:30],
)
def test_what_upstream_does_not_read(args: object) -> None:
    assert str(read("EvenPodSpread", args)).startswith("EvenPodSpread: Args ")


def test_a_source_may_have_more_partitions_than_vreplicas_fit_a_number_of_32_bits() -> None:
    assert read("NoMaxResourceCount", '{"NumPartitions": 2147483648}') == 2**31
    assert "64 bits" in str(read("NoMaxResourceCount", f'{{"NumPartitions": {2**63}}}'))


@pytest.mark.parametrize("weight", ["11", "-1", "1.5", LONG])
def test_a_weight_is_a_whole_number_up_to_ten(weight: str) -> None:
    priorities = f'[{{"Name": "LowestOrdinalPriority", "Weight": {weight}}}]'
    body = {"metadata": {"name": "config-scheduler"}, "data": {"predicates": "[]", "priorities": priorities}}
    assert [(issue.severity, issue.code) for issue in read_profile(body)[1]] == [("error", "knative-policy")]
