"""Rollouts of workloads in waves: what the output branch records of them, and what a plan says about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import PlannedFile, WritableFile
    from gitsched.model.scheduling import Outcome, TargetCluster

ROLLOUT_KIND: Final = ("gitsched.io", "Rollout")
"""Group and kind of a Rollout, as `Key` begins with."""
ACCEPT_ANNOTATION: Final = "gitsched.io/accept-failures"
REVERT_CHANGE: Final = "revert the source commit"
"""How to go back with a rollout, where it is not known which commit of the source it is."""
"""An annotation of a Rollout: failures that it goes on without, as `CLUSTER@TIME`, separated by commas. The time is that of the change."""
MAX_ROLLOUT_WAIT: Final = 60
"""Minutes that a rollout may wait for something that no time ends, such as a report, before that is wrong."""


class ChangedCluster(NamedTuple):
    """A cluster that has got a change. `parent` is the output commit before the one with the change, "" for a first one: reports about
    later commits count. `applied_at` is when it was delivered.

    `lost` is since when the cluster is not available, or has lost workloads with the change, before it reported that it is healthy. A
    `skipped` one has none of them any more, and nothing waits for it.
    """

    cluster: str
    parent: str
    applied_at: datetime
    succeeded: bool = False
    failed: bool = False
    lost: datetime | None = None
    skipped: bool = False


class HeldFiles(NamedTuple):
    """A workload whose content in a cluster stays as it is, at `paths` on the output branch; none before its first delivery. It is
    `approved` unless it is that of an earlier change which was not rolled out completely."""

    workload: Key
    cluster: str
    paths: tuple[str, ...]
    approved: bool = True


class LostCopy(NamedTuple):
    """A workload with a change that a cluster lost before it reported that it is healthy. `content` identifies what it would have there: a
    workload with another content is another change."""

    workload: Key
    cluster: str
    content: str = ""


class ApprovedFiles(NamedTuple):
    """The content of a workload before the change, which no cluster has any more: the files that `cluster` had at `paths`, below approved/
    on the output branch; none for a workload that was nowhere."""

    workload: Key
    cluster: str
    paths: tuple[str, ...]


class RolloutRecord(NamedTuple):
    """What gitsched.json has of a rollout that is not complete."""

    name: str
    changed: tuple[ChangedCluster, ...]
    held: tuple[HeldFiles, ...] = ()
    lost: tuple[LostCopy, ...] = ()
    approved: tuple[ApprovedFiles, ...] = ()

    @property
    def workloads(self) -> frozenset[Key]:
        """The workloads that it names."""
        held, lost, approved = ({one.workload for one in part} for part in (self.held, self.lost, self.approved))
        return frozenset(held | lost | approved)

    @property
    def steps(self) -> tuple[object, ...]:
        """What the rollout has done so far. One more cluster that succeeded is no step by itself, nor is a delivery without a change."""
        clusters = [(one.cluster, one.failed, one.skipped, one.lost, one.lost and one.applied_at) for one in self.changed]
        return self.name, clusters, sorted(self.held), self.lost, self.approved


ClusterState = Literal["updated", "progressing", "succeeded", "failed", "accepted", "waiting", "unchanged", "skipped"]
RolloutState = Literal["complete", "progressing", "stopped"]


class RolloutCluster(NamedTuple):
    """The state of one cluster in a rollout. `group` is the number of its wave, from 1, with the name of the decision group if it has one.

    updated: this plan delivers the change; progressing: it has not reported that it is healthy for long enough; waiting: it keeps what it
    has; skipped: it has no workload of the rollout any more, so nothing waits for it, and it belongs to no wave. `since` is the time of the
    change, None for a cluster that has not got one; `detail` is one line, or "".
    """

    cluster: str
    group: str
    state: ClusterState
    since: datetime | None = None
    detail: str = ""


class RolloutStatus(NamedTuple):
    """A rollout in a plan: its clusters in the order of the waves, what it waits for, and the workloads that some cluster does not have yet
    as they should be. `remedy` says of one that has stopped, or in which too many clusters failed, how to go on, and how to go back.
    `is_timed`: what it waits for ends at some time by itself, such as a progressDeadline."""

    name: str
    type: str
    state: RolloutState
    waits_for: str
    clusters: tuple[RolloutCluster, ...]
    workloads: tuple[Key, ...] = ()
    remedy: str = ""
    is_timed: bool = False

    @property
    def failed(self) -> tuple[str, ...]:
        """The clusters where the change failed, and that is not accepted."""
        return tuple(one.cluster for one in self.clusters if one.state == "failed")

    @property
    def will_stop(self) -> bool:
        """Whether failures stop the rollout as soon as the other clusters with the change have reported."""
        return self.state == "progressing" and bool(self.remedy) and any(one.state == "waiting" for one in self.clusters)

    def find_overdue(self, now: datetime) -> datetime | None:
        """Return since when the rollout waits for something that no time ends, if that is too long."""
        last = max((one.since for one in self.clusters if one.since is not None), default=None)
        is_waiting = self.state == "progressing" and not (self.is_timed or any(one.state == "updated" for one in self.clusters))
        return last if is_waiting and last is not None and now - last >= timedelta(minutes=MAX_ROLLOUT_WAIT) else None


class RolloutResult(NamedTuple):
    """The rollouts of a plan, what the output records of them, when they can go on without a commit, the times of the events that changed
    them, and findings. `files` are those below approved/ on the output branch; None for one that goes.
    `waiting` are the replicas of workloads in clusters that have fewer than were decided until their turn, of those that lose some.
    `counted` are the outcomes, with the replicas that clusters have before and after this step, of the workloads that clusters wait for or
    waited for until now; `former` is what clusters had of such workloads that are removed. It `concerns_autoscalers` if a cluster keeps or
    kept an autoscaler until its turn, which changes what it has of another workload."""

    statuses: tuple[RolloutStatus, ...] = ()
    records: tuple[RolloutRecord, ...] = ()
    wakeups: tuple[datetime, ...] = ()
    events: tuple[datetime, ...] = ()
    findings: tuple[Finding, ...] = ()
    files: Mapping[str, PlannedFile | None] = {}
    waiting: Mapping[tuple[Key, str], int] = {}
    counted: Mapping[Key, Outcome] = {}
    former: Mapping[Key, Mapping[str, TargetCluster]] = {}
    concerns_autoscalers: bool = False


NOTHING_ROLLED_OUT = RolloutResult()


class RolloutInput(NamedTuple):
    """What rollouts need besides the documents: their records in the previous output, and the latest output commits, the newest first.

    `hash_file` returns the id that Git gives a file, of a plan or of the previous output, and `read_text` its text.
    """

    records: Sequence[RolloutRecord]
    hash_file: Callable[[PlannedFile], str]
    list_commits: Callable[[], Sequence[str]]
    read_text: Callable[[WritableFile], str]
