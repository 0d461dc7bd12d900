"""Make the complete plan of a commit: decisions, moves, files of the output branch and the result of the removal guard.

output tree = plan(source commit, previous output, observations, now)
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import KustomizedDocument, RawDocument
from gitsched.decide.decisions import DecisionCache, DecisionSet, decide
from gitsched.decide.plan_state import PreviousOutput, Totals, compute_totals, sort_findings
from gitsched.decide.registry import apis_by_group
from gitsched.decide.rendered_tree import LastValidFile, RenderCache, RenderedTree, render, render_last_valid
from gitsched.model.changes import Move
from gitsched.model.document import Body, Key, parse_api_group
from gitsched.model.finding import Finding
from gitsched.model.observation import Observations
from gitsched.model.planned_files import ClusterInfo, PlannedFile
from gitsched.model.scheduling import Outcome, RecordedDecision
from gitsched.model.time import EPOCH
from gitsched.model.variants import TemplateVariants
from gitsched.render.cluster_directory import namespace_path
from gitsched.render.output_files import escape_segment, kept_path
from gitsched.render.run_metadata import NOTHING_BUILT, BuildRecord


class SourceTree(NamedTuple):
    """The content of a source tree.

    `file_findings` are the findings of each file by path; `other_findings` belong to no file that was read. `last_valid` maps the path of
    each broken file to its last valid bytes. `kustomized` are the documents that kustomizations build and change, `builds`
    says how kustomize roots were built. `variants` are what clusters get in place of templates: see
    `gitsched.model.variants`.
    """

    documents: tuple[RawDocument, ...]
    file_findings: Mapping[str, tuple[Finding, ...]]
    other_findings: tuple[Finding, ...]
    config: Config
    last_valid: Mapping[str, LastValidFile]
    kustomized: tuple[KustomizedDocument, ...] = ()
    builds: BuildRecord = NOTHING_BUILT
    variants: TemplateVariants = {}


class PlanTimes(NamedTuple):
    """`source_time` is the time of the source; deadlines are compared with `now`."""

    source_time: datetime
    now: datetime


class PlanInput(NamedTuple):
    """Everything that a plan is computed from."""

    source: SourceTree
    previous: PreviousOutput
    times: PlanTimes
    observations: Observations = Observations()


class PlanDetails(NamedTuple):
    """The parts that only a complete plan has: every decision with its inputs, and every rendered file."""

    decisions: DecisionSet
    rendered: RenderedTree


class Plan(NamedTuple):
    """`outcomes` are by (namespace, name). `time` is the time of the latest event that changed something.

    `files` are the files of the output tree without README.md and the metadata of the run: all of them in a complete plan, otherwise those
    that differ from the previous tree, with None for a removed file. `refusal` says why the guard refuses the commit, or is "".
    """

    outcomes: Mapping[Key, Outcome]
    totals: Totals
    findings: tuple[Finding, ...]
    moves: tuple[Move, ...]
    next_wakeup: datetime | None
    time: datetime
    files: Mapping[str, PlannedFile | None]
    refusal: str
    observations: Observations = Observations()
    details: PlanDetails | None = None

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

    __slots__ = ("decisions", "rendered")

    def __init__(self) -> None:
        self.decisions, self.rendered = DecisionCache(), RenderCache()


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
    tree, previous, (source_time, now), observations = source
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
    )
    retiring, retired = _list_retiring_clusters(source, {name for engine in decisions.engines for name in engine.clusters()})
    protected = tree.config.output.protected_namespaces
    delivered = previous.list_delivered(map(namespace_path, protected))
    rendered = render(decisions, retiring, previous.find_blob, caches.rendered, protected, delivered, tree.config.delivery)
    last_valid = ((kept_path(path), render_last_valid(file, decisions.outcomes)) for path, file in tree.last_valid.items())
    active = previous.clusters - previous.retiring.keys()
    return build_plan(
        compute_totals(decisions, rendered, tree.config, source_time, now, tree.file_findings, tree.other_findings, retiring),
        decisions.outcomes,
        decisions.outcomes.values(),
        {**rendered.files, **{path: file for path, file in last_valid if file is not None}},
        lambda cluster: escape_segment(cluster) in active,
        engine_wakeups=(engine.wakeup for engine in decisions.engines),
        deadlines=(*retired, *(engine.time for engine in decisions.engines if engine.time is not None)),
        removals=list_removed_workloads(decisions, previous),
        observations=observations,
        details=PlanDetails(decisions, rendered),
    )


def build_plan(
    totals: Totals,
    outcomes: Mapping[Key, Outcome],
    decided: Iterable[Outcome],
    files: Mapping[str, PlannedFile | None],
    had_workloads: HadWorkloads,
    *,
    engine_wakeups: Iterable[datetime | None] = (),
    deadlines: Iterable[datetime] = (),
    removals: Iterable[Move] = (),
    observations: Observations | None = None,
    details: PlanDetails | None = None,
) -> Plan:
    """Build a complete or an incremental plan from its totals.

    `decided` are the outcomes that this run decided, `deadlines` the times that changed a record or directory of no workload, `removals`
    the moves of workloads that have no outcome any more.
    """
    decided = list(decided)
    retirement = (since + totals.config.output.retire_after for since in totals.retiring.values())
    wakeups = (*totals.wakeups.values(), *retirement, *(wakeup for wakeup in engine_wakeups if wakeup is not None))
    return Plan(
        outcomes=outcomes,
        totals=totals,
        findings=sort_findings(totals),
        moves=(*list_moves(decided, had_workloads), *removals),
        next_wakeup=min(wakeups, default=None),
        # An outcome is later than the source only where a deadline changed it, such as the end of an eviction, which moves nothing.
        time=max((totals.source_time, *deadlines, *(outcome.time for outcome in decided))),
        files=files,
        refusal=check_removal_guard(decided, had_workloads, totals.workload_count, totals.config),
        observations=Observations() if observations is None else observations,
        details=details,
    )


def _list_retiring_clusters(source: PlanInput, known: set[str]) -> tuple[dict[str, datetime], list[datetime]]:
    """Return the clusters that retire, with the time since when, and the ends of those whose directory is removed now.

    A cluster that lost its document keeps a directory for a while, so that delivery tools prune its objects before the directory goes.
    """
    previous, times = source.previous, source.times
    retiring: dict[str, datetime] = {}
    ended: list[datetime] = []
    for name in sorted((previous.clusters | previous.retiring.keys()) - known):
        since = previous.retiring.get(name, times.source_time)
        end = since + source.source.config.output.retire_after
        if end > times.now:
            retiring[name] = since
        else:
            ended.append(end)
    return retiring, ended


MAX_NAMED_WORKLOADS = 5
"""The maximum number of workloads that the message of the guard lists."""

REMOVED_REASON = "removed from the source"
UNSELECTED_REASON = "no longer selected by a policy"

HadWorkloads = Callable[[str], bool]
"""Whether a cluster received workloads in the previous output. False for a cluster without a document, even if bindings refer to it."""


def list_moves(outcomes: Iterable[Outcome], had_workloads: HadWorkloads) -> Iterator[Move]:
    """Yield a move for each outcome whose clusters or replicas differ from the previous output, in the order of the outcomes."""
    for outcome in outcomes:
        before, after = _list_previous_replicas(outcome, had_workloads), outcome.replicas_by_cluster
        if before != after:
            yield Move(outcome.key, before, after, describe_reason(outcome), copy_replicas=outcome.replicas or 0)


def describe_reason(outcome: Outcome) -> str:
    """Describe in one line why a workload has its placement."""
    return "; ".join(filter(None, (outcome.reason, outcome.trigger)))


def list_removed_workloads(decisions: DecisionSet, previous: PreviousOutput) -> list[Move]:
    """Return a move for each workload that the previous output placed and that no API places now."""
    recorded = [key for outcome in decisions.outcomes.values() for key, _ in outcome.records]
    moves = []
    for body in previous.list_other_records(recorded):
        move = _make_removal(body, decisions)
        if move is not None:
            moves.append(move)
    return moves


def _make_removal(record: Body, decisions: DecisionSet) -> Move | None:
    """Return the move of the workload that a record belongs to; None for a record without a placement."""
    api = apis_by_group.get(parse_api_group(str(record.get("apiVersion") or record.get("api") or "")))
    removed = api.read_removed_workload(record) if api is not None and api.read_removed_workload is not None else None
    if removed is None:
        return None
    reason = REMOVED_REASON
    if removed.key in decisions.templates:
        reason = "no workload depends on it" if removed.dependent else UNSELECTED_REASON
    return Move(removed.key, removed.replicas, {}, reason)


def _list_previous_replicas(outcome: Outcome, had_workloads: HadWorkloads) -> dict[str, int | None]:
    """Return the replicas of a workload by cluster in the previous output, without clusters that it was being evicted from."""
    return {
        target.cluster: target.replicas
        for target in outcome.previous_targets
        if not target.evicting and had_workloads(target.cluster)
    }


def check_removal_guard(decided: Iterable[Outcome], had_workloads: HadWorkloads, workload_count: int, config: Config) -> str:
    """Return why the plan is refused, or "". It is refused when too many workloads become unplaced while policies still select them,
    because delivery tools would prune them.

    `decided` are the outcomes that this run decided, of `workload_count` workloads in all.
    """
    lost = [
        outcome
        for outcome in decided
        if outcome.previous_targets and not outcome.replicas_by_cluster and _list_previous_replicas(outcome, had_workloads)
    ]
    percent = 100 * len(lost) / workload_count if workload_count else 0.0
    if len(lost) <= config.guard.max_removals or percent <= config.guard.max_removals_percent:
        return ""
    first = ", ".join(str(outcome.key) for outcome in sorted(lost, key=lambda outcome: outcome.key)[:MAX_NAMED_WORKLOADS])
    more = ", ..." if len(lost) > MAX_NAMED_WORKLOADS else ""
    return f"{len(lost)} of {workload_count} workloads would lose their last placement ({first}{more})"


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
