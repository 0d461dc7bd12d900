"""What is in one cluster, and where one workload is, as plain data for `gitsched tree`."""

from __future__ import annotations

from datetime import datetime

from gitsched.model.changes import Move, RetainedCopy
from gitsched.model.explanation import ExplainedReference
from gitsched.model.fleet_status import ClusterStatus, Freeze, WorkloadStatus
from gitsched.model.holds import HeldPlacement
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple


class ClusterTree(NamedTuple):
    """A cluster with the workloads that runs placed there, and the copies that only stay there for an overlap. `edits` say what people
    changed there by hand on the output branch. Ages count from `now`."""

    cluster: ClusterStatus
    workloads: tuple[WorkloadStatus, ...]
    copies: tuple[RetainedCopy, ...]
    freezes: tuple[Freeze, ...] = ()
    now: datetime = EPOCH
    edits: tuple[str, ...] = ()


class WorkloadTree(NamedTuple):
    """A workload with its clusters on the output branch, and the affinity group of its policy, "" without groups.

    `reason` says why it has these clusters, or none. `copies` stay for an overlap. `references` are the objects that it refers to,
    `targets` those of a companion, and `companions` those that belong to it. `held` says where it is held, and `withheld` is its move
    that `withheld_by`, the guard or the freeze, withholds, and which `allowance` allows. `edits` say what people changed of its manifests
    by hand on the output branch.
    """

    workload: WorkloadStatus
    group: str
    reason: str
    copies: tuple[RetainedCopy, ...] = ()
    companions: tuple[ExplainedReference, ...] = ()
    targets: tuple[ExplainedReference, ...] = ()
    references: tuple[ExplainedReference, ...] = ()
    held: HeldPlacement | None = None
    withheld: Move | None = None
    withheld_by: str = ""
    allowance: str = ""
    freezes: tuple[Freeze, ...] = ()
    now: datetime = EPOCH
    edits: tuple[str, ...] = ()
