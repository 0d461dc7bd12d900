"""Make the one JSON Schema that an editor needs: it checks a document of any kind by its apiVersion and kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.apis.built_in_schemas import read_built_in_schemas
from gitsched.apis.schemas import list_schemas
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Body, find_unversioned_group

_DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest draft that YAML plug-ins of editors support completely; the schemas use no keyword of a later one."""
_PREFIX = "#/$defs/"


def make_editor_schema() -> Body:
    """Return the schema of all kinds of policy APIs and of Kubernetes; a document of any other kind is valid."""
    schemas = list_schemas(api.schemas for api in policy_apis.values())
    definitions: Body = {}
    rules: list[Body] = []
    for group, version, kind in sorted(schemas):
        name = f"{group}.{version}.{kind}"
        definitions |= _name_definitions(name, schemas[group, version, kind])
        is_unversioned = find_unversioned_group(group) == version
        rules.append(
            _make_rule("api" if is_unversioned else "apiVersion", group if is_unversioned else f"{group}/{version}", kind, name)
        )
    built_in = read_built_in_schemas()
    definitions |= built_in["definitions"]
    for key, name in built_in["kinds"].items():
        api_version, _, kind = key.lstrip("/").rpartition("/")
        rules.append(_make_rule("apiVersion", api_version, kind, name))
    return {
        "$schema": _DIALECT,
        "title": "Documents of gitsched and objects of Kubernetes",
        "type": "object",
        "allOf": rules,
        "$defs": definitions,
    }


def list_kinds() -> Iterator[tuple[str, str]]:
    """Yield apiVersion and kind of all schemas, those of policy APIs first. Unversioned groups have their name in place of a version."""
    for rule in make_editor_schema()["allOf"]:
        version, kind = (part["const"] for part in rule["if"]["properties"].values())
        yield version, kind


def _make_rule(member: str, version: str, kind: str, name: str) -> Body:
    properties = {member: {"const": version}, "kind": {"const": kind}}
    return {"if": {"required": [member, "kind"], "properties": properties}, "then": {"$ref": f"{_PREFIX}{name}"}}


def _name_definitions(name: str, schema: Body) -> Body:
    """Return a schema and its definitions by names that no other schema uses."""
    own = {part: value for part, value in schema.items() if part not in ("$defs", "$schema", "$id")}
    inner = {f"{name}.{part}": _rename(value, name) for part, value in schema.get("$defs", {}).items()}
    return {name: _rename(own, name), **inner}


def _rename(node: Any, name: str) -> Any:
    if isinstance(node, list):
        return [_rename(part, name) for part in node]
    if not isinstance(node, dict):
        return node
    target = node.get("$ref")
    renamed = {part: _rename(value, name) for part, value in node.items()}
    return {**renamed, "$ref": f"{_PREFIX}{name}.{target.removeprefix(_PREFIX)}"} if isinstance(target, str) else renamed
