"""Count the steps that documents take which combine values, so that few values cannot take much time or memory."""

from __future__ import annotations

from typing import Any


class TooManySteps(Exception):
    """A document takes more steps than it may."""


class Steps:
    """The steps of one document."""

    def __init__(self, limit: int) -> None:
        self.taken, self._limit = 0, limit

    def take(self, count: int) -> None:
        """Take steps, before what they stand for is done."""
        self.taken += count
        if self.taken > self._limit:
            raise TooManySteps


def count_values(value: Any) -> int:
    """Return the number of values in a value, itself included; long texts count more than once."""
    count, pending = 0, [value]
    while pending:
        each = pending.pop()
        count += 1 + (len(each) >> 6 if isinstance(each, str) else 0)
        if isinstance(each, dict):
            pending += each.values()
        elif isinstance(each, list):
            pending += each
    return count
