"""Give documents parts of their own: those that were made together share objects, such as the placement of one policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gitsched.model.document import Body


def separate_documents(bodies: Iterable[Body]) -> Iterator[Body]:
    """Yield the documents with copies of the dictionaries and lists that an earlier one has, too: a change of one shows in no other.

    Shared objects are found among the fields of a document and the fields of these, such as `spec.placement` and `metadata.annotations`.
    The documents themselves stay as they are.
    """
    seen: dict[int, object] = {}
    for body in bodies:
        yield {name: _separate_field(value, seen) for name, value in body.items()}


def _separate_field(value: Any, seen: dict[int, object]) -> Any:
    own = _separate(value, seen)
    if own is not value or not isinstance(own, dict):
        return own
    fields = {name: _separate(field, seen) for name, field in own.items()}
    return own if all(fields[name] is field for name, field in own.items()) else fields


def _separate(value: Any, seen: dict[int, object]) -> Any:
    """Return a value, or a copy of one that was seen. What was seen stays alive, so that its id stays its own."""
    if not isinstance(value, (dict, list)):
        return value
    if id(value) in seen:
        return _copy(value)
    seen[id(value)] = value
    return value


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(entry) for name, entry in value.items()}
    return [_copy(entry) for entry in value] if isinstance(value, list) else value
