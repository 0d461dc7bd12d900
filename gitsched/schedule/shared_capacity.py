"""What is left on candidates while workloads are placed one after the other.

Each workload is decided with what was left when its turn came. The fleets of several engines may have some of the candidates each, so that
candidates are known by name here.
"""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.model.document import Key
from gitsched.model.scheduling import EqualPods
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.capacity_ledger import CapacityLedger
from gitsched.schedule.estimator import Capacity
from gitsched.schedule.fleet import Fleet


def limit_capacity(free: Capacity, total: Capacity | None, staying: Mapping[str, int], since: Mapping[str, int]) -> Capacity:
    """Return what is free on a candidate: what was free when it was observed without what was placed `since`, and no more than it has in
    total without what is `staying` there."""
    left = {resource: amount - since.get(resource, 0) for resource, amount in free.free.items()}
    if total is not None:
        limits = {name: amount - staying.get(name, 0) for name, amount in total.free.items() if name in left}
        left |= {name: min(left[name], limit) for name, limit in limits.items()}
    return free._replace(free=left)


class TakenCapacity(NamedTuple):
    """Pods that a workload has been given on a candidate."""

    workload: Key
    candidate: str
    pods: tuple[EqualPods, ...]


class SharedCapacity:
    """What is free on candidates before anything is placed, and what was placed since, in order."""

    def __init__(self, capacities: Mapping[str, Capacity]) -> None:
        self.capacities = capacities
        self.taken: list[TakenCapacity] = []
        self._ledgers: dict[int, tuple[Fleet, int, CapacityLedger]] = {}

    def take(self, workload: Key, pods: Mapping[str, tuple[EqualPods, ...]]) -> None:
        """Give a workload the pods that it starts, by candidate."""
        self.taken += (TakenCapacity(workload, name, group) for name, group in sorted(pods.items()))

    def read(self, fleet: Fleet, position: int) -> CapacityLedger:
        """Return the ledger of a fleet as it was when `position` entries of `taken` had been made. It changes with the next call."""
        _, known, ledger = self._ledgers.get(id(fleet), (fleet, 0, None))
        if ledger is None or known > position:
            capacities = (self.capacities.get(one.name, one.capacity) for one in fleet.candidates)
            known, ledger = 0, CapacityLedger(list(capacities))
        for entry in self.taken[known:position]:
            index = fleet.index.get(entry.candidate)
            if index is not None:
                ledger.assume(str(entry.workload), index, entry.pods)
        self._ledgers[id(fleet)] = fleet, position, ledger  # the fleet, so that no other one gets its id
        return ledger


class CapacityShare(NamedTuple):
    """What is left for one workload: what was shared, after a number of entries."""

    shared: SharedCapacity
    position: int

    def read(self, fleet: Fleet) -> CapacityLedger:
        """Return the ledger of a fleet, until the next call for the same fleet."""
        return self.shared.read(fleet, self.position)
