"""Align the entries of a list before and after a change."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from gitsched.model.json_values import is_same_json
from gitsched.named_tuples import NamedTuple

_MAX_COMPARISONS = 5_000_000
"""Pairs of equal entries, times the number of entries: the work of an alignment. Lists with more are aligned by position."""


class AlignedPart(NamedTuple):
    """A run of entries: those at the positions [start, end) of the list before become [new_start, new_end) of the list after.

    Where both have the same number, each becomes the one at the same place of the run.
    """

    start: int
    end: int
    new_start: int
    new_end: int


def align_entries(before: list[Any], after: list[Any]) -> list[AlignedPart]:
    """Return the runs of entries that are changed, added or removed, in order. Objects with the same `name` are one entry."""
    head = 0
    while head < min(len(before), len(after)) and is_same_json(before[head], after[head]):
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and is_same_json(before[-1 - tail], after[-1 - tail]):
        tail += 1
    end, new_end = len(before) - tail, len(after) - tail
    if end == head and new_end == head:
        return []
    if end - head == new_end - head == 1 or end == head or new_end == head:
        return _split_run(AlignedPart(head, end, head, new_end))
    removed, added = ([_identify(entry) for entry in entries] for entries in (before[head:end], after[head:new_end]))
    counts = Counter(added)
    if sum(counts[entry] for entry in removed) * min(len(removed), len(added)) > _MAX_COMPARISONS:
        return _split_run(AlignedPart(head, end, head, new_end))
    from difflib import SequenceMatcher  # loaded only where entries are both removed and added

    matcher = SequenceMatcher(None, removed, added, autojunk=False)
    parts = []
    for _, start, stop, new_start, new_stop in matcher.get_opcodes():
        parts += _split_run(AlignedPart(head + start, head + stop, head + new_start, head + new_stop))
    return parts


def _split_run(part: AlignedPart) -> list[AlignedPart]:
    """Split a run into entries that change and those that are only added or removed."""
    common = min(part.end - part.start, part.new_end - part.new_start)
    middle, new_middle = part.start + common, part.new_start + common
    found = [AlignedPart(part.start, middle, part.new_start, new_middle)] if common else []
    if (middle, new_middle) != (part.end, part.new_end):
        found.append(AlignedPart(middle, part.end, new_middle, part.new_end))
    return found


def _identify(entry: Any) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"name {name}" if isinstance(name, str) else f"value {json.dumps(entry, sort_keys=True)}"
