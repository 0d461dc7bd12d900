"""The result of planning one commit, with the moves of its workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.decide.guard.guard_settings import DEFAULT_GUARD, GuardRecord
from gitsched.model.changes import NOTHING_WITHHELD, Move, RetainedCopy, WithheldChanges
from gitsched.model.finding import UNSCHEDULABLE
from gitsched.model.mistakes import CLUSTER_GONE, RESCHEDULE_DISPLACED
from gitsched.model.observation import Observations
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.plan_state import Totals
    from gitsched.decide.relations.plan_relations import PlanRelations
    from gitsched.decide.rendered_tree import RenderedTree
    from gitsched.model.changes import AwaitedReplacement
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding
    from gitsched.model.holds import Releases
    from gitsched.model.planned_files import ClusterInfo, PlannedFile
    from gitsched.model.rollouts import RolloutRecord, RolloutStatus
    from gitsched.model.scheduling import Outcome


class PlanDetails(NamedTuple):
    """The parts that only a complete plan has: every decision with its inputs, every rendered file, and the relations of the objects."""

    decisions: DecisionSet
    rendered: RenderedTree
    relations: PlanRelations


class Plan(NamedTuple):
    """`outcomes` are by (namespace, name). `time` is the time of the latest event that changed something.

    `files` are the files of the output tree without README.md and the metadata of the run: all of them in a complete plan, otherwise those
    that differ from the previous tree, with None for a removed file. `withheld` are the changes over the limits of the guard: they are not
    in `moves` and `files`, unless the plan only reports them. `releases` are the held workloads and clusters that are released. `guard` is
    what the output branch records about the guard. `ended` are copies whose overlap ends in this run. `rollouts` are those
    that deliver a change in waves, `rollout_records` what the output branch records of them. `completed` are the outcomes
    after the last wave, of the workloads of which `outcomes` have what clusters have until their turn. `adopted` says why objects that
    gitsched took over keep their placement, by key as text.
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
    rollouts: tuple[RolloutStatus, ...] = ()
    rollout_records: tuple[RolloutRecord, ...] = ()
    completed: Mapping[Key, Outcome] = {}
    adopted: Mapping[str, str] = {}

    @property
    def unclaimed(self) -> int:
        """The number of objects that no policy selects."""
        return self.totals.overview.unclaimed

    @property
    def state_counts(self) -> Mapping[str, int]:
        """The number of workloads by state."""
        return self.totals.overview.state_counts

    @property
    def first_outcomes(self) -> Mapping[Key, Outcome]:
        """The outcomes that README.md shows."""
        return self.totals.overview.first_outcomes

    @property
    def first_clusters(self) -> Mapping[str, ClusterInfo]:
        """The clusters that README.md shows."""
        return self.totals.overview.first_clusters

    @property
    def cluster_count(self) -> int:
        """The number of clusters with a directory."""
        return self.totals.overview.cluster_count

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
        in_causes = any(limit.cause is not None and limit.cause.field is not None for limit in self.withheld.limits)
        return in_causes or any(finding.field is not None for finding in self.findings)

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


HadWorkloads = Callable[[str], bool]
"""Whether a cluster received workloads in the previous output. False for a cluster without a document, even if bindings refer to it."""


def list_moves(outcomes: Iterable[Outcome], had_workloads: HadWorkloads) -> list[Move]:
    """Return a move for each outcome whose clusters or replicas differ from the previous output, in the order of the outcomes."""
    moves = []
    for outcome in outcomes:
        before, after = list_previous_replicas(outcome, had_workloads), outcome.replicas_by_cluster
        if before != after:
            moves.append(Move(outcome.key, before, after, describe_reason(outcome)))
    return moves


def mark_preserved(moves: tuple[Move, ...], retained: Iterable[RetainedCopy]) -> tuple[Move, ...]:
    """Return the moves, of which those of workloads without a cluster are preserved that are kept in all clusters that they leave."""
    kept = {(copy.workload, copy.cluster) for copy in retained if copy.preserved}

    def is_kept(move: Move) -> bool:
        return not move.after and all((move.key, name) in kept for name in move.before)

    return tuple(move._replace(preserved=True) if is_kept(move) else move for move in moves) if kept else moves


def mark_copies(moves: tuple[Move, ...], retained: Iterable[RetainedCopy]) -> tuple[Move, ...]:
    """Return the moves, those of unplaced workloads with the copies of them that run in clusters which they get."""
    found: dict[Key, dict[str, int | None]] = {}
    for copy in retained:
        found.setdefault(copy.workload, {})[copy.cluster] = copy.replicas
    if not found:
        return moves
    return tuple(
        move
        if move.before or move.key not in found
        else move._replace(copies={name: count for name, count in found[move.key].items() if name in move.after})
        for move in moves
    )


def mark_awaited(retained: tuple[RetainedCopy, ...], findings: Iterable[Finding]) -> tuple[RetainedCopy, ...]:
    """Return the copies, those without a replacement with what they wait for, as findings about their workloads say."""
    if all(copy.start is not None or copy.preserved for copy in retained):
        return retained
    awaited: dict[tuple[str, str, str], AwaitedReplacement] = {}
    for finding in findings:
        if finding.resource is not None and finding.code == CLUSTER_GONE and RESCHEDULE_DISPLACED in finding.message:
            awaited[finding.resource] = "rescheduling"
        elif finding.resource is not None and finding.code == UNSCHEDULABLE:
            awaited.setdefault(finding.resource, "fit")
    return tuple(
        copy
        if copy.start is not None or copy.preserved
        else copy._replace(awaits=awaited.get((copy.follows or copy.workload).resource, ""))
        for copy in retained
    )


def describe_reason(outcome: Outcome) -> str:
    """Describe in one line why a workload has its placement."""
    return "; ".join(filter(None, (outcome.reason, outcome.trigger)))


def list_previous_replicas(outcome: Outcome, had_workloads: HadWorkloads) -> dict[str, int | None]:
    """Return the replicas of a workload by cluster in the previous output, without clusters that it was being evicted from."""
    return select_active(outcome.previous_replicas, had_workloads)


def select_active(replicas: Mapping[str, int | None], had_workloads: HadWorkloads) -> dict[str, int | None]:
    """Return the replicas in clusters that received workloads in the previous output."""
    return {name: count for name, count in replicas.items() if had_workloads(name)}
