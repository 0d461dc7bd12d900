"""Groups of many selectors, which find those that select an object without comparing it with each of them."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.model.labels import Requirement, Selector

SelectorEntry = tuple[int, tuple[Requirement, ...]]
"""The position of a selector in the order of its index, and its requirements."""
_MAX_CACHED = 1_000_000
"""Approximate maximum number of positions in the answers that a group keeps."""


class SelectorGroup:
    """Selectors of labels. Objects that they do not distinguish have the same answer, which is computed once."""

    __slots__ = ("_absent", "_answers", "_cached", "_entries", "_excluded", "_negative", "_present", "_values")

    def __init__(self, entries: list[SelectorEntry]) -> None:
        self._entries = entries
        self._negative: list[int] = []  # without a label that must be present
        self._present: dict[str, list[tuple[int, Selector]]] = {}  # others, by such a label
        self._absent: dict[str, list[int]] = {}
        self._excluded: dict[tuple[str, str], list[int]] = {}
        self._values: dict[str, set[str]] = {}
        self._answers: dict[tuple[tuple[str, str | None], ...], tuple[int, ...]] = {}
        self._cached = 0
        for position, requirements in entries:
            self._add(position, requirements)

    def __reduce__(self) -> tuple[type[SelectorGroup], tuple[list[SelectorEntry]]]:
        return SelectorGroup, (self._entries,)  # without the answers

    def _add(self, position: int, requirements: tuple[Requirement, ...]) -> None:
        for one in requirements:
            self._values.setdefault(one.key, set()).update(one.values)
        wanted = next((one.key for one in requirements if one.operator in ("In", "Exists")), None)
        if wanted is not None:
            self._present.setdefault(wanted, []).append((position, Selector(requirements)))
            return
        self._negative.append(position)
        for one in requirements:
            if one.operator == "DoesNotExist":
                self._absent.setdefault(one.key, []).append(position)
            for value in one.values:
                self._excluded.setdefault((one.key, value), []).append(position)

    def match(self, labels: Mapping[str, str]) -> tuple[int, ...]:
        """Return the positions of those that select an object with these labels."""
        known = self._values
        distinguished = tuple([(key, labels[key] if labels[key] in known[key] else None) for key in sorted(known.keys() & labels)])
        answer = self._answers.get(distinguished)
        if answer is None:
            if self._cached > _MAX_CACHED:
                self._answers.clear()
                self._cached = 0
            answer = self._answers[distinguished] = self._find(labels)
            self._cached += len(answer) + 1
        return answer

    def _find(self, labels: Mapping[str, str]) -> tuple[int, ...]:
        refused = {position for key in self._absent.keys() & labels for position in self._absent[key]}
        refused.update(position for label in labels.items() for position in self._excluded.get(label, ()))
        found = [position for position in self._negative if position not in refused]
        for key in self._present.keys() & labels:
            found += [position for position, selector in self._present[key] if selector.matches(labels)]
        return tuple(sorted(found))
