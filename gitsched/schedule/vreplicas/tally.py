"""How often each number of vreplicas occurs among the pods, nodes or zones that a source is compared over."""

from __future__ import annotations

from collections.abc import Iterable


class Tally:
    """A histogram of counts. The distance to all of them is asked for again and again between two changes, so it is remembered."""

    __slots__ = ("_distances", "_numbers", "size")

    def __init__(self, counts: Iterable[int] = ()) -> None:
        self._numbers: dict[int, int] = {}
        self._distances: dict[int, int] = {}
        self.size = 0
        for count in counts:
            self.add(count)

    def add(self, count: int) -> None:
        self._numbers[count] = self._numbers.get(count, 0) + 1
        self.size += 1
        self._distances.clear()

    def remove(self, count: int) -> None:
        left = self._numbers[count] - 1
        if left:
            self._numbers[count] = left
        else:
            del self._numbers[count]
        self.size -= 1
        self._distances.clear()

    def distance(self, count: int) -> int:
        """The sum of the differences between a count and every one here."""
        known = self._distances.get(count)
        if known is None:
            known = self._distances[count] = sum(number * abs(count - other) for other, number in self._numbers.items())
        return known

    def extremes(self, own: int | None) -> tuple[int, int] | None:
        """The smallest and the greatest count, one occurrence of `own` left out; None when nothing is left."""
        alone = own is not None and self._numbers.get(own) == 1
        counts = [count for count in self._numbers if not (alone and count == own)]
        return (min(counts), max(counts)) if counts else None


class Others:
    """A tally without the candidate's own count, which is None where it is not in it."""

    __slots__ = ("_own", "_tally")

    def __init__(self, tally: Tally, own: int | None) -> None:
        self._tally, self._own = tally, own

    @property
    def size(self) -> int:
        return self._tally.size - (self._own is not None)

    def distance(self, count: int) -> int:
        return self._tally.distance(count) - (0 if self._own is None else abs(count - self._own))

    def extremes(self) -> tuple[int, int] | None:
        return self._tally.extremes(self._own)
