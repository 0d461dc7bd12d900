"""Copy the shared definitions that each schema refers to into the schema itself, and close its objects: `python schemas/embed.py`.

The schema of a kind is edited manually, except those of its `$defs` whose name is in shared.json: this script replaces them, so that
every file is self-contained and nothing is fetched. It adds `additionalProperties: false` where API servers drop unknown fields, so that an
editor marks a misspelled one; commands drop such fields with a finding before they use the schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
PREFIX = "#/$defs/"
OPEN = (
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "x-kubernetes-preserve-unknown-fields",
    "$ref",
    "allOf",
)
"""Keywords of an object that says itself which members it has, or that other schemas complete."""
UNCLOSED = ("metadata", "status")
"""Members of documents that have fields of Kubernetes which the schemas do not list."""


def embed(schema: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with exactly the shared definitions that it needs, after its own definitions."""
    own = {name: node for name, node in schema.get("$defs", {}).items() if name not in shared}
    needed: set[str] = set()
    waiting = [name for name in refer({**schema, "$defs": own}) if name in shared]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += refer(shared[name])
    return {**schema, "$defs": {**own, **{name: shared[name] for name in sorted(needed)}}}


def close(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a document with closed objects."""
    completed = {
        name for node in _list_objects(schema) if "properties" in node and "$ref" in node for name in refer({"$ref": node["$ref"]})
    }
    completed |= {name for member in UNCLOSED for name in refer(schema["properties"].get(member, {}))}
    closed = _close_object(schema, UNCLOSED)
    definitions = {name: node if name in completed else _close(node) for name, node in schema.get("$defs", {}).items()}
    return {**closed, "$defs": definitions} if definitions else closed


def _close_object(node: dict[str, Any], unclosed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return an object whose members are closed, but those whose names are given, and which is closed itself."""
    members = {name: part if name in unclosed else _close(part) for name, part in node["properties"].items()}
    is_open = any(word in node for word in OPEN)
    return {**node, "properties": members, **({} if is_open else {"additionalProperties": False})}


def _close(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    if "properties" in node:
        node = _close_object(node)
    inner = {word: _close(node[word]) for word in ("items", "additionalProperties") if word in node}
    return {**node, **inner}


def _list_objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _list_objects(value)


def refer(node: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    if isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str) and target.startswith(PREFIX):
            yield target.removeprefix(PREFIX)
        for value in node.values():
            yield from refer(value)
    elif isinstance(node, list):
        for value in node:
            yield from refer(value)


def render(root: Path) -> dict[Path, str]:
    """Return the text of every schema below `root`, by path."""
    shared = json.loads((root / "shared.json").read_text(encoding="utf-8"))["$defs"]
    files = sorted(root.glob("*/*/*.json"))
    return {file: dump(close(embed(json.loads(file.read_text(encoding="utf-8")), shared))) for file in files}


def dump(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for file, text in render(ROOT).items():
        file.write_text(text, encoding="utf-8")
