"""Find why a loss affects workloads more, or less, than before a change: simulate it again with parts of the change taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitsched.decide.decisions import decide_input
from gitsched.decide.workload_decision import DecisionCache
from gitsched.diff.cause_search import Request, SearchSpace, Subject, find_explanations
from gitsched.diff.causes import CauseWriter
from gitsched.diff.changed_documents import ChangedDocuments
from gitsched.diff.counterfactual_placements import ENGINE_COST
from gitsched.diff.document_changes import Change, DocumentChanges
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.simulation import FailureDomain, ImpactChange, Simulation
from gitsched.simulate.baseline import Baseline, make_baseline
from gitsched.simulate.scenario import Scenario
from gitsched.simulate.simulation import simulate

MIN_DECISIONS, DECISIONS_PER_WORKLOAD = 20_000, 10
"""How many decisions the search for causes may make: a minimum, and some for each workload of the plan."""

Impact = tuple[int | None, bool]
"""The replicas that a loss stops, None without the workload or the failure domain, and whether the workload becomes unplaced."""


def measure_impact(baseline: Baseline, row: Simulation | None, key: Key) -> Impact:
    """Return the impact of one loss on a workload; `row` is None if there is no such failure domain."""
    known = key in baseline.decisions.outcomes or key in baseline.decisions.catalog.templates
    if row is None or not known:
        return None, False
    effect = next((effect for effect in row.effects if effect.key == key), None)
    return (effect.lost_replicas, effect.becomes_unplaced) if effect is not None else (0, False)


def add_causes(
    base: Baseline, head: Baseline, changes: Iterable[ImpactChange], expected: Mapping[Subject, Impact], *, unreachable: bool
) -> list[ImpactChange]:
    """Return the changes of impacts with their proved causes. `expected` are the impacts on the base."""
    assert base.decisions.input is not None, "the decisions of a plan have an input"
    assert head.decisions.input is not None, "the decisions of a plan have an input"
    documents, entries = DocumentChanges(base.decisions.input, head.decisions.input), list(changes)
    domains = {_identify(entry): entry.domain for entry in entries}
    counterfactuals = _CounterfactualImpacts(documents, head, domains, expected, unreachable=unreachable)
    changed = ChangedDocuments(documents)
    view = _ImpactView(base, head, changed)
    found = find_explanations(domains, counterfactuals, SearchSpace(view.list_near, changed.list_levels(), view.group))
    writer = CauseWriter(documents, view.list_near)
    return [entry._replace(causes=writer.write(_identify(entry), found)) for entry in entries]


def _identify(change: ImpactChange) -> Subject:
    return Subject(change.key, str(change.domain))


class _CounterfactualImpacts:
    """Says of changes whether taking them back gives a loss its earlier impact on a workload."""

    def __init__(
        self,
        changes: DocumentChanges,
        head: Baseline,
        domains: Mapping[Subject, FailureDomain],
        expected: Mapping[Subject, Impact],
        *,
        unreachable: bool,
    ) -> None:
        self.changes, self._head, self._domains, self._expected = changes, head, domains, expected
        self._unreachable = unreachable
        self._answers: dict[Request, bool] = {}
        workloads = len(head.decisions.outcomes)
        self._limit = MIN_DECISIONS + DECISIONS_PER_WORKLOAD * workloads
        self.engine_cost = ENGINE_COST + 2 * workloads
        self.spent = 0
        self.exhausted = False

    @property
    def remaining(self) -> int:
        """The decisions that are left."""
        return self._limit - self.spent

    def may_evaluate(self, *, optional: bool) -> bool:
        """See `Counterfactuals`."""
        return self.remaining - (self._limit // 2 if optional else 0) > self.engine_cost

    def evaluate(self, requests: Iterable[Request], /, *, optional: bool = False) -> dict[Request, bool]:
        """See `Counterfactuals`."""
        wanted = list(dict.fromkeys(requests))
        together: dict[frozenset[Change], list[Subject]] = {}
        for subject, changes in wanted:
            if (subject, changes) not in self._answers:
                together.setdefault(changes, []).append(subject)
        for changes, subjects in together.items():
            if self.changes.is_possible(changes):
                self._simulate(changes, subjects, self._limit // 2 if optional else 0)
            else:
                self._answers.update(dict.fromkeys(((subject, changes) for subject in subjects), False))
        return {request: self._answers.get(request, False) for request in wanted}

    def _simulate(self, changes: frozenset[Change], subjects: Iterable[Subject], reserve: int) -> None:
        """Decide with changes taken back, and simulate the losses that the subjects are about."""
        by_domain: dict[FailureDomain, list[Subject]] = {}
        for subject in subjects:
            by_domain.setdefault(self._domains[subject], []).append(subject)
        cost = self.engine_cost + len(by_domain) * (ENGINE_COST + len(self._head.decisions.outcomes) // 10)
        if self.spent + cost > self._limit - reserve:
            self.exhausted |= not reserve
            return
        self.spent += cost
        source = self.changes.revert(changes)
        time = max(self._head.time, source.now)
        baseline = make_baseline(decide_input(source, DecisionCache()), source.config, time, source.observations)
        for domain, affected in by_domain.items():
            try:
                row = simulate(baseline, Scenario(lose=(domain,), unreachable=self._unreachable))
            except Permanent:
                row = None  # there is no such failure domain without the changes
            for subject in affected:
                self._answers[subject, changes] = measure_impact(baseline, row, subject.key) == self._expected[subject]


class _ImpactView:
    """Finds the documents that are close to a workload, and groups workloads that are affected alike."""

    def __init__(self, base: Baseline, head: Baseline, documents: ChangedDocuments) -> None:
        self._baselines, self._documents = (base, head), documents

    def list_near(self, subject: Subject) -> list[Key]:
        """Return the workload's own document, its policies, and the clusters that may run it."""
        policies: list[str] = []
        clusters: set[str] = set()
        for baseline in self._baselines:
            outcome = baseline.decisions.outcomes.get(subject.key)
            if outcome is not None:
                policies += outcome.policy.split(", ")
                relevant = baseline.relevant_clusters.get(subject.key)
                clusters |= self._documents.clusters.keys() if relevant is None else relevant
        return self._documents.list_near(subject.key, policies, sorted(clusters))

    def group(self, subject: Subject) -> tuple[object, ...]:
        """Workloads of one policy in the same clusters share a search for each loss."""
        outcomes = [baseline.decisions.outcomes.get(subject.key) for baseline in self._baselines]
        placed = [(outcome.policy, tuple(sorted(outcome.replicas_by_cluster))) for outcome in outcomes if outcome is not None]
        return (subject.aspect, *placed)
