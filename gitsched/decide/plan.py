"""Make the complete plan of a commit: decisions, moves, files of the output branch, without what the guard withholds.

output tree = plan(source commit, previous output, observations, now)
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.guard_config import GuardConfig
from gitsched.decide.catalog import KustomizedDocument, RawDocument
from gitsched.decide.companion_placement import NO_COMPANIONS, CompanionPlacements, FeatureCache, compare_companions
from gitsched.decide.decisions import DecisionCache, DecisionSet, decide
from gitsched.decide.delivered_objects import DeliveredObjects, ReferenceCache, index_deliveries
from gitsched.decide.guard_settings import DEFAULT_GUARD, NO_GUARD_INPUT, GuardInput, GuardRecord
from gitsched.decide.last_valid_files import LastValidFile, render_last_valid
from gitsched.decide.missing_references import MissingReference, find_missing_references, list_creators
from gitsched.decide.plan_state import NO_OUTPUT, PlanTimes, PreviousOutput, Totals, compute_totals, sort_findings
from gitsched.decide.reference_findings import LocatedFinding, list_reference_findings
from gitsched.decide.rendered_tree import RenderCache, RenderedTree, render
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.changes import NOTHING_RETAINED, NOTHING_WITHHELD, CopyRetention, Move, RetainedCopy, WithheldChanges
from gitsched.model.document import Key
from gitsched.model.finding import Finding
from gitsched.model.observation import Observations
from gitsched.model.planned_files import ClusterInfo, PlannedFile
from gitsched.model.scheduling import Outcome, RecordedDecision
from gitsched.model.time import EPOCH, add_duration
from gitsched.model.variants import TemplateVariants
from gitsched.render.cluster_directory import namespace_path
from gitsched.render.output_files import escape_segment, kept_path
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord

if TYPE_CHECKING:
    from gitsched.decide.guard import GuardedMoves, PlacedWorkload
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.holds import Releases


class SourceTree(NamedTuple):
    """The content of a source tree.

    `file_findings` are the findings of each file by path; `other_findings` belong to no file that was read. `last_valid` maps the path of
    each broken file to its last valid bytes. `kustomized` are the documents that kustomizations build and change, `builds`
    says how kustomize roots were built. `variants` are what clusters get in place of templates: see
    `gitsched.model.variants`. `replaced` are documents as files have them, in whose place there is what builds make of them.
    """

    documents: tuple[RawDocument, ...]
    file_findings: Mapping[str, tuple[Finding, ...]]
    other_findings: tuple[Finding, ...]
    config: Config
    last_valid: Mapping[str, LastValidFile]
    kustomized: tuple[KustomizedDocument, ...] = ()
    builds: BuildRecord = NOTHING_BUILT
    variants: TemplateVariants = {}
    replaced: tuple[KustomizedDocument, ...] = ()


class PlanInput(NamedTuple):
    """Everything that a plan is computed from.

    `list_allowed` returns the digests of withheld changes that are allowed. With `withholds`, changes over the limits of the guard are
    left out of the plan; otherwise they are only reported. `releases` are the held workloads and clusters that are released. `guard` is
    what the guard reads besides the settings of the source.
    """

    source: SourceTree
    previous: PreviousOutput
    times: PlanTimes
    observations: Observations = Observations()
    list_allowed: Callable[[], Collection[str]] = tuple
    withholds: bool = False
    releases: Releases | None = None
    guard: GuardInput = NO_GUARD_INPUT


class PlanDetails(NamedTuple):
    """The parts that only a complete plan has: every decision with its inputs, every rendered file, what the objects refer to, and where
    their companions go."""

    decisions: DecisionSet
    rendered: RenderedTree
    delivered: DeliveredObjects
    missing: tuple[MissingReference, ...]
    companions: CompanionPlacements = NO_COMPANIONS


class Plan(NamedTuple):
    """`outcomes` are by (namespace, name). `time` is the time of the latest event that changed something.

    `files` are the files of the output tree without README.md and the metadata of the run: all of them in a complete plan, otherwise those
    that differ from the previous tree, with None for a removed file. `withheld` are the changes over the limits of the guard: they are not
    in `moves` and `files`, unless the plan only reports them. `releases` are the held workloads and clusters that are released. `guard` is
    what the output branch records about the guard. `ended` are copies whose
    overlap ends in this run.
    """

    outcomes: Mapping[Key, Outcome]
    totals: Totals
    findings: tuple[Finding, ...]
    moves: tuple[Move, ...]
    next_wakeup: datetime | None
    time: datetime
    files: Mapping[str, PlannedFile | None]
    withheld: WithheldChanges = NOTHING_WITHHELD
    guard: GuardRecord = DEFAULT_GUARD
    observations: Observations = Observations()
    details: PlanDetails | None = None
    releases: Releases | None = None
    ended: tuple[RetainedCopy, ...] = ()

    @property
    def unclaimed(self) -> int:
        """The number of objects that no policy selects."""
        return self.totals.unclaimed

    @property
    def state_counts(self) -> Mapping[str, int]:
        """The number of workloads by state."""
        return self.totals.state_counts

    @property
    def first_outcomes(self) -> Mapping[Key, Outcome]:
        """The outcomes that README.md shows."""
        return self.totals.first_outcomes

    @property
    def first_clusters(self) -> Mapping[str, ClusterInfo]:
        """The clusters that README.md shows."""
        return self.totals.first_clusters

    @property
    def cluster_count(self) -> int:
        """The number of clusters with a directory."""
        return self.totals.cluster_count

    @property
    def recorded(self) -> tuple[RecordedDecision, ...]:
        """The decisions that only records show."""
        return self.totals.recorded

    @property
    def retiring(self) -> Mapping[str, datetime]:
        """Clusters that lost their document and keep a directory for a while, with the time since when."""
        return self.totals.retiring

    @property
    def retained(self) -> tuple[RetainedCopy, ...]:
        """Copies that the output has only for an overlap."""
        return self.totals.retained

    @property
    def freeze(self) -> str:
        """Why placements are frozen, or ""."""
        return self.withheld.freeze or "; ".join(dict.fromkeys(filter(None, (self.totals.config.guard.freeze, self.guard.frozen))))

    @property
    def has_rule_findings(self) -> bool:
        """Whether a finding is about a rule inside a document; the line of the rule is looked up when the plan is made."""
        return any(finding.field is not None for finding in self.findings)

    @property
    def complete(self) -> bool:
        """Whether everything was planned, not only what changed."""
        return self.details is not None

    @property
    def decisions(self) -> DecisionSet:
        """All decisions, for explanations and simulations. AssertionError for an incremental plan."""
        assert self.details is not None, "only a complete plan has all decisions"
        return self.details.decisions

    @property
    def cluster_facts(self) -> Mapping[str, ClusterInfo]:
        """Every cluster with a directory. AssertionError for an incremental plan."""
        assert self.details is not None, "only a complete plan has all clusters"
        return self.details.rendered.cluster_facts


class InMemoryCaches:
    """The decisions and files of the last complete plan, for the next one in the same process."""

    __slots__ = ("companions", "decisions", "references", "rendered")

    def __init__(self) -> None:
        self.decisions, self.rendered, self.references = DecisionCache(), RenderCache(), ReferenceCache()
        self.companions: FeatureCache | None = None


def compute_plan_times(source_time: datetime, recorded_time: datetime | None, now: datetime) -> PlanTimes:
    """Return the times of a plan. `recorded_time` is the time of the previous plan; None if there is none.

    The time is never earlier than the last event that the previous plan handled; otherwise passed deadlines would be applied twice.
    A commit dated in the future counts as made now, so that a clock that runs ahead neither starts nor ends timers early.
    """
    reached = min(recorded_time, now) if recorded_time else EPOCH
    effective = max(min(source_time, now), reached)
    return PlanTimes(effective, max(now, effective))


def make_plan(source: PlanInput, caches: InMemoryCaches | None = None) -> Plan:
    """Make the complete plan of a commit. Pure: the same input gives the same plan; the caches only save work."""
    caches = caches or InMemoryCaches()
    tree, previous, (source_time, now), observations, *_ = source
    decisions = decide(
        tree.documents,
        previous.records,
        tree.config,
        source_time,
        now,
        caches.decisions,
        observations,
        kustomized=tree.kustomized,
        variants=tree.variants,
        releases=source.releases,
    )._replace(replaced=tree.replaced)
    removed: Mapping[Key, RemovedPlacement] = {}
    if previous is not NO_OUTPUT:
        from gitsched.decide.removals import list_removed_placements  # a first run removes nothing

        removed = list_removed_placements(decisions, previous, tree.config)
    moves = _list_all_moves(source, decisions, removed)
    withheld, guard_findings = _check_guard(source, decisions, removed, moves)
    if guard_findings:
        decisions = decisions._replace(findings=(*decisions.findings, *guard_findings))
    if withheld.moves:
        from gitsched.decide.withheld_changes import make_withheld_finding, withhold  # few changes exceed a limit

        finding = make_withheld_finding(withheld)
        decisions = decisions._replace(findings=(*decisions.findings, finding))
        if source.withholds:
            decisions = withhold(decisions, withheld, removed, previous.records, source_time)
            removed = {key: entry for key, entry in removed.items() if key not in decisions.outcomes}
            moves = _list_all_moves(source, decisions, removed)
    if any(entry.owner is not None for entry in removed.values()):
        from gitsched.decide.removals import list_part_findings  # few commits make objects parts

        decisions = decisions._replace(findings=(*decisions.findings, *list_part_findings(removed.values())))
    decisions = _report_stateful(decisions, moves, source)
    retention = NOTHING_RETAINED
    if previous.retained or any(move.before for move in moves):
        from gitsched.decide.retained_copies import retain_copies  # most plans move nothing

        retention = retain_copies(decisions, moves, removed, previous, source.times, tree.config.output.overlap)
    return _render_plan(source, decisions, moves, withheld, retention, caches)


def _report_stateful(decisions: DecisionSet, moves: tuple[Move, ...], source: PlanInput) -> DecisionSet:
    """Return the decisions with findings about workloads that leave data, and about releases without effect."""
    releases = source.releases
    if releases is None and not any(move.before for move in moves):
        return decisions
    from gitsched.decide.stateful_workloads import add_move_findings, find_unused_releases  # most plans move nothing

    decisions = add_move_findings(decisions, moves, source.source.config.guard)
    if releases is None:
        return decisions
    unused = find_unused_releases(releases, decisions.outcomes.values(), decisions.templates.values())
    return decisions._replace(findings=(*decisions.findings, *unused))


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


def _check_guard(
    source: PlanInput, decisions: DecisionSet, removed: Mapping[Key, RemovedPlacement], moves: tuple[Move, ...]
) -> tuple[WithheldChanges, list[Finding]]:
    """Return the changes that exceed a limit of the guard, unless exactly these are allowed; and findings about the guard."""
    guard, own = source.guard, source.source.config.guard
    withheld = _find_withheld(source, decisions, removed, moves) if any(move.before for move in moves) else NOTHING_WITHHELD
    if guard is NO_GUARD_INPUT and own == DEFAULT_GUARD.settings and not withheld.moves:
        return withheld, []
    allowed = source.list_allowed() if withheld.moves else ()
    findings = guard.list_findings(own, withheld.digest, allowed)
    return NOTHING_WITHHELD if withheld.digest in allowed else withheld, findings


def _find_withheld(
    source: PlanInput, decisions: DecisionSet, removed: Mapping[Key, RemovedPlacement], moves: tuple[Move, ...]
) -> WithheldChanges:
    """Return the changes that exceed a limit of the guard."""
    from gitsched.decide.guard import PlacedWorkload, list_guarded_moves  # most plans move nothing

    had_workloads, own = _find_active_clusters(source.previous), source.source.config.guard
    active = (
        move._replace(before={cluster: count for cluster, count in move.before.items() if had_workloads(cluster)}) for move in moves
    )
    guarded = list_guarded_moves(active, decisions.engines, len(decisions.cluster_facts))
    if not guarded.counted and not guarded.follows_facts:
        return NOTHING_WITHHELD
    placed = [
        PlacedWorkload(outcome.key, before, outcome.replicas or 0)
        for outcome in decisions.outcomes.values()
        if (before := list_previous_replicas(outcome, had_workloads))
    ]
    placed += [PlacedWorkload(key, entry.workload.replicas) for key, entry in removed.items()]
    withheld = _find_all_withheld(guarded, placed, source.guard.choose_settings(own), decisions)
    later = source.guard.choose_later_settings(own, withheld) if withheld.moves else None
    return withheld if later is None else _find_all_withheld(guarded, placed, later, decisions)


def _find_all_withheld(
    guarded: GuardedMoves, placed: list[PlacedWorkload], config: GuardConfig, decisions: DecisionSet
) -> WithheldChanges:
    """Return the changes that exceed a limit, and those of other workloads that follow the same decisions."""
    from gitsched.decide.guard import find_withheld_changes  # most plans move nothing
    from gitsched.decide.withheld_changes import extend_to_followers  # few changes exceed a limit

    withheld = find_withheld_changes(guarded, placed, config)
    return extend_to_followers(withheld, (*guarded.counted, *guarded.failover), decisions) if withheld.moves else withheld


def _record_guard(source: PlanInput, withheld: WithheldChanges) -> GuardRecord:
    """Return what the output branch records about the guard."""
    own = source.source.config.guard
    if source.guard is NO_GUARD_INPUT and own == DEFAULT_GUARD.settings:
        return DEFAULT_GUARD
    return source.guard.make_record(own, withheld)


def _find_active_clusters(previous: PreviousOutput) -> HadWorkloads:
    active = previous.clusters - previous.retiring.keys()
    return lambda cluster: escape_segment(cluster) in active


def _render_plan(
    source: PlanInput,
    decisions: DecisionSet,
    moves: tuple[Move, ...],
    withheld: WithheldChanges,
    retention: CopyRetention,
    caches: InMemoryCaches,
) -> Plan:
    """Render the files of all decisions, and build the plan."""
    tree, previous, (source_time, now), observations, *_ = source
    decisions = decisions._replace(findings=(*decisions.findings, *retention.findings))
    known = decisions.cluster_facts.keys()
    staying = (outcome for outcome in decisions.outcomes.values() if outcome.held is not None or outcome.key in decisions.withheld)
    kept = {target.cluster for outcome in staying for target in outcome.targets} - known
    retiring, retired = _list_retiring_clusters(source, known | kept, retention.copies)
    protected = tree.config.output.protected_namespaces
    namespaces = previous.list_delivered(map(namespace_path, protected))
    directories = {**retiring, **dict.fromkeys(sorted(kept), source_time)}
    rendered = render(
        decisions,
        directories,
        previous.find_blob,
        caches.rendered,
        protected,
        namespaces,
        tree.config.delivery,
        retention.copies,
    )
    delivered = index_deliveries(decisions, tree.config, caches.references)
    missing: tuple[MissingReference, ...] = ()
    if delivered.requirements:
        missing = find_missing_references(decisions, delivered, tree.config)
    companions, companion_findings = _compare_companions(decisions, delivered, missing, tree.config, caches)
    last_valid = ((kept_path(path), render_last_valid(file, decisions.outcomes)) for path, file in tree.last_valid.items())
    return build_plan(
        compute_totals(
            decisions,
            rendered,
            tree.config,
            source_time,
            now,
            tree.file_findings,
            tree.other_findings,
            retiring,
            (*(list_reference_findings(missing, decisions, delivered) if missing else ()), *companion_findings),
            list_creators(missing) if missing else {},
            has_companions=companions is not NO_COMPANIONS,
            retained=retention.copies,
        ),
        decisions.outcomes,
        decisions.outcomes.values(),
        moves,
        {**rendered.files, **{path: file for path, file in last_valid if file is not None}},
        wakeups=(
            *(copy.until for copy in retention.copies if copy.until is not None),
            *(engine.wakeup for engine in decisions.engines if engine.wakeup is not None),
        ),
        deadlines=(
            *retired,
            *(copy.until for copy in retention.ended if copy.until is not None),
            *(engine.time for engine in decisions.engines if engine.time is not None),
        ),
        observations=observations,
        details=PlanDetails(decisions, rendered, delivered, missing, companions),
    )._replace(withheld=withheld, releases=source.releases, guard=_record_guard(source, withheld), ended=retention.ended)


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


HadWorkloads = Callable[[str], bool]
"""Whether a cluster received workloads in the previous output. False for a cluster without a document, even if bindings refer to it."""


def list_moves(outcomes: Iterable[Outcome], had_workloads: HadWorkloads) -> Iterator[Move]:
    """Yield a move for each outcome whose clusters or replicas differ from the previous output, in the order of the outcomes."""
    for outcome in outcomes:
        before, after = list_previous_replicas(outcome, had_workloads), outcome.replicas_by_cluster
        if before != after:
            yield Move(outcome.key, before, after, describe_reason(outcome), copy_replicas=outcome.replicas or 0)


def describe_reason(outcome: Outcome) -> str:
    """Describe in one line why a workload has its placement."""
    return "; ".join(filter(None, (outcome.reason, outcome.trigger)))


def list_previous_replicas(outcome: Outcome, had_workloads: HadWorkloads) -> dict[str, int | None]:
    """Return the replicas of a workload by cluster in the previous output, without clusters that it was being evicted from."""
    return {
        target.cluster: target.replicas
        for target in outcome.previous_targets
        if not target.evicting and had_workloads(target.cluster)
    }


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
