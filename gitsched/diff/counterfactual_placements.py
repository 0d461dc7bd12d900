"""Decide workloads with some changes of a commit taken back, to see whether that undoes their moves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial

from gitsched.apis.capabilities import ReferenceReading
from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.decisions import DecisionInput, DecisionSet
from gitsched.decide.engines import list_dependency_trackers
from gitsched.decide.partial_decisions import PartialDecisions, decide_some
from gitsched.decide.registry import reserved_groups
from gitsched.diff.cause_search import Request, Subject
from gitsched.diff.document_changes import Change, DocumentChanges
from gitsched.model.document import Document, Key
from gitsched.model.progress import Progress
from gitsched.model.scheduling import Outcome, RecordTarget
from gitsched.named_tuples import NamedTuple

ENGINE_COST = 20
"""What an evaluation costs besides the decisions, in decisions of one workload. Each document of a policy API costs half a decision."""


Placement = Mapping[str, int | None] | tuple[RecordTarget, ...]
_Evaluation = dict[Key, frozenset[Change]]
"""Changes of workloads that are taken back in one evaluation, besides those that all requests of it have in common."""


class DecidedCommit(NamedTuple):
    """The decisions about the later commit: outcomes, templates and engines, and the number of its documents of policy APIs and of its
    templates. `decide_some` decides some workloads of another input of this commit."""

    outcomes: Mapping[Key, Outcome]
    templates: Mapping[Key, Document]
    engines: tuple[PolicyEngine, ...]
    document_count: int
    template_count: int
    decide_some: Callable[[DecisionInput, Collection[Key]], PartialDecisions] = decide_some

    @classmethod
    def from_decisions(cls, decisions: DecisionSet) -> DecidedCommit:
        """Return the decisions of a complete plan."""
        catalog = decisions.catalog
        documents = sum(map(len, catalog.api_documents.values()))
        shares = decisions.shared is not None
        decide = partial(decide_some, others=decisions) if shares else decide_some
        return cls(decisions.outcomes, catalog.templates, decisions.engines, documents, len(catalog.templates), decide)


class CounterfactualPlacements:
    """Says of changes whether taking them back gives a subject its earlier placement, with at most `limit` decisions."""

    def __init__(
        self,
        changes: DocumentChanges,
        decided: DecidedCommit,
        before: Mapping[Subject, Placement],
        limit: int,
        progress: Progress | None = None,
    ) -> None:
        self.changes, self._before, self._limit, self._progress = changes, before, limit, progress
        self._decided = decided
        self._answers: dict[Request, bool] = {}
        self._read_by_engines = _list_referenced_keys(decided.engines)
        self.spent = 0
        self.exhausted = False

    @property
    def remaining(self) -> int:
        """The decisions that are left."""
        return self._limit - self.spent

    @property
    def engine_cost(self) -> int:
        """The cost of one evaluation without its decisions."""
        return ENGINE_COST + self._decided.document_count // 2 + self._decided.template_count // 100

    def may_evaluate(self, *, optional: bool) -> bool:
        """See `Counterfactuals`."""
        return self.remaining - (self._limit // 2 if optional else 0) > self.engine_cost

    def evaluate(self, requests: Iterable[Request], /, *, optional: bool = False) -> dict[Request, bool]:
        """See `Counterfactuals`."""
        wanted = list(dict.fromkeys(requests))
        by_changes: dict[frozenset[Change], list[Subject]] = {}
        for request in wanted:
            if request not in self._answers:
                by_changes.setdefault(request[1], []).append(request[0])
        shared: dict[frozenset[Change], list[tuple[Subject, frozenset[Change]]]] = {}
        for changes, subjects in by_changes.items():
            if not self.changes.is_possible(changes):
                self._answers.update(((subject, changes), False) for subject in subjects)
                continue
            for subject in subjects:
                alone = len(subjects) == 1 and self._can_combine(subject)
                own = self.changes.list_changes(subject.key) & changes if alone else frozenset[Change]()
                shared.setdefault(changes - own if own else changes, []).append((subject, own))
        for common, members in shared.items():
            self._evaluate_common(common, members, self._limit // 2 if optional else 0)
        return {request: self._answers.get(request, False) for request in wanted}

    def _can_combine(self, subject: Subject) -> bool:
        """Return whether changes of the subject's own document can be taken back together with those of other subjects."""
        key = subject.key
        return not subject.aspect and key.group not in reserved_groups and key not in self._read_by_engines

    def _evaluate_common(
        self, common: frozenset[Change], members: Iterable[tuple[Subject, frozenset[Change]]], reserve: int
    ) -> None:
        """Answer requests that differ only in changes of the subjects' own documents, with as few evaluations as possible.

        Without `reserve` decisions left after it, no evaluation is made.
        """
        layers: list[tuple[_Evaluation, list[Subject]]] = []
        for subject, own in members:
            for layer, subjects in layers:
                if layer.setdefault(subject.key, own) == own:
                    subjects.append(subject)
                    break
            else:
                layers.append(({subject.key: own}, [subject]))
        for layer, subjects in layers:
            decided = self._decide(common.union(*layer.values()), subjects, reserve)
            if decided is None:
                continue
            reverted = {key for key, own in layer.items() if own}
            dependent = [
                subject
                for subject in subjects
                if reverted - {subject.key} and not (self._can_combine(subject) and self._is_independent(subject, decided))
            ]
            self._answer(common, layer, [subject for subject in subjects if subject not in set(dependent)], decided)
            for subject in dependent:
                alone = self._decide(common | layer[subject.key], [subject], reserve)
                if alone is not None:
                    self._answer(common, layer, [subject], alone)

    def _answer(
        self,
        common: frozenset[Change],
        layer: _Evaluation,
        subjects: Iterable[Subject],
        decided: PartialDecisions,
    ) -> None:
        recorded = {}
        subjects = list(subjects)
        if any(subject.aspect for subject in subjects):
            recorded = {Subject(entry.subject, entry.target_kind): entry.targets for entry in decided.recorded}
        for subject in subjects:
            placement: Placement = recorded.get(subject, ())
            if not subject.aspect:
                outcome = decided.outcomes.get(subject.key)
                placement = outcome.replicas_by_cluster if outcome is not None else {}
            self._answers[subject, common | layer[subject.key]] = placement == self._before[subject]

    def _decide(self, changes: frozenset[Change], subjects: Collection[Subject], reserve: int) -> PartialDecisions | None:
        """Decide the subjects with changes taken back; None if that would exceed the limit."""
        cost = self.engine_cost + len(subjects)
        if self.spent + cost > self._limit - reserve:
            self.exhausted |= not reserve
            return None
        self.spent += cost
        if self._progress is not None:
            self._progress("searching causes, decisions", self.spent, self._limit)
        return self._decided.decide_some(self.changes.revert(changes), {subject.key for subject in subjects})

    def _is_independent(self, subject: Subject, decided: PartialDecisions) -> bool:
        """Return whether the decision about a workload reads no documents of other workloads that were taken back with its own."""
        one, other = (_list_decision_inputs(subject.key, each.templates, each.engines) for each in (self._decided, decided))
        return one == other


def _list_decision_inputs(key: Key, templates: Mapping[Key, Document], engines: tuple[PolicyEngine, ...]) -> list[object]:
    """Return what the decision about a workload reads besides its own document."""
    document = templates.get(key)
    trackers = list_dependency_trackers(engines) if document is not None else ()
    return [entry for tracker in trackers for entry in (tracker.decision_inputs(document) if document is not None else ())]


def _list_referenced_keys(engines: Iterable[PolicyEngine]) -> frozenset[Key]:
    return frozenset(key for engine in engines if isinstance(engine, ReferenceReading) for key in engine.referenced_keys())
