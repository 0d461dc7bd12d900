"""`schemas/kubernetes.py` makes JSON Schemas of an OpenAPI document of Kubernetes."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2] / "schemas"
DOCUMENT: dict[str, Any] = {
    "definitions": {
        "io.k8s.api.apps.v1.Thing": {
            "description": "A text that the result does not have.",
            "type": "object",
            "required": ["spec"],
            "properties": {
                "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "description": "Text."},
                "spec": {"$ref": "#/definitions/io.k8s.api.apps.v1.ThingSpec"},
                "status": {"$ref": "#/definitions/io.k8s.api.apps.v1.ThingStatus"},
            },
            "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "Thing", "version": "v1"}],
        },
        "io.k8s.api.apps.v1.ThingSpec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer", "format": "int32"},
                "port": {"type": "string", "format": "int-or-string"},
                "limits": {
                    "type": "object",
                    "additionalProperties": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"},
                },
                "data": {"type": "string", "format": "byte"},
                "template": {"type": "object"},
            },
        },
        "io.k8s.api.apps.v1.ThingStatus": {"type": "object", "properties": {}},
        "io.k8s.api.apps.v1.ThingList": {
            "type": "object",
            "properties": {"items": {"type": "array"}, "metadata": {"type": "object"}},
            "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "ThingList", "version": "v1"}],
        },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {"name": {"type": "string"}}},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    }
}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kubernetes_schemas", ROOT / "kubernetes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_definition_becomes_a_schema_of_what_an_api_server_decodes(script: ModuleType) -> None:
    made = script.convert(DOCUMENT, "1.99", "digest")
    assert made["kinds"] == {"apps/v1/Thing": "apps.v1.Thing"}
    assert set(made["definitions"]) == {"apps.v1.Thing", "apps.v1.ThingSpec", "meta.v1.ObjectMeta", "api.resource.Quantity"}
    assert made["definitions"]["apps.v1.Thing"]["properties"]["status"] == {}
    spec = made["definitions"]["apps.v1.ThingSpec"]
    assert spec["additionalProperties"] is False
    assert spec["properties"]["replicas"] == {"type": ["integer", "null"], "minimum": -(2**31), "maximum": 2**31 - 1}
    assert spec["properties"]["port"] == {"type": ["integer", "string", "null"]}
    assert spec["properties"]["limits"]["additionalProperties"] == {"$ref": "#/$defs/api.resource.Quantity"}
    assert made["definitions"]["api.resource.Quantity"] == {"type": ["string", "number", "null"]}
    assert spec["properties"]["template"] == {"type": ["object", "null"]}


def test_the_text_of_the_file_is_that_of_the_script(script: ModuleType) -> None:
    text = script.RESULT.read_text(encoding="utf-8")
    assert script.render(json.loads(text)) == text
    assert "description" not in {key for schema in json.loads(text)["definitions"].values() for key in schema}
