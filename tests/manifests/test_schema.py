"""Validate documents against JSON Schemas, and prune unknown fields."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator
from referencing import Registry

from gitsched.manifests.parser import parse_file
from gitsched.manifests.schema import SchemaPruner, SchemaValidator, get_schema_key
from tests.tables import each_row

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["mode", "size"],
            "properties": {
                "mode": {"enum": ["Duplicated", "Divided"]},
                "size": {"type": "integer", "minimum": 0, "maximum": 10},
                "taints": {"type": "array", "items": {"$ref": "#/$defs/Taint"}, "maxItems": 3},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "string"}},
                },
                "quantity": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^[0-9]+[mk]?$"}]},
                "both": {"allOf": [{"properties": {"left": {"type": "string"}}}, {"properties": {"right": {"type": "string"}}}]},
            },
        }
    },
    "$defs": {
        "Taint": {
            "type": "object",
            "required": ["key"],
            "properties": {"key": {"type": "string", "minLength": 1}, "effect": {"type": "string"}},
        }
    },
}
KEY = ("example.io", "v1", "Thing")
SCHEMAS = SchemaValidator({KEY: SCHEMA})
GOOD: dict[str, Any] = {"mode": "Divided", "size": 1}


def check(spec: object) -> list[tuple[str, str, str]]:
    body = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}
    return [(i.severity, ".".join(map(str, i.pointer)), i.message) for i in SCHEMAS.validate(body).issues]


@each_row(
    ("spec", "place", "message"),
    [
        (
            {**GOOD, "mode": "Divided "},
            "spec.mode",
            '\'mode\' must be "Duplicated" or "Divided", not "Divided "; did you mean "Divided"?',
        ),
        ({"mode": "Divided"}, "spec", "'spec' lacks 'size', which is required"),
        ({**GOOD, "size": "3"}, "spec.size", "'size' must be an integer, not \"3\""),
        ({**GOOD, "size": True}, "spec.size", "'size' must be an integer, not true"),
        ({**GOOD, "size": 11}, "spec.size", "'size' must be at most 10, not 11"),
        ({**GOOD, "size": -1}, "spec.size", "'size' must be at least 0, not -1"),
        (
            {**GOOD, "taints": {}},
            "spec.taints",
            "'taints' must be a list, not a mapping; make it an entry of a list, with \"- \" before it",
        ),
        ({**GOOD, "taints": ["a"]}, "spec.taints.0", 'entry 0 must be a mapping, not "a"'),
        ({**GOOD, "taints": [{"key": ""}]}, "spec.taints.0.key", "'key' must not be empty"),
        ({**GOOD, "taints": [{"key": "a"}] * 4}, "spec.taints", "'taints' must have at most 3 entries, not 4"),
        ({**GOOD, "labels": {"a": None}}, "spec.labels.a", "'a' must be a string, not null"),
        (None, "spec", "'spec' must be a mapping, not null"),
    ],
)
def test_an_error_has_a_plain_message_and_its_location(spec: object, place: str, message: str) -> None:
    assert check(spec) == [("error", place, message)]


def test_a_value_that_matches_no_alternative_lists_all_of_them() -> None:
    ((_, place, message),) = check({**GOOD, "quantity": 1.5})
    assert place == "spec.quantity"
    assert "must be an integer, not 1.5; or must be a string, not 1.5" in message


def test_every_error_is_reported_once_in_the_order_of_locations() -> None:
    assert [place for _, place, _ in check({"mode": 1, "size": "x", "taints": [{}, {"key": 1}]})] == [
        "spec.mode",
        "spec.size",
        "spec.taints.0",
        "spec.taints.1.key",
    ]


@pytest.mark.parametrize(
    ("extra", "place", "hint"),
    [
        ({"moed": 1}, "spec.moed", "did you mean 'mode'?"),
        ({"Labels": {}}, "spec.Labels", "did you mean 'labels'?"),
        ({"xyz": 1}, "spec.xyz", "is unknown and ignored"),
        ({"taints": [{"key": "a", "efect": "x"}]}, "spec.taints.0.efect", "did you mean 'effect'?"),
        ({"both": {"left": "a", "wrong": 1}}, "spec.both.wrong", "is unknown and ignored"),
    ],
)
def test_an_unknown_field_is_pruned_with_a_warning(extra: dict[str, Any], place: str, hint: str) -> None:
    ((severity, where, message),) = check({**GOOD, **extra})
    assert (severity, where) == ("warning", place)
    assert message.endswith(hint)


def test_pruning_does_not_modify_the_given_document() -> None:
    body = {
        "apiVersion": "example.io/v1",
        "kind": "Thing",
        "metadata": {"odd": 1},
        "status": {"odd": 1},
        "spec": {**GOOD, "odd": 1},
        "top": 1,
    }
    before = copy.deepcopy(body)
    verdict = SCHEMAS.validate(body)
    assert body == before
    assert verdict.body == {name: GOOD if name == "spec" else value for name, value in before.items() if name != "top"}
    assert [issue.pointer for issue in verdict.issues] == [("spec", "odd"), ("top",)]


@pytest.mark.parametrize("extra", [{"free": {"known": "a", "other": 1}}, {"labels": {"any": "x"}}, {}])
def test_objects_with_additional_properties_are_not_pruned(extra: dict[str, Any]) -> None:
    body = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {}, "spec": {**GOOD, **extra}}
    verdict = SCHEMAS.validate(body)
    assert verdict.issues == ()
    assert verdict.body is body


def test_a_kind_without_a_schema_has_no_issues() -> None:
    body = {"apiVersion": "example.io/v1", "kind": "Cabinet", "spec": 1}
    assert SCHEMAS.validate(body) == (body, ())


@pytest.mark.parametrize("reference", ["https://example.com/schema.json", "file:///etc/passwd", "other.json#/a"])
def test_a_reference_outside_the_schema_is_an_error(reference: str) -> None:
    schemas = SchemaValidator({KEY: {"type": "object", "properties": {"spec": {"$ref": reference}}}})
    with pytest.raises(ValueError, match="outside of it"):
        schemas.validate({"apiVersion": "example.io/v1", "kind": "Thing", "spec": {}})


def test_an_error_that_only_the_compiled_validator_finds_has_its_message() -> None:
    schemas = SchemaValidator({KEY: {"properties": {"spec": {"pattern": "^[a-z]+$"}}}})
    (issue,) = schemas.validate({"apiVersion": "example.io/v1", "kind": "Thing", "spec": "abc\n"}).issues
    assert (issue.severity, issue.pointer) == ("error", ("spec",))


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"apiVersion": "v1", "kind": "Pod"}, ("", "v1", "Pod")),
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, ("apps", "v1", "Deployment")),
        ({}, ("", "", "")),
    ],
)
def test_schema_keys(body: dict[str, Any], key: tuple[str, str, str]) -> None:
    assert get_schema_key(body) == key


def test_parsing_adds_line_and_column_to_an_issue() -> None:
    head = "apiVersion: example.io/v1\nkind: Thing\nmetadata:\n  name: a\n"
    text = head + "spec:\n  mode: Divided\n  size: 11\n  taints:\n  - key: b\n    efect: x\n"
    file = parse_file(text.encode(), path="a.yaml", validate=SCHEMAS.validate)
    assert [(p.severity, p.code, p.line, p.column, p.resource) for p in file.issues] == [
        ("error", "out-of-range", 7, 9, ("Thing", "", "a")),
        ("warning", "unknown-field", 10, 5, ("Thing", "", "a")),
    ]
    assert file.documents[0].broken
    assert file.documents[0].body["spec"]["taints"] == [{"key": "b"}]


def test_an_error_found_by_schema_and_api_rules_is_reported_once() -> None:
    schema = {"properties": {"metadata": {"properties": {"labels": {"additionalProperties": {"type": "string"}}}}}}
    text = b"apiVersion: example.io/v1\nkind: Thing\nmetadata:\n  name: a\n  labels: {x: 1}\n"
    file = parse_file(text, path="a.yaml", validate=SchemaValidator({KEY: schema}).validate)
    assert [p.code for p in file.issues] == ["invalid-labels"]


SHIPPED = {
    (path.parent.parent.name, path.parent.name, path.stem): json.loads(path.read_text("utf-8"))
    for path in sorted((Path(__file__).parents[2] / "schemas").glob("*/*/*.json"))
}


def _examples() -> list[tuple[tuple[str, str, str], dict[str, Any]]]:
    return [(key, example) for key, schema in SHIPPED.items() for example in schema.get("examples", [])]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "spec", "name", "x"]), inner, max_size=3),
    max_leaves=5,
)


def _mutate(data: st.DataObject, value: Any) -> Any:
    """The value with one place in it replaced, removed or left alone."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 5)):
        name = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.booleans()) and data.draw(st.booleans()):
            return {k: v for k, v in value.items() if k != name}
        return {k: _mutate(data, v) if k == name else v for k, v in value.items()}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)):
        place = data.draw(st.integers(0, len(value) - 1))
        return [_mutate(data, v) if i == place else v for i, v in enumerate(value)]
    return data.draw(values | st.just(value))


