"""The index finds the selectors that select an object, as comparing it with each of them does."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.karmada.policy import propagation_policy, selector_groups
from gitsched.apis.karmada.policy.propagation_policy import ResourceSelector, SelectorIndex, parse_resource_selector
from gitsched.model.document import Document, Key

LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)
EXPRESSION = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, **({"values": values} if operator.endswith("In") else {})},
    st.sampled_from("abc"),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.lists(st.sampled_from("xyz"), min_size=1, max_size=2),
)
SELECTORS = st.fixed_dictionaries(
    {"apiVersion": st.just("apps/v1"), "kind": st.sampled_from(("Deployment", "StatefulSet"))},
    optional={
        "namespace": st.sampled_from(("shop", "bank")),
        "name": st.sampled_from(("web", "db")),
        "labelSelector": st.fixed_dictionaries(
            {}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(EXPRESSION, max_size=3)}
        ),
    },
)
TEMPLATES = st.lists(
    st.tuples(st.sampled_from(("web", "db")), st.sampled_from(("shop", "bank", "")), LABELS), min_size=1, max_size=4
)


def make_template(name: str, namespace: str) -> Document:
    return Document(Key("apps", "Deployment", namespace, name), "apps/v1", {})


@given(st.lists(st.tuples(st.sampled_from(("", "shop")), SELECTORS), max_size=12), TEMPLATES, st.sampled_from((0, 8)))
def test_the_index_finds_what_a_comparison_finds(
    bodies: list[tuple[str, Any]], templates: list[tuple[str, str, dict[str, str]]], compared: int
) -> None:
    selectors = [(scope, parse_resource_selector(body)) for scope, body in bodies]
    index = SelectorIndex(selectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(propagation_policy, "_MAX_COMPARED", compared)
        for _ in range(2):
            for name, namespace, labels in templates:
                template = make_template(name, namespace)
                for scope in ("", "shop"):
                    found = index.match(scope, template, labels)
                    assert all(found)
                    assert all(list(positions) == sorted(positions) for positions in found)
                    expected = [n for n, (where, one) in enumerate(selectors) if where == scope and one.selects(template, labels)]
                    assert sorted(position for positions in found for position in positions) == expected
            index = pickle.loads(pickle.dumps(index))


def test_equal_answers_are_one_object_and_forgotten_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    selectors: list[ResourceSelector] = [
        parse_resource_selector({"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchExpressions": [one]}})
        for one in ({"key": "a", "operator": "DoesNotExist"}, {"key": "b", "operator": "NotIn", "values": ["x"]})
    ]
    monkeypatch.setattr(propagation_policy, "_MAX_COMPARED", 1)
    index = SelectorIndex([("", selector) for selector in selectors])
    (first,), (second,) = (index.match("", make_template("web", "shop"), {"b": value, "c": value}) for value in "yz")
    assert first is second
    assert first == (0, 1)
    monkeypatch.setattr(selector_groups, "_MAX_CACHED", 0)
    (third,) = index.match("", make_template("web", "shop"), {"a": "x"})
    assert third == (1,)
