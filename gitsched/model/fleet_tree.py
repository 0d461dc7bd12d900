"""What is in one cluster, and where one workload is, as plain data for `gitsched tree`."""

from __future__ import annotations

from typing import NamedTuple

from gitsched.model.changes import RetainedCopy
from gitsched.model.explanation import ExplainedReference
from gitsched.model.fleet_status import ClusterStatus, WorkloadStatus


class ClusterTree(NamedTuple):
    """A cluster with the workloads that it has on the output branch, and the copies that only stay there for an overlap."""

    cluster: ClusterStatus
    workloads: tuple[WorkloadStatus, ...]
    copies: tuple[RetainedCopy, ...]


class WorkloadTree(NamedTuple):
    """A workload with its clusters on the output branch, and the affinity group of its policy, "" without groups.

    `reason` says why it has these clusters, or none. `copies` stay for an overlap. `references` are the objects that it refers to,
    `targets` those of a companion, and `companions` those that belong to it.
    """

    workload: WorkloadStatus
    group: str
    reason: str
    copies: tuple[RetainedCopy, ...] = ()
    companions: tuple[ExplainedReference, ...] = ()
    targets: tuple[ExplainedReference, ...] = ()
    references: tuple[ExplainedReference, ...] = ()
