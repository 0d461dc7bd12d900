"""Rules that all shipped JSON Schemas follow."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from tests.tables import each_row

ROOT = Path(__file__).parents[2] / "schemas"
FILES = sorted(ROOT.glob("*/*/*.json"))
SCHEMAS = [pytest.param(json.loads(file.read_text("utf-8")), id=file.stem) for file in FILES]
each_schema = pytest.mark.parametrize("schema", SCHEMAS)

WORDS = {"x-gitsched-chooses", "title", "description", "default", "examples", "deprecated", "type", "enum", "const", "required"}
LIMITS = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"}
NESTED = {"items", "additionalProperties"}
NAMED = {"properties", "$defs"}
PLACED = {"anyOf"}
KNOWN = WORDS | LIMITS | NESTED | NAMED | PLACED | {"$ref"}
PATTERN = re.compile(r"\^.*\$\(\?!\\n\)")
DIALECT = re.compile(r"\\[dDwWsSbBAZz]|\(\?[^:!]|\(\?![^\\]|[*+?}][+]|\[\^|\\[pPuxk]")


def walk(node: Any, at: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every subschema with its place."""
    if not isinstance(node, dict):
        return
    yield at, node
    for word in NESTED & node.keys():
        yield from walk(node[word], f"{at}/{word}")
    for word in NAMED & node.keys():
        for name, child in node[word].items():
            yield from walk(child, f"{at}/{word}/{name}")
    for word in PLACED & node.keys():
        for index, child in enumerate(node[word]):
            yield from walk(child, f"{at}/{word}/{index}")


def alone(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    return {**node, "$defs": schema["$defs"]}


def test_every_kind_is_there() -> None:
    assert [str(file.relative_to(ROOT).with_suffix("")) for file in FILES] == [
        "apps.karmada.io/v1alpha1/WorkloadRebalancer",
        "cluster.karmada.io/v1alpha1/Cluster",
        "cluster.open-cluster-management.io/v1/ManagedCluster",
        "cluster.open-cluster-management.io/v1alpha1/AddOnPlacementScore",
        "cluster.open-cluster-management.io/v1alpha1/Placement",
        "cluster.open-cluster-management.io/v1beta1/Placement",
        "cluster.open-cluster-management.io/v1beta1/PlacementDecision",
        "cluster.open-cluster-management.io/v1beta2/ManagedClusterSet",
        "cluster.open-cluster-management.io/v1beta2/ManagedClusterSetBinding",
        "core/krake/GlobalMetric",
        "core/krake/GlobalMetricsProvider",
        "core/krake/Metric",
        "core/krake/MetricsProvider",
        "gitsched.io/v1alpha1/Bundle",
        "gitsched.io/v1alpha1/ClusterFacts",
        "gitsched.io/v1alpha1/ClusterReport",
        "gitsched.io/v1alpha1/ClusterScores",
        "gitsched.io/v1alpha1/Config",
        "gitsched.io/v1alpha1/OperatorConfig",
        "gitsched.io/v1alpha1/Rollout",
        "gitsched.io/v1alpha1/RolloutReport",
        "gitsched.io/v1alpha1/Tenant",
        "infrastructure/krake/Cloud",
        "infrastructure/krake/GlobalCloud",
        "infrastructure/krake/GlobalInfrastructureProvider",
        "infrastructure/krake/InfrastructureProvider",
        "kubernetes/krake/Application",
        "kubernetes/krake/Cluster",
        "openstack/krake/MagnumCluster",
        "openstack/krake/Project",
        "policy.karmada.io/v1alpha1/ClusterOverridePolicy",
        "policy.karmada.io/v1alpha1/ClusterPropagationPolicy",
        "policy.karmada.io/v1alpha1/ClusterTaintPolicy",
        "policy.karmada.io/v1alpha1/OverridePolicy",
        "policy.karmada.io/v1alpha1/PropagationPolicy",
        "work.karmada.io/v1alpha2/ClusterResourceBinding",
        "work.karmada.io/v1alpha2/ResourceBinding",
        "work.open-cluster-management.io/v1alpha1/ManifestWorkReplicaSet",
    ]


@each_row("file", FILES)
def test_a_schema_describes_the_kind_of_its_path(file: Path) -> None:
    schema = json.loads(file.read_text("utf-8"))
    group, version, _ = file.relative_to(ROOT).parts
    # Krake's documents have an `api` without a version.
    member, value = ("api", group) if version == "krake" else ("apiVersion", f"{group}/{version}")
    assert schema["properties"][member]["const"] == value
    assert schema["properties"]["kind"]["const"] == schema["title"] == file.stem
    assert {member, "kind"} <= set(schema["required"])


@each_schema
def test_a_schema_is_valid_and_uses_supported_keywords_only(schema: dict[str, Any]) -> None:
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)
    assert jsonschema_rs.meta.is_valid(schema)
    unknown = {at: extra for at, node in walk(schema) if (extra := node.keys() - KNOWN - ({"$schema"} if at == "#" else set()))}
    assert unknown == {}


