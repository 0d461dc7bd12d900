"""Search the cheapest remedy for what workloads lack after losses: moves of workloads, or capacity that clusters get besides.

A remedy is found only if a plan with it, which the scheduler makes as any other, leaves no shortage larger than before the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations

from gitsched.apis.capabilities import Rescheduling
from gitsched.decide.catalog import Catalog
from gitsched.decide.decisions import decide_input
from gitsched.decide.workload_decision import DecisionCache
from gitsched.model.document import Document, Key, workload_sort_key
from gitsched.model.reserve import NO_SHORTAGE, AddedCapacity, Loss, ReserveMove, ReserveRemedy, ReserveShortage
from gitsched.model.scheduling import Outcome
from gitsched.named_tuples import NamedTuple
from gitsched.simulate.added_variants import add_variants
from gitsched.simulate.baseline import Baseline, list_capacity_reporters, make_baseline
from gitsched.simulate.failure_domains import ClusterIndex, index_clusters
from gitsched.simulate.reschedule_request import list_rescheduling_engines
from gitsched.simulate.reserve import LossSimulator, ReserveRules
from gitsched.simulate.restored_placements import annotate
from gitsched.simulate.scenario import Scenario, apply_scenario, edit_catalog

MIN_DECISIONS, DECISIONS_PER_WORKLOAD = 20_000, 10
"""How many decisions a search may make: a minimum, and some for each workload of the plan."""
_PLAN_COST, _LOSS_COST = 20, 5
"""What a plan and a simulated loss cost besides their decisions, in decisions of one workload."""
MAX_CANDIDATES = 16
"""The number of workloads that are considered for moves."""
MAX_MOVED = 2
"""The number of workloads that a remedy moves, besides those that follow them."""
MAX_CLUSTERS = 2
"""The number of clusters that a remedy gives capacity to."""
_MEBIBYTE = 1 << 20
"""The unit of added memory, which is counted in bytes."""


class _Option(NamedTuple):
    """A move to try: reschedule a workload, and annotate it with a preferred cluster, or "" for none."""

    key: Key
    preferred: str


class RemedySearch:
    """Tries remedies in the order of their cost. `larger` are the shortages to end; of the losses to survive, `limit` are
    simulated. `attempts` counts the plans that were made; `is_partial`: there were more to make."""

    def __init__(
        self,
        head: Baseline,
        rules: ReserveRules,
        before: LossSimulator,
        larger: Iterable[ReserveShortage],
        limit: int,
    ) -> None:
        assert head.decisions.input is not None, "the decisions of a plan have an input"
        self._head, self._input, self._rules, self._before = head, head.decisions.input, rules, before
        self._larger = tuple(larger)
        self._broken, self._limit = dict.fromkeys(shortage.loss for shortage in self._larger), limit
        self._short = tuple(sorted({shortage.key for shortage in self._larger}, key=workload_sort_key))
        workloads = len(head.decisions.outcomes)
        self._remaining = MIN_DECISIONS + DECISIONS_PER_WORKLOAD * workloads
        self._plan_cost, self._loss_cost = _PLAN_COST + workloads, _LOSS_COST + workloads // 10
        self.attempts = 0
        self.is_partial = False

    def find(self) -> ReserveRemedy | None:
        """Return the cheapest remedy: the fewest moved workloads that start the fewest replicas, else the least capacity of the fewest
        clusters, else one more cluster. None if there is none, or none was found in time."""
        return self._find_moves() or self._find_capacity() or self._find_cluster()

    @cached_property
    def _clusters(self) -> ClusterIndex:
        return index_clusters(self._input.catalog)

    @cached_property
    def _engines(self) -> Mapping[str, Rescheduling]:
        return list_rescheduling_engines(self._head)

    def _find_moves(self) -> ReserveRemedy | None:
        options = list(self._list_options())
        for size in range(1, MAX_MOVED + 1):
            best: ReserveRemedy | None = None
            for chosen in combinations(options, size):
                if len({option.key for option in chosen}) == size and not self.is_partial:
                    found = self._try_moves(chosen)
                    if found is not None and (best is None or found.started < best.started):
                        best = found
            if best is not None:
                return best
        return None

    def _list_options(self) -> Iterator[_Option]:
        """Yield the moves of the workloads that lack something, then of those that share clusters with these, then of others that may get
        there after a loss."""
        decisions = self._head.decisions
        fleet = sorted(index_clusters(decisions.catalog))
        relevant = {key: fleet if (found := self._head.relevant_clusters[key]) is None else found for key in decisions.outcomes}
        near = frozenset[str]().union(*(relevant.get(key, fleet) for key in self._short))
        movable = [
            (self._rank(outcome, near), outcome.replicas or 0, *workload_sort_key(key))
            for key, outcome in decisions.outcomes.items()
            if outcome.api in self._engines
            and outcome.policy
            and outcome.held is None
            and key in self._input.catalog.templates
            and (key in self._short or not near.isdisjoint(relevant[key]))
        ]
        for *_, key in sorted(movable)[:MAX_CANDIDATES]:
            yield _Option(key, "")
            yield from (_Option(key, name) for name in fleet if name in relevant[key])

    def _rank(self, outcome: Outcome, near: frozenset[str]) -> int:
        """Return how near a workload is to those that lack something: 0 for these, 1 in their clusters, 2 elsewhere."""
        if outcome.key in self._short:
            return 0
        return 1 if not near.isdisjoint(outcome.replicas_by_cluster) else 2

    def _try_moves(self, chosen: Sequence[_Option]) -> ReserveRemedy | None:
        before = self._head.decisions.outcomes
        templates = {option.key: self._input.catalog.templates[option.key] for option in chosen}
        by_engine: dict[str, list[Document]] = {}
        for key, template in templates.items():
            by_engine.setdefault(before[key].api, []).append(template)
        requests = tuple(self._engines[name].make_reschedule_request(found, None) for name, found in by_engine.items())
        annotated = {one.key: annotate(templates[one.key], one.preferred) for one in chosen if one.preferred}
        made = self._plan(edit_catalog(self._input.catalog, annotated, requests))
        if made is None or not self._ends_shortages(made):
            return None
        preferred, after = {option.key: option.preferred for option in chosen}, made.decisions.outcomes
        moves = tuple(
            ReserveMove(key, outcome.replicas_by_cluster, after[key].replicas_by_cluster, preferred.get(key))
            for key, outcome in before.items()
            if key in after and after[key].replicas_by_cluster != outcome.replicas_by_cluster
        )
        return ReserveRemedy(moves, requests=requests) if moves else None

    def _find_capacity(self) -> ReserveRemedy | None:
        """Return the least capacity of the fewest clusters: first what is missing at most, then each amount as small as possible."""
        candidates, missing = sorted(self._list_growing()), self._count_missing()
        for size in range(1, MAX_CLUSTERS + 1) if missing else ():
            found: list[dict[str, dict[str, int]]] = []
            for names in combinations(candidates, size):
                for factor in (1, 2):
                    amounts = {name: {resource: amount * factor for resource, amount in missing.items()} for name in names}
                    if self._try_capacity(amounts):
                        found.append(self._reduce(amounts))
                        break
            if found:
                least = min(found, key=_rank_amounts)
                return ReserveRemedy(capacity=tuple(AddedCapacity(name, amounts) for name, amounts in least.items()))
        return None

    def _list_growing(self) -> Iterator[str]:
        """Yield the clusters that can get capacity, and in which a workload could run that lacks something."""
        capacities = [engine.free_capacity() for engine in list_capacity_reporters(self._head.decisions.engines).values()]
        wanted = [self._head.relevant_clusters.get(key) for key in self._short]
        for name, entries in self._clusters.items():
            found = [capacity for by_name in capacities if (capacity := by_name.get(name)) is not None]
            grows = any(topology.add_capacity is not None for topology, *_ in entries)
            if grows and found and not any(one.grades for one in found) and any(one is None or name in one for one in wanted):
                yield name

    def _count_missing(self) -> dict[str, int]:
        """Return what is missing at most after one loss, by resource."""
        by_loss: dict[Loss, dict[str, int]] = {}
        for shortage in self._larger:
            amounts = by_loss.setdefault(shortage.loss, {})
            for name, amount in shortage.after.requests.items():
                amounts[name] = amounts.get(name, 0) + amount
        missing: dict[str, int] = {}
        for name, amount in (entry for amounts in by_loss.values() for entry in amounts.items()):
            missing[name] = max(missing.get(name, 0), amount)
        return missing

    def _try_capacity(self, amounts: Mapping[str, Mapping[str, int]]) -> bool:
        changes: dict[Key, Document | None] = {
            document.key: document._replace(body=topology.add_capacity(document.body, added))
            for name, added in amounts.items()
            for topology, document, _ in self._clusters[name]
            if topology.add_capacity is not None
        }
        made = self._plan(edit_catalog(self._input.catalog, changes))
        return made is not None and self._ends_shortages(made)

    def _reduce(self, amounts: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
        """Return amounts of which none can be smaller alone."""
        least = {name: dict(found) for name, found in amounts.items()}
        for found in least.values():
            for resource, most in list(found.items()):
                unit = _MEBIBYTE if most >= _MEBIBYTE else 1
                enough, short = -(-most // unit), -1
                while enough - short > 1 and not self.is_partial:
                    middle = max((enough + short) // 2, 0)
                    found[resource] = middle * unit
                    enough, short = (middle, short) if self._try_capacity(least) else (enough, middle)
                found[resource] = enough * unit
        return {name: {resource: amount for resource, amount in found.items() if amount} for name, found in least.items()}

    def _find_cluster(self) -> ReserveRemedy | None:
        """Return one more cluster, like one of the fleet and empty."""
        for name in self._clusters:
            numbered = (f"{name}-{number}" for number in range(2, len(self._clusters) + 3))
            added = next(new for new in numbered if new not in self._clusters)
            scenario = Scenario(copies=((name, added),))
            made = self._plan(apply_scenario(self._input.catalog, scenario, self._head.config, self._head.time).catalog)
            if made is not None and self._ends_shortages(made):
                return ReserveRemedy(capacity=(AddedCapacity(name, added=added),))
        return None

    def _plan(self, catalog: Catalog) -> Baseline | None:
        """Return the plan of a changed catalog; None if that takes too many decisions, or if it takes replicas from workloads."""
        if not self._spend(self._plan_cost):
            return None
        self.attempts += 1
        variants = add_variants(self._input.variants, catalog, self._head.config)
        decided = decide_input(self._input._replace(catalog=catalog, variants=variants), DecisionCache())
        if any(_lacks_more(decided.outcomes.get(key), outcome) for key, outcome in self._head.decisions.outcomes.items()):
            return None
        return make_baseline(decided, self._head.config, self._head.time, self._head.observations, retained=())

    def _ends_shortages(self, made: Baseline) -> bool:
        """Return whether no shortage is larger than before the change, first after the losses where one was."""
        simulator = LossSimulator(made, self._rules)
        for loss in self._list_losses(simulator):
            if not self._spend(self._loss_cost):
                return False
            found = simulator.select(loss, self._limit) or {}
            known = self._before.measure_before(loss, simulator) if found else {}
            if any(shortage.exceeds(known.get(key, NO_SHORTAGE)) for key, shortage in found.items()):
                return False
        return True

    def _list_losses(self, simulator: LossSimulator) -> Iterator[Loss]:
        """Yield the losses after which a shortage was larger, then all others, also those of what is added."""
        yield from self._broken
        yield from (loss for loss in simulator.list_losses().losses if loss not in self._broken)

    def _spend(self, cost: int) -> bool:
        """Return whether there is enough left of what the search may cost."""
        self.is_partial |= cost > self._remaining
        self._remaining -= 0 if self.is_partial else cost
        return not self.is_partial


def _lacks_more(after: Outcome | None, before: Outcome) -> bool:
    """Return whether a workload has fewer of its replicas without any loss."""
    if after is None or (before.replicas_by_cluster and not after.replicas_by_cluster):
        return True
    return (after.unassigned or 0) > (before.unassigned or 0)


def _rank_amounts(amounts: Mapping[str, Mapping[str, int]]) -> tuple[object, ...]:
    """Return the key by which less capacity comes first: less cpu, then less memory, then less of the rest."""
    total: dict[str, int] = {}
    for name, amount in (entry for found in amounts.values() for entry in found.items()):
        total[name] = total.get(name, 0) + amount
    main = total.pop("cpu", 0), total.pop("memory", 0)
    return (*main, sum(total.values()), sorted(amounts))
