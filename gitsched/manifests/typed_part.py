"""The part of an invalid document whose members have the types that its schema says: what readers of broken documents may rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gitsched.model.document import Body, keep_identity

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

MAX_ROUNDS = 10
"""How often members are left out of one document, after which others may be invalid; after that, only its identity is left."""
_ABOUT_TYPES = frozenset(("type", "enum", "const", "anyOf", "oneOf", "not"))
"""Keywords of schemas that a value of another type violates."""
_Path = tuple[str | int, ...]


def keep_typed_part(body: Body, compiled: Draft202012Validator) -> Body:
    """Return a document without the members that have another type than its schema says, with its type, name and namespace.

    Texts stay where the schema wants other texts, and numbers beyond a limit. A mapping in place of a list of mappings is its one entry.
    A member that the schema requires may be missing.
    """
    identity = keep_identity(body)
    entries: set[_Path] = set()
    for _ in range(MAX_ROUNDS):
        errors = [
            error
            for error in compiled.iter_errors(body)
            if error.schema_path[-1] == "type" or (error.schema_path[-1] in _ABOUT_TYPES and not isinstance(error.instance, str))
        ]
        if not errors:
            break
        paths = {tuple(error.instance_path) for error in errors}
        if () in paths:
            return identity
        lists = {tuple(one.instance_path) for one in errors if isinstance(one.instance, dict) and _wants_list(one)} - entries
        wrong = {path[:-1] if path[:-1] in entries else path for path in paths - lists}
        entries |= lists
        body = _replace(body, {**dict.fromkeys(lists, True), **dict.fromkeys(wrong, False)})
    else:
        return identity
    metadata = body.get("metadata")
    return {**body, **identity, "metadata": {**(metadata if isinstance(metadata, dict) else {}), **identity["metadata"]}}


def _wants_list(error: ValidationError) -> bool:
    return "array" in getattr(error.kind, "types", ())


def _replace(value: Any, paths: Mapping[_Path, bool]) -> Any:
    """Return a value in which what is at some paths is the entry of a list, or left out."""
    inner: dict[str | int, dict[_Path, bool]] = {}
    for (step, *rest), is_entry in paths.items():
        inner.setdefault(step, {})[tuple(rest)] = is_entry
    left: list[tuple[str | int, Any]] = []
    for step, part in value.items() if isinstance(value, dict) else enumerate(value):
        below = inner.get(step, {})
        if () not in below:
            left.append((step, _replace(part, below) if below else part))
        elif below[()]:
            left.append((step, [part]))
    return dict(left) if isinstance(value, dict) else [part for _, part in left]
