"""Make the complete plan of a commit: decisions, moves, files of the output branch, without what the guard withholds.

output tree = plan(source commit, previous output, observations, now)
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from gitsched.decide.companion_placement import NO_COMPANIONS, CompanionPlacements, FeatureCache, compare_companions
from gitsched.decide.decisions import DecisionCache, DecisionSet, decide
from gitsched.decide.delivered_objects import DeliveredObjects, ReferenceCache, index_deliveries
from gitsched.decide.guard_settings import DEFAULT_GUARD, NO_GUARD_INPUT, GuardRecord
from gitsched.decide.last_valid_files import render_last_valid
from gitsched.decide.missing_references import MissingReference, find_missing_references, list_creators
from gitsched.decide.plan_result import HadWorkloads, Plan, PlanDetails, list_moves
from gitsched.decide.plan_state import NO_OUTPUT, PreviousOutput, Totals, compute_totals, sort_findings
from gitsched.decide.reference_findings import LocatedFinding, list_reference_findings
from gitsched.decide.registry import policy_apis
from gitsched.decide.rendered_tree import RenderCache, RenderedTree, render
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.companion_targets import is_far
from gitsched.model.changes import NOTHING_RETAINED, NOTHING_WITHHELD, CopyRetention, Move, RetainedCopy, WithheldChanges
from gitsched.model.observation import Observations
from gitsched.model.rollouts import NOTHING_ROLLED_OUT
from gitsched.model.time import add_duration
from gitsched.model.variants import BUNDLE_KIND
from gitsched.render.cluster_directory import namespace_path
from gitsched.render.output_files import escape_segment, kept_path

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.plan_input import PlanInput
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.decide.rollouts import RolloutGate
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import PlannedFile
    from gitsched.model.scheduling import Outcome

_SELECTORS = frozenset(("matchLabels", "matchExpressions", "exclude", "targetCluster", "targetClusters", "clusters"))
"""Members with a selector for clusters, or with names of clusters that no other finding is about."""


class InMemoryCaches:
    """The decisions and files of the last complete plan, for the next one in the same process."""

    __slots__ = ("companions", "decisions", "references", "rendered")

    def __init__(self) -> None:
        self.decisions, self.rendered, self.references = DecisionCache(), RenderCache(), ReferenceCache()
        self.companions: FeatureCache | None = None


def make_plan(source: PlanInput, caches: InMemoryCaches | None = None) -> Plan:
    """Make the complete plan of a commit. Pure: the same input gives the same plan; the caches only save work.

    The steps: decide, with holds and followers; find what changes; withhold what exceeds a limit of the guard; report what leaves; retain
    copies for the overlap; render; check what the objects refer to; add up the totals.
    """
    caches = caches or InMemoryCaches()
    source, decisions = _decide(source, caches.decisions)
    documents = decisions.catalog.api_documents
    has_selectors = any(has_selector(document.body.get("spec")) for listed in documents.values() for document in listed)
    if has_selectors or source.source.variants or len(decisions.engines) > 1:
        from gitsched.decide.unmatched_selectors import list_unmatched  # many sources have no selectors

        catalog = decisions.catalog
        selecting = {
            **documents,
            BUNDLE_KIND: [entry for key, entry in catalog.templates.items() if key[:2] == BUNDLE_KIND],
        }
        unmatched = list_unmatched(selecting, catalog.broken, decisions.findings, decisions.engines)
        decisions = decisions._replace(findings=(*decisions.findings, *unmatched))
    if any(policy_apis[engine.name].selecting_annotation for engine in decisions.engines if engine.name in policy_apis):
        from gitsched.decide.unread_annotations import list_unread_annotations  # many sources use no such API

        decisions = decisions._replace(findings=(*decisions.findings, *list_unread_annotations(decisions)))
    changes = _find_changes(source, decisions)
    changes, withheld = _withhold_changes(source, changes)
    changes = _report_changes(source, changes)
    changes, adopted = _keep_adopted(source, changes)
    retention = _retain_copies(source, changes)
    decisions = changes.decisions._replace(findings=(*changes.decisions.findings, *retention.findings))
    directories = _list_directories(source, decisions, retention.copies)
    gate = _open_rollouts(source, changes, retention.copies)
    # Rollouts compare the files.
    rendering = caches.rendered if source.written or gate is not None else RenderCache(written=False)
    rendered = _render(source, decisions, directories, retention.copies, rendering, gate)
    rollouts = NOTHING_ROLLED_OUT if gate is None else gate.result
    decisions = decisions._replace(findings=(*decisions.findings, *rollouts.findings)) if rollouts.findings else decisions
    details, reference_findings = _check_references(source, decisions, rendered, caches)
    totals = compute_totals(
        decisions,
        rendered,
        _choose_config(source),
        *source.times,
        source.source.file_findings,
        source.source.other_findings,
        directories.retiring,
        reference_findings,
        list_creators(details.missing) if details.missing else {},
        has_companions=details.companions is not NO_COMPANIONS,
        retained=retention.copies,
        # What documents select and name may be among the objects that are not built.
        hidden_codes=frozenset().union(*(api.absence_codes for api in policy_apis.values()))
        if source.source.incomplete
        else frozenset(),
    )
    if any(is_far(key, features) for key, features in details.companions.features.items()):
        totals = totals._replace(has_far_companions=True)
    last_valid = ((kept_path(path), render_last_valid(file, decisions.outcomes)) for path, file in source.source.last_valid.items())
    return build_plan(
        totals,
        decisions.outcomes,
        decisions.outcomes.values(),
        changes.moves,
        {**rendered.files, **{path: file for path, file in last_valid if file is not None}},
        wakeups=(
            *source.wakeups,
            *(copy.until for copy in retention.copies if copy.until is not None),
            *rollouts.wakeups,
            *(engine.wakeup for engine in decisions.engines if engine.wakeup is not None),
        ),
        deadlines=(
            *directories.retired,
            *(copy.until for copy in retention.ended if copy.until is not None),
            *rollouts.events,
            *(engine.time for engine in decisions.engines if engine.time is not None),
        ),
        observations=source.observations,
        details=details,
    )._replace(
        withheld=withheld,
        releases=source.releases,
        guard=_record_guard(source, withheld, decisions),
        ended=retention.ended,
        rollouts=rollouts.statuses,
        rollout_records=rollouts.records,
        adopted=adopted,
    )


def has_selector(value: Any) -> bool:
    """Return whether a part of a policy may have a selector for clusters."""
    if isinstance(value, list):
        return any(map(has_selector, value))
    return isinstance(value, dict) and (not _SELECTORS.isdisjoint(value) or any(map(has_selector, value.values())))


class _Changes(NamedTuple):
    """The decisions about a commit, the workloads that it removes, by key, and the moves of all workloads."""

    decisions: DecisionSet
    removed: Mapping[Key, RemovedPlacement]
    moves: tuple[Move, ...]

    def add_findings(self, findings: Iterable[Finding]) -> _Changes:
        """Return the changes with more findings."""
        return self._replace(decisions=self.decisions._replace(findings=(*self.decisions.findings, *findings)))


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
    decisions = _decide_once(source, cache)
    if _choose_config(source) is source.source.config:
        return source, decisions
    from gitsched.decide.stateful_workloads import were_held  # few commits turn holds off

    held = [outcome for outcome in decisions.outcomes.values() if outcome.held is not None]
    own, held_before = source.source.config.guard, were_held(held, source.previous)
    guard = source.guard.trust_release(own, held_before=held_before) if held else None
    if guard is None:
        return source, decisions
    source = source._replace(guard=guard)
    return source, _decide_once(source, cache)


def _choose_config(source: PlanInput) -> Config:
    """Return the settings of the source, but workloads with data are held as long as the trusted settings hold them."""
    own, trusted = source.source.config, source.guard.trusted
    if own.guard.hold_stateful or trusted is None or not trusted.hold_stateful:
        return own
    return own._replace(guard=own.guard._replace(hold_stateful=True))


def _decide_once(source: PlanInput, cache: DecisionCache) -> DecisionSet:
    tree = source.source
    return decide(
        tree.documents,
        source.previous.records,
        _choose_config(source),
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
    )._replace(replaced=tree.replaced)


def _find_changes(source: PlanInput, decisions: DecisionSet) -> _Changes:
    """Compare the decisions with the previous output."""
    removed: Mapping[Key, RemovedPlacement] = {}
    if source.previous is not NO_OUTPUT:
        from gitsched.decide.removals import list_removed_placements  # a first run removes nothing

        removed = list_removed_placements(decisions, source.previous, source.source.config)
    return _Changes(decisions, removed, _list_all_moves(source, decisions, removed))


def _withhold_changes(source: PlanInput, changes: _Changes) -> tuple[_Changes, WithheldChanges]:
    """Return the changes without those over the limits of the guard, unless the plan only reports them; and what is withheld."""
    withheld, findings = _check_guard(source, changes)
    changes = changes.add_findings(findings) if findings else changes
    if not withheld.moves:
        return changes, withheld
    from gitsched.decide.withheld_changes import make_withheld_finding, withhold  # few changes exceed a limit

    changes = changes.add_findings([make_withheld_finding(withheld)])
    if not source.withholds:
        return changes, withheld
    decisions = withhold(changes.decisions, withheld, changes.removed, source.previous.records, source.times.source_time)
    removed = {key: entry for key, entry in changes.removed.items() if key not in decisions.outcomes}
    return _Changes(decisions, removed, _list_all_moves(source, decisions, removed)), withheld


def _report_changes(source: PlanInput, changes: _Changes) -> _Changes:
    """Add findings about objects that become parts, about workloads that leave data, and about releases without effect."""
    if any(entry.owner is not None for entry in changes.removed.values()):
        from gitsched.decide.removals import list_part_findings  # few commits make objects parts

        changes = changes.add_findings(list_part_findings(changes.removed.values()))
    releases = source.releases
    if releases is None and not any(move.before for move in changes.moves):
        return changes
    from gitsched.decide.stateful_workloads import add_move_findings, find_unused_releases  # most plans move nothing

    decisions = add_move_findings(changes.decisions, changes.moves, _choose_config(source).guard)
    changes = changes._replace(decisions=decisions)
    if releases is None:
        return changes
    return changes.add_findings(find_unused_releases(releases, decisions.outcomes.values(), decisions.templates.values()))


def _keep_adopted(source: PlanInput, changes: _Changes) -> tuple[_Changes, Mapping[str, str]]:
    """Return the changes with findings about adopted objects that keep their placement, and why these do."""
    if not source.adopted:
        return changes, {}
    from gitsched.decide.adopted_holds import (
        find_adopted_holds,
        list_hold_findings,
    )  # only after an adoption with partial information

    held = find_adopted_holds(source, changes.decisions, changes.moves)
    return changes.add_findings(list_hold_findings(held, changes.decisions)), held


def _retain_copies(source: PlanInput, changes: _Changes) -> CopyRetention:
    """Return the copies that stay for an overlap in clusters that their workloads leave."""
    previous, moves = source.previous, changes.moves
    if not previous.retained and not any(move.before for move in moves):
        return NOTHING_RETAINED
    from gitsched.decide.retained_copies import retain_copies  # most plans move nothing

    overlap = source.source.config.output.overlap
    return retain_copies(changes.decisions, moves, changes.removed, previous, source.times, overlap)


def _list_all_moves(source: PlanInput, decisions: DecisionSet, removed: Mapping[Key, RemovedPlacement]) -> tuple[Move, ...]:
    """Return the moves of all workloads, those that are removed at the end."""
    moves = tuple(list_moves(decisions.outcomes.values(), _find_active_clusters(source.previous)))
    if any(outcome.held is not None and outcome.held.lost for outcome in decisions.outcomes.values()):
        from gitsched.decide.stateful_workloads import drop_undelivered  # few clusters are lost

        moves = tuple(drop_undelivered(moves, decisions, source.previous))
    if not removed:
        return moves
    from gitsched.decide.removals import add_included_replicas, list_removal_moves  # most plans remove nothing

    return (*add_included_replicas(moves, removed.values()), *list_removal_moves(removed.values(), decisions))


def _check_guard(source: PlanInput, changes: _Changes) -> tuple[WithheldChanges, list[Finding]]:
    """Return the changes that exceed a limit of the guard, unless exactly these are allowed; and findings about the guard."""
    guard, own, withheld = source.guard, source.source.config.guard, NOTHING_WITHHELD
    if any(move.before for move in changes.moves):
        from gitsched.decide.exceeded_limits import find_exceeding_changes  # most plans move nothing

        withheld = find_exceeding_changes(source, *changes, _find_active_clusters(source.previous))
    if guard is NO_GUARD_INPUT and own == DEFAULT_GUARD.settings and not withheld.moves:
        return withheld, []
    allowed = source.list_allowed() if withheld.moves else ()
    findings = guard.list_findings(own, withheld.digest, allowed)
    return NOTHING_WITHHELD if withheld.digest in allowed else withheld, findings


def _record_guard(source: PlanInput, withheld: WithheldChanges, decisions: DecisionSet) -> GuardRecord:
    """Return what the output branch records about the guard."""
    own = source.source.config.guard
    if source.guard is NO_GUARD_INPUT and own == DEFAULT_GUARD.settings:
        return DEFAULT_GUARD
    holds = not own.hold_stateful and any(outcome.held is not None for outcome in decisions.outcomes.values())
    return source.guard.make_record(own, withheld, holds=holds)


def _find_active_clusters(previous: PreviousOutput) -> HadWorkloads:
    active = previous.clusters - previous.retiring.keys()
    return lambda cluster: escape_segment(cluster) in active


def _list_directories(source: PlanInput, decisions: DecisionSet, retained: tuple[RetainedCopy, ...]) -> _Directories:
    """Return the clusters without a document that have a directory."""
    known = decisions.cluster_facts.keys()
    staying = (outcome for outcome in decisions.outcomes.values() if outcome.held is not None or outcome.key in decisions.withheld)
    kept = {target.cluster for outcome in staying for target in outcome.targets} - known
    kept |= {name for workload in source.skipped for name in workload.replicas} - known
    retiring, retired = _list_retiring_clusters(source, known | kept, retained)
    return _Directories(retiring, dict.fromkeys(sorted(kept), source.times.source_time), retired)


def _open_rollouts(source: PlanInput, changes: _Changes, retained: tuple[RetainedCopy, ...]) -> RolloutGate | None:
    """Return what holds back the files that wait for a wave; None if there is no rollout."""
    if source.rollouts is None:
        return None
    from gitsched.decide.rollouts import RolloutGate  # most sources have no Rollout

    return RolloutGate(source, source.rollouts, changes.decisions, changes.moves, retained)


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
        from gitsched.decide.skipped_workloads import list_object_paths  # only after a bug

        paths += list_object_paths(source.skipped)
    delivered = previous.list_delivered(paths)
    existing = {**directories.retiring, **directories.kept}
    return render(
        decisions, existing, previous.find_blob, cache, protected, delivered, config.delivery, retained, gate, source.skipped
    )


def _check_references(
    source: PlanInput, decisions: DecisionSet, rendered: RenderedTree, caches: InMemoryCaches
) -> tuple[PlanDetails, tuple[LocatedFinding, ...]]:
    """Return the details of the plan, and the findings about what the objects refer to and where their companions go."""
    config = source.source.config
    delivered = index_deliveries(decisions, config, caches.references)
    missing = find_missing_references(decisions, delivered, config) if delivered.requirements else ()
    companions, findings = _compare_companions(decisions, delivered, missing, config, caches)
    if missing:
        findings = (*list_reference_findings(missing, decisions, delivered), *findings)
    return PlanDetails(decisions, rendered, delivered, missing, companions), findings


def _compare_companions(
    decisions: DecisionSet,
    delivered: DeliveredObjects,
    missing: tuple[MissingReference, ...],
    config: Config,
    caches: InMemoryCaches,
) -> tuple[CompanionPlacements, tuple[LocatedFinding, ...]]:
    """Return where companions and their targets go, and the findings about it; nothing for a source without companions."""
    keys = (decisions.catalog.templates, delivered.clusters)
    if not decisions.outcomes or not any(key[:2] in COMPANION_KINDS for group in keys for key in group):
        return NO_COMPANIONS, ()
    from gitsched.decide.companion_findings import list_companion_findings  # only for sources with companions

    features = caches.companions = caches.companions or FeatureCache()
    companions = compare_companions(decisions, delivered, missing, config, features)
    return companions, tuple(list_companion_findings(companions, decisions, delivered))


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
        findings=sort_findings(totals),
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
    from gitsched.decide.retiring_clusters import list_retiring_clusters  # few clusters lose their document

    return list_retiring_clusters(names, source.previous, retained, source.times, source.source.config.output)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Disable the collector inside the block: checking millions of small objects without cycles takes longer than planning."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def collect_garbage() -> None:
    """Collect garbage between two runs, such as policy engines with open files, which are in cycles.

    The objects that are left are exempt from automatic collections, so that the collector does not check them between two runs.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
