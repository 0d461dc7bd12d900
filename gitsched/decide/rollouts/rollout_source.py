"""What the steps of the rollouts of a plan are taken from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.incremental.plan_state import PlanTimes, PreviousOutput
    from gitsched.decide.rollouts.lost_clusters import ClusterStates
    from gitsched.decide.rollouts.workload_policies import WorkloadPolicies
    from gitsched.model.changes import CopyRetention, Move
    from gitsched.model.document import Document, Key
    from gitsched.model.rollouts import RolloutInput


class RolloutSource(NamedTuple):
    """What rollouts take their steps from besides the files of a plan.

    `reports` are the ClusterReports. `moves` are the moves of the plan, `retention` the copies that stay for an overlap, and `quarantined`
    the workloads that keep what they have in all clusters.
    """

    given: RolloutInput
    previous: PreviousOutput
    reports: Iterable[Document]
    observations: Mapping[Any, Any]
    config: Config
    times: PlanTimes
    states: ClusterStates
    policies: WorkloadPolicies
    moves: Iterable[Move]
    retention: CopyRetention
    quarantined: Collection[Key] = ()
