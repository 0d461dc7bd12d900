"""Rules of override policies that are combined change an object as those that are applied one after the other, and fail as these do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.karmada.overrides import combined_rules
from gitsched.apis.karmada.overrides.combined_rules import CombinedRules, InapplicableOverride, OverrideRule, apply_rules
from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject
from gitsched.apis.karmada.overrides.overriders import apply_overriders
from gitsched.model.document import Document, Key

CONTAINERS = [{"name": "a", "image": "example.com/shop:1", "args": ["-v"]}, {"name": "b", "image": "shop"}]
OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", **metadata},
        "spec": {"replicas": 1, "template": {"spec": {"containers": CONTAINERS}}},
    }
    for metadata in ({}, {"labels": {"a": "1", "b": "2"}, "annotations": None}, {"labels": [], "annotations": {"c": "3", "a": "4"}})
]
MAPPINGS = st.lists(
    st.fixed_dictionaries(
        {
            "operator": st.sampled_from(("add", "replace", "remove")),
            "value": st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=2),
        }
    ),
    max_size=2,
)
IMAGES = st.lists(
    st.fixed_dictionaries(
        {
            "component": st.sampled_from(("Registry", "Repository", "Tag")),
            "operator": st.sampled_from(("add", "replace", "remove")),
            "value": st.sampled_from(("v1", "r.example.com", "-x", "A B", "")),
        },
        optional={"predicate": st.just({"path": "/spec/template/spec/containers/1/image"})},
    ),
    max_size=2,
)
PATHS = (
    "/metadata/labels/a",
    "/metadata/labels",
    "/metadata/name",
    "/kind",
    "/spec/replicas",
    "/spec/template/spec/containers/0",
    "x",
)
PLAINTEXT = st.lists(
    st.fixed_dictionaries(
        {
            "path": st.sampled_from(PATHS),
            "operator": st.sampled_from(("add", "replace", "remove")),
            "value": st.sampled_from(("web", "Deployment", {"a": "p", "d": "q"}, {"name": "c", "image": "other:2"}, 3)),
        }
    ),
    max_size=1,
)
RULE = st.fixed_dictionaries(
    {},
    optional={
        "imageOverrider": IMAGES,
        "argsOverrider": st.just([{"containerName": "a", "operator": "add", "value": ["-x"]}]),
        "labelsOverrider": MAPPINGS,
        "annotationsOverrider": MAPPINGS,
        "plaintext": PLAINTEXT,
    },
)


def make_rules(overriders: list[dict[str, Any]]) -> list[OverrideRule]:
    policies = (Document(Key("policy.karmada.io", "OverridePolicy", "shop", f"o{n}"), "", {}) for n in range(len(overriders)))
    return [OverrideRule(policy, None, body, ("spec",), False) for policy, body in zip(policies, overriders, strict=True)]


def apply_in_order(body: Any, rules: list[OverrideRule]) -> Any:
    patched = PatchedObject(body)
    for rule in rules:
        try:
            apply_overriders(patched, rule.overriders)
        except InapplicablePatch as error:
            return InapplicableOverride(rule, str(error), (*rule.pointer, *error.pointer))
    return patched.root


@given(st.sampled_from(OBJECTS), st.lists(RULE, max_size=6), st.integers(0, 6))
def test_combined_rules_do_what_the_rules_do(body: Any, overriders: list[dict[str, Any]], at: int) -> None:
    before, rules = json.dumps(body), make_rules(overriders)
    combined = [CombinedRules(tuple(part)) for part in (rules[:at], rules[at:])]
    expected = apply_in_order(body, rules)
    for _ in range(2):  # the second time with what is remembered of the first one
        found = apply_rules(body, combined)
        assert isinstance(found, InapplicableOverride) == isinstance(expected, InapplicableOverride)
        assert found == expected if isinstance(found, InapplicableOverride) else json.dumps(found) == json.dumps(expected)
    assert json.dumps(body) == before


def test_labels_of_many_rules_are_one_step() -> None:
    overriders = [
        {"labelsOverrider": [{"operator": "add", "value": {"n": str(number)}}], "imageOverrider": [IMAGE]} for number in range(50)
    ]
    (combined,) = [CombinedRules(tuple(make_rules(overriders)))]
    assert len(combined.steps) == 2
    made = apply_rules(OBJECTS[1], [combined])
    assert isinstance(made, dict)
    assert made["metadata"]["labels"] == {"a": "1", "b": "2", "n": "49"}


IMAGE = {"component": "Tag", "operator": "replace", "value": "v2"}


def test_images_that_are_no_longer_remembered_change_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    combined = CombinedRules(tuple(make_rules([{"imageOverrider": [IMAGE]}])))
    expected = apply_rules(OBJECTS[1], [combined])
    monkeypatch.setattr(combined_rules, "_MAX_IMAGES", 1)
    assert apply_rules(OBJECTS[1], [combined]) == expected
