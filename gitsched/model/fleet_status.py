"""The status of a fleet: what each cluster reported last, and where workloads are on the output branch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

from gitsched.model.changes import NOTHING_WITHHELD, RetainedCopy, WithheldChanges
from gitsched.model.cluster_report import Health, UnhealthyWorkload
from gitsched.model.document import Key
from gitsched.model.finding import Finding, Location, format_count, format_names, format_part
from gitsched.model.fleet_topology import ResourceUse
from gitsched.model.history import RolloutHistory, SourceChange
from gitsched.model.holds import HeldPlacement
from gitsched.model.mistakes import CLUSTER_GONE, IMPAIRMENTS, MISTAKES
from gitsched.model.recent_runs import RecentRun
from gitsched.model.rollouts import RolloutStatus
from gitsched.model.scheduling import total_replicas
from gitsched.model.taints import ClusterTaint
from gitsched.model.tenants import TENANT_LIMIT
from gitsched.model.time import EPOCH, format_age, format_time
from gitsched.named_tuples import NamedTuple


class LastReport(NamedTuple):
    """The last report of a cluster: the commit that it has applied, its health, and since when. `age` is the number of later output
    commits, None if the commit is not known, and `behind` the number of those that changed the directory of the cluster."""

    commit: str
    health: Health
    since: datetime
    age: int | None
    unhealthy: tuple[UnhealthyWorkload, ...] = ()
    behind: int | None = None


Ready = Literal["True", "False", "Unknown", "Gone"]
"""Whether a cluster is ready: Unknown where nobody has observed it or its condition is Unknown, Gone without a document."""


class ClusterStatus(NamedTuple):
    """The status of one cluster. `unready` says why it is not available, or is "". `report` is its last report, None without one.

    `workloads` are those that it has on the output branch, with so many `replicas`. `observed` is when its facts were observed, None
    without facts, and `is_stale` says that this is too long ago. `copies` counts the other workloads of which copies stay there, and
    `has_last_copies` says that some stay until another cluster has them. `resources` are there if its capacity is known. `lacks_failover`
    says why workloads stay there although it is not ready, and after a semicolon which settings evict them, or is "".
    """

    name: str
    unready: str
    workloads: int
    report: LastReport | None
    ready: Ready = "Unknown"
    taints: tuple[ClusterTaint, ...] = ()
    observed: datetime | None = None
    replicas: int = 0
    is_stale: bool = False
    copies: int = 0
    has_last_copies: bool = False
    resources: tuple[ResourceUse, ...] = ()
    lacks_failover: str = ""

    @property
    def behind(self) -> int | None:
        """How many output commits changed its directory after the applied one; None without a report about a known commit."""
        return self.report.behind if self.report is not None else None

    @property
    def fullest(self) -> ResourceUse | None:
        """The resource of which the largest share is requested."""
        return max(self.resources, key=lambda use: use.share, default=None)

    @property
    def is_drained(self) -> bool:
        """Whether a taint of people lets workloads leave the cluster."""
        return any(taint.evicts for taint in self.taints)

    @property
    def is_unready(self) -> bool:
        """Whether the cluster is not available, by a condition, also one that is Unknown, or by a taint of which no person is the cause."""
        is_lost = self.ready == "Unknown" and bool(self.unready) and not (self.is_stale or self.is_drained)
        return self.ready == "False" or is_lost

    @property
    def is_left_behind(self) -> bool:
        """Whether the cluster has no document any more, and workloads or last copies of them all the same."""
        return self.ready == "Gone" and bool(self.workloads or self.has_last_copies)

    @property
    def needs_attention(self) -> bool:
        """Whether the cluster is not available, reports a failure, or has not applied its last change."""
        failed = self.report is not None and self.report.health == "Degraded"
        if self.ready == "Gone":
            return self.is_left_behind
        return bool(self.unready) or failed or bool(self.behind) or self.ready == "False" or self.is_stale


WorkloadState = Literal["", "held", "withheld", "waiting", "unplaced", "stopped"]
"""What keeps a workload from being where its policies want it: a hold, the guard, or a limit of moves by period; or no cluster fits, or it
has 0 replicas."""


class WorkloadStatus(NamedTuple):
    """Where a workload is on the output branch: its clusters with replicas, and the clusters that wait for a wave of a rollout, of which
    those that are `lacking` have nothing of it yet. No cluster gets the number of `missing` replicas. `reason` says why it is unplaced, or
    why they are missing."""

    key: Key
    policy: str
    clusters: Mapping[str, int | None]
    waiting: tuple[str, ...] = ()
    state: WorkloadState = ""
    reason: str = ""
    missing: int = 0
    lacking: tuple[str, ...] = ()

    @property
    def replicas(self) -> int:
        """The number that its clusters should have together."""
        return total_replicas(self.clusters.values()) + self.missing

    @property
    def is_unplaced(self) -> bool:
        """Whether it should be in a cluster, and is in none."""
        return not self.clusters and self.state != "stopped"


class Freeze(NamedTuple):
    """A freeze of placements: why, where it is written, and what ends it. `author` and `since` are those of the commit that wrote it, ""
    and None where that is not known. `push` is the command that pushes a freeze which only the local branch has, or is ""."""

    reason: str
    place: str
    cure: str
    author: str = ""
    since: datetime | None = None
    push: str = ""


class HandEdit(NamedTuple):
    """A commit of people on the output branch since the last run, and the files of the output that it changed. A run takes these back, but
    for records, from which it decides."""

    commit: str
    subject: str
    author: str
    time: datetime
    files: tuple[str, ...]

    @property
    def changes_records(self) -> bool:
        """Whether the next run decides from a file that was changed."""
        return any(path.startswith("status/") for path in self.files)


class UnclaimedObject(NamedTuple):
    """An object that no policy selects, with the place of its document; `nearest` says which policy nearly selects it, "" if none does."""

    key: Key
    location: Location | None
    nearest: str = ""
    runs_pods: bool = False


class DueRun(NamedTuple):
    """What a run would do without a commit of the source, `since` time or new facts have changed it: it moves these workloads, removes
    copies whose overlap `has_ended`, and `continues` rollouts in clusters."""

    since: datetime
    moved: tuple[Key, ...] = ()
    has_ended: bool = False
    continues: tuple[tuple[str, tuple[str, ...]], ...] = ()


class SourceStatus(NamedTuple):
    """The source against what runs have planned. `newer` is the commit of the source that a run has planned and that came after the one
    here, "" where none did, and `newer_branch` its branch if that is another one; `waiting` is the first one that runs have not followed
    for long, of `waiting_count`. `missing_facts` are the findings that a facts branch of the settings does not exist. `removed_clusters`
    says of the first clusters that are gone which commit removed their documents. `mistakes` are the warnings with one of MISTAKES of
    documents that leave no workload unplaced. `allowed_changes` counts the changes that the next run makes after the last one withheld
    some. `uncommitted` says which taints of clusters differ in the worktree. `followed_edits` are commits of people on the output branch
    whose records runs have followed and still have. `due` is the run that time or new facts would have changed long ago. `renamed` are
    workloads now in a namespace where no policy selects them. `warnings` are the other ones about documents."""

    newer: str = ""
    newer_branch: str = ""
    waiting: SourceChange | None = None
    waiting_count: int = 0
    missing_facts: tuple[Finding, ...] = ()
    removed_clusters: tuple[str, ...] = ()
    mistakes: tuple[Finding, ...] = ()
    allowed_changes: int = 0
    uncommitted: tuple[str, ...] = ()
    followed_edits: tuple[HandEdit, ...] = ()
    due: DueRun | None = None
    renamed: Mapping[Key, UnclaimedObject] = {}
    warnings: tuple[Finding, ...] = ()


class WithheldHistory(NamedTuple):
    """The time of the run `since` which changes are withheld, None where it is not known, the first commits of the source that ask for
    them, the newest first, the data of the workloads that have some, and the number of further commits."""

    since: datetime | None = None
    sources: tuple[SourceChange, ...] = ()
    data: Mapping[Key, tuple[str, ...]] = {}
    more_sources: int = 0


class FleetStatus(NamedTuple):
    """The status of a fleet. `head` is the last commit of the output branch, "" without one; `pending` says that the source has
    changes with which a run would change it.

    `unclaimed` are the objects that no policy selects. `rewrite` says how the next run rewrites the output of an earlier version, "" where
    it does not. `moves_waiting` counts the workloads that
    wait to move until `next_moves`, because moves that observations cause are limited by period. `unfetched` says why the clone may
    lack the output branch of its origin, or is "". `held` are the workloads that keep their clusters until they are released,
    `withheld` the changes that the guard withholds. `edits` are commits of people on the output branch since the last run. `errors` are
    the other findings of severity error, `shortages` those about clusters that lack capacity, `impaired` those about workloads
    that lack something in their clusters, `observed` is when metric values were observed, and `now` the time from which ages count.
    `recent` are the latest runs that took something from workloads, `rollout_histories` say when the rollouts began and
    stopped, `retained` the copies that stay for an overlap, and `withheld_history` says since when changes are withheld, and why.
    `from_origin`: the branch is the one of origin, as the clone fetched it last. `diverges`: the branch has commits that origin lacks,
    and lacks commits that origin has. `lacks_history` is what brings the runs of the last days that are not in the clone.
    `unpushed_freeze` is the command that pushes a freeze, or its end, that only the local branch has, or is "".
    """

    branch: str
    head: str
    time: datetime | None
    pending: bool
    clusters: tuple[ClusterStatus, ...]
    rollouts: tuple[RolloutStatus, ...]
    workloads: tuple[WorkloadStatus, ...]
    unclaimed: tuple[UnclaimedObject, ...]
    rewrite: str = ""
    moves_waiting: int = 0
    next_moves: datetime | None = None
    unfetched: str = ""
    freezes: tuple[Freeze, ...] = ()
    held: Mapping[Key, HeldPlacement] = {}
    withheld: WithheldChanges = NOTHING_WITHHELD
    errors: tuple[Finding, ...] = ()
    edits: tuple[HandEdit, ...] = ()
    shortages: tuple[Finding, ...] = ()
    impaired: tuple[Finding, ...] = ()
    observed: datetime | None = None
    now: datetime = EPOCH
    recent: tuple[RecentRun, ...] = ()
    rollout_histories: Mapping[str, RolloutHistory] = {}
    retained: tuple[RetainedCopy, ...] = ()
    withheld_history: WithheldHistory = WithheldHistory()
    from_origin: bool = False
    source: SourceStatus = SourceStatus()
    diverges: bool = False
    lacks_history: str = ""
    unpushed_freeze: str = ""

    @property
    def needs_attention(self) -> bool:
        """Whether anything is wrong."""
        return next(self.list_problems(), None) is not None

    def list_problems(self) -> Iterator[str]:
        """Yield each kind of thing that is wrong, with its number; first that all clusters are not ready, the cause of the rest."""
        if self.lost_all:
            yield from self._list_cluster_problems()
        if self.time is None and self.unfetched:
            yield f"{self.branch} is not in this clone"
        if self.diverges:
            yield f"{self.branch} and origin/{self.branch} have different commits"
        if self.freezes:
            yield "placements are frozen"
        if self.unpushed_freeze:
            yield f"the freeze is {'' if self.freezes else 'lifted '}only in this clone"
        yield from self._list_input_problems()
        if self.withheld.moves:
            yield self._describe_withheld()
        if self.held:
            yield f"{format_count(len(self.held), 'workload is', 'workloads are')} held"
        unplaced = sum(one.is_unplaced for one in self.workloads) if self.time is not None else 0
        if unplaced:
            yield f"{format_count(unplaced, 'workload is', 'workloads are')} unplaced"
        if self.short:
            yield self._describe_short()
        if self.evicted_copies:
            evicted = format_count(len({copy.workload for copy in self.evicted_copies}), "workload also runs", "workloads also run")
            yield f"{evicted} where a person has to end the eviction"
        yield from self._list_recent_problems()
        yield from () if self.lost_all else self._list_cluster_problems()
        yield from _count_by_code(self.other_impaired, IMPAIRMENTS)
        if self.shortages:
            yield format_part(len(self.shortages), len(self.clusters), "cluster", "lacks capacity", "lack capacity")
        yield from self._list_rollout_problems()

    @property
    def wrong_rollouts(self) -> tuple[RolloutStatus, ...]:
        """The rollouts that have stopped, or in which too many clusters failed, and those that have waited for too long."""
        return tuple(one for one in self.rollouts if one.remedy or one.find_overdue(self.now) is not None)

    @property
    def short(self) -> tuple[WorkloadStatus, ...]:
        """The workloads that are placed with fewer replicas than they should have."""
        return tuple(one for one in self.workloads if one.missing)

    @property
    def evicted_copies(self) -> tuple[RetainedCopy, ...]:
        """The copies that stay until somebody ends the eviction from their cluster."""
        return tuple(copy for copy in self.retained if copy.release)

    @property
    def refused(self) -> tuple[Finding, ...]:
        """The errors that workloads exceed a limit of their Tenant, of those that are in no cluster."""
        known = {one.key.resource for one in self.workloads}
        return tuple(one for one in self.errors if one.code == TENANT_LIMIT and one.resource not in known)

    @property
    def unselected(self) -> tuple[UnclaimedObject, ...]:
        """The objects with pods that no policy selects, without those that are named with what took them from a policy."""
        named = {move.key for move in self.withheld.moves} | {one.key for one in self.source.renamed.values()}
        named |= self._find_lost_policies()
        return tuple(one for one in self.unclaimed if one.runs_pods and one.key not in named)

    def _find_lost_policies(self) -> set[Key]:
        """Return the workloads that recent runs removed because no policy selects them any more."""
        losses = (loss for run in self.recent for loss in run.losses)
        return {loss.move.key for loss in losses if loss.kind == "unplaced"}.difference(one.key for one in self.workloads)

    @property
    def other_impaired(self) -> tuple[Finding, ...]:
        """The findings about workloads that lack something besides replicas. That of an unplaced one is the reason for that."""
        short = {one.key.resource for one in self.short}
        unplaced = {one.key.resource for one in self.workloads if one.is_unplaced}
        return tuple(
            finding
            for finding in self.impaired
            if finding.resource not in short and not (finding.code == CLUSTER_GONE and finding.resource in unplaced)
        )

    @property
    def gone(self) -> tuple[ClusterStatus, ...]:
        """The clusters without a document, if one of them still has workloads, or no other cluster is left."""
        found = tuple(one for one in self.clusters if one.ready == "Gone")
        return found if len(found) == len(self.clusters) or any(one.is_left_behind for one in found) else ()

    @property
    def lost_all(self) -> bool:
        """Whether there are clusters, and all with a document are not ready."""
        known = [one for one in self.clusters if one.ready != "Gone"]
        return bool(known) and all(one.is_unready for one in known)

    def _list_input_problems(self) -> Iterator[str]:
        """Yield what is wrong with what is planned, and with the branch."""
        waiting = self.source.waiting
        if waiting is not None and waiting.time is not None:
            age, count = format_age(waiting.time, self.now), self.source.waiting_count
            if count > 1:
                yield f"{format_count(count, 'commit has', 'commits have')} not been reconciled, the first for {age}"
            else:
                yield f"commit {waiting.commit[:10]} has not been reconciled for {age}"
        elif self.source.due is not None:
            since = self.source.due.since
            yield f"a run has been due since {format_time(since)} ({format_age(since, self.now)} ago)"
        refused = len(self.refused)
        if refused:
            exceeds = "workload is in no cluster, because it exceeds", "workloads are in no cluster, because they exceed"
            yield f"{format_count(refused, *exceeds)} a limit of a Tenant"
        if len(self.errors) > refused:
            yield format_count(len(self.errors) - refused, "error")
        yield from _count_by_code(self.source.mistakes, MISTAKES)
        if self.source.missing_facts:
            yield "the facts branch is missing"
        if self.edits:
            yield f"{self.branch} was edited by hand"
        if self.source.uncommitted:
            yield "taints of clusters are not committed"

    def _describe_withheld(self) -> str:
        text = f"{format_count(len(self.withheld.moves), 'change is', 'changes are')} withheld"
        with_data = len(self.withheld_history.data)
        return f"{text} (workloads with data: {with_data})" if with_data else text

    def _describe_short(self) -> str:
        first, *others = self.short
        if not others:
            name = f"{first.key.kind} {first.key.namespace}{'/' if first.key.namespace else ''}{first.key.name}"
            return f"{name} lacks {format_part(first.missing, first.replicas, 'replica')}"
        return f"{format_count(len(self.short), 'workload')} lack {format_count(sum(one.missing for one in self.short), 'replica')}"

    def _list_recent_problems(self) -> Iterator[str]:
        losses = [loss for run in self.recent for loss in run.losses]
        unselected = self._find_lost_policies()
        if self.time is not None and self.unclaimed and not (self.workloads or unselected or self.withheld.moves):
            yield "no policy selects an object"
        if unselected:
            yield format_count(len(unselected), "workload is", "workloads are") + " selected by no policy any more"
        copied = sum(loss.kind == "copied" for loss in losses)
        if copied:
            yield format_count(copied, "workload with data has", "workloads with data have") + " a copy with other data"

    def _list_rollout_problems(self) -> Iterator[str]:
        """Yield how many rollouts have stopped, will stop, have failures, and have waited for too long; of a single one, why."""
        groups: dict[str, list[RolloutStatus]] = {}
        for one in self.wrong_rollouts:
            failing = "will stop" if one.will_stop else "have failures"
            text = "have stopped" if one.state == "stopped" else failing if one.remedy else "have waited for too long"
            groups.setdefault(text, []).append(one)
        for text, found in sorted(groups.items()):
            first, *others = found
            since = first.find_overdue(self.now)
            if others:
                yield f"{len(found):,} rollouts {text} ({format_names([one.name for one in found])})"
            elif text in ("will stop", "have failures"):
                verb = "will stop because" if first.will_stop else "has failures:"
                yield f"Rollout {first.name} {verb} {format_names(first.failed)} failed"
            else:
                verb = "stopped because" if since is None else f"waited {format_age(since, self.now)} for"
                yield f"Rollout {first.name} has {verb} {first.waits_for}"

    def _list_cluster_problems(self) -> Iterator[str]:
        groups = {
            "gone": self.gone,
            "drained": [one for one in self.clusters if one.is_drained],
            "not ready": [one for one in self.clusters if one.is_unready],
            "not healthy": [one for one in self.clusters if one.report is not None and one.report.health == "Degraded"],
            "behind": [one for one in self.clusters if one.behind],
            "no longer observed": [one for one in self.clusters if one.is_stale],
        }
        for state, found in groups.items():
            if found:
                yield format_part(len(found), len(self.clusters), "cluster", f"is {state}", f"are {state}")


def _count_by_code(findings: Iterable[Finding], meanings: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    """Yield for each code the number of objects with such a finding."""
    numbers = Counter(code for code, _ in {(finding.code, finding.resource) for finding in findings})
    for code, (one, several) in meanings.items():
        if numbers[code]:
            yield format_count(numbers[code], one, several)
