"""Copy the shared definitions that each schema refers to into the schema itself: `python schemas/embed.py`.

The schema of a kind is edited manually, except those of its `$defs` whose name is in shared.json: this script replaces them, so that
every file is self-contained and nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent
PREFIX = "#/$defs/"


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
    return {file: dump(embed(json.loads(file.read_text(encoding="utf-8")), shared)) for file in files}


def dump(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for file, text in render(ROOT).items():
        file.write_text(text, encoding="utf-8")
