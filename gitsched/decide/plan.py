"""Make the complete plan of a commit: decisions, moves, files of the output branch, without what the guard withholds.

output tree = plan(source commit, previous output, observations, now)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.registered import Registered
from gitsched.decide.decisions import DecisionSet, decide
from gitsched.decide.foreign_documents import list_foreign_documents, list_foreign_kinds
from gitsched.decide.guard.guard_settings import DEFAULT_GUARD, NO_GUARD_INPUT, GuardRecord
from gitsched.decide.guard.plan_changes import (
    Changes,
    choose_config,
    drop_left_clusters,
    find_active_clusters,
    find_changes,
    keep_adopted,
    record_guard,
    report_changes,
    withhold_changes,
)
from gitsched.decide.incremental.plan_state import NO_OUTPUT, PlanTimes, Totals
from gitsched.decide.last_valid_files import render_last_valid
from gitsched.decide.plan_result import Plan, PlanDetails, list_moves, mark_copies, mark_preserved
from gitsched.decide.plan_totals import compute_totals, find_unmatched, list_plan_findings
from gitsched.decide.registry import policy_apis
from gitsched.decide.relations.located_findings import LocatedFinding, mark_withheld
from gitsched.decide.rendered_tree import RenderCache, RenderedTree, render
from gitsched.decide.skipped_workloads import list_object_paths
from gitsched.decide.workload_decision import DecisionCache
from gitsched.model.capacity_use import EarlierPlacements
from gitsched.model.changes import NOTHING_RETAINED, NOTHING_WITHHELD, CopyRetention, Move, RetainedCopy, WithheldChanges
from gitsched.model.observation import Observations
from gitsched.model.rollouts import NOTHING_ROLLED_OUT, RolloutResult
from gitsched.model.time import EPOCH, add_duration
from gitsched.model.variants import BUNDLE_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.render.cluster_directory import namespace_path
from gitsched.render.output_files import kept_path

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.plan_input import PlanInput
    from gitsched.decide.relations.object_facts import ManifestCache
    from gitsched.decide.relations.plan_relations import PlanRelations
    from gitsched.decide.rollouts.waves import RolloutGate
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import PlannedFile
    from gitsched.model.scheduling import Outcome

_MEASURE_WITHHELD = Registered("gitsched.decide.capacity.capacity_totals", "measure_withheld")


class InMemoryCaches:
    """The decisions and files of the last complete plan, for the next one in the same process."""

    __slots__ = ("decisions", "manifests", "rendered")

    def __init__(self) -> None:
        self.decisions, self.rendered = DecisionCache(), RenderCache()
        self.manifests: ManifestCache | None = None


def compute_plan_times(source_time: datetime, recorded_time: datetime | None, now: datetime) -> PlanTimes:
    """Return the times of a plan. `recorded_time` is the time of the previous plan; None if there is none.

    The time is never earlier than the last event that the previous plan handled; otherwise passed deadlines would be applied twice.
    A commit dated in the future counts as made now, so that a clock that runs ahead neither starts nor ends timers early.
    """
    reached = min(recorded_time, now) if recorded_time else EPOCH
    effective = max(min(source_time, now), reached)
    return PlanTimes(effective, max(now, effective))


def make_plan(source: PlanInput, caches: InMemoryCaches | None = None) -> Plan:
    """Make the complete plan of a commit. Pure: the same input gives the same plan; the caches only save work.

    The steps: decide, with holds and followers; find what changes; withhold what exceeds a limit of the guard; report what leaves; retain
    copies for the overlap; render; compare where related objects go; add up the totals.
    """
    caches = caches or InMemoryCaches()
    source, changes, withheld = _find_changes(source, caches.decisions)
    changes, adopted = keep_adopted(source, changes) if source.adopted else (changes, {})
    undelivered = _list_undelivered(source, changes.decisions)
    relations, relation_findings = _relate(changes.decisions, source.source.config, caches)
    requested = withheld.requested_clusters if source.withholds and withheld != NOTHING_WITHHELD else {}
    retention, directories, rendered, rollouts = _deliver(source, changes, requested, undelivered, relations, caches)
    found = (*changes.decisions.findings, *retention.findings, *rollouts.findings)
    if sum(map(len, changes.decisions.catalog.api_documents.values())) > len(changes.decisions.cluster_facts) + 1:
        from gitsched.decide.policies_without_effect import find_policies_without_effect  # only with several policies

        found = (*found, *find_policies_without_effect(changes.decisions, withheld))
    decisions, moves = changes.decisions._replace(findings=found), changes.moves
    completed: Mapping[Key, Outcome] = {}
    if rollouts.counted or rollouts.former:
        from gitsched.decide.rollouts.waiting_replicas import count_step, list_completed  # few clusters wait

        completed = list_completed(rollouts, decisions.outcomes)
        decisions = decisions._replace(outcomes={**decisions.outcomes, **rollouts.counted})
        moves = count_step(moves, rollouts, decisions.outcomes, find_active_clusters(source.previous))
    if retention.copies or source.previous.retained:
        moves = mark_copies(mark_preserved(moves, retention.copies), source.previous.retained)
    totals = compute_totals(decisions, rendered, source.source, source.times)._replace(
        retiring=directories.retiring,
        relation_findings=relation_findings if source.withholds else mark_withheld(relation_findings, withheld),
        retained=retention.copies,
        has_settled_copies=retention.is_settled,
        undelivered=undelivered,
    )
    last_valid = ((kept_path(path), render_last_valid(file, decisions.outcomes)) for path, file in source.source.last_valid.items())
    kept_files = {path: file for path, file in (*last_valid, *rollouts.files.items()) if file is not None}
    return build_plan(
        totals,
        decisions.outcomes,
        decisions.outcomes.values(),
        moves,
        {**rendered.files, **kept_files} if kept_files else rendered.files,
        wakeups=(
            *source.wakeups,
            *(copy.until for copy in retention.copies if copy.until is not None),
            *rollouts.wakeups,
            *(engine.wakeup for engine in decisions.engines if engine.wakeup is not None),
            *filter(None, (withheld.next_period,)),
        ),
        deadlines=(
            *directories.retired,
            *(copy.until for copy in retention.ended if copy.until is not None),
            *rollouts.events,
            *(engine.time for engine in decisions.engines if engine.time is not None),
        ),
        observations=source.observations,
        details=PlanDetails(decisions, rendered, relations),
    )._replace(
        withheld=withheld,
        releases=source.releases,
        guard=record_guard(source, withheld, decisions) if _is_guarded(source) else DEFAULT_GUARD,
        ended=retention.ended,
        rollouts=rollouts.statuses,
        rollout_records=rollouts.records,
        completed=completed,
        adopted=adopted,
    )


def _find_changes(source: PlanInput, cache: DecisionCache) -> tuple[PlanInput, Changes, WithheldChanges]:
    """Return what changes without what the guard withholds, and the input. Workloads are decided again if some whose removal is withheld
    take capacity that others would get."""
    while True:
        source, decisions = _decide(source, cache)
        decisions = decisions if decisions.tenancy is None else drop_left_clusters(source, decisions)
        decisions = decisions._replace(findings=(*decisions.findings, *_find_unread(decisions)))
        if not _is_guarded(source):
            moves = list_moves(decisions.outcomes.values(), lambda _: False)
            return source, Changes(decisions, {}, tuple(moves)), NOTHING_WITHHELD
        changes = find_changes(source, decisions)
        removed = changes.removed
        changes, withheld = withhold_changes(source, changes)
        staying = [removed[move.key].workload for move in withheld.kept if move.key in removed] if removed else []
        is_measured = staying and not source.previous.withheld
        pods = _MEASURE_WITHHELD(decisions, staying, source.previous.read_manifest) if is_measured else ()
        if not pods:
            return source, report_changes(source, changes), withheld
        source = source._replace(previous=source.previous._replace(withheld=pods))


def _is_guarded(source: PlanInput) -> bool:
    """Return whether the guard may have something to say: not about a first run with its default settings, which removes nothing."""
    own = source.source.config.guard
    return source.previous is not NO_OUTPUT or source.guard is not NO_GUARD_INPUT or own != DEFAULT_GUARD.settings


def _find_unread(decisions: DecisionSet) -> Iterator[Finding]:
    """Yield the findings about selectors that select nothing, annotations that no API reads, and documents of APIs that are not read."""
    catalog = decisions.catalog
    bundles = tuple(entry for key, entry in catalog.templates.items() if key[:2] == BUNDLE_KIND)
    yield from find_unmatched(catalog.api_documents, bundles, catalog.broken, decisions.engines, decisions.findings)
    if any(policy_apis[engine.name].selecting_annotation for engine in decisions.engines if engine.name in policy_apis):
        from gitsched.decide.unread_annotations import list_unread_annotations  # many sources use no such API

        yield from list_unread_annotations(decisions)
    foreign = list_foreign_kinds(catalog.kind_scopes) if catalog.kind_scopes else {}
    if foreign:
        yield from list_foreign_documents(decisions.list_unclaimed(), catalog.templates, foreign)


class _Directories(NamedTuple):
    """Directories of clusters without a document: those that retire, with the time since when; those that keep workloads, with the time of
    the source; and the ends of those that are removed now."""

    retiring: Mapping[str, datetime]
    kept: Mapping[str, datetime]
    retired: Iterable[datetime]


def _decide(source: PlanInput, cache: DecisionCache) -> tuple[PlanInput, DecisionSet]:
    """Decide every workload. Companions that follow their targets and workloads that are held are part of the decisions.

    Return the input as well, changed if the commit no longer holds workloads and came after the moves of those that are held.
    """
    config = source.source.config if source.guard.trusted is None else choose_config(source)
    decisions = _decide_once(source, config, cache)
    if config is source.source.config:
        return source, decisions
    from gitsched.decide.stateful_workloads import were_held  # few commits turn holds off

    held = [outcome for outcome in decisions.outcomes.values() if outcome.held is not None]
    own, held_before = source.source.config.guard, were_held(held, source.previous)
    guard = source.guard.trust_release(own, held_before=held_before) if held else None
    if guard is None:
        return source, decisions
    source = source._replace(guard=guard)
    return source, _decide_once(source, choose_config(source), cache)


def _decide_once(source: PlanInput, config: Config, cache: DecisionCache) -> DecisionSet:
    tree = source.source
    return decide(
        tree.documents,
        source.previous.records,
        config,
        *source.times,
        cache,
        source.observations,
        kustomized=tree.kustomized,
        variants=tree.variants,
        releases=source.releases,
        adopted=source.adopted,
        fixed=source.fixed,
        tenancy=tree.tenancy,
        progress=source.progress,
        earlier=EarlierPlacements(source.previous.placed, source.previous.retained, source.previous.withheld),
    )._replace(replaced=tree.replaced)


def _list_undelivered(source: PlanInput, decisions: DecisionSet) -> frozenset[Key]:
    """Return the workloads of which a cluster keeps its manifest, whatever is decided. Those with withheld changes keep their decisions."""
    kept = {
        outcome.key
        for outcome in decisions.outcomes.values()
        for target in outcome.targets
        if target.keeps_manifest and not target.evicting and target.cluster in decisions.cluster_facts
    }
    return frozenset(kept - decisions.quarantined | (source.previous.undelivered & decisions.quarantined))


class _Deliveries(NamedTuple):
    """What a plan delivers: the copies that stay, the directories of clusters without a document, all files, and the rollouts."""

    retention: CopyRetention
    directories: _Directories
    rendered: RenderedTree
    rollouts: RolloutResult


def _deliver(
    source: PlanInput,
    changes: Changes,
    requested: Mapping[Key, Collection[str]],
    undelivered: frozenset[Key],
    relations: PlanRelations,
    caches: InMemoryCaches,
) -> _Deliveries:
    """Return what is delivered. Copies stay while what replaces them waits for a wave, and a wave waits for copies that stay, so that one
    follows from the other: it ends when no other cluster waits."""
    waiting: dict[tuple[Key, str], int] = {}
    while True:
        retention = _retain_copies(source, changes, requested, undelivered, waiting)
        directories = _list_directories(source, changes.decisions, retention.copies)
        gate = _open_rollouts(source, changes, retention, relations)
        # Rollouts compare the files.
        cache = caches.rendered if source.written or gate is not None else RenderCache(written=False)
        rendered = _render(source, changes.decisions, directories, retention.copies, cache, gate)
        rollouts = NOTHING_ROLLED_OUT if gate is None else gate.result
        if rollouts.waiting.keys() <= waiting.keys():
            return _Deliveries(retention, directories, rendered, rollouts)
        waiting |= rollouts.waiting


def _retain_copies(
    source: PlanInput,
    changes: Changes,
    requested: Mapping[Key, Collection[str]],
    undelivered: frozenset[Key],
    waiting: Mapping[tuple[Key, str], int],
) -> CopyRetention:
    """Return the copies that stay for an overlap in clusters that their workloads leave. `waiting` are the replicas of clusters that have
    fewer than were decided until their turn in a rollout, `requested` the clusters that workloads would have with withheld moves."""
    previous, moves = source.previous, changes.moves
    undelivered |= previous.undelivered
    outcomes = changes.decisions.outcomes.values()
    moving = any(move.before for move in moves) or any(one.evicting for outcome in outcomes for one in outcome.previous_targets)
    if not previous.retained and not undelivered and not waiting and not moving:
        return NOTHING_RETAINED
    from gitsched.decide.overlap.retained_copies import retain_copies  # most plans move nothing
    from gitsched.decide.overlap.retention_input import list_leaving, make_retention_input  # as above

    config, leaving = source.source.config, list_leaving(outcomes) if moving else ()
    return retain_copies(
        make_retention_input(
            changes.decisions,
            moves,
            changes.removed,
            undelivered,
            previous,
            source.times,
            config,
            waiting,
            leaving,
            requested,
        )
    )


def _list_directories(source: PlanInput, decisions: DecisionSet, retained: tuple[RetainedCopy, ...]) -> _Directories:
    """Return the clusters without a document that have a directory."""
    known = decisions.cluster_facts.keys()
    staying = (outcome for outcome in decisions.outcomes.values() if outcome.held is not None or outcome.key in decisions.withheld)
    kept = {target.cluster for outcome in staying for target in outcome.targets} - known
    kept |= {name for workload in source.skipped for name in workload.replicas} - known
    retiring, retired = _list_retiring_clusters(source, known | kept, retained)
    return _Directories(retiring, dict.fromkeys(sorted(kept), source.times.source_time), retired)


def _open_rollouts(source: PlanInput, changes: Changes, retention: CopyRetention, relations: PlanRelations) -> RolloutGate | None:
    """Return what holds back the files that wait for a wave; None if there is no rollout."""
    if source.rollouts is None:
        return None
    from gitsched.decide.rollouts.waves import RolloutGate  # most sources have no Rollout

    return RolloutGate(source, source.rollouts, changes.decisions, changes.moves, retention, relations.database)


def _render(
    source: PlanInput,
    decisions: DecisionSet,
    directories: _Directories,
    retained: tuple[RetainedCopy, ...],
    cache: RenderCache,
    gate: RolloutGate | None,
) -> RenderedTree:
    """Render the files of all decisions and of the copies that stay, without those that wait for a wave."""
    config, previous = source.source.config, source.previous
    protected = config.output.protected_namespaces
    paths = list(map(namespace_path, protected))
    if source.skipped:
        paths += list_object_paths(source.skipped)
    delivered = previous.list_delivered(paths) if previous.clusters else {}
    existing = {**directories.retiring, **directories.kept}
    return render(
        decisions,
        existing,
        previous.find_blob,
        cache,
        protected,
        delivered,
        config.delivery,
        retained,
        gate,
        source.skipped,
        previous.read_manifest,
    )


def _relate(decisions: DecisionSet, config: Config, caches: InMemoryCaches) -> tuple[PlanRelations, tuple[LocatedFinding, ...]]:
    """Return the relations of all objects, and the findings about what these refer to and where their companions go."""
    from gitsched.decide.relations.plan_relations import relate_decisions  # not for an incremental plan

    relations, findings, caches.manifests = relate_decisions(decisions, config, caches.manifests)
    return relations, findings


def build_plan(
    totals: Totals,
    outcomes: Mapping[Key, Outcome],
    decided: Iterable[Outcome],
    moves: tuple[Move, ...],
    files: Mapping[str, PlannedFile | None],
    *,
    wakeups: Iterable[datetime] = (),
    deadlines: Iterable[datetime] = (),
    observations: Observations | None = None,
    details: PlanDetails | None = None,
) -> Plan:
    """Build a complete or an incremental plan from its totals. `wakeups` are those besides the ones of workloads and retiring clusters.

    `decided` are the outcomes that this run decided, `moves` those of the decided and removed workloads, `deadlines` the times that changed
    a record or directory of no workload.
    """
    occupied = {copy.cluster for copy in totals.retained}  # these clusters retire when their last copy is gone
    retirement = (
        add_duration(since, totals.config.output.retire_after) for name, since in totals.retiring.items() if name not in occupied
    )
    return Plan(
        outcomes=outcomes,
        totals=totals,
        findings=list_plan_findings(totals),
        moves=moves,
        next_wakeup=min((*totals.wakeups.values(), *retirement, *wakeups), default=None),
        # An outcome is later than the source only where a deadline changed it, such as the end of an eviction, which moves nothing.
        time=max((totals.source_time, *deadlines, *(outcome.time for outcome in decided))),
        files=files,
        guard=GuardRecord(totals.config.guard),
        observations=Observations() if observations is None else observations,
        details=details,
    )


def _list_retiring_clusters(
    source: PlanInput, known: set[str], retained: tuple[RetainedCopy, ...]
) -> tuple[dict[str, datetime], list[datetime]]:
    """Return the clusters that retire, with the time since when, and the ends of those whose directory is removed now."""
    names = (source.previous.clusters | source.previous.retiring.keys()) - known
    if not names:
        return {}, []
    from gitsched.decide.overlap.retiring_clusters import list_retiring_clusters  # few clusters lose their document

    return list_retiring_clusters(names, source.previous, retained, source.times, source.source.config.output)
