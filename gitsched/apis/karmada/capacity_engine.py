"""What decisions about capacity and simulations read of the engine: the capacity of clusters, and what workloads request of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import Coupling, QueuePosition
from gitsched.apis.karmada.simulation import (
    describe_remedy,
    evaluates_alike,
    find_relevant_clusters,
    list_concerned,
    list_evictions,
    list_free_capacity,
    make_reschedule_request,
    make_rescheduling_document,
    read_resource_request,
)
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.registered import Registered
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import EqualPods, Outcome
from gitsched.schedule.estimator import Capacity

if TYPE_CHECKING:
    from gitsched.apis.capabilities import ClusterCapacity
    from gitsched.apis.karmada.dependencies.dependencies_distributor import DependenciesDistributor
    from gitsched.apis.karmada.queue.coupled_bindings import CoupledBindings
    from gitsched.apis.karmada.state import KarmadaState
    from gitsched.model.template_index import PlacementSummary, TemplateIndex
    from gitsched.schedule.shared_capacity import SharedCapacity

_CAPACITY = "gitsched.apis.karmada.queue.capacity_positions"
_LIST_CAPACITIES = Registered(_CAPACITY, "list_capacities")
_FIND_POSITION = Registered(_CAPACITY, "find_queue_position")
_MEASURE_PODS = Registered(_CAPACITY, "measure_pods")
_SHARE = Registered(_CAPACITY, "share_capacity")
_MAY_REACH = Registered(_CAPACITY, "may_reach")
_READS = Registered(_CAPACITY, "reads_capacity")
NO_COUPLING = Coupling()


class CapacityEngine(PolicyEngine):
    """The capabilities CapacityReporting, CapacitySharing and Rescheduling of the engine."""

    state: KarmadaState
    dependencies: DependenciesDistributor | None
    coupled: CoupledBindings | None
    protects_capacity: bool

    @abstractmethod
    def _reconcile_rebalancers(self) -> None:
        """Update the WorkloadRebalancers with the decisions about what they name."""

    def free_capacity(self) -> Mapping[str, Capacity | None]:
        return list_free_capacity(self.state.fleet)

    def resource_request(self, template: Document, cluster: str) -> tuple[tuple[str, int], ...]:
        return read_resource_request(self.state, template, cluster)

    def relevant_clusters(self, template: Document) -> frozenset[str] | None:
        if self.state.queue is not None:
            return None
        attachment = self.dependencies.find_attachment(template) if self.dependencies is not None else None
        return find_relevant_clusters(self.state, template, attachment)

    def list_concerned(self, index: TemplateIndex, clusters: frozenset[str], /) -> frozenset[Key]:
        return frozenset(index) if self.state.queue is not None else list_concerned(self.state, index, clusters)

    def evaluates_alike(self, placement: PlacementSummary, api: tuple[str, str], cluster: str, /) -> bool:
        return evaluates_alike(self.state, placement, api, cluster)

    def list_capacities(self) -> Mapping[str, ClusterCapacity]:
        found: Mapping[str, ClusterCapacity] = _LIST_CAPACITIES(self.state) if self.protects_capacity else {}
        return found

    def find_queue_position(self, template: Document, /) -> QueuePosition | None:
        found: QueuePosition | None = _FIND_POSITION(self.state, template)
        return found

    def measure_pods(self, template: Document, replicas: Mapping[str, int | None], /) -> Mapping[str, tuple[EqualPods, ...]]:
        found: Mapping[str, tuple[EqualPods, ...]] = _MEASURE_PODS(self.state, template, replicas)
        return found

    def share_capacity(self, template: Document, shared: SharedCapacity, /) -> None:
        if self.protects_capacity:
            _SHARE(self.state, template, shared)
        if self.coupled is not None:
            self.coupled.begin_turn(template.key)
        if self.dependencies is not None:
            self.dependencies.clear()

    def join(self, engines: Iterable[PolicyEngine], /) -> None:
        if self.coupled is not None:
            found = (one.coupled for one in engines if isinstance(one, CapacityEngine))
            self.coupled.join([one for one in found if one is not None])

    def find_coupling(self, outcomes: Mapping[Key, Outcome], postponed: frozenset[Key] = frozenset(), /) -> Coupling:
        return self.coupled.find_coupling(outcomes, postponed) if self.coupled is not None else NO_COUPLING

    def list_certain_turns(self) -> frozenset[Key]:
        return frozenset(self.coupled.list_certain_turns()) if self.coupled is not None else frozenset()

    def may_reach(self, template: Document, clusters: Iterable[str], /) -> bool:
        found: bool = _MAY_REACH(self.state, template, clusters)
        return found

    @contextmanager
    def outside_turns(self) -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(self.state.without_shares())
            if self.coupled is not None:
                stack.enter_context(self.coupled.outside_turns())
            if self.dependencies is not None:
                self.dependencies.clear()
                stack.callback(self.dependencies.clear)
            yield

    def begin_turns(self, removed: Iterable[Key], /) -> None:
        if self.coupled is not None:
            self.coupled.begin_turns(removed)

    def count(self, key: Key, outcome: Outcome | None, /) -> None:
        if self.coupled is not None:
            self.coupled.count(key, outcome)

    def list_limited(self) -> frozenset[Key]:
        return self.coupled.refused if self.coupled is not None else frozenset()

    def follow_shares(self) -> None:
        if self.state.reschedule_triggers.pending:
            self._reconcile_rebalancers()

    def reads_capacity(self, outcome: Outcome, /) -> bool:
        read: bool = outcome.api == self.name and _READS(outcome)
        return read

    def make_rescheduling_document(self, templates: Iterable[Document]) -> Document:
        return make_rescheduling_document(templates)

    def make_reschedule_request(
        self, templates: Iterable[Document], ttl: timedelta | None, /, *, only_unavailable: bool = False
    ) -> Document:
        return make_reschedule_request(self.state, templates, ttl, only_unavailable=only_unavailable)

    def list_evictions(self, template: Document, outcome: Outcome, /) -> Mapping[str, datetime | None]:
        return list_evictions(self.state, template, outcome)

    def describe_remedy(self, template: Document, kept: Outcome, rescheduled: Outcome | None, expected: Outcome, /) -> str:
        return describe_remedy(self.state, template, kept, rescheduled, expected)
