"""Unknown fields are dropped, as an API server drops them, with the nearest known name as a hint."""

from __future__ import annotations

from typing import Any, NamedTuple

from gitsched.manifests.limits import MOST_PROBLEMS
from gitsched.model.document import Body
from gitsched.model.issue import Issue

_OPEN = ("additionalProperties", "patternProperties", "x-kubernetes-preserve-unknown-fields", "unevaluatedProperties")
_NEVER = frozenset({"apiVersion", "api", "kind", "metadata", "status"})
_CLEAN = "gitsched-clean"


class _Shape(NamedTuple):
    """What a schema says of an object's members or a list's entries; `rest` is for members that it does not name."""

    known: dict[str, Any]
    is_open: bool
    rest: Body | None
    items: Body | None


class Pruner:
    """Drops what one schema does not know.

    Known are the `properties` of a schema, of its local `$ref` and of its `allOf`. A schema that lists no properties, or says
    anything about additional ones, leaves the object alone. The document's type, metadata and status are never touched.
    """

    __slots__ = ("_root", "_shapes")

    def __init__(self, schema: Body) -> None:
        self._root = schema
        self._shapes: dict[int, _Shape] = {}  # by identity: the parts of a schema live as long as the schema

    def close(self) -> Body:
        """The schema of the documents that it allows as it is and that have nothing to drop.

        It says the same as pruning, for a validator that says it faster: nearly all documents are of that kind.
        """
        known, is_open, _, _ = self._shape(self._root)
        definitions: dict[str, Any] = {}
        inner = {name: name in _NEVER or self._describe(part, definitions) for name, part in known.items()}
        top = {"properties": {**dict.fromkeys(_NEVER, True), **inner}, "additionalProperties": is_open} if known else True
        return {
            **self._root,
            "$defs": {**self._root.get("$defs", {}), **definitions, _CLEAN: top},
            "allOf": [*self._root.get("allOf", ()), {"$ref": f"#/$defs/{_CLEAN}"}],
        }

    def prune(self, body: Body) -> tuple[Body, list[Issue]]:
        """The body without unknown fields, and a warning for each of the first twenty; the same object when it has none."""
        issues: list[Issue] = []
        known, is_open, _, _ = self._shape(self._root)
        if not known:
            return body, issues
        members: Body = {}
        same = True
        for name, old in body.items():
            new = old
            if name not in _NEVER:
                if name in known:
                    new = self._prune_value(old, known[name], (name,), issues)
                elif not is_open:
                    _report(issues, name, known, ())
                    same = False
                    continue
            same = same and new is old
            members[name] = new
        return (body if same else members), issues

    def _describe(self, schema: Any, definitions: dict[str, Any]) -> Body | bool:
        """What a value is like that has nothing to drop. Every place of a schema has one definition, as a schema may hold itself."""
        known, is_open, rest, items = self._shape(schema)
        if not known and rest is None and items is None:
            return True
        name = f"{_CLEAN}-{id(schema)}"  # by identity, as the shapes are
        if name not in definitions:
            entry: Body = {}
            definitions[name] = entry
            if items is not None:
                entry["items"] = self._describe(items, definitions)
            if known or rest is not None:
                entry["properties"] = {member: self._describe(part, definitions) for member, part in known.items()}
                entry["additionalProperties"] = is_open if rest is None else self._describe(rest, definitions)
        return {"$ref": f"#/$defs/{name}"}

    def _prune_value(self, value: Any, schema: Any, at: tuple[str | int, ...], issues: list[Issue]) -> Any:
        kind = value.__class__
        if kind is not dict and kind is not list:
            return value
        known, is_open, rest, items = self._shape(schema)
        if kind is list:
            if items is None:
                return value
            entries = [self._prune_value(entry, items, (*at, place), issues) for place, entry in enumerate(value)]
            return value if all(new is old for new, old in zip(entries, value, strict=True)) else entries
        if not known and rest is None:
            return value
        members: Body = {}
        same = True
        for name, old in value.items():
            if name in known:
                new = self._prune_value(old, known[name], (*at, name), issues)
            elif rest is not None:
                new = self._prune_value(old, rest, (*at, name), issues)
            elif is_open:
                new = old
            else:
                _report(issues, name, known, at)
                same = False
                continue
            same = same and new is old
            members[name] = new
        return value if same else members

    def _shape(self, schema: Any) -> _Shape:
        shape = self._shapes.get(id(schema))
        if shape is None:
            known: dict[str, Any] = {}
            parts = self._parts(schema)
            for part in parts:
                known.update(part.get("properties", {}))
            rest, items = (
                next((part[word] for part in parts if isinstance(part.get(word), dict)), None)
                for word in ("additionalProperties", "items")
            )
            shape = self._shapes[id(schema)] = _Shape(known, any(word in part for part in parts for word in _OPEN), rest, items)
        return shape

    def _parts(self, schema: Any, depth: int = 0) -> list[Body]:
        """The schema with what it includes: its `$ref` and `allOf`, followed sixteen deep at most."""
        if not isinstance(schema, dict) or depth > 16:
            return []
        parts = [schema]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            target: Any = self._root
            for step in reference[2:].split("/") if len(reference) > 1 else ():
                target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
            parts += self._parts(target, depth + 1)
        for included in schema.get("allOf", ()):
            parts += self._parts(included, depth + 1)
        return parts


def _report(issues: list[Issue], name: str, known: dict[str, Any], at: tuple[str | int, ...]) -> None:
    if len(issues) >= MOST_PROBLEMS:
        return
    from difflib import get_close_matches  # rarely needed

    lower = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(name[:100].lower(), lower, n=1)
    hint = f"; did you mean '{lower[near[0]]}'?" if near else ""
    shown = name if len(name) <= 60 else name[:57] + "..."
    issues.append(Issue("warning", "unknown-field", f"the field {shown!r} is unknown and ignored{hint}", (*at, name)))
