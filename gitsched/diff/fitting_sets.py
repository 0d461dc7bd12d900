"""Search which of several changes fit together: a sequence of changes that do, and what keeps the others out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final

from gitsched.model.fits import ChangeSet, FittingSets

MAX_EXHAUSTIVE: Final = 8
"""Of so many changes all sets are tried that can say something new; of more, those that the sequence leaves open."""
MAX_EXPLAINED: Final = 3
"""The number of sets that are searched for one change that does not fit, if there are more changes than MAX_EXHAUSTIVE."""
MAX_OTHERS: Final = 3
"""The number of other changes in such a set."""

Check = Callable[[ChangeSet], "bool | None"]
"""Return whether the changes of a set fit together; None where no more is tried."""
Prepare = Callable[[Sequence[ChangeSet]], object]
"""Do the work of checking some sets at the same time. The first one is checked next, the others only if those before them do not fit."""


def find_fitting_sets(count: int, check: Check, prepare: Prepare = len) -> FittingSets:
    """Return what fits together of so many changes, which are to be merged in their order where they can be."""
    search = _Search(count, check, prepare)
    sequence = search.find_sequence(count if count > MAX_EXHAUSTIVE else 1)
    if count <= MAX_EXHAUSTIVE:
        conflicts, requirements = list(search.list_conflicts()), list(search.list_requirements())
    else:
        left = [change for change in range(count) if change not in sequence]
        conflicts = [found for change in left for found in search.find_conflicts(change, sequence)]
        requirements = [
            (change, needed)
            for number, change in enumerate(sequence)
            if search.fits({change}) is False and (needed := search.find_requirement(change, sequence[:number])) is not None
        ]
    ordered = sorted(dict.fromkeys(conflicts), key=lambda conflict: (len(conflict), sorted(conflict)))
    return FittingSets(sequence, tuple(ordered), tuple(requirements), search.is_complete and count <= MAX_EXHAUSTIVE)


class _Search:
    def __init__(self, count: int, check: Check, prepare: Prepare) -> None:
        self._count, self._check, self._prepare = count, check, prepare
        self._known: dict[ChangeSet, bool | None] = {frozenset(): True}
        self.is_complete = True

    def fits(self, changes: Iterable[int]) -> bool | None:
        """Return whether changes fit together; None if that is not known."""
        wanted = frozenset(changes)
        if wanted not in self._known:
            self._known[wanted] = self._check(wanted)
            self.is_complete &= self._known[wanted] is not None
        return self._known[wanted]

    def find_sequence(self, size: int) -> tuple[int, ...]:
        """Add changes that fit after those that are there already, in several rounds, because one may need a later one. Of those that fit
        alone, up to `size` are added at a time."""
        sequence: list[int] = []
        if size > 1:
            self._extend(sequence, [change for change in range(self._count) if self.fits({change})], size)
        before = -1
        while before < len(sequence):
            before = len(sequence)
            self._extend(sequence, [change for change in range(self._count) if change not in sequence], 1)
        return tuple(sequence)

    def _extend(self, sequence: list[int], changes: Sequence[int], size: int) -> None:
        """Add changes that fit after those of a sequence: up to `size` at a time, fewer where they do not fit, then more again. No set with
        several new changes is tried that contains one that does not fit."""
        largest, left = size, list(changes)
        while left:
            sets = [frozenset((*sequence, *left[: size >> step])) for step in range(size.bit_length())]
            wanted = next((one for one in sets[:-1] if not self._contains_failed(one)), sets[-1])
            count = len(wanted) - len(sequence)
            if count == 1 and wanted not in self._known:
                self._prepare([frozenset((*sequence, change)) for change in left])
            if self.fits(wanted):
                sequence += left[:count]
                left, size = left[count:], min(2 * count, largest)
            elif count > 1:
                size = count // 2
            else:
                left, size = left[1:], 1

    def _contains_failed(self, changes: ChangeSet) -> bool:
        return any(fits is False and one <= changes for one, fits in self._known.items())

    def list_conflicts(self) -> Iterator[ChangeSet]:
        """Yield the smallest sets that do not fit: only a set of which all parts fit can be one."""
        parts = {frozenset((change,)) for change in range(self._count) if self.fits({change})}
        for size in range(2, self._count + 1):
            fitting: set[ChangeSet] = set()
            for members in combinations(range(self._count), size):
                changes = frozenset(members)
                if all(changes - {member} in parts for member in members):
                    if self.fits(changes) is False:
                        yield changes
                    elif self.fits(changes):
                        fitting.add(changes)
            parts = fitting

    def list_requirements(self) -> Iterator[tuple[int, ChangeSet]]:
        """Yield the smallest sets with which a change fits that does not fit alone."""
        for change in range(self._count):
            others = [other for other in range(self._count) if other != change]
            found: list[ChangeSet] = []
            for members in self._list_subsets(others) if self.fits({change}) is False else ():
                needed = frozenset(members)
                if not any(known <= needed for known in found) and self.fits(needed) and self.fits(needed | {change}):
                    found.append(needed)
                    yield change, needed

    def _list_subsets(self, members: Sequence[int]) -> Iterator[tuple[int, ...]]:
        for size in range(1, len(members) + 1):
            yield from combinations(members, size)

    def find_conflicts(self, change: int, sequence: Sequence[int]) -> Iterator[ChangeSet]:
        """Yield smallest parts of a sequence with which a change does not fit although it fits alone, each without the others."""
        left = list(sequence)
        for _ in range(MAX_EXPLAINED if self.fits({change}) else 0):
            if self.fits({change, *left}) is not False:
                return
            found = self._reduce(change, left)
            if not found:
                return
            yield frozenset((change, *found))
            left = [other for other in left if other not in found]

    def _reduce(self, change: int, sequence: Sequence[int]) -> list[int]:
        """Return the changes of the shortest beginning of a sequence that keep a change from fitting, from the last one backwards; none if
        these are many."""
        found: list[int] = []
        while self.fits({change, *found}) is not False:
            if len(found) == MAX_OTHERS:
                return []
            low, high = 0, len(sequence)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self.fits({change, *found, *sequence[:middle]}) is False else (middle, high)
            if not high or sequence[high - 1] in found:
                return []
            found.append(sequence[high - 1])
            sequence = sequence[: high - 1]
        return sorted(found)

    def find_requirement(self, change: int, before: Sequence[int]) -> ChangeSet | None:
        """Return the changes of a sequence that one after it needs: what cannot be left out, in ever smaller parts."""
        needed, size = list(before), len(before)
        while size := (size + 1) // 2 if size > 1 else 0:
            for part in [needed[start : start + size] for start in range(0, len(needed), size)]:
                fewer = [one for one in needed if one not in part]
                if self.fits({*fewer, change}):
                    needed = fewer
        return frozenset(needed) or None