@given(st.data())
def test_validator_and_explanation_agree(data: st.DataObject) -> None:
    cases = _examples() or [(KEY, {"apiVersion": "example.io/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": GOOD})]
    mapping = {**SHIPPED, KEY: SCHEMA}
    key, example = data.draw(st.sampled_from(cases))
    body = _mutate(data, _mutate(data, example))
    if not isinstance(body, dict) or get_schema_key(body) != key:
        return
    verdict = ALL.validate(body)
    slow = jsonschema.Draft202012Validator(mapping[key], registry=Registry()).is_valid(verdict.body)
    assert slow == (not any(issue.severity == "error" for issue in verdict.issues))


@given(st.data())
def test_the_strict_schema_accepts_exactly_the_documents_without_issues(data: st.DataObject) -> None:
    key, example = data.draw(st.sampled_from([*_examples(), (KEY, {"apiVersion": "example.io/v1", "kind": "Thing", "spec": GOOD})]))
    body = _mutate(data, _mutate(data, example))
    if not isinstance(body, dict):
        return
    pruner, plain, closed = _compile(key)
    pruned, issues = pruner.prune(body)
    assert closed.is_valid(body) == (pruned is body and not issues and plain.is_valid(body))


@cache
def _compile(key: tuple[str, str, str]) -> tuple[SchemaPruner, Draft202012Validator, Draft202012Validator]:
    schema = {**SHIPPED, KEY: SCHEMA}[key]
    pruner = SchemaPruner(schema)
    return pruner, Draft202012Validator(schema), Draft202012Validator(pruner.make_strict_schema())


