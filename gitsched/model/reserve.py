"""Reserves as plain data: the losses that workloads have to survive, what they lack after each, and what would give it to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gitsched.model.scheduling import count_copies
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Document, Key

ANY_TWO: Final = "any 2 clusters"
RESERVE_LOSSES: Final = ("cluster", "zone", "region", ANY_TWO)
"""The losses that a reserve may be for: one cluster, one zone or one region, whichever it is, or two clusters at the same time."""
Amounts = Mapping[str, int]
"""Amounts by resource, as schedulers count them."""


class Loss(NamedTuple):
    """A loss of clusters that a reserve is for. `kind` is one of RESERVE_LOSSES, `names` those of the zone, the region or the clusters."""

    kind: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return f"clusters {' and '.join(self.names)}" if len(self.names) > 1 else f"{self.kind} {self.names[0]}"


class Shortage(NamedTuple):
    """What one workload lacks after a loss.

    `missing` counts the replicas that ran before and have no place, or exceed the free capacity of their clusters; the workload becomes
    `unplaced` if no cluster is left. `replicas` is the desired number, None without replicas. `requests` is what the missing replicas
    request, nothing where the API knows no resources. `reason` says why there is no place.
    """

    missing: int
    unplaced: bool
    replicas: int | None = None
    requests: Amounts = {}
    reason: str = ""

    def exceeds(self, other: Shortage) -> bool:
        """Return whether it is larger than another one of the same workload."""
        return self.missing > other.missing or (self.unplaced and not other.unplaced)


NO_SHORTAGE = Shortage(0, unplaced=False)


class ReserveShortage(NamedTuple):
    """What a workload lacks after a loss, with the change under review and `before` it. `tenant` owns the workload, "" for the platform."""

    loss: Loss
    key: Key
    after: Shortage
    before: Shortage
    tenant: str = ""

    @property
    def is_larger(self) -> bool:
        """Whether the change makes the shortage larger."""
        return self.after.exceeds(self.before)


class ReserveMove(NamedTuple):
    """Where a workload runs before and after a remedy. `preferred` is the cluster that it is annotated with, "" for
    none; None for one that follows the others."""

    key: Key
    before: Mapping[str, int | None]
    after: Mapping[str, int | None]
    preferred: str | None = None


class AddedCapacity(NamedTuple):
    """Resources to add to a cluster, or a whole cluster like it, which is called `added`."""

    cluster: str
    amounts: Amounts = {}
    added: str = ""


class ReserveRemedy(NamedTuple):
    """What ends all larger shortages: moves of workloads or added capacity. `requests` are documents that make the moves."""

    moves: tuple[ReserveMove, ...] = ()
    capacity: tuple[AddedCapacity, ...] = ()
    requests: tuple[Document, ...] = ()

    @property
    def started(self) -> int:
        """How many replicas the moves start, one for a copy without a number."""
        return sum(
            max(count_copies(move.after, name) - count_copies(move.before, name), 0) for move in self.moves for name in move.after
        )


class ReserveCheck(NamedTuple):
    """The result of checking all reserves of a change.

    `shortages` are those with the change, the larger ones first. `losses` is the number of losses that were simulated, `skipped` of those
    that were not because there are too many. `remedy` is None if none was found among the `attempts` that were made; `is_partial`: there
    were more to make. `unavailable` are losses of which the fleet has none, or only one, so that nothing is left after it.
    `is_compared`: there is a plan before the change.
    """

    shortages: tuple[ReserveShortage, ...]
    losses: int
    skipped: int = 0
    remedy: ReserveRemedy | None = None
    attempts: int = 0
    is_partial: bool = False
    unavailable: tuple[tuple[str, int], ...] = ()
    is_compared: bool = True

    @property
    def larger(self) -> tuple[ReserveShortage, ...]:
        """The shortages that the change makes larger."""
        return tuple(shortage for shortage in self.shortages if shortage.is_larger)
