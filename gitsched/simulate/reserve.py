"""Simulate the losses that reserves are for, and measure what workloads lack after each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import combinations

from gitsched.apis.gitsched.reserve_config import ReserveConfig
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy, find_owner
from gitsched.apis.topology import CLUSTER, NODE
from gitsched.model.document import Key
from gitsched.model.reserve import ANY_TWO, RESERVE_LOSSES, Amounts, Loss, Shortage
from gitsched.model.scheduling import count_copies
from gitsched.model.simulation import FailureDomain, Simulation, WorkloadEffect
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.baseline import Baseline, list_capacity_reporters
from gitsched.simulate.failure_domains import DomainIndex, index_clusters_and_nodes
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import list_inner_placement_reporters, simulate

MAX_LOSSES = 1000
"""The maximum number of losses that are simulated for the reserves of one plan."""
_MAX_PAIRED = 600
"""The maximum number of clusters of which pairs are made."""


class ReserveRules:
    """What the workloads of a fleet have to survive: what any of several settings and Tenants says counts."""

    def __init__(self, configs: Iterable[ReserveConfig], tenancies: Iterable[Tenancy | None] = ()) -> None:
        self._configs = tuple(configs)
        self._tenancies = tuple(tenancy for tenancy in tenancies if tenancy is not None)
        self._found: dict[tuple[str, str], frozenset[str]] = {}
        self._owners = {owner for tenancy in self._tenancies for owner in tenancy.paths.list_owners()}

    def __bool__(self) -> bool:
        return any(config.lose or config.namespaces for config in self._configs) or any(map(self._list_tenant_losses, self._owners))

    def covers(self, kind: str) -> bool:
        """Return whether any workloads have to survive losses of a kind; "" is none."""
        if not kind:
            return False
        configured = any(kind in (config.lose, *config.namespaces.values()) for config in self._configs)
        return configured or any(kind in self._list_tenant_losses(owner) for owner in self._owners)

    def list_losses(self, namespace: str, owner: str) -> frozenset[str]:
        """Return what the workloads of an owner in a namespace have to survive, of RESERVE_LOSSES."""
        found = self._found.get((namespace, owner))
        if found is None:
            losses = {lose for config in self._configs for lose in config.list_losses(namespace)}
            found = self._found[namespace, owner] = frozenset(losses | self._list_tenant_losses(owner))
        return found

    def _list_tenant_losses(self, owner: str) -> set[str]:
        if owner == PLATFORM:
            return set()
        rules = (tenant for tenancy in self._tenancies for tenant in tenancy.list_rules(owner))
        return {tenant.reserve for tenant in rules if tenant.reserve in RESERVE_LOSSES}


def find_reserve_loss(scenario: Scenario) -> str:
    """Return which of RESERVE_LOSSES a scenario is; "" if it is another event, or has others besides."""
    kinds = [domain.kind for domain in dict.fromkeys(scenario.lose)]
    if scenario != Scenario(lose=scenario.lose):
        return ""
    if kinds == [CLUSTER, CLUSTER]:
        return ANY_TWO
    return kinds[0] if len(kinds) == 1 and kinds[0] in RESERVE_LOSSES else ""


def mark_reserved(found: Simulation, rules: ReserveRules, tenancy: Tenancy | None, kind: str) -> Simulation:
    """Mark the workloads that miss replicas although they have to survive a loss of this kind."""
    marked = (
        effect._replace(
            reserved=effect.is_degraded and kind in rules.list_losses(effect.key.namespace, find_owner(tenancy, effect.key))
        )
        for effect in found.effects
    )
    return found._replace(effects=tuple(marked), reserve=kind)


class ListedLosses(NamedTuple):
    """Losses to simulate, and the number of those that are too many to list."""

    losses: tuple[Loss, ...]
    unlisted: int


class LossSimulator:
    """Simulates losses of clusters on a plan. Losses of the same clusters are simulated once, and clusters that are relevant to no workload
    make no difference."""

    def __init__(self, baseline: Baseline, rules: ReserveRules) -> None:
        self.baseline, self._rules = baseline, rules
        self._tenancy = baseline.decisions.tenancy
        self._measured: dict[frozenset[str], Mapping[Key, Shortage]] = {frozenset(): {}}

    @property
    def simulated(self) -> int:
        """The number of simulations."""
        return len(self._measured) - 1

    def find_owner(self, key: Key) -> str:
        """Return the name of the Tenant that owns a workload; "" for the platform."""
        return find_owner(self._tenancy, key)

    def must_survive(self, key: Key, loss: Loss) -> bool:
        """Return whether a workload has a reserve for losses of this kind."""
        return loss.kind in self._rules.list_losses(key.namespace, self.find_owner(key))

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of losses that workloads of the plan have to survive, in the order of RESERVE_LOSSES."""
        decisions = self.baseline.decisions
        inner = (key for engine in list_inner_placement_reporters(decisions.engines) for key in engine.inner_placements())
        scopes = {(key.namespace, self.find_owner(key)) for key in (*decisions.outcomes, *inner)}
        used = {kind for namespace, owner in scopes for kind in self._rules.list_losses(namespace, owner)}
        return tuple(kind for kind in RESERVE_LOSSES if kind in used)

    @cached_property
    def _index(self) -> DomainIndex:
        return DomainIndex(index_clusters_and_nodes(self.baseline.decisions.catalog, self.baseline.has_inner_placements))

    @cached_property
    def _relevant(self) -> frozenset[str] | None:
        """The clusters that can affect a decision; None for all."""
        if self.baseline.has_inner_placements:
            return None
        found: set[str] = set()
        for clusters in self.baseline.relevant_clusters.values():
            if clusters is None:
                return None
            found |= clusters
        return frozenset(found)

    def count_domains(self, kind: str) -> int:
        """Return the number of clusters, zones or regions of the fleet."""
        return len(self._index.list_names(CLUSTER if kind == ANY_TWO else kind))

    def list_losses(self) -> ListedLosses:
        """Return the losses that workloads have to survive, of each kind those first that stop the most replicas."""
        weights: dict[str, int] = {}
        for key, outcome in self.baseline.decisions.outcomes.items():
            if self._rules.list_losses(key.namespace, self.find_owner(key)):
                replicas = outcome.replicas_by_cluster
                for name in replicas:
                    weights[name] = weights.get(name, 0) + count_copies(replicas, name)
        losses: list[Loss] = []
        unlisted = 0
        for kind in self.kinds:
            by, index = CLUSTER if kind == ANY_TWO else kind, self._index
            lost = {name: index.find_lost((FailureDomain(by, name),)).names for name in index.list_names(by)}
            weighed = {name: sum(weights.get(cluster, 0) for cluster in clusters) for name, clusters in lost.items()}
            names = sorted(weighed, key=lambda name: (-weighed[name], name))
            if kind == ANY_TWO:
                pairs = [tuple(sorted(pair)) for pair in combinations(names[:_MAX_PAIRED], 2)]
                pairs.sort(key=lambda pair: (-sum(weighed[name] for name in pair), pair))
                losses += [Loss(kind, pair) for pair in pairs]
                unlisted += len(names) * (len(names) - 1) // 2 - len(pairs)
            else:
                losses += [Loss(kind, (name,)) for name in names]
        return ListedLosses(tuple(losses), unlisted)

    def select(self, loss: Loss, limit: int) -> Mapping[Key, Shortage] | None:
        """Return what the workloads lack that have to survive a loss; None if it takes a simulation, and `limit` of them are made."""
        lost = self._omit_irrelevant(self._find_clusters(loss) or frozenset())
        if lost not in self._measured and self.simulated >= limit:
            return None
        return {key: shortage for key, shortage in self._measure(lost).items() if self.must_survive(key, loss)}

    def measure_before(self, loss: Loss, later: LossSimulator) -> Mapping[Key, Shortage]:
        """Return what workloads lack after a loss of a later plan, whether or not they have to survive it: after that of the same zone or
        region; where there is none of this name, of the same clusters, as far as they exist."""
        lost = self._find_clusters(loss)
        if lost is None:
            lost = (later._find_clusters(loss) or frozenset[str]()).intersection(self._index.clusters)
        return self._measure(self._omit_irrelevant(lost))

    def _measure(self, lost: frozenset[str]) -> Mapping[Key, Shortage]:
        if lost not in self._measured:
            effects = simulate(self.baseline, Scenario(lose=tuple(map(_name_domain, sorted(lost)))), self._index).effects
            self._measured[lost] = {effect.key: self._measure_effect(effect) for effect in effects if effect.is_degraded}
        return self._measured[lost]

    def _find_clusters(self, loss: Loss) -> frozenset[str] | None:
        """Return the clusters and nodes that a loss takes; None if there is no such cluster, zone or region."""
        by = CLUSTER if loss.kind == ANY_TWO else loss.kind
        domains = [FailureDomain(by, name) for name in loss.names]
        return frozenset(self._index.find_lost(domains).names) if all(domain in self._index for domain in domains) else None

    def _omit_irrelevant(self, lost: frozenset[str]) -> frozenset[str]:
        """Return those of some clusters that make a difference."""
        return lost if self._relevant is None else lost & self._relevant

    def _measure_effect(self, effect: WorkloadEffect) -> Shortage:
        requests = {name: amount * effect.lost_replicas for name, amount in self._read_request(effect).items()}
        return Shortage(effect.lost_replicas, effect.becomes_unplaced, effect.replicas, requests, effect.reason)

    def _read_request(self, effect: WorkloadEffect) -> Amounts:
        """Return what one replica requests."""
        decisions = self.baseline.decisions
        outcome, template = decisions.outcomes.get(effect.key), decisions.templates.get(effect.key)
        engine = list_capacity_reporters(decisions.engines).get(outcome.api) if outcome is not None else None
        if engine is None or template is None:
            return {}
        return dict(engine.resource_request(template, min(effect.before, default="")))


def _name_domain(name: str) -> FailureDomain:
    """Return the failure domain of one cluster or node of the index."""
    prefix = f"{NODE}/"
    return FailureDomain(NODE, name.removeprefix(prefix)) if name.startswith(prefix) else FailureDomain(CLUSTER, name)
