"""Decide bindings one after the other, in the order of Karmada's queue, with what the earlier ones of the run take: one cycle, as Karmada
does it. Commands decide by `coupled_bindings`.

1. The detector updates every binding that exists: its requirements, and its affinity groups. A quota may refuse that.
2. The bindings are decided: those of higher priority first, then those of the last run by namespace and name, then new ones in the order of
   their templates.
3. A placement that changes counts at once: its replicas as assumed, its clusters for the groups, its requests for the quotas.

Source: karmada/pkg/scheduler/internal/queue and pkg/scheduler/cache.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.karmada.binding.resource_binding import ScheduleResult, binding_key, write_clusters
from gitsched.apis.karmada.binding_queue import Decide
from gitsched.apis.karmada.interpreter import ReplicaRequirements, write_replicas
from gitsched.apis.karmada.names import APPLIED_PLACEMENT_ANNOTATION, BINDING, WORK_GROUP
from gitsched.apis.karmada.policy.policy_options import read_schedule_priority
from gitsched.apis.karmada.queue.affinity_groups import AffinityGroups, make_affinity_groups, read_affinity_groups
from gitsched.apis.karmada.queue.assumed_replicas import derive_assumed, list_bound_pods, read_in_flight
from gitsched.apis.karmada.queue.coupled_bindings import keep_former, list_clusters
from gitsched.apis.karmada.queue.coupled_decisions import list_quotas
from gitsched.apis.karmada.queue.federated_quotas import FederatedQuotas, measure_usage
from gitsched.apis.karmada.queue.quota_refusal import QuotaRefusal
from gitsched.apis.snapshot import list_previous_records
from gitsched.model.document import Body, Document, Key, list_objects, read_annotations
from gitsched.model.scheduling import CapacityEstimates, Outcome, PeerClusters
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.capacity_ledger import CapacityLedger

if TYPE_CHECKING:
    from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
    from gitsched.apis.karmada.state import KarmadaState


class _QueuedBinding(NamedTuple):
    """A binding with its place in the queue."""

    priority: int
    is_new: bool
    position: tuple[str, str, int]
    order: int
    template: Document
    policy: PropagationPolicy


class SchedulingQueue:
    """See `gitsched.apis.karmada.binding_queue.BindingQueue`. It is for one cycle of Karmada's scheduler, as the pure API asks for it."""

    def __init__(self, state: KarmadaState) -> None:
        self._state, self._gates = state, state.settings.gates
        self._assumed = CapacityLedger([one.capacity for one in state.fleet.candidates], scales=True)
        self._refused: frozenset[Key] = frozenset()
        self.quota_refusals: dict[Key, QuotaRefusal] = {}
        self._groups = AffinityGroups({}, self._find_recorded)
        self._groups_of: dict[Key, dict[str, str]] = {}
        self._quotas = FederatedQuotas(list_quotas(state) if self._gates.quota else ())
        self._outcomes: dict[Key, Outcome | None] | None = None

    def _find_recorded(self, key: Key) -> Iterable[str]:
        return list_clusters(self._state.snapshot.previous.get(binding_key(key)))

    def decide(self, template: Document, decide: Decide) -> Outcome | None:
        """Return the decision about a workload. The first call decides all workloads of the run."""
        self.run(decide)
        assert self._outcomes is not None, "the queue has run"
        return self._outcomes[template.key] if template.key in self._outcomes else decide(template)

    def run(self, decide: Decide) -> None:
        """Decide all bindings, once."""
        if self._outcomes is not None:
            return
        self._outcomes = {}
        queued = self._list_bindings()
        self._assume_earlier(one.template for one in queued)
        self._release_quotas({binding_key(one.template.key) for one in queued})
        self._detect(sorted(queued, key=lambda one: one.order))
        for one in sorted(queued, key=lambda one: one[:3]):
            outcome = self._outcomes[one.template.key] = decide(one.template)
            if outcome is not None and outcome.records:
                self._take(one.template, outcome.records[0][1])

    def find_remaining(self) -> CapacityEstimates | None:
        return self._assumed if self._gates.overcommit_protection else None

    def find_peers(self, template: Document) -> PeerClusters | None:
        return self._groups.find_peers(template.key)

    def find_groups(self, template: Document) -> Mapping[str, str]:
        return self._groups_of.get(template.key, {})

    def refuses_update(self, template: Document) -> bool:
        return template.key in self._refused

    def limit(self, template: Document, requirements: ReplicaRequirements, result: ScheduleResult) -> ScheduleResult:
        if not self._gates.quota or not template.key.namespace:
            return result
        spec, record = write_replicas(requirements), self._state.find_record(template)
        after = measure_usage({**spec, "clusters": write_clusters(result.clusters)})
        refusal = self._quotas.refuse(template.key.namespace, self._measure_bound(spec, record), after)
        if refusal is None:
            return result
        self.quota_refusals[template.key] = refusal
        return keep_former(result, record, refusal)

    @property
    def records(self) -> Iterable[tuple[Key, Body]]:
        return self._quotas.records

    def _list_bindings(self) -> list[_QueuedBinding]:
        state, order = self._state, {key: number for number, key in enumerate(self._state.snapshot.input_order)}
        found = []
        for template in state.snapshot.templates.values():
            record = state.find_record(template)
            policy, _ = state.find_policy(template, record)
            if policy is None:
                continue
            read = read_schedule_priority(policy, state.snapshot.templates) if template.key.namespace else None
            priority, binding = (read or {}).get("priority", 0), binding_key(template.key)
            is_new = record is None
            number = order.get(template.key, len(order))
            position = ("", "", number) if is_new else (binding.namespace, binding.name, number)
            found.append(_QueuedBinding(-priority, is_new, position, number, template, policy))
        return found

    def _assume_earlier(self, templates: Iterable[Document]) -> None:
        """Assume what was placed by earlier runs: what the settings list, else what the bindings show."""
        if not self._gates.overcommit_protection:
            return
        state, listed = self._state, self._state.settings.in_flight
        records = [(binding_key(one.key), record) for one in templates if (record := state.find_record(one)) is not None]
        known = {f"{binding.namespace}/{binding.name}" for binding, _ in records}
        derived = (one for binding, record in records for one in derive_assumed(binding, record))
        for one in derived if listed is None else read_in_flight(listed):
            index = state.fleet.index.get(one.cluster)
            if index is not None and one.binding in known and one.expires >= state.snapshot.now:
                self._assumed.assume(one.binding, index, one.pods)

    def _release_quotas(self, present: Container[Key]) -> None:
        """Count the usage anew of the namespaces in which bindings are gone, and of the quotas that an earlier run has recorded."""
        if not self._gates.quota:
            return
        records = list_previous_records(self._state.snapshot.previous, WORK_GROUP, BINDING)
        counted = {key.namespace for key, _ in self._quotas.records if key in self._state.snapshot.previous}
        for namespace in sorted(counted.union(key.namespace for key, _ in records if key not in present)):
            left = (record["spec"] for key, record in records if key.namespace == namespace and key in present)
            self._quotas = self._quotas.recount(namespace, map(measure_usage, left), self._state.snapshot.previous)

    def _detect(self, queued: Iterable[_QueuedBinding]) -> None:
        """Update the bindings that exist as their templates and policies are now."""
        refused = set()
        for _, _, _, _, template, policy in queued:
            record = self._state.find_record(template)
            if record is not None and self._gates.quota and template.key.namespace:
                before = measure_usage(record["spec"])
                after = self._measure_bound(write_replicas(self._state.read_wanted_requirements(template)), record)
                refusal = self._quotas.refuse(template.key.namespace, before, after)
                if refusal is not None:
                    refused.add(template.key)
                    self.quota_refusals[template.key] = refusal
                else:
                    self._quotas = self._quotas.add(template.key.namespace, before, after)
            if self._gates.workload_affinity:
                is_kept = record is not None and template.key in refused
                groups = read_affinity_groups(record) if record is not None and is_kept else make_affinity_groups(template, policy)
                self._groups_of[template.key] = groups
        self._groups = AffinityGroups(self._groups_of, self._find_recorded)
        self._refused = frozenset(refused)

    def _measure_bound(self, spec: Body, record: Body | None) -> dict[str, int]:
        """Return what a binding with the requirements of `spec` requests in the clusters of a record."""
        return measure_usage({**spec, "clusters": record["spec"].get("clusters")}) if record is not None else {}

    def _take(self, template: Document, body: Body) -> None:
        """Count what a new binding takes."""
        record, binding = self._state.find_record(template), binding_key(template.key)
        self._groups.set_clusters(template.key, list_clusters(body))
        if self._gates.quota and binding.namespace:
            before = self._measure_bound(body["spec"], record)
            self._quotas = self._quotas.add(binding.namespace, before, measure_usage(body["spec"]))
        if self._gates.overcommit_protection and binding.namespace and _is_patched(record, body):
            owner, clusters = f"{binding.namespace}/{binding.name}", list_objects(body["spec"].get("clusters"))
            for name in list_clusters(record):
                if (index := self._state.fleet.index.get(name)) is not None:
                    self._assumed.assume(owner, index, ())
            for cluster in clusters:
                if (index := self._state.fleet.index.get(str(cluster.get("name")))) is not None:
                    self._assumed.assume(owner, index, list_bound_pods(body["spec"], cluster))


def _is_patched(record: Body | None, body: Body) -> bool:
    """Return whether a run changes the clusters of a binding, or the placement that it has applied."""
    before, after = (
        ({}, None) if one is None else (_read_targets(one), read_annotations(one).get(APPLIED_PLACEMENT_ANNOTATION))
        for one in (record, body)
    )
    return before != after


def _read_targets(record: Body) -> dict[str, tuple[object, object]]:
    targets = list_objects(record["spec"].get("clusters"))
    return {str(one.get("name")): (one.get("replicas"), one.get("components")) for one in targets}
