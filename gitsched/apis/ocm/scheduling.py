"""Schedule Placements in upstream's order: cluster sets, predicates, taints, prioritizers, selection, decision groups, status."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import Final

from gitsched.apis.ocm.cel.cluster_expressions import ClusterExpression
from gitsched.apis.ocm.cel.syntax import InvalidExpression
from gitsched.apis.ocm.decisions import (
    evaluate_satisfaction,
    group_clusters,
    write_decisions,
    write_misconfigured_status,
    write_placement_record,
    write_placement_status,
)
from gitsched.apis.ocm.managed_clusters import ClusterSets, EligibleClusters
from gitsched.apis.ocm.placement import (
    ADD_ON,
    Misconfiguration,
    OcmPlacement,
    PrioritizerConfig,
    SpreadConstraintsTerm,
    validate_tolerations,
)
from gitsched.apis.ocm.previous_decisions import BASIS_KEY, DecisionBasis, DecisionIndex, PreviousDecisions, read_basis
from gitsched.apis.ocm.prioritizers import AddOnScores, PrioritizerScores
from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Candidate, Fleet
from gitsched.schedule.preferences import list_preferred
from gitsched.schedule.scores import BalanceScore, ExternalScore, NormalizedScore, SteadyScore
from gitsched.schedule.selection import (
    PredicateAlternative,
    SelectionRequest,
    SelectionResult,
    TaintEffects,
    TimedTaintTolerationFilter,
    TopologySpread,
    WeightedScore,
    list_stages,
    select_best,
)

TAINT_EFFECTS = TaintEffects(frozenset({"PreferNoSelect"}), frozenset({"NoSelectIfNew"}))
MAX_DEADLINES = 64
"""Maximum number of missed deadlines that one run processes."""
_ALLOCATABLE_RESOURCES = {"ResourceAllocatableCPU": "cpu", "ResourceAllocatableMemory": "memory"}

CompileExpressions = Callable[[tuple[str, ...], Key], tuple[ClusterExpression, ...] | InvalidExpression]
"""Compiles CEL expressions of a Placement to tests of candidates; an InvalidExpression describes the first that is invalid."""


class SchedulingContext(NamedTuple):
    """Data shared by all Placements that are scheduled at one time."""

    fleet: Fleet
    scores: PrioritizerScores
    compile_expressions: CompileExpressions
    time: datetime


class PlacementResult(NamedTuple):
    """The result of scheduling one Placement.

    `request` and `choice` are input and result of the selection, None if the Placement is misconfigured. `decisions` are the
    PlacementDecisions, `record` is the Placement with its status. `add_ons` are the add-on scores that it uses, by resource and score name.
    `wakeup` is when the decision can change without a commit.
    """

    placement: OcmPlacement
    eligible: EligibleClusters
    request: SelectionRequest | None
    choice: SelectionResult | None
    misconfiguration: Misconfiguration | None
    decisions: tuple[tuple[Key, Body], ...]
    record: Body
    add_ons: Mapping[tuple[str, str], AddOnScores]
    wakeup: datetime | None


def schedule_placement(
    placement: OcmPlacement,
    eligible: EligibleClusters,
    previous_decisions: PreviousDecisions,
    decision_counts: Mapping[str, int],
    previous_record: Body | None,
    context: SchedulingContext,
) -> PlacementResult:
    """Schedule one Placement.

    A misconfigured Placement keeps its previous decisions. Upstream empties them, which would remove workloads.
    """
    alternatives = _build_alternatives(placement, eligible, context)
    if isinstance(alternatives, Misconfiguration):
        return _keep_previous_decisions(placement, eligible, alternatives, previous_decisions, previous_record, context)
    weighted_scores, add_ons = _build_prioritizers(placement, previous_decisions, decision_counts, context)
    request = SelectionRequest(
        eligible.clusters,
        alternatives,
        placement.tolerations,
        TAINT_EFFECTS,
        context.fleet.mask(previous_decisions.clusters),
        context.time,
        weighted_scores,
        placement.number_of_clusters,
        tuple(_build_spread_constraint(constraint, context.fleet) for constraint in placement.spread_constraints),
        tuple(list_preferred(placement.preferred, context.fleet)) if placement.preferred else (),
    )
    choice = select_best(request, context.fleet)
    is_asked = any(stage.before for stage in list_stages(request, choice) if isinstance(stage.filter, TimedTaintTolerationFilter))
    misconfiguration = validate_tolerations(placement) if is_asked else None
    if misconfiguration is None and isinstance(placement.prioritizers, Misconfiguration):
        misconfiguration = placement.prioritizers
    groups = group_clusters(placement, choice.selected, context.fleet)
    if misconfiguration is None and isinstance(groups, Misconfiguration):
        misconfiguration = groups
    if misconfiguration is not None or isinstance(groups, Misconfiguration):
        return _keep_previous_decisions(
            placement, eligible, misconfiguration or Misconfiguration("", ""), previous_decisions, previous_record, context
        )
    totals = dict(zip(choice.members, choice.totals, strict=True))
    uid = str(placement.document.body["metadata"].get("uid") or "")
    decisions, objects = write_decisions(placement.key, uid, groups, context.fleet, totals, previous_decisions.decisions)
    condition = evaluate_satisfaction(eligible, placement.cluster_sets, len(choice.selected), placement.number_of_clusters)
    status = write_placement_status(condition, None, groups, objects, previous_record, context.time)
    expiries = (add_on.next_expiry for add_on in add_ons.values())
    return PlacementResult(
        placement,
        eligible,
        request,
        choice,
        None,
        tuple(decisions),
        write_placement_record(placement.key, status),
        add_ons,
        min(
            (deadline for deadline in (choice.deadline, *expiries) if deadline is not None and deadline > context.time),
            default=None,
        ),
    )


def _keep_previous_decisions(
    placement: OcmPlacement,
    eligible: EligibleClusters,
    misconfiguration: Misconfiguration,
    previous_decisions: PreviousDecisions,
    previous_record: Body | None,
    context: SchedulingContext,
) -> PlacementResult:
    record = write_placement_record(placement.key, write_misconfigured_status(misconfiguration, previous_record, context.time))
    return PlacementResult(
        placement, eligible, None, None, misconfiguration, previous_decisions.records(placement.key.namespace), record, {}, None
    )


def _build_alternatives(
    placement: OcmPlacement, eligible: EligibleClusters, context: SchedulingContext
) -> tuple[PredicateAlternative, ...] | Misconfiguration:
    """Return the predicates; without eligible clusters they are not evaluated, so errors in them are not reported."""
    predicates = placement.predicates
    if not eligible.clusters:
        return ()
    if isinstance(predicates, Misconfiguration):
        return predicates
    alternatives = []
    for predicate in predicates:
        tests = context.compile_expressions(predicate.expressions, placement.key)
        if isinstance(tests, InvalidExpression):
            return Misconfiguration("Predicate", str(tests), tests.code)
        alternatives.append(PredicateAlternative(predicate.affinity, tests))
    return tuple(alternatives)


def _build_prioritizers(
    placement: OcmPlacement, previous_decisions: PreviousDecisions, decision_counts: Mapping[str, int], context: SchedulingContext
) -> tuple[tuple[WeightedScore, ...], dict[tuple[str, str], AddOnScores]]:
    """Return the scores with their weights, and the add-on scores by the names of AddOnPlacementScore and score."""
    weights: Sequence[PrioritizerConfig] = () if isinstance(placement.prioritizers, Misconfiguration) else placement.prioritizers
    weighted_scores: list[WeightedScore] = []
    add_ons: dict[tuple[str, str], AddOnScores] = {}
    for coordinate, weight in weights:
        if coordinate.type == ADD_ON:
            add_on = context.scores.add_on(coordinate.resource_name, coordinate.score_name, context.time)
            add_ons[coordinate.resource_name, coordinate.score_name] = add_on
            weighted_scores.append(
                WeightedScore(ExternalScore(f"AddOn/{coordinate.resource_name}/{coordinate.score_name}", add_on.column), weight)
            )
        elif coordinate.built_in == "Steady":
            weighted_scores.append(WeightedScore(SteadyScore(context.fleet.mask(previous_decisions.clusters)), weight))
        elif coordinate.built_in == "Balance":
            weighted_scores.append(
                WeightedScore(
                    BalanceScore(_count_by_cluster(decision_counts, context.fleet), max(decision_counts.values(), default=0)),
                    weight,
                )
            )
        else:
            values = context.scores.allocatable(_ALLOCATABLE_RESOURCES[coordinate.built_in])
            weighted_scores.append(WeightedScore(NormalizedScore(coordinate.built_in, values), weight))
    return tuple(weighted_scores), add_ons


def _build_spread_constraint(constraint: SpreadConstraintsTerm, fleet: Fleet) -> TopologySpread:
    """Return a spread constraint with the domain of each cluster."""
    read_domain: Callable[[Candidate], str] = (
        (lambda candidate: candidate.labels.get(constraint.topology_key, ""))
        if constraint.topology_key_type == "Label"
        else (lambda candidate: next(iter(candidate.fields.get(constraint.topology_key, ())), ""))
    )
    return TopologySpread([read_domain(candidate) for candidate in fleet.candidates], constraint.max_skew, constraint.hard)


def _count_by_cluster(decision_counts: Mapping[str, int], fleet: Fleet) -> list[int]:
    return list(map(decision_counts.get, fleet.names, repeat(0)))


class SkippedPlacement(NamedTuple):
    """A Placement that keeps its decisions without scheduling: it is disabled or being deleted, `invalid_set` is invalid, or it `is_kept`
    as it was adopted."""

    placement: OcmPlacement
    previous: PreviousDecisions
    record: Body | None
    invalid_set: Document | None
    reason: str
    is_kept: bool = False


class SchedulingRun(NamedTuple):
    """The results of all Placements by key.

    `wakeup` is when a decision can change without a commit, `time` the last deadline that changed a decision (None if none did).
    """

    results: Mapping[Key, PlacementResult]
    skipped: Mapping[Key, SkippedPlacement]
    wakeup: datetime | None
    time: datetime | None
    basis: DecisionBasis | None


def _find_eligible(
    cluster_sets: ClusterSets, placement: OcmPlacement, previous: PreviousDecisions, record: Body | None, *, is_kept: bool
) -> EligibleClusters | SkippedPlacement:
    """Return the clusters among which a Placement is scheduled, or why it is not."""
    eligible = cluster_sets.find_eligible_clusters(placement)
    if not isinstance(eligible, EligibleClusters) and not placement.skipped:
        return SkippedPlacement(placement, previous, record, *eligible, is_kept)
    if is_kept or not isinstance(eligible, EligibleClusters) or placement.skipped:
        return SkippedPlacement(placement, previous, record, None, "", is_kept)
    return eligible


def schedule_placements(
    placements: Iterable[OcmPlacement],
    cluster_sets: ClusterSets,
    fleet: Fleet,
    scores: PrioritizerScores,
    compile_expressions: CompileExpressions,
    decision_index: DecisionIndex,
    read_record: Callable[[Key], Body | None],
    digest: str,
    at: datetime,
    now: datetime,
    keeps_decisions: Callable[[Document, Sequence[str]], bool] = lambda _placement, _clusters: False,
) -> SchedulingRun:
    """Schedule all Placements at the commit time `at`, then at each deadline until `now`.

    `keeps_decisions` says of a Placement with its previous clusters whether it is not scheduled.
    """
    basis = read_basis(read_record(BASIS_KEY))
    unchanged, time_step = False, at
    if basis is not None and basis.digest == digest and basis.decided_at <= now:
        unchanged, time_step = True, basis.decided_at
    ordered = sorted(placements, key=lambda placement: (placement.key.namespace, placement.key.name))
    records: dict[Key, Body | None] = {placement.key: read_record(placement.key) for placement in ordered}
    results, skipped = dict[Key, PlacementResult](), dict[Key, SkippedPlacement]()
    time: datetime | None = None
    for _ in range(MAX_DEADLINES):
        context = SchedulingContext(fleet, scores, compile_expressions, time_step)
        for placement in ordered:
            key = placement.key
            placement_name = (key.namespace, key.name)
            previous_decisions = decision_index.find(placement_name)
            is_kept = keeps_decisions(placement.document, previous_decisions.clusters)
            eligible = _find_eligible(cluster_sets, placement, previous_decisions, records[key], is_kept=is_kept)
            if isinstance(eligible, SkippedPlacement):
                skipped[key] = eligible
                continue
            result = schedule_placement(
                placement, eligible, previous_decisions, decision_index.count_other_decisions(placement_name), records[key], context
            )
            recorded = records[key] if unchanged else None
            if recorded is not None and _is_complete(recorded, previous_decisions):
                result = result._replace(decisions=previous_decisions.records(key.namespace), record=recorded)
            elif result.record != records[key] or decision_index.has_changed(placement_name, result.decisions):
                basis = DecisionBasis(digest, time_step)
                time = time_step if time_step > at else time
                decision_index.update(placement_name, result.decisions)
            results[key], records[key] = result, result.record
        wakeup = min(filter(None, (result.wakeup for result in results.values())), default=None)
        if wakeup is None or wakeup > now:
            break
        time_step, unchanged = wakeup, False
    return SchedulingRun(results, skipped, wakeup, time, basis)


def _is_complete(record: Body, recorded: PreviousDecisions) -> bool:
    """Return whether the recorded PlacementDecisions are those that the record of their Placement lists: they are files of a branch that a
    person may have edited."""
    groups = list_objects(get_field(record, "status", "decisionGroups"))
    names = [name for group in groups if isinstance(listed := group.get("decisions"), list) for name in listed]
    return (names, get_field(record, "status", "numberOfSelectedClusters")) == (list(recorded.decisions), len(recorded.clusters))


_BUILT_IN_SETS: Final = {
    "default": "clusterSelector: {selectorType: ExclusiveClusterSetLabel}",
    "global": "clusterSelector: {selectorType: LabelSelector, labelSelector: {}}",
}
"""The ManagedClusterSets that a hub creates by itself."""


def describe_missing_sets(result: PlacementResult) -> str:
    """Describe why a Placement has no eligible cluster set."""
    namespace, wanted, eligible = result.placement.key.namespace, result.placement.cluster_sets, result.eligible
    absent = [name for name in eligible.absent_sets if not wanted or name in wanted]
    if absent and absent[0] in eligible.broken_sets:
        return f"the ManagedClusterSet {absent[0]}, which is bound to the namespace {namespace}, has errors: correct them"
    if absent:
        text = f"the ManagedClusterSet {absent[0]}, which is bound to the namespace {namespace}, does not exist: add its document"
        return f"{text}, with {_BUILT_IN_SETS[absent[0]]}, as on each hub" if absent[0] in _BUILT_IN_SETS else text
    broken = [name for name in eligible.broken_bindings if not wanted or name in wanted]
    if broken:
        return f"the ManagedClusterSetBinding {broken[0]} of the namespace {namespace} has errors: correct them"
    if not eligible.bound_sets:
        return f"no ManagedClusterSet is bound to the namespace {namespace}: add a ManagedClusterSetBinding"
    return f"its clusterSets ({', '.join(wanted)}) are not bound to the namespace {namespace}, which has {', '.join(eligible.bound_sets)}"
