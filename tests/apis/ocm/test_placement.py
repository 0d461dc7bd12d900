"""Parsing of Placements."""

from __future__ import annotations

import pytest

from gitsched.apis.ocm.defaulting import default
from gitsched.apis.ocm.names import placement_key
from gitsched.apis.ocm.placement import (
    Misconfiguration,
    OcmPlacement,
    PrioritizerConfig,
    ScoreCoordinate,
    describe_invalid_selector,
    parse_placement,
)
from gitsched.model.document import Document
from tests.builders.ocm import Body, add_on, built_in, placement


def parse(body: Body) -> OcmPlacement:
    return parse_placement(Document(placement_key("ns", "p"), str(body["apiVersion"]), default(body)))


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ({"matchLabels": {"a b": "x"}}, "'a b' is not a valid label key"),
        ({"matchLabels": {"a": "x y"}}, "'x y' is not a valid label value"),
        (
            {"matchExpressions": [{"key": "a", "operator": "in"}]},
            "'in' is not a valid operator: use In, NotIn, Exists or DoesNotExist",
        ),
        ({"matchExpressions": [{"key": "/", "operator": "Exists"}]}, "'/' is not a valid label key"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "the operator In requires values"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}, "the operator Exists does not accept values"),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x y"]}]},
            "'x y' is not a valid value of a label or claim in a selector",
        ),
    ],
)
def test_an_invalid_selector_has_a_reason(selector: Body, message: str) -> None:
    assert describe_invalid_selector(selector) == message


def test_mode_additive_adds_the_default_prioritizers() -> None:
    body = placement("p", "ns", prioritizerPolicy={"configurations": [built_in("Steady", 3)]})
    assert parse(body).prioritizers == (
        PrioritizerConfig(ScoreCoordinate("BuiltIn", "Balance"), 1),
        PrioritizerConfig(ScoreCoordinate("BuiltIn", "Steady"), 3),
    )


def test_weight_0_disables_a_prioritizer_and_an_add_on_score_may_be_repeated() -> None:
    score = PrioritizerConfig(ScoreCoordinate("AddOn", "", "default", "cpu"), 1)
    assert parse(placement("p", "ns", None, [built_in("Steady", 0), add_on("cpu"), add_on("cpu")])).prioritizers == (score, score)


@pytest.mark.parametrize(
    ("prioritizer", "message"),
    [
        (built_in("Fast"), "incorrect builtin prioritizer: Fast"),
        ({"scoreCoordinate": {"type": "AddOn"}, "weight": 1}, "addOn should not be empty"),
    ],
)
def test_an_invalid_prioritizer_is_a_misconfiguration(prioritizer: Body, message: str) -> None:
    found = parse(placement("p", "ns", None, [add_on("cpu"), prioritizer])).prioritizers
    assert isinstance(found, Misconfiguration)
    assert (str(found), found.pointer) == (f":{message}", ("spec", "prioritizerPolicy", "configurations", 1, "scoreCoordinate"))


def test_a_spread_policy_is_parsed_only_with_the_annotation() -> None:
    constraint = {"topologyKey": "zone", "topologyKeyType": "Label"}
    spec = {"spreadPolicy": {"spreadConstraints": [constraint]}}
    enabled = parse(placement("p", "ns", annotations={"gitsched.io/spread-policy": "true"}, **spec))
    assert parse(placement("p", "ns", **spec)).spread_constraints == ()
    assert enabled.spread_constraints == (("zone", "Label", 1, False),)
