"""The candidates of one decision: clusters of a namespace, clouds or projects, as columns that questions are put to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from gitsched.apis.krake.constraint_sets import RESOURCES, Constraints, satisfying, tell_mismatch
from gitsched.apis.krake.metrics import Readings
from gitsched.apis.krake.names import Ref
from gitsched.model.decision import Verdict
from gitsched.schedule.fleet import Candidate, Fleet, pack
from gitsched.schedule.lot import draw
from gitsched.schedule.weighted import Ranking, Standing


class Site(NamedTuple):
    """One candidate. `name` is unique among its rivals. `labels` are the effective ones, `state` is after its metrics were read.

    `open` says that it takes part at all, `why` why not.
    """

    name: str
    ref: Ref
    labels: Mapping[str, str]
    readings: Readings
    open: bool
    why: str = ""
    resources: tuple[str, ...] = ()
    state: str = ""
    online: bool = False
    """Of a cluster: it is there, as its document says, whatever its metrics say."""
    said: str = ""
    """Of a cluster: its state as its document says it, before its metrics were read."""

    @property
    def standby(self) -> bool:
        """Not open, but only because a provider of metrics does not answer."""
        return self.online and self.readings.failed


class Rules(NamedTuple):
    """How a kind of decision ranks: the weight of staying, whether it stands in every denominator, what metric constraints look at."""

    stickiness: float = 0.0
    everywhere: bool = False
    measure: str = "weighted"


class Arena:
    """Sites in name order. A set of sites is an integer, as in a fleet."""

    def __init__(self, sites: Iterable[Site], rules: Rules) -> None:
        self.sites = tuple(sorted(sites, key=attrgetter("name")))
        self.fleet = Fleet(
            Candidate(site.name, site.labels, {RESOURCES: site.resources} if site.resources else {}) for site in self.sites
        )
        self.rules = rules
        standings: list[Standing | None] = [site.readings.standing for site in self.sites]
        self.ranking = Ranking(self.fleet, standings, rules.stickiness, rules.everywhere)
        self.open = pack(site.open for site in self.sites)
        self.standby = pack(site.standby for site in self.sites)
        self.failed = pack(site.readings.failed for site in self.sites)
        self.declaring = pack(site.readings.declared for site in self.sites)
        self.live = any(site.readings.live for site in self.sites)

    @cached_property
    def measures(self) -> list[dict[str, float]]:
        """What metric constraints are compared with, by index."""
        return [site.readings.measures(self.rules.measure) for site in self.sites]

    def index(self, ref: Ref | None) -> int | None:
        """Where a site is that a reference means."""
        at = self.fleet.index.get(ref.name) if ref is not None else None
        if at is not None and self.sites[at].ref == ref:
            return at
        return next((i for i, site in enumerate(self.sites) if site.ref == ref), None) if ref is not None else None

    def meeting(self, constraints: Constraints) -> int:
        """The sites, open or not, whose labels and custom resources are as asked."""
        return self.fleet.matching(constraints.affinity)

    def matching(self, constraints: Constraints) -> int:
        """The open sites that satisfy everything."""
        mask = self.open & self.meeting(constraints)
        for constraint in constraints.metrics:
            mask &= satisfying(constraint, self.fleet, self.measures)
        return mask

    def preferred(self, mask: int) -> int:
        """Those of a set that are compared where nothing takes the place of metrics that cannot be read: if any of them declares
        metrics, only those whose metrics are known."""
        return mask & self.ranking.measured if mask & self.declaring else mask

    def choose(self, mask: int, held: int | None, identity: str) -> tuple[int, float]:
        """The best of a set that is not empty, and its score; among equals the lot decides."""
        best = self.ranking.best(mask, held)
        if best.mask & (best.mask - 1):
            return self.fleet.index[draw(identity, (self.fleet.names[i] for i in self.fleet.members(best.mask)))], best.score
        return best.mask.bit_length() - 1, best.score

    def verdicts(self, constraints: Constraints, held: int | None, mask: int, ranked: int | None = None) -> list[Verdict]:
        """How every site fares, `mask` being those that satisfy everything and `ranked` those that are compared, where not all of them."""
        pool = mask if ranked is None else ranked
        return [self._verdict(i, constraints, held, mask, pool) for i in range(len(self.sites))]

    def _verdict(self, index: int, constraints: Constraints, held: int | None, mask: int, pool: int) -> Verdict:
        site = self.sites[index]
        if not mask >> index & 1:
            why = site.why or tell_mismatch(constraints, site.labels, site.resources, self.measures[index])
            return Verdict(site.name, False, why, {}, None)
        total = self.ranking.total(index, pool, held) if pool >> index & 1 else None
        scores = {ref.name: value.share * ref.weight for ref, value in site.readings.values}
        if held is not None and total is not None and self.rules.stickiness:
            scores["stickiness"] = self.rules.stickiness if index == held else 0.0
        return Verdict(site.name, True, "" if total is not None else self._unranked(site), scores, total)

    def _unranked(self, site: Site) -> str:
        """Why a site that satisfies everything is not compared with the others."""
        if not site.readings.declared:
            return "left aside: it has no metrics, and others have some"
        return (
            "left aside: its metrics cannot be read"
            if site.readings.reasons
            else "left aside: the weights of its metrics make no mean"
        )
