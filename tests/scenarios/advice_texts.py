"""List the texts of the code that say what to do."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_ADVISES = re.compile(
    r"(?:[;:,.] (?:or |and |[Tt]o [^,;:]+, )?|\bor )(?:add|set|remove|use|write|commit|create|correct|name|declare|delete|annotate|collect"
    r"|list|did you mean|copy|lower|update|hand|choose|split|append|run|leave|move|map|say|divide|quote|put|include|give)\b",
    re.IGNORECASE,
)


def list_advice(directory: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts with an advice in the modules of a directory, or in one module, and their places; placeholders are `{}`."""
    for path in sorted(directory.rglob("*.py")) or [directory]:
        tree = ast.parse(path.read_text())
        ignored = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                ignored |= {id(part) for value in node.values for part in ast.walk(value)}
                text = "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored:
                text = node.value
            else:
                continue
            if _ADVISES.search(text):
                yield text, f"{path.name}:{node.lineno}"
