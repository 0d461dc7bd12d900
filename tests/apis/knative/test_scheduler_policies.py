"""Scheduler policies in ConfigMaps: arguments, weights, unknown and duplicate plug-ins."""

from __future__ import annotations

import json

import pytest

from gitsched.apis.knative.scheduler_policies import read_profile
from tests.tables import each_row

LONG = "1" * 5000


def read(name: str, args: object) -> int | str:
    """Return the value of the argument, or the message of the only issue."""
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
def test_arguments_are_parsed_as_in_go(args: str, value: int) -> None:
    assert read("EvenPodSpread", args) == value


@each_row(
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
)
def test_invalid_arguments_are_rejected(args: object) -> None:
    assert str(read("EvenPodSpread", args)).startswith("EvenPodSpread: Args ")


def test_num_partitions_has_64_bits() -> None:
    assert read("NoMaxResourceCount", '{"NumPartitions": 2147483648}') == 2**31
    assert "64 bits" in str(read("NoMaxResourceCount", f'{{"NumPartitions": {2**63}}}'))


@pytest.mark.parametrize("weight", ["11", "-1", "1.5", LONG])
def test_a_weight_is_an_integer_up_to_10(weight: str) -> None:
    priorities = f'[{{"Name": "LowestOrdinalPriority", "Weight": {weight}}}]'
    body = {"metadata": {"name": "config-scheduler"}, "data": {"predicates": "[]", "priorities": priorities}}
    assert [(issue.severity, issue.code) for issue in read_profile(body)[1]] == [("error", "knative-policy")]


def test_unknown_plugins_are_ignored_with_a_suggestion() -> None:
    body = {
        "metadata": {"name": "config-scheduler"},
        "data": {"predicates": '[{"Name": "PodFitsResource"}]', "priorities": "[]"},
    }
    profile, (issue,) = read_profile(body)
    assert profile.predicates == ()
    assert (issue.severity, issue.code) == ("warning", "knative-unknown-plugin")
    assert issue.message.endswith("did you mean PodFitsResources?")


def test_the_last_of_duplicate_priorities_is_used() -> None:
    priorities = '[{"Name": "LowestOrdinalPriority", "Weight": 1}, {"Name": "LowestOrdinalPriority", "Weight": 3}]'
    body = {"metadata": {"name": "config-scheduler"}, "data": {"predicates": "[]", "priorities": priorities}}
    profile, (issue,) = read_profile(body)
    assert [weight for _, weight in profile.priorities] == [3]
    assert issue.code == "knative-duplicate-plugin"


@pytest.mark.parametrize(("name", "codes"), [("config-scheduler", ["knative-policy"]), ("config-descheduler", [])])
def test_predicates_are_optional_only_for_the_descheduler(name: str, codes: list[str]) -> None:
    _, issues = read_profile({"metadata": {"name": name}, "data": {"priorities": "[]"}})
    assert [issue.code for issue in issues] == codes
