"""Deterministic tie-breaking: choose among equal candidates by a hash of the request's identity and the candidate's name, or in the
order in which Go's unstable sort leaves them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from operator import ge
from typing import Final


def break_tie(identity: str, names: Iterable[str]) -> str:
    """Return the candidate with the smallest SHA-256 of `identity`, a line feed and its name.

    Requests with different identities spread evenly, the same request always gets the same result, and adding or removing a
    candidate changes only the results that it wins or won. Names must not be empty.
    """
    seed = sha256(identity.encode("utf-8", "surrogatepass") + b"\n")
    best, winner = b"", ""
    for name in names:
        digest_state = seed.copy()
        digest_state.update(name.encode("utf-8", "surrogatepass"))
        digest = digest_state.digest()
        if not winner or (digest, name) < (best, winner):
            best, winner = digest, name
    return winner


_MAX_INSERTION: Final = 12
"""Up to this length a range is sorted by insertion."""
_SHORTEST_NINTHER: Final = 50
"""From this length on pivots are medians of medians, and nearly sorted ranges are sorted in place."""
_MAX_STEPS: Final = 5
_MAX_SWAPS: Final = 12
"""The number of comparisons for a median of three medians of three."""
_UINT64_MASK: Final = (1 << 64) - 1


def go_sort_descending(weights: Sequence[int]) -> list[int]:
    """Return the positions of `weights` in the order of Go's sort.Sort by weight, largest first."""
    if all(map(ge, weights, weights[1:])):
        return list(range(len(weights)))  # sorted already, as most ranges are: Go leaves them as they are
    if len(weights) <= _MAX_INSERTION or len(set(weights)) == len(weights):
        return sorted(range(len(weights)), key=weights.__getitem__, reverse=True)
    sorter = _PdqSorter(weights)
    sorter.sort(0, len(weights), len(weights).bit_length())
    return sorter.order


class _PdqSorter:
    """Go's pattern-defeating quicksort. `order` are positions, sorted in place; a position is less than another if its weight is
    larger."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._weights = weights
        self.order = list(range(len(weights)))

    def sort(self, start: int, end: int, depth: int) -> None:
        """Sort a range; `depth` is the number of bad pivots before heap sort takes over."""
        balanced = partitioned = True
        while end - start > _MAX_INSERTION:
            size = end - start
            if not depth:
                self._heap_sort(start, end)
                return
            if not balanced:
                self._break_patterns(start, size)
                depth -= 1
            pivot, swaps = self._choose_pivot(start, size)
            if swaps == _MAX_SWAPS:  # every comparison was reversed: the range is descending
                self.order[start:end] = self.order[start:end][::-1]
                pivot, swaps = end - 1 - (pivot - start), 0
            if balanced and partitioned and not swaps and self._partial_insertion_sort(start, end):
                return
            if start and not self._less(start - 1, pivot):
                start = self._partition_equal(start, end, pivot)
                continue
            middle, partitioned = self._partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= size // 8
            if left < right:
                self.sort(start, middle, depth)
                start = middle + 1
            else:
                self.sort(middle + 1, end, depth)
                end = middle
        self._insertion_sort(start, end)

    def _less(self, one: int, other: int) -> bool:
        return self._weights[self.order[one]] > self._weights[self.order[other]]

    def _swap(self, one: int, other: int) -> None:
        order = self.order
        order[one], order[other] = order[other], order[one]

    def _insertion_sort(self, start: int, end: int) -> None:
        for position in range(start + 1, end):
            self._shift_left(position, start)

    def _shift_left(self, position: int, lowest: int) -> None:
        while position > lowest and self._less(position, position - 1):
            self._swap(position, position - 1)
            position -= 1

    def _heap_sort(self, start: int, end: int) -> None:
        size = end - start
        for root in range((size - 1) // 2, -1, -1):
            self._sift_down(root, size, start)
        for last in range(size - 1, -1, -1):
            self._swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, size: int, start: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self._less(start + child, start + child + 1):
                child += 1
            if not self._less(start + root, start + child):
                return
            self._swap(start + root, start + child)
            root = child

    def _break_patterns(self, start: int, size: int) -> None:
        """Break up a pattern that causes bad pivots, by a fixed sequence of pseudo-random swaps (xorshift seeded with the size)."""
        seed, mask = size, (1 << size.bit_length()) - 1
        first = start + size // 4 * 2 - 1
        for position in range(first, first + 3):
            seed ^= seed << 13 & _UINT64_MASK
            seed ^= seed >> 7
            seed ^= seed << 17 & _UINT64_MASK
            other = seed & mask
            self._swap(position, start + (other - size if other >= size else other))

    def _choose_pivot(self, start: int, size: int) -> tuple[int, int]:
        """Return a position for the pivot, and the number of reversed comparisons."""
        quarter = size // 4
        positions = [start + quarter, start + 2 * quarter, start + 3 * quarter]
        swaps = 0
        if size >= _SHORTEST_NINTHER:
            for index, position in enumerate(positions):
                positions[index], reversed_count = self._median(position - 1, position, position + 1)
                swaps += reversed_count
        pivot, reversed_count = self._median(*positions)
        return pivot, swaps + reversed_count

    def _median(self, low: int, middle: int, high: int) -> tuple[int, int]:
        swaps = 0
        if self._less(middle, low):
            low, middle, swaps = middle, low, swaps + 1
        if self._less(high, middle):
            middle, swaps = high, swaps + 1
        if self._less(middle, low):
            middle, swaps = low, swaps + 1
        return middle, swaps

    def _partial_insertion_sort(self, start: int, end: int) -> bool:
        """Move a few elements of a nearly sorted range to their positions; return whether it is sorted now."""
        position = start + 1
        for _ in range(_MAX_STEPS):
            while position < end and not self._less(position, position - 1):
                position += 1
            if position == end:
                return True
            if end - start < _SHORTEST_NINTHER:
                return False
            self._swap(position, position - 1)
            if position - start >= 2:
                self._shift_left(position - 1, 0)
            if end - position >= 2:
                after = position + 1
                while after < end and self._less(after, after - 1):
                    self._swap(after, after - 1)
                    after += 1
        return False

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """Move smaller elements to the left of the pivot, all others to its right; return its position, and whether nothing else
        had to move."""
        self._swap(start, pivot)
        low, high = start + 1, end - 1
        moved = False
        while True:
            while low <= high and self._less(low, start):
                low += 1
            while low <= high and not self._less(high, start):
                high -= 1
            if low > high:
                self._swap(high, start)
                return high, not moved
            self._swap(low, high)
            moved, low, high = True, low + 1, high - 1

    def _partition_equal(self, start: int, end: int, pivot: int) -> int:
        """Move elements equal to the pivot, which is the least, to the left; return where the others begin."""
        self._swap(start, pivot)
        low, high = start + 1, end - 1
        while True:
            while low <= high and not self._less(start, low):
                low += 1
            while low <= high and self._less(start, high):
                high -= 1
            if low > high:
                return low
            self._swap(low, high)
            low, high = low + 1, high - 1
