"""Apply a fieldOverrider to JSON or YAML text in a field, for example a file in a ConfigMap."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from gitsched.apis.karmada.overrides.json_patch import InapplicablePatch, PatchedObject, parse_pointer
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.yaml_composer import YamlDocument, check_aliases, compose_documents, decode_text
from gitsched.manifests.yaml_nodes import Constructor
from gitsched.model.document import Body, reject_constant
from gitsched.model.json_values import is_same_json
from gitsched.render.yaml import dump


def edit_json(text: str, operations: Iterable[Body]) -> str:
    """Apply operations to JSON text and write it compactly; empty or unchanged text is returned as it is."""
    if not text:
        return text
    try:
        value = json.loads(text, parse_float=Decimal, parse_constant=reject_constant)
        changed = _apply_operations(value, operations, "JSON")
        return text if is_same_json(changed, value) else _write_json(changed)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InapplicablePatch):
            raise
        raise InapplicablePatch("the field is not valid JSON") from error


def edit_yaml(text: str, operations: Iterable[Body]) -> str:
    """Apply operations to YAML text and write it again; unchanged text is returned as it is."""
    decoded = decode_text(text.encode("utf-8", "surrogatepass"))
    trees = list(compose_documents(decoded, DEFAULT_LIMITS)) if isinstance(decoded, str) else []
    if len(trees) > 1:
        raise InapplicablePatch("the field has more than one YAML document")
    tree = trees[0] if trees else None
    if not isinstance(tree, YamlDocument) or check_aliases(tree, DEFAULT_LIMITS):
        raise InapplicablePatch("the field is not valid YAML")
    builder = Constructor(0)
    value = builder.construct(tree.node)
    if builder.errors:
        raise InapplicablePatch("the field is not YAML that Kubernetes accepts")
    changed = _apply_operations(value, operations, "YAML")
    return text if is_same_json(changed, value) else dump(changed)


def _apply_operations(value: Any, operations: Iterable[Body], language: str) -> Any:
    if not isinstance(value, dict | list):
        raise InapplicablePatch(f"the field's {language} is neither an object nor a list")
    patched = PatchedObject(value)
    for operation in operations:
        patched.apply(operation["operator"], parse_pointer(operation["subPath"]), operation.get("value"))
    return patched.root


def _write_json(value: Any) -> str:
    """Write compact JSON; numbers keep their digits."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_write_json(name)}:{_write_json(entry)}" for name, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write_json, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
