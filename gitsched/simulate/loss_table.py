"""The table of losses from their results, which come in any order: the worst ones, the workloads that miss replicas, their availability."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gitsched.model.document import Key
from gitsched.model.losses import HOURS_PER_YEAR, LossRequest, LossResult
from gitsched.model.simulation import AffectedWorkload, Availability, Resilience, Simulation, WorkloadAvailability
from gitsched.named_tuples import NamedTuple

ROWS_KEPT = 200
"""The number of losses that a table of many has; the others are counted."""
_DEVIATIONS = 1.959963984540054
"""The standard deviations of a 95 % confidence interval."""


class FleetSize(NamedTuple):
    """What a table of losses says about the fleet: numbers of clusters and workloads, clusters of unknown capacity, and whether workloads
    have to survive such a loss."""

    clusters: int
    workloads: int
    unknown_capacity: tuple[str, ...]
    has_reserve: bool = False


class _Tally:
    """Counts the losses after which a workload misses replicas, in samples, and the replicas."""

    def __init__(self) -> None:
        self.losses = self.most = self.unplaced = self.samples = self.lost = self.squares = 0
        self.reserved = False

    def add(self, samples: int, lost: int, *, unplaced: bool) -> None:
        self.losses += 1
        self.most, self.unplaced = max(self.most, lost), self.unplaced + unplaced
        self.samples += samples
        self.lost += samples * lost
        self.squares += samples * lost * lost


class LossTable:
    """Collects results. It keeps all of them if results are complete, and else only the worst."""

    def __init__(self, request: LossRequest) -> None:
        self._request = request
        self._rows: list[tuple[tuple[object, ...], Simulation]] = []
        self._count = self._degraded = self._reduced = self._short_of_reserve = 0
        self._workloads: dict[Key, _Tally] = {}
        self._total = _Tally()

    def add(self, result: LossResult) -> None:
        """Add the result of one loss."""
        simulation, samples = result.simulation, result.samples
        self._count += 1
        self._rows.append(((*rank_loss(simulation), result.number), simulation))
        if self._request.is_short and len(self._rows) >= 2 * ROWS_KEPT:
            self._rows = sorted(self._rows, key=lambda entry: entry[0])[:ROWS_KEPT]
        degraded = [effect for effect in simulation.effects if effect.is_degraded]
        if not degraded:
            self._reduced += bool(simulation.reduced_workloads)
            return
        self._degraded += 1
        for effect in degraded if self._request.is_short else ():
            tally = self._workloads.setdefault(effect.key, _Tally())
            tally.add(samples, effect.lost_replicas, unplaced=effect.becomes_unplaced)
            tally.reserved |= effect.reserved
        self._short_of_reserve += any(effect.reserved for effect in degraded)
        self._total.add(samples, sum(effect.lost_replicas for effect in degraded), unplaced=False)

    def finish(self, fleet: FleetSize) -> Resilience:
        """Return the table."""
        rows = [simulation for _, simulation in sorted(self._rows, key=lambda entry: entry[0])]
        rows = rows[:ROWS_KEPT] if self._request.is_short else rows
        return Resilience(
            self._request.kind,
            fleet.clusters,
            fleet.workloads,
            tuple(rows),
            fleet.unknown_capacity,
            self._count - len(rows),
            self._degraded - sum(row.is_degraded for row in rows),
            tuple(self._list_affected()),
            self._measure_availability() if self._request.causes else None,
            fleet.has_reserve,
            self._short_of_reserve,
            self._reduced - sum(bool(row.reduced_workloads) and not row.is_degraded for row in rows),
        )

    def _list_affected(self) -> Iterator[AffectedWorkload]:
        found = self._workloads.items()
        for key, tally in sorted(found, key=lambda entry: (-entry[1].unplaced, -entry[1].losses, -entry[1].most, entry[0])):
            yield AffectedWorkload(key, tally.losses, tally.most, tally.unplaced, tally.reserved)

    def _measure_availability(self) -> Availability:
        samples = self._request.samples
        rows = [
            WorkloadAvailability(
                key,
                (samples - tally.samples) / samples,
                *_find_interval(samples - tally.samples, samples),
                *_estimate_lost_hours(tally, samples),
            )
            for key, tally in self._workloads.items()
        ]
        rows.sort(key=lambda row: (row.available, -row.lost_hours, row.key))
        return Availability(
            samples,
            self._total.samples,
            tuple(rows),
            _find_interval(samples, samples)[0],
            *_estimate_lost_hours(self._total, samples),
        )


def rank_loss(row: Simulation) -> tuple[object, ...]:
    """Return what orders losses, the worst first."""
    return -len(row.unplaced), -row.missing, -row.reduced_workloads, -row.moved, row.domain.name if row.domain else ""


def _find_interval(successes: int, samples: int) -> tuple[float, float]:
    """Return Wilson's confidence interval of a share."""
    share, factor = successes / samples, _DEVIATIONS**2 / samples
    middle = (share + factor / 2) / (1 + factor)
    half = math.sqrt(factor * (share * (1 - share) + factor / 4)) / (1 + factor)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def _estimate_lost_hours(tally: _Tally, samples: int) -> tuple[float, float]:
    """Return the expected lost replica hours of a year, and the half width of their confidence interval."""
    mean = tally.lost / samples
    variance = (tally.squares - tally.lost * mean) / max(samples - 1, 1)
    return mean * HOURS_PER_YEAR, _DEVIATIONS * math.sqrt(max(variance, 0.0) / samples) * HOURS_PER_YEAR
