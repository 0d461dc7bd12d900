"""The part of an invalid document whose members have the types that its schema says: what readers of broken documents may rely on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gitsched.model.document import Body, keep_identity

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

MAX_ROUNDS = 10
"""How often members are left out of one document, after which others may be invalid; after that, only its identity is left."""
_ABOUT_TYPES = frozenset(("type", "enum", "const", "anyOf", "oneOf", "not"))
"""Keywords of schemas that a value of another type violates."""


def keep_typed_part(body: Body, compiled: Draft202012Validator) -> Body:
    """Return a document without the members that have another type than its schema says, with its type, name and namespace.

    Texts stay where the schema wants other texts, and numbers beyond a limit. A member that the schema requires may be missing.
    """
    identity = keep_identity(body)
    for _ in range(MAX_ROUNDS):
        paths = {
            tuple(error.instance_path)
            for error in compiled.iter_errors(body)
            if error.schema_path[-1] == "type" or (error.schema_path[-1] in _ABOUT_TYPES and not isinstance(error.instance, str))
        }
        if not paths:
            break
        if () in paths:
            return identity
        body = _leave_out(body, paths)
    else:
        return identity
    metadata = body.get("metadata")
    return {**body, **identity, "metadata": {**(metadata if isinstance(metadata, dict) else {}), **identity["metadata"]}}


def _leave_out(value: Any, paths: Iterable[tuple[str | int, ...]]) -> Any:
    """Return a value without what is at some paths."""
    inner: dict[str | int, list[tuple[str | int, ...]]] = {}
    for step, *rest in paths:
        inner.setdefault(step, []).append(tuple(rest))
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    left = [
        (step, _leave_out(part, inner[step]) if step in inner else part) for step, part in steps if () not in inner.get(step, ())
    ]
    return dict(left) if isinstance(value, dict) else [part for _, part in left]
