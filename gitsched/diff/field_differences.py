"""List the fields in which two versions of a document differ, and take some of the differences back."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any, NamedTuple

from gitsched.model.document import Body
from gitsched.model.finding import Pointer

_MAX_VALUE_LENGTH = 48
_MISSING = object()
_SERVER_FIELDS = frozenset(
    ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "lastTransitionTime", "lastHeartbeatTime")
)
_SECRET_NAMES = ("kubeconfig", "token", "password", "auth", "secret", "credential", "proxy", "certificate", "cabundle", "data")


class FieldDifference(NamedTuple):
    """A field with its values; a value is missing in a version that does not have the field."""

    pointer: Pointer
    before: Any
    after: Any

    @property
    def added(self) -> bool:
        """Whether only the later version has the field."""
        return self.before is _MISSING

    @property
    def removed(self) -> bool:
        """Whether only the earlier version has the field."""
        return self.after is _MISSING

    @property
    def text(self) -> str:
        """The difference on one line, like `spec.replicas 2 -> 4`, without secrets."""
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.pointer)[1:]
        if any(word in str(part).lower() for part in self.pointer for word in _SECRET_NAMES):
            return f"{path} changed"
        if self.added:
            return f"{path} added: {_format_value(self.after)}"
        if self.removed:
            return f"{path} removed: {_format_value(self.before)}"
        return f"{path} {_format_value(self.before)} -> {_format_value(self.after)}"


def list_field_differences(before: Body, after: Body, most: int) -> list[FieldDifference]:
    """Return the first differences between two versions of a document, without fields that API servers set."""
    return list(islice(_compare_values(before, after, ()), most))


def revert_fields(body: Body, differences: Sequence[FieldDifference], reverted: Collection[int]) -> Body:
    """Return the later version of a document with the earlier values of some differences, given by their positions.

    `differences` are all differences between both versions, as `list_field_differences` returns them.
    """
    changed: Body = deepcopy(body)
    chosen = [differences[position] for position in sorted(reverted)]
    for difference in chosen:
        if not difference.added and not difference.removed:
            _find_parent(changed, difference.pointer)[difference.pointer[-1]] = difference.before
    for difference in chosen:
        if difference.removed:
            _insert(changed, difference, [other for other in differences if other.removed and other not in chosen])
    for difference in sorted((each for each in chosen if each.added), key=lambda each: _sort_key(each.pointer), reverse=True):
        del _find_parent(changed, difference.pointer)[difference.pointer[-1]]
    return changed


def _insert(body: Body, difference: FieldDifference, omitted: Sequence[FieldDifference]) -> None:
    """Insert a removed value. An item of a list moves up by the number of removed items before it that stay removed."""
    parent, name = _find_parent(body, difference.pointer), difference.pointer[-1]
    if isinstance(parent, list) and isinstance(name, int):
        parent.insert(name - sum(_is_earlier_item(other.pointer, difference.pointer) for other in omitted), difference.before)
    else:
        parent[name] = difference.before


def _is_earlier_item(one: Pointer, other: Pointer) -> bool:
    return one[:-1] == other[:-1] and isinstance(one[-1], int) and isinstance(other[-1], int) and one[-1] < other[-1]


def _find_parent(body: Body, pointer: Pointer) -> Any:
    value: Any = body
    for part in pointer[:-1]:
        value = value[part]
    return value


def _sort_key(pointer: Pointer) -> tuple[tuple[bool, int, str], ...]:
    return tuple((isinstance(part, int), part if isinstance(part, int) else 0, str(part)) for part in pointer)


def _compare_values(before: Any, after: Any, pointer: Pointer) -> Iterator[FieldDifference]:
    if before is after or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*after, *before)):
            if name not in _SERVER_FIELDS:
                yield from _compare_values(before.get(name, _MISSING), after.get(name, _MISSING), (*pointer, name))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _compare_lists(before, after, pointer)
    else:
        yield FieldDifference(pointer, before, after)


def _compare_lists(before: list[Any], after: list[Any], pointer: Pointer) -> Iterator[FieldDifference]:
    """Compare two lists: skip equal entries at both ends, then compare the others by position."""
    shortest = min(len(before), len(after))
    head = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    tail = next((i for i in range(shortest - head) if before[-1 - i] != after[-1 - i]), shortest - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for i in range(max(len(old), len(new))):
        yield from _compare_values(old[i] if i < len(old) else _MISSING, new[i] if i < len(new) else _MISSING, (*pointer, head + i))


def _format_value(value: Any) -> str:
    if isinstance(value, dict | list) and _contains_secret(value):
        return "..."
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 3]}..."


def _contains_secret(value: Any) -> bool:
    if isinstance(value, dict):
        return any(word in str(name).lower() for name in value for word in _SECRET_NAMES) or any(
            map(_contains_secret, value.values())
        )
    return isinstance(value, list) and any(map(_contains_secret, value))
