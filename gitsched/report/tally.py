"""What a change amounts to: counts that every report begins with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from gitsched.model.change import Cause, Move


class Balance(NamedTuple):
    """What one cluster gains and loses."""

    gained: int = 0
    lost: int = 0
    replicas_gained: int = 0
    replicas_lost: int = 0

    @property
    def replicas(self) -> int:
        """The difference in replicas."""
        return self.replicas_gained - self.replicas_lost


class Tally(NamedTuple):
    """`moved`, `resized`, `first` and `lost` count workloads and add up to all moves. `replicas_moved` go from one cluster to another;
    what comes or goes beside them is `replicas_added` and `replicas_removed`. `clusters` are those that gain or lose anything, by name."""

    moved: int
    resized: int
    first: int
    lost: int
    replicas_moved: int
    replicas_added: int
    replicas_removed: int
    clusters: dict[str, Balance]

    @property
    def gaining(self) -> list[str]:
        """Clusters that get a workload or more replicas."""
        return [name for name, balance in self.clusters.items() if balance.gained or balance.replicas_gained]

    @property
    def losing(self) -> list[str]:
        """Clusters that lose a workload or replicas."""
        return [name for name, balance in self.clusters.items() if balance.lost or balance.replicas_lost]


def tally(moves: Iterable[Move]) -> Tally:
    """Count a change."""
    counts = dict.fromkeys(("moved", "resized", "first", "lost"), 0)
    moved = added = removed = 0
    clusters: dict[str, Balance] = {}
    for move in moves:
        counts[classify(move)] += 1
        up = down = 0
        for name in move.before.keys() | move.after.keys():
            known = clusters.get(name, Balance())
            difference = (move.after.get(name) or 0) - (move.before.get(name) or 0)
            up, down = up + max(difference, 0), down + max(-difference, 0)
            clusters[name] = Balance(
                known.gained + (name not in move.before),
                known.lost + (name not in move.after),
                known.replicas_gained + max(difference, 0),
                known.replicas_lost + max(-difference, 0),
            )
        moved, added, removed = moved + min(up, down), added + max(up - down, 0), removed + max(down - up, 0)
    touched = {name: balance for name, balance in sorted(clusters.items()) if any(balance)}
    return Tally(**counts, replicas_moved=moved, replicas_added=added, replicas_removed=removed, clusters=touched)


def classify(move: Move) -> str:
    """lost: the last place goes; first: there was none; resized: the clusters stay; moved: everything else."""
    if move.lost:
        return "lost"
    if not move.before:
        return "first"
    return "resized" if move.before.keys() == move.after.keys() else "moved"


def group_causes(moves: Iterable[Move]) -> list[tuple[Cause, int]]:
    """The first cause of each move, with how many moves it is the first one of; the most frequent first."""
    counts = Counter(move.causes[0] for move in moves if move.causes)
    return sorted(counts.items(), key=lambda entry: (-entry[1], str(entry[0])))
