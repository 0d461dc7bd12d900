"""List the fields in which two versions of a document differ, and take some of the differences back."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from copy import deepcopy
from itertools import islice
from typing import Any

from gitsched.edits.value_text import write_flow
from gitsched.model.changes import ChangedField
from gitsched.model.document import Body, as_object
from gitsched.model.finding import Pointer, format_count
from gitsched.named_tuples import NamedTuple
from gitsched.render.yaml import quote

MAX_VALUE_LENGTH = 500
"""The number of characters of a value as YAML from which only its outer structure is shown."""
_MISSING = object()
_SERVER_FIELDS = frozenset(
    ("managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "lastTransitionTime", "lastHeartbeatTime")
)
_SECRET_NAME = re.compile(
    r"kubeconfig|token|password|auth|secret|credential|proxy|certificate|cabundle|last-applied|(?<!meta)data$", re.IGNORECASE
)
_HIDDEN = "..."
"""What is shown in place of a secret value."""


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
    def change(self) -> ChangedField:
        """The difference as text and as JSON, without secrets."""
        path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.pointer)[1:]
        if any(_SECRET_NAME.search(str(part)) for part in self.pointer):
            return ChangedField(path, "", "")
        before, after = (_MISSING if value is _MISSING else _redact(value) for value in (self.before, self.after))
        old, new = ("" if value is _MISSING else format_value(value) for value in (before, after))
        values = tuple(None if value is _MISSING else json.dumps(value, ensure_ascii=False) for value in (before, after))
        return ChangedField(path, old, new, (values[0], values[1]))

    @property
    def text(self) -> str:
        """The difference on one line, like `spec.replicas 2 -> 4`, without secrets."""
        return self.change.text


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
        compare = _compare_conditions if pointer[-1:] == ("conditions",) else _compare_lists
        yield from compare(before, after, pointer)
    else:
        yield FieldDifference(pointer, before, after)


def _compare_conditions(before: list[Any], after: list[Any], pointer: Pointer) -> Iterator[FieldDifference]:
    """Compare two lists of conditions by their types, in whatever order these are; as other lists if a type is missing or repeated."""
    old, new = ({str(as_object(one).get("type", "")): one for one in entries} for entries in (before, after))
    if len(old) < len(before) or len(new) < len(after) or "" in old or "" in new:
        yield from _compare_lists(before, after, pointer)
        return
    for position, (name, condition) in enumerate(new.items()):
        yield from _compare_values(old.get(name, _MISSING), condition, (*pointer, position))
    for position, name in enumerate(name for name in old if name not in new):
        yield FieldDifference((*pointer, len(after) + position), old[name], _MISSING)


def _compare_lists(before: list[Any], after: list[Any], pointer: Pointer) -> Iterator[FieldDifference]:
    """Compare two lists: skip equal entries at both ends, then compare the others by position."""
    shortest = min(len(before), len(after))
    head = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    tail = next((i for i in range(shortest - head) if before[-1 - i] != after[-1 - i]), shortest - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    for i in range(max(len(old), len(new))):
        yield from _compare_values(old[i] if i < len(old) else _MISSING, new[i] if i < len(new) else _MISSING, (*pointer, head + i))


def format_value(value: Any) -> str:
    """Return a value as YAML on one line: complete, or if that is long its outer structure with the sizes of its parts."""
    text = write_flow(value, json_style=False)
    for depth in (2, 1, 0):
        if len(text) <= MAX_VALUE_LENGTH:
            break
        text = _outline(value, depth)
    return text


def _outline(value: Any, depth: int) -> str:
    """Return a value with the sizes of what is nested deeper, and of long texts."""
    if isinstance(value, dict) and value:
        if not depth:
            return f"{{{format_count(len(value), 'member')}}}"
        return "{" + ", ".join(f"{quote(str(name))}: {_outline(member, depth - 1)}" for name, member in value.items()) + "}"
    if isinstance(value, list) and value:
        if not depth:
            return f"[{format_count(len(value), 'entry', 'entries')}]"
        return "[" + ", ".join(_outline(entry, depth - 1) for entry in value) + "]"
    text = write_flow(value, json_style=False)
    return text if len(text) <= MAX_VALUE_LENGTH // 10 or not isinstance(value, str) else f"(text of {len(value):,} characters)"


def _redact(value: Any) -> Any:
    """Return a value with its secret parts replaced."""
    if isinstance(value, dict):
        return {name: _HIDDEN if _SECRET_NAME.search(str(name)) else _redact(member) for name, member in value.items()}
    return list(map(_redact, value)) if isinstance(value, list) else value
