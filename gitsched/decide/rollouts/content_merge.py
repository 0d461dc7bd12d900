"""Merge two changes of one value: a three-way merge of JSON values and of texts such as names of images."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gitsched.model.json_values import is_same_json
from gitsched.named_tuples import NamedTuple

_TOKEN: Final = re.compile(r"[^\s/:@,;=]+|.", re.DOTALL)
"""What a text consists of: registry, repository, tag and digest of an image are tokens."""
_MISSING: Final = object()


class Merged(NamedTuple):
    """A merged value, and the fields that both sides change in different ways, which are those of the first side."""

    value: Any
    conflicts: tuple[str, ...]


def merge_values(base: Any, one: Any, other: Any) -> Merged:
    """Merge the changes from `base` to `one` and to `other`. Where both change the same field in different ways, `one` has precedence."""
    conflicts: list[str] = []
    return Merged(_merge(base, one, other, "", conflicts), tuple(conflicts))


def _merge(base: Any, one: Any, other: Any, path: str, conflicts: list[str]) -> Any:
    if is_same_json(base, other) or is_same_json(one, other):
        return one
    if is_same_json(base, one):
        return other
    if all(isinstance(value, dict) for value in (base, one, other)):
        return _merge_objects(base, one, other, path, conflicts)
    if all(isinstance(value, list) for value in (base, one, other)) and len(base) == len(one) == len(other):
        return [_merge(*values, f"{path}[{index}]", conflicts) for index, values in enumerate(zip(base, one, other, strict=True))]
    if all(isinstance(value, str) for value in (base, one, other)):
        merged = _merge_texts(*(_TOKEN.findall(value) for value in (base, one, other)))
        if merged is not None:
            return merged
    conflicts.append(path)
    return one


def _merge_objects(
    base: Mapping[str, Any], one: Mapping[str, Any], other: Mapping[str, Any], path: str, conflicts: list[str]
) -> dict[str, Any]:
    merged = {}
    for name in (*one, *(name for name in other if name not in one)):
        former, own, wanted = (entry.get(name, _MISSING) for entry in (base, one, other))
        value = _merge(former, own, wanted, f"{path}.{name}" if path else name, conflicts)
        if value is not _MISSING:
            merged[name] = value
    return merged


class _Edit(NamedTuple):
    """The one edit that leads from a list of tokens to another: replace those in [start, end)."""

    start: int
    end: int
    tokens: Sequence[str]


def _find_edit(base: Sequence[str], changed: Sequence[str]) -> _Edit:
    limit = min(len(base), len(changed))
    start = next((at for at in range(limit) if base[at] != changed[at]), limit)
    kept = next((at for at in range(limit - start) if base[-1 - at] != changed[-1 - at]), limit - start)
    return _Edit(start, len(base) - kept, changed[start : len(changed) - kept])


def _merge_texts(base: Sequence[str], one: Sequence[str], other: Sequence[str]) -> str | None:
    """Return a text with both edits; None if they are in the same place."""
    first, second = sorted((_find_edit(base, one), _find_edit(base, other)), key=lambda edit: edit[:2])
    if second.start <= first.end and not (second.start == first.end and first.start < first.end and second.start < second.end):
        return None
    return "".join((*base[: first.start], *first.tokens, *base[first.end : second.start], *second.tokens, *base[second.end :]))
