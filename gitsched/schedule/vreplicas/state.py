"""What the state collector knows: one snapshot that the autoscaler reads and people are shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gitsched.schedule.vreplicas.adapter import Adapter, Shares, Vpod


class State(NamedTuple):
    """`free` is by ordinal up to `last`, the greatest ordinal that is schedulable or holds something (-1: none). The spreads and counts
    are by source."""

    capacity: int
    replicas: int
    schedulable: tuple[int, ...]
    free: tuple[int, ...]
    zones: Mapping[str, str]
    pod_spread: Mapping[str, Shares]
    node_spread: Mapping[str, Mapping[str, int]]
    zone_spread: Mapping[str, Mapping[str, int]]
    pending: Mapping[str, int]
    expected: Mapping[str, int]

    @property
    def last(self) -> int:
        return len(self.free) - 1

    @property
    def free_capacity(self) -> int:
        """Room on schedulable pods."""
        return sum(self.free[ordinal] for ordinal in self.schedulable)


def collect(adapter: Adapter, vpods: Iterable[Vpod], others: Iterable[Shares] = ()) -> State:
    """The state of the pods with what the sources hold; `others` is held by nobody that is listed."""
    sources = list(vpods)
    held = [*(vpod.held for vpod in sources), *others]
    touched = max((*adapter.pods, *(ordinal for shares in held for ordinal in shares)), default=-1)
    free = [adapter.capacity] * (touched + 1)
    for shares in held:
        for ordinal, number in shares.items():
            free[ordinal] -= number
    on_pods = {v.name: {o: n for o, n in sorted(v.held.items()) if o in adapter.pods} for v in sources}
    return State(
        adapter.capacity,
        adapter.replicas,
        tuple(adapter.pods),
        tuple(free),
        adapter.zones,
        on_pods,
        {name: _group(shares, {o: adapter.pods[o].node for o in shares}) for name, shares in on_pods.items()},
        {name: _group(shares, {o: adapter.pods[o].zone for o in shares}) for name, shares in on_pods.items()},
        {vpod.name: max(0, vpod.wanted - sum(vpod.held.values())) for vpod in sources},
        {vpod.name: vpod.wanted for vpod in sources},
    )


def _group(shares: Shares, place_of: Mapping[int, str]) -> dict[str, int]:
    spread: dict[str, int] = {}
    for ordinal, number in shares.items():
        spread[place_of[ordinal]] = spread.get(place_of[ordinal], 0) + number
    return dict(sorted(spread.items()))
