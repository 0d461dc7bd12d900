"""Results of simulations as plain data: the effects of losing, draining or adding clusters or of scaling workloads, and the
resilience of two commits compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from gitsched.model.document import Key
from gitsched.model.finding import FieldOrigin

FAILURE_DOMAIN_KINDS: Final = ("cluster", "node", "zone", "region", "provider")


class FailureDomain(NamedTuple):
    """One cluster, or all that stand in one zone, in one region or with one provider; `by` is one of DIMENSIONS."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class WorkloadEffect(NamedTuple):
    """What becomes of one workload. It stands here when it moves, or when something is amiss after the event.

    `before` and `after` map the clusters that are still there to replicas (None where nothing is counted); `before` has those that are
    lost as well. `replicas` is how many it asks for, None where nothing is counted. `short` of them have no place after the event,
    `short_before` had none without it. `waiting` have a place on a cluster whose room others took, in the order of namespaces and names.
    `why` says why nothing better was found, "" where nothing is amiss.
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

    @property
    def moves(self) -> bool:
        return self.before != self.after

    @property
    def becomes_unplaced(self) -> bool:
        """Whether it loses its last place."""
        return bool(self.before) and not self.after

    @property
    def lost_replicas(self) -> int:
        """How many replicas more than without the event do not run."""
        return max(self.shortfall - self.shortfall_before, 0) + self.waiting

    @property
    def replica_changes(self) -> Mapping[str, int]:
        """By how many replicas each cluster that is not as before differs; a manifest without any counts 1."""
        names = (
            name
            for name in self.before.keys() | self.after.keys()
            if _count_replicas(self.after, name) != _count_replicas(self.before, name)
        )
        return {name: _count_replicas(self.after, name) - _count_replicas(self.before, name) for name in sorted(names)}

    @property
    def started_replicas(self) -> int:
        """How many replicas start somewhere; one for a manifest without any."""
        started = [more for more in self.replica_changes.values() if more > 0]
        return sum(started) if self.replicas is not None else int(bool(started))

    @property
    def only_loses_clusters(self) -> bool:
        """Whether it only runs on fewer clusters than before, and nothing more is amiss."""
        return (
            not self.lost_replicas
            and not self.becomes_unplaced
            and not self.reason
            and all(more < 0 for more in self.replica_changes.values())
            and self.moves
        )


def _count_replicas(places: Mapping[str, int | None], name: str) -> int:
    count = places.get(name, 0)
    return 1 if count is None else count


class OverloadedCluster(NamedTuple):
    """A cluster that is sent more than it has room for: `sent` replicas, of which `waiting` do not fit because of `resource`."""

    cluster: str
    sent: int
    waiting: int
    resource: str


class Simulation(NamedTuple):
    """One event and its effects.

    `event` is a sentence without its full stop. `scope` is what is lost where nothing else happens, else None. `lost`, `drained` and
    `added` are clusters; `partial` are clusters that stand in a lost zone and in others, and are taken to survive. `assumed` are clusters
    that take replicas and about whose room nothing is known. `workloads` counts all that are placed or should be; `effects` are in the
    order of namespaces and names.
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

    @property
    def moved(self) -> int:
        return sum(effect.moves for effect in self.effects)

    @property
    def started_replicas(self) -> int:
        return sum(effect.started_replicas for effect in self.effects)

    @property
    def unplaced(self) -> tuple[WorkloadEffect, ...]:
        return tuple(effect for effect in self.effects if effect.becomes_unplaced)

    @property
    def shortfall(self) -> int:
        """Replicas without a place because of the event."""
        return sum(max(effect.shortfall - effect.shortfall_before, 0) for effect in self.effects)

    @property
    def waiting(self) -> int:
        return sum(effect.waiting for effect in self.effects)

    @property
    def degraded(self) -> tuple[WorkloadEffect, ...]:
        """The workloads that have fewer running replicas than without the event, or no place any more; worst first."""
        bad = (effect for effect in self.effects if effect.lost_replicas or effect.becomes_unplaced)
        return tuple(sorted(bad, key=lambda effect: (not effect.becomes_unplaced, -effect.lost_replicas, effect.key)))


class Resilience(NamedTuple):
    """Every single loss of one kind: `rows` has one simulation for each, the worst first. `unknown` are clusters about whose room nothing
    is known; they are taken to have enough."""

    domain_kind: str
    clusters: int
    workloads: int
    rows: tuple[Simulation, ...]
    unknown_capacity: tuple[str, ...]


class ImpactChange(NamedTuple):
    """How one workload fares in one loss before and after a change; None where it, or what is lost, is not there.

    `cause` is the place of the rule that makes the difference, "" where nobody knows one; `rule` is what that can be told from.
    """

    domain: FailureDomain
    key: Key
    before: int | None
    after: int | None
    cause: str = ""
    field: FieldOrigin | None = None
    becomes_unplaced: bool = False

    @property
    def is_worse(self) -> bool:
        return (self.after or 0) > (self.before or 0) or self.becomes_unplaced


class ResilienceChange(NamedTuple):
    """Two tables of the same kind, and every workload that one of the losses hits harder, or less, in `head` than in `base`; what got
    worse first."""

    base: Resilience
    head: Resilience
    impact_changes: tuple[ImpactChange, ...]
