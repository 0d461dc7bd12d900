"""Results of simulations as plain data: the effects of losing, draining or adding clusters or of scaling workloads, and the
resilience of two commits compared."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from gitsched.model.scheduling import Unknown, count_copies, total_replicas
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.changes import Cause, RecordChange
    from gitsched.model.document import Key
    from gitsched.model.fleet_topology import SimulatedSite
    from gitsched.model.history import SourceChange
    from gitsched.model.holds import HeldPlacement
    from gitsched.model.web_links import WebLinks

FAILURE_DOMAIN_KINDS: Final = ("cluster", "node", "zone", "region", "provider")


class FailureDomain(NamedTuple):
    """One cluster, or all clusters in one zone, in one region or with one provider; `kind` is one of FAILURE_DOMAIN_KINDS."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SimulatedSource(NamedTuple):
    """The source commit of a simulation, and the one that it is compared with, None without one. A worktree has no id. `web` are the
    web pages of the source, None without any, and `time` is the time of the simulated event, None where it is not known."""

    commit: SourceChange
    against: SourceChange | None = None
    web: WebLinks | None = None
    time: datetime | None = None


class WorkloadEffect(NamedTuple):
    """The effect of an event on one workload that moves or that has a problem after the event.

    `before` and `after` map the remaining clusters to replicas (None without replicas); `before` also has lost clusters.
    `replicas` is the desired number, None without replicas. `shortfall` of them are unplaced after the event, `shortfall_before` would be
    without it. `waiting` are placed on a cluster whose capacity other workloads use, in the order of namespaces and names. `expected`
    replicas would run in the clusters of `before`, as the event asks for them. `reason` says why no better placement was found, "" when
    there is no problem. `reserved`: the event is a loss that a reserve is for, which the workload has to survive.
    """

    key: Key
    before: Mapping[str, int | None]
    after: Mapping[str, int | None]
    replicas: int | None
    shortfall: int = 0
    shortfall_before: int = 0
    waiting: int = 0
    policy: str = ""
    reason: str = ""
    reserved: bool = False
    expected: int = 0

    @property
    def moves(self) -> bool:
        return self.before != self.after

    @property
    def becomes_unplaced(self) -> bool:
        """Whether the workload has no cluster any more."""
        return bool(self.before) and not self.after

    @property
    def lost_replicas(self) -> int:
        """How many replicas more than without the event do not run."""
        return max(self.shortfall - self.shortfall_before, 0) + self.waiting

    @property
    def running(self) -> int:
        """How many replicas run after the event; those that wait for capacity do not."""
        placed = total_replicas(self.after.values())
        return placed - self.waiting if self.waiting else placed

    @property
    def is_reduced(self) -> bool:
        """Whether the workload runs on with fewer replicas, such as one that loses one of several equal copies."""
        return bool(self.after) and not isinstance(self.running, Unknown) and self.running < self.expected

    @property
    def stops(self) -> bool:
        """Whether the workload keeps clusters in which none of its replicas runs."""
        return self.is_reduced and not self.running

    @property
    def is_degraded(self) -> bool:
        """Whether fewer replicas run than without the event, or the workload has no cluster any more."""
        return self.lost_replicas > 0 or self.becomes_unplaced

    @property
    def replica_changes(self) -> Mapping[str, int]:
        """The difference in replicas for each changed cluster; a manifest without replicas counts as 1."""
        names = (
            name
            for name in self.before.keys() | self.after.keys()
            if count_copies(self.after, name) != count_copies(self.before, name)
        )
        return {name: count_copies(self.after, name) - count_copies(self.before, name) for name in sorted(names)}

    @property
    def started_replicas(self) -> int:
        """How many replicas start on a cluster; none of a manifest without replicas, as `total_replicas` counts."""
        return sum(change for change in self.replica_changes.values() if change > 0) if self.replicas is not None else 0

    @property
    def only_loses_clusters(self) -> bool:
        """Whether the only effect is that the workload runs on fewer clusters."""
        return (
            not self.lost_replicas
            and not self.becomes_unplaced
            and not self.reason
            and all(change < 0 for change in self.replica_changes.values())
            and self.moves
        )


