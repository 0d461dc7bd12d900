"""The schema of a CustomResourceDefinition checks its custom resources; a hostile one costs little."""

from __future__ import annotations

import time
from typing import Any

import pytest
import yaml

from gitsched.decide.catalog import make_raw_document
from gitsched.decide.custom_resources import MAX_FINDINGS, check_custom_resources
from gitsched.manifests.custom_schemas import MAX_NODES, make_custom_schema
from tests.tables import each_row

SCHEMA = """\
type: object
required: [spec]
properties:
  metadata: {type: object}
  spec:
    type: object
    required: [size, mode]
    properties:
      size: {type: integer, minimum: 1, maximum: 10, exclusiveMaximum: true}
      mode: {type: string, default: a, enum: [a, b]}
      color: {type: string, pattern: "^[a-f0-9]{6}$"}
      port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
      free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {known: {type: string}}}
      note: {type: string, nullable: true}
      weights: {type: object, additionalProperties: {type: integer}}
      object: {type: object, x-kubernetes-embedded-resource: true, properties: {data: {type: string}}}
      source: {type: object, properties: {git: {type: string}, helm: {type: string}}, oneOf: [{required: [git]}, {required: [helm]}]}
      address:
        type: object
        properties: {type: {type: string, default: IP}, value: {type: string}}
        oneOf: [{properties: {type: {enum: [IP]}}}, {properties: {type: {not: {enum: [IP]}}}}]
"""


def find(spec: str, schema: str = SCHEMA) -> list[str]:
    compiled = make_custom_schema(yaml.safe_load(schema)).checked
    assert compiled is not None
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": yaml.safe_load(spec)}
    return [f"{issue.severity} {issue.code} {issue.message}" for issue in compiled.find_issues(body)]


@each_row(
    "spec",
    [
        "{size: 9}",  # a server fills in the mode
        "{size: 9, mode: null, note: null, color: null}",  # and removes null
        "{size: 1, port: 80}",
        "{size: 1, port: http}",
        "{size: 1, free: {known: a, other: 1}}",
        "{size: 1, weights: {a: 1}}",
        "{size: 1, object: {apiVersion: v1, kind: ConfigMap, data: a}}",
        "{size: 1, address: {value: 192.0.2.1}}",  # alternatives are about objects with their defaults
        "{size: 1, source: {git: a}, template: null}",
        "{size: 1, source: null}",
        "{size: 1, color: '${COLOR}'}",
    ],
)
def test_what_an_api_server_accepts_has_no_findings(spec: str) -> None:
    assert find(spec) == []


@each_row(
    ("spec", "expected"),
    [
        ("{size: three}", "wrong-type 'size' must be an integer, not \"three\""),
        ("{size: 10}", "out-of-range 'size' must be less than 10, not 10"),
        ("{size: 0}", "out-of-range 'size' must be at least 1, not 0"),
        ("{mode: a}", "missing-field 'spec' lacks 'size', which is required"),
        ("{size: 1, mode: c}", 'value-not-allowed \'mode\' must be "a" or "b", not "c"'),
        ("{size: 1, colour: abcdef}", "unknown-field the field 'colour' is unknown to the CustomResourceDefinition"),
        ("{size: 1, color: red}", "invalid-field"),
        ("{size: 1, port: 1.5}", "wrong-type"),
        ("{size: 1, free: {known: 1}}", "wrong-type 'known' must be a string, not 1"),
        ("{size: 1, weights: {a: x}}", "wrong-type 'a' must be an integer"),
        ("{size: 1, source: {git: a, helm: b}}", "invalid-field"),
    ],
)
def test_a_mistake_is_a_warning(spec: str, expected: str) -> None:
    (found,) = find(spec)
    assert found.startswith(f"warning {expected}")


def nest(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (nest(150), "it is nested more than 100 deep"),
        ({"type": "object", "properties": {f"p{number}": {} for number in range(MAX_NODES)}}, "it has more than 20,000 schemas"),
        ({"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}] * 2_000}}}, "more than 1,000 schemas in anyOf"),
        ({"$ref": "https://example.com/schema.json"}, ""),
        ({"type": "object", "properties": {"a": {"type": "nonsense"}}}, "it is no valid JSON Schema"),
        ({"type": "array"}, ""),
    ],
    ids=["deep", "wide", "alternatives", "reference", "unknown type", "no object"],
)
def test_a_schema_that_cannot_be_used_checks_nothing_and_says_why(schema: dict[str, Any], reason: str) -> None:
    made = make_custom_schema(schema)
    assert (made.checked, reason in made.unchecked) == (None, True)
    assert reason or not made.unchecked


def test_references_of_a_schema_are_not_followed() -> None:
    schema = {"type": "object", "properties": {"spec": {"$ref": "file:///etc/passwd", "type": "object"}}}
    compiled = make_custom_schema(schema).checked
    assert compiled is not None
    assert compiled.find_issues({"spec": {"a": 1}}) == []


def test_findings_about_custom_resources_are_limited() -> None:
    version = {"name": "v1", "schema": {"openAPIV3Schema": yaml.safe_load(SCHEMA)}}
    spec = {"group": "example.com", "names": {"kind": "Widget"}, "versions": [version]}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "a"},
        "spec": spec,
    }
    widgets = [
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"w{number}"}, "spec": {"size": "x"}}
        for number in range(MAX_FINDINGS + 1)
    ]
    result = check_custom_resources(map(make_raw_document, [definition, *widgets]), frozenset(), "warning")
    assert len(result.findings) == MAX_FINDINGS + 1
    assert "1 further" in result.findings[-1].message


@pytest.mark.parametrize("pattern", ["^(a+)+$", "(a*)*(a*)*b", "^(a|a?)+$", "(", "a{1,1000}{1,1000}{1,1000}"])
def test_a_hostile_pattern_costs_little(pattern: str) -> None:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}},
    }
    started = time.monotonic()
    compiled = make_custom_schema(schema).checked
    assert compiled is not None
    found = compiled.find_issues({"spec": {"a": "a" * 50_000 + "!"}})
    assert len(found) <= 1
    assert time.monotonic() - started < 2
