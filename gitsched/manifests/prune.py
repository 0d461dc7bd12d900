"""Unknown fields are dropped, as an API server drops them, with the nearest known name as a hint."""

from __future__ import annotations

from typing import Any

from gitsched.model.document import Body
from gitsched.model.issue import Issue

_OPEN = ("additionalProperties", "patternProperties", "x-kubernetes-preserve-unknown-fields", "unevaluatedProperties")
_NEVER = frozenset({"apiVersion", "api", "kind", "metadata", "status"})


def prune(body: Body, schema: Body) -> tuple[Body, list[Issue]]:
    """The body without fields that its schema does not know, and a warning for each; the same object when it has none.

    Known are the `properties` of a schema, of its local `$ref` and of its `allOf`. A schema that lists no properties, or says
    anything about additional ones, leaves the object alone. The document's type, metadata and status are never touched.
    """
    issues: list[Issue] = []
    known, is_open = _properties(schema, schema)
    if not known:
        return body, issues
    changed: dict[str, Any] = {}
    gone: list[str] = []
    for name, value in body.items():
        if name in _NEVER:
            continue
        if name in known:
            kept = _prune_value(value, known[name], schema, (name,), issues)
            if kept is not value:
                changed[name] = kept
        elif not is_open:
            gone.append(name)
            issues.append(_report(name, known, ()))
    if not changed and not gone:
        return body, issues
    return {name: changed.get(name, value) for name, value in body.items() if name not in gone}, issues


def _prune_value(value: Any, schema: Any, root: Body, at: tuple[str | int, ...], issues: list[Issue]) -> Any:
    if isinstance(value, list):
        items = _keyword(schema, root, "items")
        if not isinstance(items, dict):
            return value
        entries = [_prune_value(entry, items, root, (*at, place), issues) for place, entry in enumerate(value)]
        return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
    if not isinstance(value, dict):
        return value
    known, is_open = _properties(schema, root)
    rest = _keyword(schema, root, "additionalProperties")
    if not known and not isinstance(rest, dict):
        return value
    members: Body = {}
    same = True
    for name, old in value.items():
        if name in known:
            new = _prune_value(old, known[name], root, (*at, name), issues)
        elif isinstance(rest, dict):
            new = _prune_value(old, rest, root, (*at, name), issues)
        elif is_open:
            new = old
        else:
            issues.append(_report(name, known, at))
            same = False
            continue
        same = same and new is old
        members[name] = new
    return value if same else members


def _parts(schema: Any, root: Body, depth: int = 0) -> list[Body]:
    """The schema with what it includes: its `$ref` and `allOf`, followed sixteen deep at most."""
    if not isinstance(schema, dict) or depth > 16:
        return []
    parts = [schema]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target: Any = root
        for step in reference[2:].split("/") if len(reference) > 1 else ():
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        parts += _parts(target, root, depth + 1)
    for included in schema.get("allOf", ()):
        parts += _parts(included, root, depth + 1)
    return parts


def _properties(schema: Any, root: Body) -> tuple[dict[str, Any], bool]:
    known: dict[str, Any] = {}
    is_open = False
    for part in _parts(schema, root):
        known.update(part.get("properties", {}))
        is_open = is_open or any(word in part for word in _OPEN)
    return known, is_open


def _keyword(schema: Any, root: Body, word: str) -> Any:
    return next((part[word] for part in _parts(schema, root) if word in part), None)


def _report(name: str, known: dict[str, Any], at: tuple[str | int, ...]) -> Issue:
    from difflib import get_close_matches  # rarely needed

    lower = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name[:100].lower(), lower, n=1)
    hint = f"; did you mean '{lower[near[0]]}'?" if near else ""
    shown = name if len(name) <= 60 else name[:57] + "..."
    return Issue("warning", "unknown-field", f"the field {shown!r} is unknown and ignored{hint}", (*at, name))