ALL = SchemaValidator({**SHIPPED, KEY: SCHEMA})


@each_row(
    ("version", "kind", "message"),
    [
        ("policy.karmada.io/v1", "PropagationPolicy", "error: PropagationPolicy is read as policy.karmada.io/v1alpha1, not as"),
        ("cluster.open-cluster-management.io/v1", "Placement", "is read as {0}/v1beta1 or {0}/v1alpha1, not as {0}/v1"),
        ("gitsched.io/v1", "Config", "error: Config is read as gitsched.io/v1alpha1"),
        (
            "cluster.karmada.io/v1alpha1",
            "Clustr",
            "error: there is no kind 'Clustr' in cluster.karmada.io; did you mean Cluster?",
        ),
        ("cluster.open-cluster-management.io/v1beta1", "Placment", "did you mean Placement?"),
        (
            "policy.karmada.io/v1alpha1",
            "propagationpolicies",
            "error: there is no kind 'propagationpolicies' in {0}; did you mean Prop",
        ),
        *(
            (
                version,
                "PropagationPolicy",
                f"error: {version!r} has no kind PropagationPolicy; did you mean policy.karmada.io/v1alpha1?",
            )
            for version in (
                "policy.karmda.io/v1alpha1",
                "policy.karmada.io",
                "cluster.karmada.io/v1alpha1",
                "policies.karmada.io/v1alpha1",
                "karmada.io/v1alpha1",
                "karmda.io/v1",
                "v1",
                "apps/v1",
            )
        ),
        ("open-cluster-management.io/v1", "ManagedCluster", "did you mean cluster.open-cluster-management.io/v1?"),
        ("gitsched.dev/v1alpha1", "Bundle", "did you mean gitsched.io/v1alpha1?"),
        ("kubernetes/v1", "Application", "Application is read as `api: kubernetes` without apiVersion, not as kubernetes/v1"),
        ("v1", "Config", ""),
        ("argoproj.io/v1alpha1", "Application", ""),
        ("argoproj.io/v1alpha1", "Rollout", ""),
        ("fleet.cattle.io/v1alpha1", "Bundle", ""),
        ("project.openshift.io/v1", "Project", ""),
        ("work.open-cluster-management.io/v1", "ManifestWork", ""),
        ("policy.karmada.io/v1alpha1", "FederatedResourceQuota", ""),
        ("cluster.x-k8s.io/v1beta1", "Cluster", "info: this Cluster of Cluster API says how a cluster is created"),
        ("apps/v1", "Deployment", ""),
    ],
)
def test_a_misspelt_type_of_a_document_is_reported(version: str, kind: str, message: str) -> None:
    issues = ALL.validate({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": 3}).issues
    issues = [f"{issue.severity}: {issue.message}" for issue in issues]
    assert len(issues) == bool(message)
    assert message.format(version.partition("/")[0]) in "".join(issues)
