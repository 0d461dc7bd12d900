"""Schedule Placements in upstream's order: cluster sets, predicates, taints, prioritizers, selection, decision groups, status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import NamedTuple

from gitsched.apis.ocm import names
from gitsched.apis.ocm.cel.cluster_expressions import ClusterExpression
from gitsched.apis.ocm.cel.syntax import InvalidExpression
from gitsched.apis.ocm.decisions import (
    EligibleClusters,
    evaluate_satisfaction,
    group_clusters,
    write_decisions,
    write_misconfigured_status,
    write_placement_record,
    write_placement_status,
)
from gitsched.apis.ocm.managed_clusters import select_set_members
from gitsched.apis.ocm.placement import (
    ADD_ON,
    Misconfiguration,
    OcmPlacement,
    PrioritizerConfig,
    SpreadConstraintsTerm,
    validate_tolerations,
)
from gitsched.apis.ocm.previous_decisions import BASIS_KEY as BASIS
from gitsched.apis.ocm.previous_decisions import DecisionBasis, DecisionIndex, PreviousDecisions, read_basis
from gitsched.apis.ocm.prioritizers import AddOnScores, PrioritizerScores
from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.scores import BalanceScore, ExternalScore, NormalizedScore, SteadyScore
from gitsched.schedule.selection import (
    PredicateAlternative,
    SelectionRequest,
    SelectionResult,
    TaintEffects,
    TopologySpread,
    WeightedScore,
    select_best,
)

TAINT_EFFECTS = TaintEffects(frozenset({"PreferNoSelect"}), frozenset({"NoSelectIfNew"}))
_ALLOCATABLE_RESOURCES = {"ResourceAllocatableCPU": "cpu", "ResourceAllocatableMemory": "memory"}

CompileExpressions = Callable[[tuple[str, ...]], tuple[ClusterExpression, ...] | InvalidExpression]
"""Expressions as tests of candidates, or what is wrong with the first that cannot be used."""


class SchedulingContext(NamedTuple):
    """What all Placements of a run have in common."""

    fleet: Fleet
    scores: PrioritizerScores
    compile_expressions: CompileExpressions
    time: datetime


class PlacementResult(NamedTuple):
    """What came of a Placement. `decisions` are its PlacementDecisions and `record` itself, with its status.

    `request` and `choice` are what the scheduler was asked and said, None where it was not asked. `expired` are clusters whose scores
    are too old. `wakeup` is when time alone may change something.
    """

    placement: OcmPlacement
    eligible: EligibleClusters
    request: SelectionRequest | None
    choice: SelectionResult | None
    misconfiguration: Misconfiguration | None
    decisions: tuple[tuple[Key, Body], ...]
    record: Body
    expired_scores: tuple[tuple[str, str], ...]
    wakeup: datetime | None


def schedule_placement(
    placement: OcmPlacement,
    offer: EligibleClusters,
    past: PreviousDecisions,
    load: Mapping[str, int],
    previous: Body | None,
    scene: SchedulingContext,
) -> PlacementResult:
    """Decide one Placement. A misconfigured one keeps what it had decided: upstream empties it, and workloads would go."""
    alternatives = _build_alternatives(placement, offer, scene)
    if isinstance(alternatives, Misconfiguration):
        return _keep_previous_decisions(placement, offer, alternatives, past, previous, scene)
    terms, add_ons = _build_prioritizers(placement, past, load, scene)
    request = SelectionRequest(
        offer.clusters,
        alternatives,
        placement.tolerations,
        TAINT_EFFECTS,
        scene.fleet.mask(past.clusters),
        scene.time,
        terms,
        placement.number_of_clusters,
        tuple(_build_spread_constraint(constraint, scene.fleet) for constraint in placement.spread_constraints),
    )
    choice = select_best(request, scene.fleet)
    mistake = validate_tolerations(placement) if choice.remaining[0] else None
    if mistake is None and isinstance(placement.prioritizers, Misconfiguration):
        mistake = placement.prioritizers
    groups = group_clusters(placement, choice.selected, scene.fleet)
    if mistake is None and isinstance(groups, Misconfiguration):
        mistake = groups
    if mistake is not None or isinstance(groups, Misconfiguration):
        return _keep_previous_decisions(placement, offer, mistake or Misconfiguration("", ""), past, previous, scene)
    totals = dict(zip(choice.members, choice.totals, strict=True))
    uid = str(placement.document.body["metadata"].get("uid") or "")
    decisions, objects = write_decisions(placement.key, uid, groups, scene.fleet, totals, past.decisions)
    satisfaction = evaluate_satisfaction(offer, placement.cluster_sets, len(choice.selected), placement.number_of_clusters)
    status = write_placement_status(satisfaction, None, groups, objects, previous, scene.time)
    names = scene.fleet.names
    eligible = {names[index] for index in choice.members} if any(add_on.expired_clusters for _, add_on in add_ons) else frozenset()
    ends = (add_on.next_expiry for _, add_on in add_ons)
    expired = {(name, resource) for resource, add_on in add_ons for name in add_on.expired_clusters if name in eligible}
    return PlacementResult(
        placement,
        offer,
        request,
        choice,
        None,
        tuple(decisions),
        write_placement_record(placement.key, status),
        tuple(sorted(expired)),
        min((end for end in (choice.deadline, *ends) if end is not None and end > scene.time), default=None),
    )


def _keep_previous_decisions(
    placement: OcmPlacement,
    offer: EligibleClusters,
    mistake: Misconfiguration,
    past: PreviousDecisions,
    previous: Body | None,
    scene: SchedulingContext,
) -> PlacementResult:
    record = write_placement_record(placement.key, write_misconfigured_status(mistake, previous, scene.time))
    return PlacementResult(placement, offer, None, None, mistake, past.records(placement.key.namespace), record, (), None)


def _build_alternatives(
    placement: OcmPlacement, offer: EligibleClusters, scene: SchedulingContext
) -> tuple[PredicateAlternative, ...] | Misconfiguration:
    """The predicates; nothing is looked at where there is nothing to choose from."""
    predicates = placement.predicates
    if not offer.clusters:
        return ()
    if isinstance(predicates, Misconfiguration):
        return predicates
    alternatives = []
    for predicate in predicates:
        tests = scene.compile_expressions(predicate.expressions)
        if isinstance(tests, InvalidExpression):
            return Misconfiguration("Predicate", str(tests), tests.code)
        alternatives.append(PredicateAlternative(predicate.affinity, tests))
    return tuple(alternatives)


def _build_prioritizers(
    placement: OcmPlacement, past: PreviousDecisions, load: Mapping[str, int], scene: SchedulingContext
) -> tuple[tuple[WeightedScore, ...], list[tuple[str, AddOnScores]]]:
    """The scores that count with their weights, and what add-ons said, with the name of their AddOnPlacementScores."""
    weights: Sequence[PrioritizerConfig] = () if isinstance(placement.prioritizers, Misconfiguration) else placement.prioritizers
    terms: list[WeightedScore] = []
    add_ons: list[tuple[str, AddOnScores]] = []
    for coordinate, weight in weights:
        if coordinate.type == ADD_ON:
            add_on = scene.scores.add_on(coordinate.resource_name, coordinate.score_name, scene.time)
            add_ons.append((coordinate.resource_name, add_on))
            terms.append(
                WeightedScore(ExternalScore(f"AddOn/{coordinate.resource_name}/{coordinate.score_name}", add_on.column), weight)
            )
        elif coordinate.built_in == "Steady":
            terms.append(WeightedScore(SteadyScore(scene.fleet.mask(past.clusters)), weight))
        elif coordinate.built_in == "Balance":
            terms.append(WeightedScore(BalanceScore(_count_by_cluster(load, scene.fleet), max(load.values(), default=0)), weight))
        else:
            values = scene.scores.allocatable(_ALLOCATABLE_RESOURCES[coordinate.built_in])
            terms.append(WeightedScore(NormalizedScore(coordinate.built_in, values), weight))
    return tuple(terms), add_ons


def _build_spread_constraint(constraint: SpreadConstraintsTerm, fleet: Fleet) -> TopologySpread:
    """A constraint with the domain of every cluster."""
    of: Callable[[Candidate], str] = (
        (lambda candidate: candidate.labels.get(constraint.topology_key, ""))
        if constraint.topology_key_type == "Label"
        else (lambda candidate: next(iter(candidate.fields.get(constraint.topology_key, ())), ""))
    )
    return TopologySpread([of(candidate) for candidate in fleet.candidates], constraint.max_skew, constraint.hard)


def _count_by_cluster(load: Mapping[str, int], fleet: Fleet) -> list[int]:
    return list(map(load.get, fleet.names, repeat(0)))


MAX_DEADLINES = 64
"""Deadlines that one run makes up for at most."""


class SkippedPlacement(NamedTuple):
    """A Placement that nothing is decided about, and what it had decided: because of a set that cannot be used, or by its own wish."""

    placement: OcmPlacement
    previous: PreviousDecisions
    record: Body | None
    invalid_set: Document | None
    reason: str


class ClusterSets:
    """The ManagedClusterSets of a fleet and the namespaces that are bound to them."""

    __slots__ = ("_bound_sets", "_fleet", "_members", "sets")

    def __init__(self, sets: Iterable[Document], bindings: Iterable[Document], fleet: Fleet) -> None:
        self.sets = {document.key.name: document for document in sets}
        self._fleet = fleet
        self._members = {name: select_set_members(document, fleet) for name, document in self.sets.items()}
        self._bound_sets: dict[str, list[str]] = {}
        for binding in bindings:
            if binding.key.name in self.sets:
                self._bound_sets.setdefault(binding.key.namespace, []).append(binding.key.name)

    def find_eligible_clusters(self, placement: OcmPlacement) -> EligibleClusters | tuple[Document, str]:
        """What a Placement may choose from, or the set that cannot be used and why."""
        bound = tuple(sorted(self._bound_sets.get(placement.key.namespace, ())))
        eligible = tuple(name for name in bound if not placement.cluster_sets or name in placement.cluster_sets)
        available = 0
        for name in eligible:
            members = self._members[name]
            if isinstance(members, str):
                return self.sets[name], members
            available |= members
        return EligibleClusters(bound, eligible, available & ~self._fleet.deleting)

    def list_sets_of(self, index: int) -> list[str]:
        """The sets that a cluster is in, by name."""
        return [name for name, members in sorted(self._members.items()) if not isinstance(members, str) and members >> index & 1]


class SchedulingRun(NamedTuple):
    """What came of all Placements, by key. `time` is the latest deadline after the source's moment that changed one of them,
    `basis` what the decisions that stand were made from."""

    results: Mapping[Key, PlacementResult]
    skipped: Mapping[Key, SkippedPlacement]
    wakeup: datetime | None
    time: datetime | None
    basis: DecisionBasis | None


def schedule_placements(
    placements: Iterable[OcmPlacement],
    sets: ClusterSets,
    fleet: Fleet,
    scores: PrioritizerScores,
    compile_tests: CompileExpressions,
    history: DecisionIndex,
    record: Callable[[Key], Body | None],
    digest: str,
    at: datetime,
    now: datetime,
) -> SchedulingRun:
    """Decide at the source's moment, and at each deadline until now."""
    basis = read_basis(record(BASIS))
    stands = basis is not None and basis.digest == digest and basis.decided_at <= now
    ordered = sorted(placements, key=lambda placement: (placement.key.namespace, placement.key.name))
    records: dict[Key, Body | None] = {placement.key: record(placement.key) for placement in ordered}
    moment = basis.decided_at if basis is not None and stands else at
    evaluations, blocked = dict[Key, PlacementResult](), dict[Key, SkippedPlacement]()
    time: datetime | None = None
    for _ in range(MAX_DEADLINES):
        scene = SchedulingContext(fleet, scores, compile_tests, moment)
        for placement in ordered:
            key = placement.key
            owner = (key.namespace, key.name)
            past = history.find(owner)
            offer = sets.find_eligible_clusters(placement)
            if placement.skipped or not isinstance(offer, EligibleClusters):
                unusable, why = (None, "") if isinstance(offer, EligibleClusters) or placement.skipped else offer
                blocked[key] = SkippedPlacement(placement, past, records[key], unusable, why)
                continue
            found = schedule_placement(placement, offer, past, history.count_other_decisions(owner), records[key], scene)
            if stands and (known := records[key]) is not None:
                found = found._replace(decisions=past.records(key.namespace), record=known)
            elif found.record != records[key] or history.has_changed(owner, found.decisions):
                basis = DecisionBasis(digest, moment)
                time = moment if moment > at else time
                history.update(owner, found.decisions)
            evaluations[key], records[key] = found, found.record
        wakeup = min((found.wakeup for found in evaluations.values() if found.wakeup is not None), default=None)
        if wakeup is None or wakeup > now:
            break
        moment, stands = wakeup, False
    return SchedulingRun(evaluations, blocked, wakeup, time, basis)


def merge_decisions(previous: Iterable[tuple[Key, Body]], documents: Iterable[Document]) -> list[tuple[Key, Body]]:
    """The PlacementDecisions that stand: those of the last output, and the source's for a Placement that has none there."""
    written = list(previous)
    owners = {(key.namespace, _placement_name(body)) for key, body in written}
    own = [(d.key, d.body) for d in documents if (d.key.namespace, _placement_name(d.body)) not in owners]
    return [*written, *own]


def _placement_name(body: Body) -> str:
    return as_string_map(get_field(body, "metadata", "labels")).get(names.PLACEMENT_LABEL, "")
