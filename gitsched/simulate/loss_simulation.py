"""Simulate many losses on one plan: the results are those of single simulations, and what several losses have in common is decided once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gitsched.apis.capabilities import SelectionTracking
from gitsched.model.document import workload_sort_key
from gitsched.model.losses import PAIRS, JointLoss, LossRequest, LossResult
from gitsched.model.progress import Progress, follow
from gitsched.model.reserve import ANY_TWO
from gitsched.model.simulation import FailureDomain, OverloadedCluster, Resilience, Simulation
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.baseline import Baseline, list_capacity_reporters
from gitsched.simulate.failure_domains import DomainIndex, index_clusters, index_clusters_and_nodes
from gitsched.simulate.loss_list import list_losses
from gitsched.simulate.loss_table import FleetSize, LossTable
from gitsched.simulate.reserve import ReserveRules, mark_reserved
from gitsched.simulate.scenario import Scenario, describe_scenario
from gitsched.simulate.simulation import decide_event, describe_event, list_inner_placement_reporters

PARTS_KEPT = 4_000
"""The number of losses of several clusters whose decisions are kept for losses with more clusters."""


class LossPart(NamedTuple):
    """What the loss of some clusters leads to, as a part of the loss of these and others: `relevant` are the clusters that can affect the
    decision of a workload that the loss affects, and `targets` those on which replicas start."""

    relevant: frozenset[str]
    targets: frozenset[str]
    short: Simulation

    def is_near(self, other: LossPart) -> bool:
        """Return whether the other loss may change what this one leads to: a workload may be concerned by both, or take its capacity from
        one that the other loss moves."""
        return not self.relevant.isdisjoint(other.targets.union(other.short.lost))


class ResilienceSimulator:
    """Simulates losses on a plan.

    The loss of several clusters is put together from the losses of those that concern the same clusters, if decisions depend on nothing
    else: a decision depends on the clusters that are relevant to it, and on what else starts there.
    """

    def __init__(self, baseline: Baseline, request: LossRequest) -> None:
        self.baseline, self._request = baseline, request
        catalog = baseline.decisions.catalog
        self.index = DomainIndex(index_clusters_and_nodes(catalog, baseline.has_inner_placements))
        self.is_divisible = _is_divisible(baseline)
        self.parts: dict[tuple[str, ...], LossPart | None] = {}
        self._tenancy = baseline.decisions.tenancy
        self._rules = ReserveRules([baseline.config.reserve], [self._tenancy])
        self._reserve = "" if request.unreachable else ANY_TWO if request.kind == PAIRS else request.kind
        self._has_reserve = self._rules.covers(self._reserve)

    def measure_fleet(self) -> FleetSize:
        """Return the size of the fleet."""
        decisions = self.baseline.decisions
        capacities = (
            entry for engine in list_capacity_reporters(decisions.engines).values() for entry in engine.free_capacity().items()
        )
        inner = sum(len(engine.inner_placements()) for engine in list_inner_placement_reporters(decisions.engines))
        return FleetSize(
            len(index_clusters(decisions.catalog)),
            len(decisions.outcomes) + self.baseline.others + self.baseline.gone_count + inner,
            tuple(sorted(name for name, capacity in capacities if capacity is None)),
            self._has_reserve,
        )

    def simulate_group(self, losses: Sequence[tuple[int, JointLoss]]) -> Iterator[LossResult]:
        """Yield the results of losses after which the same clusters are gone, given with their numbers: the decisions are the same."""
        known: Simulation | None = None
        for number, loss in losses:
            if known is None or not self._request.is_short:
                found = self._simulate_short(loss) if self._request.is_short else self._simulate(loss.domains, known)
                known = mark_reserved(found, self._rules, self._tenancy, self._reserve) if self._has_reserve else found
            yield LossResult(number, loss.samples, known)

    def _simulate(self, domains: Sequence[FailureDomain], equal: Simulation | None = None) -> Simulation:
        """Simulate the loss of failure domains, given the result of an `equal` loss if there is one."""
        scenario = Scenario(lose=tuple(domains), unreachable=self._request.unreachable)
        if equal is None:
            found = describe_event(self.baseline, scenario, decide_event(self.baseline, scenario, self.index))
            return found._replace(held={})  # no table has what is held
        domain = domains[0] if len(domains) == 1 else None
        return equal._replace(event=describe_scenario(scenario), domain=domain, partly_lost=self.index.find_lost(domains).partly)

    def _simulate_short(self, loss: JointLoss) -> Simulation:
        """Simulate the loss of clusters; only the workloads that miss replicas are listed."""
        parts = self._divide(loss.lost) if self.is_divisible else None
        if parts is None:
            return self._simulate(loss.domains).keep_degraded()
        merged = parts[0].short if len(parts) == 1 else _join([part.short for part in parts])
        scenario = Scenario(lose=loss.domains, unreachable=self._request.unreachable)
        domain = loss.domains[0] if len(loss.domains) == 1 else None
        return merged._replace(event=describe_scenario(scenario), domain=domain, lost=loss.lost)

    def _divide(self, lost: Sequence[str]) -> list[LossPart] | None:
        """Return the parts of a loss, none of which changes what another one leads to; None if only a simulation of the whole loss can
        tell."""
        groups: list[tuple[str, ...]] = [(name,) for name in lost]
        while groups:
            found = [self.find_part(group) for group in groups]
            parts = [part for part in found if part is not None]
            if len(parts) < len(found):
                return None
            near = _group_near(parts)
            if len(near) == len(groups):
                return parts
            groups = [tuple(sorted(name for index in indices for name in groups[index])) for indices in near]
        return None

    def find_part(self, lost: tuple[str, ...]) -> LossPart | None:
        """Return what the loss of some clusters leads to; None if it cannot be a part of another loss."""
        if lost not in self.parts:
            while len(self.parts) > len(self.index.clusters) + PARTS_KEPT:
                del self.parts[next(name for name in self.parts if len(name) > 1)]
            self.parts[lost] = self._make_part(lost)
        return self.parts[lost]

    def _make_part(self, lost: tuple[str, ...]) -> LossPart | None:
        baseline = self.baseline
        scenario = Scenario(lose=tuple(FailureDomain("cluster", name) for name in lost), unreachable=self._request.unreachable)
        decided = decide_event(baseline, scenario, self.index)
        after, known = decided.after, baseline.decisions.outcomes
        relevant = [baseline.relevant_clusters[key] if key in known else None for key in after.outcomes]
        relevant += [frozenset(kept.replicas) for kept in baseline.kept.values() if not kept.replicas.keys().isdisjoint(lost)]
        simulation = describe_event(baseline, scenario, decided)
        if after.has_waited or after.own_workloads or simulation.record_changes or None in relevant:
            return None
        changes = (effect.replica_changes.items() for effect in simulation.effects)
        targets = frozenset(name for entries in changes for name, change in entries if change > 0)
        return LossPart(frozenset().union(*(names for names in relevant if names is not None)), targets, simulation.keep_degraded())


def simulate_all_losses(baseline: Baseline, by: str, unreachable: bool = False, progress: Progress | None = None) -> Resilience:
    """Simulate the loss of each cluster, node, zone, region or provider, the worst first. With `unreachable`, it is not removed."""
    request = LossRequest(by, unreachable)
    simulator, table = ResilienceSimulator(baseline, request), LossTable(request)
    listed = list_losses(simulator.index, request)
    for group in listed.groups if progress is None else follow(listed.groups, f"simulating the loss of each {by}", progress):
        for result in simulator.simulate_group([(number, listed.losses[number]) for number in group]):
            table.add(result)
    return table.finish(simulator.measure_fleet())


def _group_near(parts: Sequence[LossPart]) -> list[list[int]]:
    """Return the indices of parts in groups: parts that are near each other, in whichever direction, are in one group."""
    groups: list[list[int]] = []
    for number, part in enumerate(parts):
        near = [group for group in groups if any(part.is_near(parts[one]) or parts[one].is_near(part) for one in group)]
        groups = [group for group in groups if group not in near] + [[*(one for group in near for one in group), number]]
    return groups


def _join(found: Sequence[Simulation]) -> Simulation:
    overloaded: list[OverloadedCluster] = [one for simulation in found for one in simulation.overloaded]
    return found[0]._replace(
        effects=tuple(
            sorted((one for simulation in found for one in simulation.effects), key=lambda one: workload_sort_key(one.key))
        ),
        overloaded=tuple(sorted(overloaded)),
        unknown_capacity=tuple(sorted({name for simulation in found for name in simulation.unknown_capacity})),
        moved_besides=sum(simulation.moved_besides for simulation in found),
        started_besides=sum(simulation.started_besides for simulation in found),
        reduced_besides=sum(simulation.reduced_besides for simulation in found),
        evicts=any(simulation.evicts for simulation in found),
    )


def _is_divisible(baseline: Baseline) -> bool:
    """Return whether each decision depends on its workload and on the clusters that are relevant to it, and on nothing else."""
    decisions = baseline.decisions
    plain = not (decisions.quarantined or decisions.variants or baseline.has_inner_placements) and decisions.tenancy is None
    if decisions.shared is not None and decisions.shared.limited:
        return False  # what waits for capacity is decided after each loss
    tracking = (engine for engine in decisions.engines if isinstance(engine, SelectionTracking))
    return plain and baseline.continued is not None and not any(engine.reads_other_templates for engine in tracking)