class OverloadedCluster(NamedTuple):
    """A cluster with more replicas than its capacity: `sent` replicas, of which `waiting` do not fit because of `resource`."""

    cluster: str
    sent: int
    waiting: int
    resource: str


class Simulation(NamedTuple):
    """One event and its effects.

    `event` is a sentence without a full stop. `domain` is the lost failure domain when nothing else happens, else None. `lost`,
    `drained` and `added` are clusters; `partly_lost` are clusters in a lost zone and in other zones, which are assumed to
    survive. `unknown_capacity` are clusters of unknown capacity that receive replicas. `workloads` counts all workloads that are
    or should be placed; `effects` are in the order of namespaces and names. `record_changes` are recorded decisions that the event
    changes, without those about documents that it removes. `has_more_timers`: the event starts more timers than are simulated.
    `held` are the workloads that are held because of the event. `evicts`: lost clusters keep their documents and
    evict their workloads; to remove the documents alone does not.
    `moved_besides` and `started_besides` count the workloads, and the replicas, that move without being in `effects`, and
    `reduced_besides` the workloads of these that run on with fewer replicas. `reserve` is the loss
    that the event is and that some workloads have a reserve for, or "". `fleet` are all clusters before and after the event, if they were
    asked for.
    """

    event: str
    domain: FailureDomain | None
    lost: tuple[str, ...]
    drained: tuple[str, ...]
    added: tuple[str, ...]
    partly_lost: tuple[str, ...]
    workloads: int
    effects: tuple[WorkloadEffect, ...]
    overloaded: tuple[OverloadedCluster, ...]
    unknown_capacity: tuple[str, ...]
    record_changes: tuple[RecordChange, ...] = ()
    has_more_timers: bool = False
    held: Mapping[Key, HeldPlacement] = {}
    moved_besides: int = 0
    started_besides: int = 0
    evicts: bool = False
    reserve: str = ""
    reduced_besides: int = 0
    fleet: tuple[SimulatedSite, ...] = ()

    @property
    def moved(self) -> int:
        return sum(effect.moves for effect in self.effects) + self.moved_besides

    @property
    def started_replicas(self) -> int:
        return sum(effect.started_replicas for effect in self.effects) + self.started_besides

    def keep_degraded(self) -> Simulation:
        """Return the simulation with the effects on workloads that miss replicas alone, without reasons: these count clusters, so they
        differ between losses that have the same effect."""
        degraded = tuple(effect._replace(reason="") for effect in self.effects if effect.is_degraded)
        others = [effect for effect in self.effects if not effect.is_degraded]
        return self._replace(
            effects=degraded,
            record_changes=(),
            held={},
            moved_besides=self.moved_besides + sum(effect.moves for effect in others),
            started_besides=self.started_besides + sum(effect.started_replicas for effect in others),
            reduced_besides=self.reduced_besides + sum(effect.is_reduced for effect in others),
        )

    @property
    def reduced(self) -> tuple[WorkloadEffect, ...]:
        """The workloads of `effects` that run on with fewer replicas, the largest share lost first."""
        reduced = (effect for effect in self.effects if effect.is_reduced)
        return tuple(sorted(reduced, key=lambda one: (one.running / one.expected, one.running - one.expected, one.key)))

    @property
    def reduced_workloads(self) -> int:
        """How many workloads run on with fewer replicas, or stop without leaving all clusters."""
        return sum(effect.is_reduced for effect in self.effects) + self.reduced_besides

    @property
    def unplaced(self) -> tuple[WorkloadEffect, ...]:
        return tuple(effect for effect in self.effects if effect.becomes_unplaced)

    @property
    def shortfall(self) -> int:
        """Replicas that are unplaced because of the event."""
        return sum(max(effect.shortfall - effect.shortfall_before, 0) for effect in self.effects)

    @property
    def waiting(self) -> int:
        return sum(effect.waiting for effect in self.effects)

    @property
    def missing(self) -> int:
        """Replicas that do not run because of the event: they are unplaced, or in a cluster without capacity."""
        return sum(effect.lost_replicas for effect in self.effects)

    @property
    def is_degraded(self) -> bool:
        """Whether replicas are missing, or a workload has no cluster any more."""
        return any(effect.is_degraded for effect in self.effects)

    @property
    def degraded(self) -> tuple[WorkloadEffect, ...]:
        """The workloads with fewer running replicas than without the event, or without a cluster; worst first."""
        degraded = (effect for effect in self.effects if effect.is_degraded)
        return tuple(sorted(degraded, key=lambda effect: (not effect.becomes_unplaced, -effect.lost_replicas, effect.key)))

    @property
    def worst(self) -> tuple[WorkloadEffect, ...]:
        """The workloads that are degraded, then those that only run on with fewer replicas; worst first."""
        return (*self.degraded, *(effect for effect in self.reduced if not effect.is_degraded))


