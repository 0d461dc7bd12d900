"""The result of each overrider, or the message when it cannot be applied."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject, format_pointer, parse_pointer
from gitsched.apis.karmada.overrides.overriders import apply_overriders, list_overriders, parse_image
from gitsched.model.json_values import is_same_json
from gitsched.render.yaml import dump
from tests.tables import each_row

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web, tier: front}}
spec:
  replicas: 3
  template:
    spec:
      initContainers: [{name: prepare, image: docker.io/prepare:1}]
      containers:
      - {name: nginx, image: "docker.io/library/nginx:1.25", command: [nginx], args: [-g, daemon off;, -q]}
      - {name: sidecar, image: registry.k8s.io/pause}
"""
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data:
  app.json: '{"port": 80, "rate": 1.50, "hosts": ["a", "b"]}'
  app.yaml: "# listens\\nport: 80\\nhosts:\\n- a\\n- b\\n"
  note: plain words
"""
CASES, REFUSED = (
    yaml.safe_load(Path(__file__).with_name(name).read_text()) for name in ("overriders.yaml", "overriders-refused.yaml")
)
OBJECTS = {"Deployment": yaml.safe_load(DEPLOYMENT), "ConfigMap": yaml.safe_load(CONFIG)}


def override(kind: str, overriders: Any) -> Any:
    draft = PatchedObject(OBJECTS[kind])
    apply_overriders(draft, overriders)
    return draft.root


@each_row("case", CASES)
def test_an_overrider_changes_only_what_it_names(case: Any) -> None:
    kind = case.get("to", "Deployment")
    expected = PatchedObject(yaml.safe_load(DEPLOYMENT if kind == "Deployment" else CONFIG))
    for path, value in case["changes"].items():
        expected.apply("add" if path.split("/")[-1].isalpha() else "replace", parse_pointer(path), value)
    assert override(kind, case["overriders"]) == expected.root
    assert is_same_json(override(kind, case["overriders"]), expected.root)
    assert OBJECTS[kind] == yaml.safe_load(DEPLOYMENT if kind == "Deployment" else CONFIG), "the template itself stays"
    if not case["changes"]:
        assert is_same_json(override(kind, case["overriders"]), OBJECTS[kind])


@each_row("case", REFUSED)
def test_an_overrider_that_cannot_be_applied_says_where_and_why(case: Any) -> None:
    with pytest.raises(InapplicablePatch) as caught:
        override(case["to"], case["overriders"])
    assert str(caught.value) == case["why"]


DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nginx", ("", "nginx", "", "")),
        ("nginx:1", ("", "nginx", "1", "")),
        ("library/nginx", ("", "library/nginx", "", "")),
        ("docker.io/nginx", ("docker.io", "nginx", "", "")),
        ("localhost/a/b_c:v1", ("localhost", "a/b_c", "v1", "")),
        ("host:5000/a", ("host:5000", "a", "", "")),
        ("[::1]:5000/a", ("[::1]:5000", "a", "", "")),
        (f"a/b@{DIGEST}", ("", "a/b", "", DIGEST)),
        (f"a/b:2@{DIGEST}", ("", "a/b", "2", "")),
    ],
)
def test_an_image_name_has_a_registry_only_with_a_dot_a_port_or_localhost(text: str, parts: tuple[str, ...]) -> None:
    assert parse_image(text) == parts
    assert str(parse_image(text)) == text.partition("@")[0] or "@" in text


@each_row(
    "text", ["", "Nginx", "a b", ":1", "a/", "/a", "a@sha256:12", f"a@md5:{'ab' * 32}", "a:", "x" * 256, "${IMAGE}", "a" * 5000]
)
def test_an_invalid_image_name_is_rejected(text: str) -> None:
    with pytest.raises(InapplicablePatch):
        parse_image(text)


def test_the_overriders_of_a_rule_are_listed_as_they_are_applied() -> None:
    overriders = {"plaintext": [{}], "imageOverrider": [{}], "argsOverrider": []}
    assert list_overriders(overriders) == ("imageOverrider", "plaintext")


STEPS = st.lists(st.text(max_size=6), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["", "a", "b", "0", "-", "spec", "x/~y"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(STEPS)
def test_a_pointer_is_read_as_it_is_written(steps: list[str]) -> None:
    assert parse_pointer(format_pointer(steps)) == tuple(steps)


@given(JSON, st.lists(st.sampled_from(["", "a", "b", "0", "1", "-", "-1", "01", "spec", "x/~y"]), min_size=1, max_size=4), JSON)
def test_an_added_value_is_found_and_the_original_does_not_change(before: Any, steps: list[str], value: Any) -> None:
    copy = deepcopy(before)
    draft = PatchedObject(before)
    try:
        draft.apply("add", steps, value)
    except InapplicablePatch:
        pass
    else:
        if steps[-1] not in ("-", "-1", "01"):
            assert is_same_json(draft.find_value(steps), value)
    assert is_same_json(before, copy)


OVERRIDER = st.fixed_dictionaries(
    {
        "operator": st.sampled_from(["add", "remove", "replace"]),
        "path": st.sampled_from(
            ["", "/", "spec", "/spec", "/spec/template/spec/containers", "/data/app.yaml", "/metadata", "/metadata/labels"]
        ),
        "component": st.sampled_from(["Registry", "Repository", "Tag"]),
        "containerName": st.sampled_from(["nginx", "sidecar", ""]),
    }
)


@given(
    JSON,
    st.lists(OVERRIDER, max_size=3),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
    st.text(max_size=12),
    st.sampled_from(["Deployment", "Pod", "ConfigMap"]),
)
def test_any_overrider_changes_any_object_or_says_why_not(
    spec: Any, entries: list[Any], labels: dict[str, str], value: str, kind: str
) -> None:
    root = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "labels": spec}, "spec": spec, "data": {"app.yaml": value}}
    predicates = [{**entry, "value": value, "predicate": {"path": entry["path"]}} for entry in entries]
    words = [{**entry, "value": [value]} for entry in entries]
    edits = [{"subPath": entry["path"], "operator": entry["operator"], "value": spec} for entry in entries]
    overriders = {
        "imageOverrider": [*predicates, *({**entry, "value": value} for entry in entries)],
        "commandOverrider": words,
        "argsOverrider": words,
        "labelsOverrider": [{**entry, "value": labels} for entry in entries],
        "annotationsOverrider": [{**entry, "value": labels} for entry in entries],
        "fieldOverrider": [{"fieldPath": "/data/app.yaml", "yaml": edits}, {"fieldPath": "/data/app.yaml", "json": edits}],
        "plaintext": [{**entry, "value": spec} for entry in entries],
    }
    for name, entry in overriders.items():
        draft = PatchedObject(root)
        with suppress(InapplicablePatch):
            apply_overriders(draft, {name: entry})
            assert (draft.root["kind"], draft.root["metadata"]["name"]) == (kind, "x")


def test_the_depth_of_a_patch_is_limited() -> None:
    deep: Any = {}
    for _ in range(150):
        deep = {"a": deep}
    place = "/spec"
    draft = PatchedObject({**OBJECTS["Deployment"], "spec": {}})
    apply_overriders(draft, {"plaintext": [{"path": (place := f"{place}/a"), "operator": "add", "value": {}} for _ in range(190)]})
    apply_overriders(draft, {"plaintext": [{"path": f"{place}/a", "operator": "add", "value": deep}]})
    assert dump(draft.root)
    assert is_same_json(draft.root, deepcopy(draft.root))
    with pytest.raises(InapplicablePatch, match="more than the maximum of 200"):
        apply_overriders(draft, {"plaintext": [{"path": "/spec" + "/a" * 200, "operator": "add", "value": {}}]})


@pytest.mark.parametrize(
    "text",
    ["[" * 5000 + "]" * 5000, "{" * 5000, "- " * 500, "a: &a [*a]", "\ud800", "a\x00b", "1" * 5000, "NaN", '{"a": .inf}'],
)
def test_a_field_with_an_excessive_value_is_rejected(text: str) -> None:
    for language in ("json", "yaml"):
        entry = {"fieldPath": "/data/x", language: [{"subPath": "/a", "operator": "remove"}]}
        with pytest.raises(InapplicablePatch):
            apply_overriders(PatchedObject({**OBJECTS["ConfigMap"], "data": {"x": text}}), {"fieldOverrider": [entry]})


def test_the_number_of_arguments_is_limited() -> None:
    """Every overrider copies what the ones before it made, so thousands of long ones would never end."""
    more = {"containerName": "nginx", "operator": "add", "value": ["x"] * 100}
    with pytest.raises(InapplicablePatch, match="the args of container 0 would have more than 10000 entries"):
        override("Deployment", {"argsOverrider": [more] * 5_000})
