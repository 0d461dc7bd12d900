"""What the guard withholds of an incremental plan: workloads that stay where they are until a change affects them or a person allows it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import ObservationFollowing, Rescheduling
from gitsched.apis.gitsched.guard_config import MIN_PERCENT_SIZE
from gitsched.apis.registered import Registered
from gitsched.decide.engines import list_engine_findings, list_engine_records
from gitsched.decide.guard.guard_settings import NO_GUARD_INPUT, GuardInput
from gitsched.decide.incremental.changed_moves import list_changed_moves, may_exceed_limits
from gitsched.decide.named_templates import NamedTemplates
from gitsched.decide.plan_result import list_moves, select_active
from gitsched.decide.renames import continue_moves, find_successors
from gitsched.model.changes import NOTHING_WITHHELD, RENAMED_FROM
from gitsched.model.document import Document, read_annotations, workload_sort_key
from gitsched.model.errors import LimitsExceededError, NeedsCompletePlan
from gitsched.model.source_edits import NO_EDITS, SourceEdits
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.guard_config import GuardConfig
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.changed_moves import ChangedMoves
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.changes import Move, WithheldChanges
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome


class GuardRules(NamedTuple):
    """What the guard reads besides the changes of an incremental plan. `list_allowed` returns the digests of withheld changes that are
    allowed. With `withholds`, changes over the limits are left out; otherwise the plan has them and reports that a run leaves them out.
    With `refuses`, LimitsExceededError is raised then."""

    given: GuardInput = NO_GUARD_INPUT
    list_allowed: Callable[[], Collection[str]] = tuple
    withholds: bool = False
    refuses: bool = False

    def allows(self, withheld: WithheldChanges) -> bool:
        """Return whether the changes that the last run has withheld are allowed."""
        return bool(withheld.moves) and withheld.digest in self.list_allowed()


NO_RULES = GuardRules()
_EXTEND = Registered("gitsched.decide.guard.withheld_changes", "extend_to_followers")
_ADD_COMPANIONS = Registered("gitsched.decide.guard.withheld_companions", "extend_to_companions")
_CONTINUES = "a workload may continue another one whose removal is withheld"
_FOLLOWED = "others depend on a workload that keeps its placement"
_COMPOSED = "a workload that keeps its placement consists of several objects, or is not in the source as one document"


class GuardedChanges(NamedTuple):
    """The changes of a plan and its moves without those that are left out, the findings about the guard, and the changes that a run
    withholds."""

    changes: IncrementalChanges
    moves: ChangedMoves
    findings: tuple[Finding, ...]
    withheld: WithheldChanges


def can_stay_withheld(decisions: DecisionSet) -> bool:
    """Return whether the next plan may continue a complete plan that withholds changes: those of workloads of their own, in clusters that
    have a document, on which no other depends, without a tenant that has limits, and while no request is pending."""
    special = (decisions.variants, decisions.kustomized, decisions.input is None or decisions.input.adopted, decisions.followers)
    if any(special) or _has_limits(decisions.tenancy):
        return False
    if any(isinstance(engine, Rescheduling) and tuple(engine.list_pending_requests()) for engine in decisions.engines):
        return False
    if decisions.input is not None and decisions.input.earlier.withheld:
        return False  # the state does not have what they request
    catalog, known = decisions.catalog, decisions.cluster_facts.keys()
    unused = {*catalog.broken, *catalog.duplicate_templates, *decisions.own_workloads}
    if not unused.isdisjoint(decisions.withheld):
        return False
    if any(RENAMED_FROM in read_annotations(template.body) for template in catalog.templates.values()):
        return False
    return all(_is_plain(decisions.outcomes[key], known) for key in decisions.withheld)


def _has_limits(tenancy: Tenancy | None) -> bool:
    """Return whether a tenant has limits: what is withheld counts for what others may have."""
    if tenancy is None:
        return False
    from gitsched.decide.tenants.tenant_amounts import list_limited_owners  # few sources have tenants

    return bool(list_limited_owners(tenancy))


def _is_plain(kept: Outcome, clusters: Collection[str]) -> bool:
    """Return whether a workload that keeps its placement is one object, in these clusters, that concerns no others."""
    composed = kept.manifests is not None or kept.bundles or kept.key[:2] == ("", "Namespace")
    return not composed and all(target.cluster in clusters for target in kept.targets)


def check_guard(decide: Callable[[frozenset[Key]], IncrementalChanges], rules: GuardRules) -> GuardedChanges:
    """Return the changes of a plan without those that exceed a limit of the guard. Raise NeedsCompletePlan if only a complete plan can tell
    which ones do.

    `decide` decides the changes, and some workloads again: those whose changes an earlier run has withheld and that are within the limits.
    """
    passing: frozenset[Key] = frozenset()
    while True:
        changes = decide(passing)
        found = _find_guarded(changes, list_changed_moves(changes), rules)
        if not isinstance(found, frozenset):
            return found
        passing |= found  # fewer are pending each time


def _find_guarded(changes: IncrementalChanges, moves: ChangedMoves, rules: GuardRules) -> GuardedChanges | frozenset[Key]:
    """Return the changes without those that exceed a limit, or the workloads to decide again."""
    totals, own = changes.totals, changes.totals.config.guard
    if _may_wait(changes, moves.moves, rules):
        raise NeedsCompletePlan("a move may have to wait for a later period")
    decided = changes.documents.keys() | changes.removed.keys()
    pending = tuple(move for move in totals.withheld.moves if move.key not in decided)
    if pending and any(RENAMED_FROM in read_annotations(one.body) for one in changes.documents.values()):
        raise NeedsCompletePlan(_CONTINUES)
    if pending and any(limit.cause is not None for limit in totals.withheld.limits):
        raise NeedsCompletePlan("a policy may no longer select workloads by mistake")
    successors = find_successors(moves.renames, moves.removed) if moves.renames is not None else {}
    counted = continue_moves(moves.moves, successors)
    withheld = NOTHING_WITHHELD
    if pending or may_exceed_limits(changes, counted, rules.given.choose_settings(own)):
        withheld = _find_withheld(changes, moves, (*counted, *pending), successors, rules)
        if withheld.moves and moves.renames is not None and moves.renames.names:
            raise NeedsCompletePlan(_CONTINUES)
    allowed = rules.list_allowed() if withheld.moves else ()
    findings = tuple(rules.given.list_findings(own, withheld.digest, allowed))
    if withheld.digest in allowed:
        withheld = NOTHING_WITHHELD
    keys = {move.key for move in withheld.moves}
    passing = frozenset(move.key for move in pending) - keys
    if passing:
        return passing
    if not keys.isdisjoint(changes.removed) and any(engine.shares_capacity for engine in changes.continued.engines):
        raise NeedsCompletePlan("a workload whose removal is withheld takes capacity")
    if not keys:
        return GuardedChanges(changes._replace(withheld=withheld, withheld_wakeups={}), moves, findings, withheld)
    from gitsched.decide.guard.withheld_changes import make_withheld_finding  # few changes exceed a limit

    findings = (*findings, make_withheld_finding(withheld))
    if rules.refuses:
        raise LimitsExceededError(str(findings[-1]), len(changes.outcomes))
    if not rules.withholds:
        return GuardedChanges(changes, moves, findings, withheld)
    if withheld.companions:
        raise NeedsCompletePlan(_FOLLOWED)
    if changes.snapshot.tenancy is not None:
        from gitsched.decide.incremental.changed_tenants import measure_changes  # few sources have tenants

        if _has_limits(changes.snapshot.tenancy):
            raise NeedsCompletePlan("what is withheld counts for the limits of a tenant")
        measure_changes(changes)  # a complete plan first checks whether Tenants allow what is decided
    kept, removed = _withhold(changes, moves, withheld, keys & decided)
    removals = (move for move in moves.moves if move.key in removed)
    changed_moves = (*list_moves(kept.outcomes.values(), kept.had_workloads), *removals)
    return GuardedChanges(kept, moves._replace(moves=changed_moves, removed=removed), findings, withheld)


def _may_wait(changes: IncrementalChanges, moves: Iterable[Move], rules: GuardRules) -> bool:
    """Return whether a move that people did not cause may have to wait for a later period. Only a complete plan tells which moves wait, and
    which files differ that are built."""
    leaving = [move for move in moves if move.after and move.before.keys() - move.after.keys()]
    if not leaving or changes.totals.overview.workload_count <= MIN_PERCENT_SIZE:
        return False
    if rules.given.choose_settings(changes.totals.config.guard).limits_evictions:
        return True
    engines = {engine.name: engine for engine in changes.continued.engines if isinstance(engine, ObservationFollowing)}

    def may_follow(move: Move, edits: SourceEdits) -> bool:
        outcome, document = changes.outcomes.get(move.key), changes.documents.get(move.key)
        if outcome is None or document is None:
            return True
        return outcome.api in engines and bool(engines[outcome.api].list_observed_decisions(document, edits))

    found = [move for move in leaving if may_follow(move, NO_EDITS)]
    edits = rules.given.list_edits() if found and not rules.given.record.rate.waiting else None
    return any(may_follow(move, edits) for move in found) if edits is not None else bool(found)


def _find_withheld(
    changes: IncrementalChanges,
    moves: ChangedMoves,
    counted: Collection[Move],
    successors: Mapping[Key, Outcome],
    rules: GuardRules,
) -> WithheldChanges:
    """Return which of some moves exceed a limit. Workloads that were not decided again are where their rows say."""
    from gitsched.decide.guard.exceeded_limits import choose_withheld, guard_moves, list_placed
    from gitsched.decide.guard.large_changes import find_withheld_changes
    from gitsched.decide.guard.scope_sizes import PlacedWorkload

    guarded = guard_moves(counted, changes.continued.engines, changes.had_workloads, changes.totals.retained)
    if not guarded.is_guarded:
        return NOTHING_WITHHELD
    continued = frozenset(outcome.key for outcome in successors.values())
    others = (row.outcome for row in changes.rows.list_workloads())
    placed = [
        PlacedWorkload(outcome.key, replicas, outcome.stays_placed)
        for outcome in others
        if not (outcome.key in changes.outcomes or outcome.key in changes.removed or outcome.key in continued)
        and (replicas := select_active(outcome.replicas_by_cluster, changes.had_workloads))
    ]
    placed += list_placed(changes.outcomes.values(), moves.removed, continued, changes.had_workloads)
    engines, tenancy = changes.continued.engines, changes.snapshot.tenancy
    documents = NamedTemplates(changes.snapshot.templates, changes.documents)

    def find(config: GuardConfig) -> WithheldChanges:
        withheld = find_withheld_changes(guarded, placed, config, tenancy, rules.given.find_former_owner)
        withheld = _EXTEND(withheld, guarded.every, engines, documents)
        extended: WithheldChanges = _ADD_COMPANIONS(
            withheld, guarded.every, counted, changes.find_outcome, moves.removed, changes.snapshot.previous
        )
        return extended

    return choose_withheld(rules.given, changes.totals.config.guard, find)


def _withhold(
    changes: IncrementalChanges, moves: ChangedMoves, withheld: WithheldChanges, keys: Collection[Key]
) -> tuple[IncrementalChanges, Mapping[Key, RemovedPlacement]]:
    """Return the changes in which workloads with these keys keep their placement, and the workloads that are still removed. Raise
    NeedsCompletePlan if only a complete plan can keep one."""
    from gitsched.decide.guard.withheld_changes import keep_placement, list_kept_records, restore_placement

    totals, snapshot = changes.totals, changes.snapshot
    if totals.adopted or totals.source.with_variants or snapshot.part_kinds or not changes.own.isdisjoint(keys):
        raise NeedsCompletePlan(_COMPOSED)
    outcomes, documents = dict(changes.outcomes), dict(changes.documents)
    removed, placements = dict(changes.removed), dict(moves.removed)
    pending = {move.key for move in withheld.moves}.difference(keys)
    wakeups = {key: wakeup for key, wakeup in totals.withheld_wakeups.items() if key in pending}
    for key in keys:
        if key in outcomes:
            wakeups |= {key: wakeup} if (wakeup := outcomes[key].wakeup) is not None else {}
            outcomes[key] = keep_placement(outcomes[key], documents.get(key), snapshot.previous, snapshot.at)
        elif key in placements and key in removed:
            outcomes[key] = restore_placement(placements.pop(key), snapshot.previous, snapshot.at)
            documents[key] = documents.get(key) or Document(key, "", {}, None)
            del removed[key]
        else:
            raise NeedsCompletePlan("the record of a workload that keeps its placement cannot be read")
    kept = [outcomes[key] for key in keys]
    others = {key: found for key in sorted(pending) if (found := changes.find_outcome(key)) is not None}
    if not _stand_alone(changes, {**others, **{one.key: one for one in kept}}):
        raise NeedsCompletePlan(_FOLLOWED)
    known = {target.cluster for one in kept for target in one.targets if changes.is_cluster(target.cluster)}
    if not all(_is_plain(one, known) for one in kept):
        raise NeedsCompletePlan(_COMPOSED)
    if _lose_clusters(changes, pending):
        raise NeedsCompletePlan("a workload that keeps its placement loses its cluster")
    templates = NamedTemplates(snapshot.templates, documents)
    shared = list_kept_records((templates.get(move.key) for move in withheld.moves), changes.continued.engines)
    changed = changes._replace(
        continued=changes.continued.keep_records(shared, snapshot.previous),
        documents={key: documents[key] for key in sorted(documents, key=workload_sort_key)},
        outcomes={key: outcomes[key] for key in sorted(outcomes, key=workload_sort_key)},
        removed=removed,
        unstable=changes.unstable - {one.key for one in kept if one.held is None},
        withheld=withheld,
        withheld_wakeups=wakeups,
    )
    return changed, placements


def _stand_alone(changes: IncrementalChanges, kept: Mapping[Key, Outcome]) -> bool:
    """Return whether no other workload, and no record or finding of an engine, depends on workloads that keep their placement."""
    engines, continued = changes.continued.engines, changes.continued
    if any(engine.keep_outcomes(kept) for engine in engines):
        return False
    return (list_engine_findings(engines), list_engine_records(engines)) == (continued.findings, continued.records)


def _lose_clusters(changes: IncrementalChanges, keys: Iterable[Key]) -> bool:
    """Return whether one of some workloads that were not decided again is in a cluster that loses its document."""
    rows = (changes.rows.read_workload(key) for key in keys)
    targets = (target for row in rows if row is not None for target in row.outcome.targets)
    return any(changes.continued.clusters.get(target.cluster, target) is None for target in targets)
