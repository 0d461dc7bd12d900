"""The status of a fleet: what each cluster reported last, and where workloads are on the output branch."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.model.cluster_report import Health, UnhealthyWorkload
from gitsched.model.document import Key
from gitsched.model.rollouts import RolloutStatus


class LastReport(NamedTuple):
    """The last report of a cluster: the commit that it has applied, its health, and since when. `age` is the number of later output
    commits, None if the commit is not known."""

    commit: str
    health: Health
    since: datetime
    age: int | None
    unhealthy: tuple[UnhealthyWorkload, ...] = ()


class ClusterStatus(NamedTuple):
    """The status of one cluster. `unready` says why it is not ready, or is "". `report` is its last report, None without one.

    `behind` counts the later output commits that changed its directory; None without a report about a known commit.
    """

    name: str
    unready: str
    workloads: int
    report: LastReport | None
    behind: int | None

    @property
    def needs_attention(self) -> bool:
        """Whether the cluster is not ready, reports a failure, or has not applied its last change."""
        failed = self.report is not None and self.report.health == "Degraded"
        return bool(self.unready) or failed or bool(self.behind)


class WorkloadStatus(NamedTuple):
    """Where a workload is on the output branch: its clusters with replicas, and the clusters that wait for a wave of a rollout."""

    key: Key
    policy: str
    clusters: Mapping[str, int | None]
    waiting: tuple[str, ...] = ()


class FleetStatus(NamedTuple):
    """The status of a fleet. `head` is the last commit of the output branch, "" without one; `pending` says that the source has
    changes with which a run would change it.

    `unclaimed` are the objects that no policy selects, and `nearest` says of some of them which policy nearly selects them. `rewrite` says
    how the next run rewrites the output of an earlier version, "" where it does not. `moves_waiting` counts the workloads that wait to move
    until `next_moves`, because moves that observations cause are limited by period. `unfetched` says why the clone may lack the output
    branch of its origin, or is "".
    """

    branch: str
    head: str
    time: datetime | None
    pending: bool
    clusters: tuple[ClusterStatus, ...]
    rollouts: tuple[RolloutStatus, ...]
    workloads: tuple[WorkloadStatus, ...]
    unclaimed: tuple[Key, ...]
    nearest: Mapping[Key, str] = {}
    rewrite: str = ""
    moves_waiting: int = 0
    next_moves: datetime | None = None
    unfetched: str = ""

    @property
    def needs_attention(self) -> bool:
        """Whether a cluster or a rollout does."""
        return any(one.needs_attention for one in self.clusters) or any(one.state == "stopped" for one in self.rollouts)
