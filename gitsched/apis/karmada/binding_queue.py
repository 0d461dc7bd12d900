"""What decisions about bindings read of those that were made before them in the same run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gitsched.apis.karmada.binding.resource_binding import ScheduleResult
    from gitsched.apis.karmada.interpreter import ReplicaRequirements
    from gitsched.apis.karmada.queue.quota_refusal import QuotaRefusal
    from gitsched.model.document import Body, Document, Key
    from gitsched.model.scheduling import CapacityEstimates, Outcome, PeerClusters

Decide = Callable[["Document"], "Outcome | None"]


class BindingQueue(Protocol):
    """What a binding may take, given what others have taken. `quota_refusals` say by workload which quota stops it, and by how much."""

    quota_refusals: dict[Key, QuotaRefusal]

    def find_peers(self, template: Document) -> PeerClusters | None:
        """Return the clusters that follow from the groups of a workload; None if it has no group."""
        ...

    def find_groups(self, template: Document) -> Mapping[str, str]:
        """Return the groups of a workload, as its binding has them."""
        ...

    def refuses_update(self, template: Document) -> bool:
        """Return whether the binding of a workload keeps its former requirements, because a quota refuses the new ones."""
        ...

    def find_remaining(self) -> CapacityEstimates | None:
        """Return what is free on the clusters in a cycle of Karmada's scheduler; None if what is placed does not count."""
        ...

    def limit(self, template: Document, requirements: ReplicaRequirements, result: ScheduleResult) -> ScheduleResult:
        """Return the result of a pass; where a quota refuses it, with the former clusters."""
        ...

    @property
    def records(self) -> Iterable[tuple[Key, Body]]:
        """The quotas with their usage."""
        ...


def add_affinity_groups(queue: BindingQueue, template: Document, body: Body) -> None:
    """Add the affinity groups of a workload to its new binding."""
    groups = queue.find_groups(template)
    if groups:
        body["spec"]["workloadAffinityGroups"] = dict(groups)