class AffectedWorkload(NamedTuple):
    """A workload that misses replicas after some losses: how many losses these are, and the most replicas that it misses. `reserved`: it
    has a reserve for such losses."""

    key: Key
    losses: int
    most: int
    unplaced: int
    reserved: bool = False


class WorkloadAvailability(NamedTuple):
    """The share of samples in which a workload misses no replica, with the limits of its 95 % confidence interval, and the replica hours
    that it is expected to lose in a year, with the half width of theirs."""

    key: Key
    available: float
    low: float
    high: float
    lost_hours: float
    margin: float


class Availability(NamedTuple):
    """The workloads that miss replicas in a sample, the least available first. `low` is the lower limit of the confidence interval for all
    others, which are available in all samples."""

    samples: int
    failed: int
    workloads: tuple[WorkloadAvailability, ...]
    low: float
    lost_hours: float
    margin: float


class Resilience(NamedTuple):
    """Losses of one kind: `rows` has a simulation for each, worst first. `unknown_capacity` are clusters of unknown capacity, which is
    assumed to be sufficient.

    Of many losses, such as pairs, `rows` are the worst. `others` counts the rest, of which `degraded_others` leave replicas missing or
    workloads unplaced, and `reduced_others` only leave workloads with fewer replicas, and
    `affected` are the workloads that miss replicas after some loss, the most affected first. `availability` follows from samples of
    failures, None without rates. `has_reserve`: some workloads have to survive such a loss; `short_of_reserve` counts the losses after
    which one of these misses replicas.
    """

    domain_kind: str
    clusters: int
    workloads: int
    rows: tuple[Simulation, ...]
    unknown_capacity: tuple[str, ...]
    others: int = 0
    degraded_others: int = 0
    affected: tuple[AffectedWorkload, ...] = ()
    availability: Availability | None = None
    has_reserve: bool = False
    short_of_reserve: int = 0
    reduced_others: int = 0

    @property
    def losses(self) -> int:
        """How many losses were simulated."""
        return len(self.rows) + self.others

    @property
    def degraded_losses(self) -> int:
        """How many losses leave replicas missing or workloads unplaced."""
        return sum(row.is_degraded for row in self.rows) + self.degraded_others

    @property
    def reduced_losses(self) -> int:
        """How many losses only leave workloads with fewer replicas."""
        return sum(bool(row.reduced_workloads) and not row.is_degraded for row in self.rows) + self.reduced_others


class ImpactChange(NamedTuple):
    """The impact of one loss on one workload before and after a change; None when the workload, or the lost domain, does not
    exist.

    `was_unplaced` and `is_unplaced`: the loss leaves the workload without a cluster. `causes` are as those of a Move, and `cause` says
    where the proved ones are written, "" without any.
    """

    domain: FailureDomain
    key: Key
    before: int | None
    after: int | None
    cause: str = ""
    causes: tuple[Cause, ...] = ()
    was_unplaced: bool = False
    is_unplaced: bool = False

    @property
    def becomes_unplaced(self) -> bool:
        """Whether the loss leaves the workload without a cluster, and did not before."""
        return self.is_unplaced and not self.was_unplaced

    @property
    def is_worse(self) -> bool:
        return (self.after or 0) > (self.before or 0) or self.becomes_unplaced


class ResilienceChange(NamedTuple):
    """Two tables of the same kind, and every workload that a loss affects more, or less, in `head` than in `base`; regressions
    first."""

    base: Resilience
    head: Resilience
    impact_changes: tuple[ImpactChange, ...]
