"""Losses that are simulated one by one: what is asked for, one loss, and its result. Shards and other processes exchange these as JSON."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from gitsched.model.simulation import FailureDomain, Simulation
from gitsched.named_tuples import NamedTuple

PAIRS: Final = "pair"
RANDOM: Final = "random"
MANY_LOSSES: Final = frozenset((PAIRS, RANDOM))
"""The kinds of lists that have so many losses that results are the worst ones, and the workloads that miss replicas."""
HOURS_PER_YEAR: Final = 8760


class CommonCause(NamedTuple):
    """Failures of each cluster, zone, region or provider, or of all clusters with the same value of a `label` together.

    `per_year` is how often one of them fails, and `hours` how long a failure lasts, both as decimal numbers. With `names` or
    `match_labels` it concerns these clusters alone.
    """

    each: str
    label: str
    per_year: str
    hours: str
    names: tuple[str, ...] = ()
    match_labels: tuple[tuple[str, str], ...] = ()

    @property
    def unavailability(self) -> Fraction:
        """The share of time in which one of them has failed: the time between failures does not include the failure."""
        down = Fraction(self.per_year) * Fraction(self.hours)
        return down / (HOURS_PER_YEAR + down)


class LossRequest(NamedTuple):
    """The losses to simulate: of each failure domain of a `kind`, of each pair of clusters, or `samples` at random.

    A random loss has `size` clusters, or those that the `causes` lose. Lost clusters are gone, or only `unreachable`.
    """

    kind: str
    unreachable: bool = False
    samples: int = 0
    size: int = 0
    seed: int = 0
    causes: tuple[CommonCause, ...] = ()

    @property
    def is_short(self) -> bool:
        """Whether results have the workloads that miss replicas alone, because there are many losses."""
        return self.kind in MANY_LOSSES


class JointLoss(NamedTuple):
    """Failure domains that are lost together, the names of the clusters that are gone, and in how many samples."""

    domains: tuple[FailureDomain, ...]
    lost: tuple[str, ...]
    samples: int = 1


class LossResult(NamedTuple):
    """What a loss leads to; `number` is its position in the list of losses."""

    number: int
    samples: int
    simulation: Simulation
