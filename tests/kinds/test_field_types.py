"""A field of another project's kind that is read and has another type is an error at its place; a correct object has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gitsched.decide.validation import validate_source_document
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.field_types import make_field_schema
from gitsched.kinds.read_fields import READ_FIELDS
from gitsched.kinds.table import load_table
from gitsched.model.finding import Issue

SCENARIOS = Path(__file__).parents[1] / "scenarios"
OBJECTS: list[dict[str, Any]] = [
    body for body in yaml.safe_load_all((SCENARIOS / "mutated_kinds.yaml").read_text()) if body is not None
]
OTHER_VALUES: dict[str, tuple[Any, ...]] = {
    "string": (5, True, ["x"], {"a": 5}),
    "integer": ("x", ["x"], {"a": 5}),
    "boolean": ("x", 5, {"a": 5}),
    "object": (5, ["x"]),
    "array": (5, {"a": 5}),
}


def find_issues(body: dict[str, Any]) -> list[Issue]:
    return [issue for issue in validate_source_document(body).issues if issue.code == "wrong-type"]


def list_typed(
    schema: dict[str, Any], value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], set[str]]]:
    """Yield the path and the types of each field of a value that a schema describes."""
    if path and "type" in schema:
        yield path, {*schema["type"]} - {"null"}
    for name, part in value.items() if isinstance(value, dict) else ():
        if name in schema.get("properties", {}):
            yield from list_typed(schema["properties"][name], part, (*path, name))
    for index, part in enumerate(value if isinstance(value, list) else ()):
        yield from list_typed(schema.get("items", {}), part, (*path, index))


def replace(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    copy: Any = value.copy()
    copy[path[0]] = replace(value[path[0]], path[1:], new)
    return copy


def list_described() -> list[dict[str, Any]]:
    return [body for body in OBJECTS if make_field_schema(*identify(body)) is not None]


def identify(body: dict[str, Any]) -> tuple[str, str]:
    return str(body.get("apiVersion", "")).rpartition("/")[0], str(body["kind"])


@pytest.mark.parametrize("kind", sorted({*load_table(), *COMPANION_KINDS, *READ_FIELDS}, key=str), ids=str)
def test_the_fields_of_each_kind_are_a_schema(kind: tuple[str, str]) -> None:
    schema = make_field_schema(*kind)
    if schema is not None:
        Draft202012Validator.check_schema(schema)
        assert not list(Draft202012Validator(schema).iter_errors({"spec": None, "metadata": {"name": "a"}}))


def test_each_field_with_another_type_is_an_error_at_its_place() -> None:
    count = 0
    for body in list_described():
        assert not find_issues(body), body["kind"]
        for path, types in list_typed(make_field_schema(*identify(body)) or {}, body):
            for value in {repr(value): value for name in types for value in OTHER_VALUES[name]}.values():
                if any(fits(value, name) for name in types):
                    continue
                found = find_issues(replace(body, path, value))
                assert [(issue.severity, issue.pointer) for issue in found] == [("error", path)], (body["kind"], path, value)
                count += 1
    assert count > 500


def fits(value: Any, name: str) -> bool:
    kinds: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "object": dict, "array": list}
    return isinstance(value, kinds[name]) and not (name == "integer" and isinstance(value, bool))


def test_what_a_delivery_tool_fills_in_may_have_another_type() -> None:
    body = next(body for body in OBJECTS if body["kind"] == "ScaledObject")
    assert not find_issues({**body, "spec": {**body["spec"], "minReplicaCount": "${MINIMUM}", "maxReplicaCount": None}})


def test_fields_that_nothing_reads_have_no_type() -> None:
    body = next(body for body in OBJECTS if body["kind"] == "ScaledObject")
    assert not find_issues({**body, "spec": {**body["spec"], "advanced": ["x"], "cooldownPeriod": {"a": "b"}}})


@pytest.mark.parametrize(
    ("kind", "field", "value", "expected"),
    [
        (
            "kustomize.toolkit.fluxcd.io/v1 Kustomization",
            "interval",
            "5minutes",
            "'interval' must be a duration such as 10m or 1h30m",
        ),
        ("kustomize.toolkit.fluxcd.io/v1 Kustomization", "retryInterval", "1d", "'retryInterval' must be a duration"),
        ("kustomize.toolkit.fluxcd.io/v1 Kustomization", "timeout", "1h", ""),
        ("kustomize.toolkit.fluxcd.io/v1 Kustomization", "interval", "${INTERVAL}", ""),
        ("source.toolkit.fluxcd.io/v1 GitRepository", "interval", "1h30m0.5s", ""),
        (
            "source.toolkit.fluxcd.io/v1 GitRepository",
            "timeout",
            "1h",
            "'timeout' must be a duration such as 90s or 2m, without hours",
        ),
        ("helm.toolkit.fluxcd.io/v2 HelmRelease", "timeout", "10", "'timeout' must be a duration such as 10m or 1h30m"),
    ],
)
def test_durations_have_the_units_of_flux(kind: str, field: str, value: str, expected: str) -> None:
    version, _, name = kind.partition(" ")
    body = {"apiVersion": version, "kind": name, "metadata": {"name": "a"}, "spec": {field: value}}
    messages = [issue.message for issue in validate_source_document(body).issues if issue.severity == "error"]
    assert len(messages) == bool(expected)
    assert all(message.startswith(expected) for message in messages)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("directory.exclude", True),
        ("directory.include", ["a.yaml"]),
        ("directory.recurse", "true"),
        ("directory.disableExtensionFilter", "true"),
        ("directory.jsonnet", []),
        ("helm.skipSchemaValidation", "true"),
        ("helm.skipTests", 1),
        ("helm.passCredentials", "yes"),
        ("helm.version", 3),
        ("helm.fileParameters", [{"name": "a", "path": 5}]),
        ("kustomize.forceCommonLabels", "true"),
        ("kustomize.ignoreMissingComponents", "true"),
        ("kustomize.patches", [{"patch": "", "target": {"kind": 5}}]),
        ("kustomize.patches", [{"patch": "", "options": {"allowNameChange": "true"}}]),
        ("name", 5),
    ],
)
def test_the_fields_of_a_source_have_the_types_of_argo_cd_wherever_it_is(field: str, wrong: Any) -> None:
    source: Any = wrong
    for name in reversed(field.split(".")):
        source = {name: source}
    specs = [{"source": source}, {"sources": [source]}, {"sourceHydrator": {"drySource": source}}]
    found = [find_issues({"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": spec}) for spec in specs]
    found += [
        find_issues({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": {"template": {"spec": spec}}})
        for spec in specs
    ]
    assert [[issue.severity for issue in issues] for issues in found] == [["error"]] * 6


@pytest.mark.parametrize(
    "generator",
    [
        {"git": {"files": [{"path": "a", "exclude": "true"}]}},
        {"git": {"directories": {"path": "a"}}},
        {"git": {"values": {"a": 5}}},
        {"clusters": {"flatList": "true"}},
        {"clusters": {"values": {"a": True}}},
        {"clusters": {"selector": {"matchExpressions": [{"key": 5}]}}},
        {"selector": {"matchLabels": {"a": 5}}},
        {"list": {"elements": {"a": "b"}}},
    ],
)
def test_the_fields_of_a_generator_have_the_types_of_argo_cd_in_others_too(generator: Any) -> None:
    generators = [generator, {"matrix": {"generators": [generator]}}, {"merge": {"generators": [generator]}}]
    for one in generators:
        found = find_issues({"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "spec": {"generators": [one]}})
        assert [issue.severity for issue in found] == ["error"], one