@each_schema
def test_a_schema_refers_only_to_itself(schema: dict[str, Any]) -> None:
    targets = {node["$ref"] for _, node in walk(schema) if "$ref" in node}
    assert targets == {f"#/$defs/{name}" for name in schema["$defs"]}, "every definition is in the file, and every one is used"


@each_schema
def test_every_property_is_described(schema: dict[str, Any]) -> None:
    silent = [
        f"{at}/{name}"
        for at, node in walk(schema)
        for name, child in node.get("properties", {}).items()
        if not child.get("description")
    ]
    assert silent == []
    assert all(node.get("title") and node.get("description") for node in [schema, *schema["$defs"].values()])
    assert all(node["description"].endswith(".") for _, node in walk(schema) if "description" in node)


@each_schema
def test_an_editor_marks_unknown_members(schema: dict[str, Any]) -> None:
    compiled = jsonschema_rs.validator_for(schema)
    for example in schema["examples"]:
        own = next((name for name in ("spec", "scores", "decisions") if isinstance(example.get(name), dict)), None)
        assert not compiled.is_valid({**example, "unheard": 1})
        assert own is None or not compiled.is_valid({**example, own: {**example[own], "unheard": 1}})
        assert compiled.is_valid({**example, "metadata": {**example.get("metadata", {"name": "a"}), "uid": "1"}})
    for at, node in walk(schema):
        if "object" in node.get("type", ""):
            assert "properties" in node or "additionalProperties" in node, f"{at}: neither members nor a free map"


@each_schema
def test_examples_and_defaults_validate(schema: dict[str, Any]) -> None:
    assert schema["examples"], "a kind has a complete example"
    for at, node in walk(schema):
        for value in [*node.get("examples", []), *([node["default"]] if "default" in node else [])]:
            errors = [error.message for error in Draft202012Validator(alone(node, schema)).iter_errors(value)]
            assert errors == [], at
            assert jsonschema_rs.is_valid(alone(node, schema), value), at


@each_schema
def test_an_integer_does_not_accept_a_boolean(schema: dict[str, Any]) -> None:
    for at, node in walk(schema):
        if node.get("type") in ("integer", "number"):
            for value in (True, False):
                assert not Draft202012Validator(node).is_valid(value), at
                assert not jsonschema_rs.is_valid(node, value), at


@each_schema
def test_patterns_match_equally_in_every_validator(schema: dict[str, Any]) -> None:
    samples = ["", "a", "10m", "1h30m", "1.5h", "h", "4Gi", "-1.5e3", "1E", ".5", "5.", "1e", "Taint", "a_", "9a", "٣", "ı", "a b"]
    samples += [sample + "\n" for sample in samples] + ["\n" + sample for sample in samples]
    for at, node in walk(schema):
        if pattern := node.get("pattern"):
            assert PATTERN.fullmatch(pattern), f"{at}: $ alone matches before a newline at the end in some dialects"
            assert not DIALECT.search(pattern), f"{at}: dialects differ"
            for sample in samples:
                found = re.search(pattern, sample) is not None
                assert jsonschema_rs.is_valid({"pattern": pattern}, sample) is found, (at, sample)
                assert not (found and "\n" in sample), (at, sample)


def test_shared_definitions_are_the_same_in_every_file() -> None:
    spec = importlib.util.spec_from_file_location("embed", ROOT / "embed.py")
    assert spec is not None
    assert spec.loader is not None
    embed = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(embed)
    stale = [file.name for file, text in embed.render(ROOT).items() if file.read_text("utf-8") != text]
    assert stale == [], "run python schemas/embed.py"
