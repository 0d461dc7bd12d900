"""What is free on every pod while one run places source after source: what it placed counts for all that follow."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.schedule.vreplicas.adapter import Adapter, Shares


class Ledger:
    """`free` is by ordinal, and below zero where a pod holds more than its capacity."""

    __slots__ = ("capacity", "free")

    def __init__(self, adapter: Adapter, held: Iterable[Shares]) -> None:
        self.capacity = adapter.capacity
        self.free = dict.fromkeys(adapter.pods, adapter.capacity)
        for shares in held:
            self.take(shares)

    def take(self, shares: Shares) -> None:
        for ordinal, number in shares.items():
            self.free[ordinal] = self.free.get(ordinal, self.capacity) - number

    def give(self, shares: Shares) -> None:
        for ordinal, number in shares.items():
            self.free[ordinal] = self.free.get(ordinal, self.capacity) + number
