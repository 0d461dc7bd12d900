"""What decisions about bindings read of those that were made before them in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gitsched.apis.karmada.binding.resource_binding import ScheduleResult
    from gitsched.apis.karmada.interpreter import ReplicaRequirements
    from gitsched.model.document import Body, Document, Key
    from gitsched.model.scheduling import CapacityEstimates, Outcome, PeerClusters
    from gitsched.schedule.estimator import Capacity

Decide = Callable[["Document"], "Outcome | None"]


class BindingQueue(Protocol):
    """The bindings of a run, decided one after the other. `refused` are the workloads whose bindings keep their former requirements.
    `counts_capacity`: what is placed counts for what is placed next, and with `shares_capacity` what other APIs place as well.
    `quota_refusals` say by workload which quota stops it, and by how much."""

    refused: frozenset[Key]
    counts_capacity: bool
    shares_capacity: bool
    quota_refusals: dict[Key, str]

    def find_remaining(self, workload: Key) -> CapacityEstimates:
        """Return what is free on the clusters when a workload is decided."""
        ...

    def limit_capacity(self, free: Mapping[str, Capacity]) -> bool:
        """Begin again with what is free on the clusters before the run; return False if that was known."""
        ...

    @property
    def records(self) -> Iterable[tuple[Key, Body]]:
        """The quotas with their usage."""
        ...

    def run(self, decide: Decide) -> None:
        """Decide all bindings, once."""
        ...

    def restart(self) -> frozenset[Key]:
        """Forget all decisions, and return about which workloads they were: others keep their former bindings now."""
        ...

    def decide(self, template: Document, decide: Decide) -> Outcome | None:
        """Return the decision about a workload. The first call decides all workloads of the run."""
        ...

    def find_peers(self, template: Document) -> PeerClusters | None:
        """Return the clusters that follow from the groups of a workload; None if it has no group."""
        ...

    def find_groups(self, template: Document) -> dict[str, str]:
        """Return the groups of a workload, as its binding has them."""
        ...

    def limit(
        self, template: Document, requirements: ReplicaRequirements, record: Body | None, result: ScheduleResult
    ) -> ScheduleResult:
        """Return the result of a pass; where a quota refuses it, with the former clusters."""
        ...


def add_affinity_groups(queue: BindingQueue, template: Document, body: Body) -> None:
    """Add the affinity groups of a workload to its new binding."""
    groups = queue.find_groups(template)
    if groups:
        body["spec"]["workloadAffinityGroups"] = groups
