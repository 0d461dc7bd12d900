"""Write the schemas of Kubernetes' built-in kinds from its OpenAPI document: `python schemas/kubernetes.py 1.36 swagger.json`.

The document is `api/openapi-spec/swagger.json` of a release of github.com/kubernetes/kubernetes (Apache License 2.0). Clients of Kubernetes
keep an unchanged copy, such as `kubernetes/swagger.json.unprocessed` of github.com/kubernetes-client/python. The result has no text of
the document but names: descriptions are dropped, and what is written once in the document is written once here.

The schemas accept what the JSON decoder of an API server accepts: null anywhere, numbers as quantities, 32-bit integers within their range,
base64 in bytes. They say nothing about `status`, which nobody applies.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULT = Path(__file__).resolve().parent / "kubernetes.io" / "openapi.json"
SOURCE = "https://github.com/kubernetes/kubernetes/blob/release-{version}/api/openapi-spec/swagger.json"
LICENSE = "Apache-2.0"
BASE64 = "^(([A-Za-z0-9+/][\\r\\n]*){4})*(([A-Za-z0-9+/][\\r\\n]*){2}=[\\r\\n]*=|([A-Za-z0-9+/][\\r\\n]*){3}=)?[\\r\\n]*$"

_PREFIX = "#/definitions/"
_PREFIXES = {
    "io.k8s.api.": "",
    "io.k8s.apimachinery.pkg.apis.": "",
    "io.k8s.apimachinery.pkg.": "",
    "io.k8s.apiextensions-apiserver.pkg.apis.": "",
    "io.k8s.kube-aggregator.pkg.apis.": "",
}
_TYPES_BY_NAME = {"api.resource.Quantity": ["string", "number"], "util.intstr.IntOrString": ["integer", "string"]}
_SECRET_FIELDS = {"core.v1.Secret": ("data", "stringData")}
_UNAPPLIED = frozenset(("ComponentStatus", "Scale", "Status", "DeleteOptions", "WatchEvent"))
"""Kinds with metadata that no client creates."""


def convert(document: dict[str, Any], version: str, digest: str) -> dict[str, Any]:
    """Return the source, the name of the definition of each kind, and the definitions as JSON Schemas."""
    definitions = {_shorten(name): schema for name, schema in document["definitions"].items()}
    kinds = {
        f"{entry['group']}/{entry['version']}/{entry['kind']}": name
        for name, schema in definitions.items()
        for entry in schema.get("x-kubernetes-group-version-kind", ())
        if "metadata" in schema.get("properties", {}) and "items" not in schema["properties"] and entry["kind"] not in _UNAPPLIED
    }
    converted = {name: convert_definition(name, schema) for name, schema in definitions.items()}
    needed: set[str] = set()
    waiting = list(kinds.values())
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += list_names(converted[name])
    source = {"version": version, "source": SOURCE.format(version=version), "sha256": digest, "license": LICENSE}
    return {
        "source": source,
        "kinds": dict(sorted(kinds.items())),
        "definitions": {name: converted[name] for name in sorted(needed)},
    }


def convert_definition(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a definition."""
    types = _TYPES_BY_NAME.get(name)
    if types:
        return {"type": [*types, "null"]}
    converted = convert_schema(schema)
    for field in _SECRET_FIELDS.get(name, ()):
        converted["properties"][field]["additionalProperties"]["writeOnly"] = True  # messages do not show such values
    return converted


def convert_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a definition as JSON Schema, with the keywords that an API server enforces when it decodes an object."""
    if "$ref" in schema:
        return {"$ref": "#/$defs/" + _shorten(schema["$ref"].removeprefix(_PREFIX))}
    kind, form = schema.get("type"), schema.get("format")
    if kind is None:
        return {}
    result: dict[str, Any] = {"type": [kind, "null"]}
    if form == "int-or-string":
        result["type"] = ["integer", "string", "null"]
    elif form == "int32":
        result |= {"minimum": -(1 << 31), "maximum": (1 << 31) - 1}
    elif form == "byte":
        result |= {"contentEncoding": "base64", "pattern": BASE64}
    if "properties" in schema:
        properties = schema["properties"].items()
        result["properties"] = {name: {} if _is_status(name, part) else convert_schema(part) for name, part in properties}
        result["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = convert_schema(schema["additionalProperties"])
    if "items" in schema:
        result["items"] = convert_schema(schema["items"])
    if schema.get("required"):
        result["required"] = schema["required"]
    return result


def _is_status(name: str, schema: dict[str, Any]) -> bool:
    return name == "status" and schema.get("$ref", "").endswith("Status")


def _shorten(name: str) -> str:
    return next((short + name.removeprefix(long) for long, short in _PREFIXES.items() if name.startswith(long)), name)


def list_names(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    if isinstance(schema, dict):
        target = schema.get("$ref")
        if isinstance(target, str):
            yield target.removeprefix("#/$defs/")
        for value in schema.values():
            yield from list_names(value)


def render(converted: dict[str, Any]) -> str:
    """Return the text of the file: one line for each definition, so that a later version has a readable diff."""
    parts = [f'"source":{json.dumps(converted["source"])}', f'"kinds":{json.dumps(converted["kinds"], indent=0)}']
    lines = [f"{json.dumps(name)}:{json.dumps(schema, separators=(',', ':'))}" for name, schema in converted["definitions"].items()]
    return "{" + ",\n".join(parts) + ',\n"definitions":{\n' + ",\n".join(lines) + "\n}}\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version", help="the minor version of Kubernetes, such as 1.36")
    parser.add_argument("document", type=Path, help="its OpenAPI document, swagger.json")
    arguments = parser.parse_args()
    data = arguments.document.read_bytes()
    text = render(convert(json.loads(data), arguments.version, hashlib.sha256(data).hexdigest()))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text, encoding="utf-8")
