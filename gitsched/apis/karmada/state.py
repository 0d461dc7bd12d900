"""State of one commit: Clusters, policies, settings and previous bindings, as the engine and its modules read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.companions import has_followers
from gitsched.apis.karmada import names
from gitsched.apis.karmada.autoscalers import NO_AUTOSCALERS, AutoscalerIndex
from gitsched.apis.karmada.binding.hub_bindings import BINDING_KINDS, add_hub_bindings
from gitsched.apis.karmada.binding.resource_binding import (
    PreviousState,
    SharedParts,
    binding_key,
    is_rebalance_pending,
    read_claim,
    read_previous,
    set_claim_namespace,
)
from gitsched.apis.karmada.cluster.candidates import ClusterReadings, read_clusters
from gitsched.apis.karmada.cluster.missing_clusters import count_other_clusters, find_missing_clusters
from gitsched.apis.karmada.cluster.taints import NO_TAINT_POLICIES, ClusterTaintPolicies, find_unready_clusters, read_taint_policies
from gitsched.apis.karmada.components import make_sets, read_bound_requirements, read_workload_components
from gitsched.apis.karmada.failover.failover import Failover
from gitsched.apis.karmada.failover.state_preservation import PRESERVED_STATE
from gitsched.apis.karmada.interpreter import (
    ReplicaRequirements,
    read_declared_paths,
    read_replica_requirements,
    read_uid,
)
from gitsched.apis.karmada.overrides.override_policy import NO_OVERRIDES, OVERRIDE_KINDS, read_overrides
from gitsched.apis.karmada.policy.broken_policies import BrokenPolicies
from gitsched.apis.karmada.policy.policy_options import apply_activation_preference, find_preempting_policy, use_bound_fields
from gitsched.apis.karmada.policy.propagation_policy import (
    KnownPlacements,
    PolicyIndex,
    PolicyPlacement,
    PropagationPolicy,
    is_skipped,
    parse_policy,
)
from gitsched.apis.karmada.reschedule_triggers import NO_TRIGGERS, RescheduleTriggers
from gitsched.apis.karmada.settings import SETTINGS, KarmadaConfig
from gitsched.apis.karmada.variant_requirements import VariantRequirements, read_variant_requirements
from gitsched.apis.registered import Registered
from gitsched.apis.replicas import AUTOSCALER_KINDS
from gitsched.apis.snapshot import DEFINITION_KIND, Snapshot, list_definitions
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.document import Body, Document, Key, read_annotations
from gitsched.model.finding import Finding
from gitsched.model.preferred_clusters import PREFERRED_CLUSTERS, read_preferred_clusters
from gitsched.model.scheduling import REGION_FIELD, CapacityEstimates, PodSets, Request, SpreadConstraint
from gitsched.model.taints import NO_EXECUTE
from gitsched.model.variants import WorkloadVariants
from gitsched.schedule.capacity_ledger import CapacityLedger

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.karmada.binding_queue import BindingQueue
    from gitsched.apis.karmada.custom_interpreters import InterpretedKinds
    from gitsched.schedule.shared_capacity import CapacityShare


_TAINT_POLICIES = (names.POLICY_GROUP, names.TAINT_POLICY)
SelectedPolicy = tuple[PropagationPolicy | None, Key | None]
"""The policy of a workload, and the policy that claimed it in an earlier run."""
_READ_INTERPRETED_KINDS = Registered("gitsched.apis.karmada.custom_interpreters", "read_interpreted_kinds")


class _RunCache:
    """What is known of workloads in this run, each with the input that it was read from: the policies that select them, their requirements,
    and what is left for those that others limit. It is not stored with the engine."""

    __slots__ = ("policies", "requirements", "shares", "variants")

    def __init__(self, requirements: dict[Key, tuple[Document, ReplicaRequirements]]) -> None:
        """The `requirements` of a template are the same wherever the run decides about it."""
        self.policies: dict[Key, tuple[Document, Body | None, SelectedPolicy]] = {}
        self.requirements = requirements
        self.variants: dict[Key, tuple[WorkloadVariants, Document, VariantRequirements]] = {}
        self.shares: dict[Key, CapacityShare] = {}

    def __reduce__(self) -> tuple[type[_RunCache], tuple[dict[Key, tuple[Document, ReplicaRequirements]]]]:
        return type(self), ({},)


def _read_taint_policies(snapshot: Snapshot) -> ClusterTaintPolicies:
    documents = snapshot.documents.get(_TAINT_POLICIES, ())
    quarantined = [key for key in snapshot.quarantined if key[:2] == _TAINT_POLICIES]
    if not (documents or quarantined):
        return NO_TAINT_POLICIES
    return read_taint_policies(documents, quarantined, snapshot.previous, snapshot.at)


def _read_policies(snapshot: Snapshot) -> PolicyIndex:
    placements: KnownPlacements = {}
    return PolicyIndex([parse_policy(one, placements) for kind in names.POLICY_KINDS for one in snapshot.documents.get(kind, ())])


def _read_broken_policies(snapshot: Snapshot, kinds: tuple[tuple[str, str], ...]) -> BrokenPolicies | None:
    found = [one for key, one in snapshot.broken.items() if key[:2] in kinds and key in snapshot.quarantined]
    return BrokenPolicies(found) if found else None


class KarmadaState:
    """Data from the documents and the previous output of one commit.

    `snapshot` and `reschedule_triggers` are replaced when the engine is updated; everything else depends only on documents that make a
    new state necessary. No other object keeps a reference to the snapshot: the engine is cached on disk without it.

    A state that continues another one (`before`) reads no template: companions follow as before, and `autoscalers` are given. With
    `keeps_policies` no policy has changed.
    """

    __slots__ = (
        "_failover",
        "_may_evict",
        "_reported_bindings",
        "_run",
        "added_taints",
        "autoscalers",
        "brings_dependencies",
        "broken_overrides",
        "broken_policies",
        "declared_paths",
        "definitions",
        "fleet",
        "has_dependencies",
        "has_followers",
        "interpreted_kinds",
        "inventory",
        "leaving_clusters",
        "other_clusters",
        "overrides",
        "parts",
        "policies",
        "queue",
        "readings",
        "reschedule_triggers",
        "settings",
        "snapshot",
        "taint_policies",
        "unready_clusters",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        before: KarmadaState | None = None,
        autoscalers: AutoscalerIndex = NO_AUTOSCALERS,
        *,
        keeps_policies: bool = False,
    ) -> None:
        self.settings = settings = snapshot.config.settings_of(SETTINGS)
        self.parts = SharedParts()
        self.queue: BindingQueue | None = None
        self._run, self.snapshot = _RunCache({}), snapshot
        self.replace_snapshot(snapshot)
        self._read_fleet(snapshot, before.readings if before is not None else ClusterReadings())
        self._failover: Failover | None = None
        self.policies: PolicyIndex = before.policies if before is not None and keeps_policies else _read_policies(snapshot)
        policies = self.policies.policies.values()
        self.brings_dependencies = any(policy.is_lazy or policy.spec.get("propagateDeps") for policy in policies)
        self.has_dependencies = (
            self.brings_dependencies
            or any(policy.spec.get("schedulePriority") for policy in policies)
            or any(key.group == names.POLICY_GROUP for key in snapshot.quarantined)
        )
        self.broken_policies = _read_broken_policies(snapshot, names.POLICY_KINDS)
        self.broken_overrides = _read_broken_policies(snapshot, OVERRIDE_KINDS)
        self.has_followers: bool = (
            _has_followers(snapshot, [policy.document for policy in policies]) if before is None else before.has_followers
        )
        has_overrides = bool(snapshot.duplicates) or any(kind in snapshot.documents for kind in OVERRIDE_KINDS)
        self.overrides = read_overrides(snapshot, self.fleet) if has_overrides else NO_OVERRIDES
        self.autoscalers = _read_autoscalers(snapshot, settings) if before is None else autoscalers
        self.declared_paths = read_declared_paths(snapshot.config) if snapshot.config.workloads else {}
        self.definitions: Mapping[tuple[str, str], Key] = before.definitions if before is not None else {}
        if before is None and any(key[:2] == DEFINITION_KIND for key in snapshot.templates):
            self.definitions = list_definitions(snapshot)
        interpreters = [kind for kind in names.INTERPRETER_KINDS if kind in snapshot.documents]
        self.interpreted_kinds: tuple[InterpretedKinds, ...] = _READ_INTERPRETED_KINDS(snapshot) if interpreters else ()

    def _read_fleet(self, snapshot: Snapshot, readings: ClusterReadings) -> None:
        """Read the Clusters, their taints, and what can evict workloads from them."""
        self.taint_policies, self.readings = _read_taint_policies(snapshot), readings
        inventory = read_clusters(
            snapshot.documents.get((names.CLUSTER_GROUP, names.CLUSTER), ()),
            snapshot.quarantined,
            snapshot.previous,
            self.settings.missing_facts == "assume",
            snapshot.at,
            self.taint_policies,
            self.settings.failover == "cluster",
            readings,
        )
        self.inventory = inventory._replace(unready=())  # their documents belong to a snapshot
        self.fleet, self.added_taints = inventory.fleet, inventory.added_taints
        self.other_clusters = count_other_clusters(snapshot) if not self.fleet.names else {}
        self.unready_clusters = find_unready_clusters(inventory.unready, self.fleet, self.settings) if inventory.unready else {}
        self.leaving_clusters = frozenset(candidate.name for candidate in self.fleet.candidates if candidate.deleting)
        self._reported_bindings = [document for kind in BINDING_KINDS for document in snapshot.documents.get(kind, ())]
        taints = (taint for candidate in self.fleet.candidates for taint in candidate.taints)
        self._may_evict = bool(self._reported_bindings) or any(taint.effect == NO_EXECUTE for taint in taints)

    def has_settings_of(self, config: Config) -> bool:
        """Return whether the settings of Karmada, and the kinds of workloads that gitsched.yaml declares, are those of this state."""
        return self.settings == config.settings_of(SETTINGS) and self.declared_paths == read_declared_paths(config)

    def replace_snapshot(self, snapshot: Snapshot) -> None:
        """Continue with a snapshot whose policies and Clusters are those of the last one."""
        has_bindings, templates = any(kind in snapshot.documents for kind in BINDING_KINDS), self.snapshot.templates
        self.snapshot = add_hub_bindings(snapshot) if has_bindings else snapshot
        # As long as a run decides the same templates again, with other records. Documents of earlier runs are not kept.
        self._run = _RunCache(self._run.requirements if templates is snapshot.templates else {})
        rebalancer = (names.APPS_GROUP, names.REBALANCER)
        has_rebalancers = rebalancer in snapshot.documents or any(key[:2] == rebalancer for key in snapshot.quarantined)
        self.reschedule_triggers = RescheduleTriggers(self.snapshot) if has_rebalancers else NO_TRIGGERS

    def share_capacity(self, workload: Key, share: CapacityShare) -> None:
        """Decide a workload in this run with what is left for it."""
        self._run.shares[workload] = share

    @contextmanager
    def without_shares(self) -> Iterator[None]:
        """Decide with what clusters have by their facts."""
        shares, self._run.shares = self._run.shares, {}
        try:
            yield
        finally:
            self._run.shares = shares

    def find_definition(self, group: str, kind: str) -> Document | None:
        """Return the CustomResourceDefinition of a kind; None if the source has none."""
        key = self.definitions.get((group, kind)) if self.definitions else None
        return self.snapshot.templates.get(key) if key is not None else None

    @property
    def failover(self) -> Failover:
        """The evictions from the clusters of this commit."""
        if self._failover is None:
            self._failover = Failover(self.fleet, self.settings, self._reported_bindings)
        return self._failover

    @property
    def may_evict(self) -> bool:
        """Whether a cluster or a reported binding can evict a workload."""
        return self._may_evict

    @property
    def has_reported_bindings(self) -> bool:
        """Whether the source has bindings with which clusters report the health of workloads."""
        return bool(self._reported_bindings)

    def find_failover(self, current: PreviousState) -> Failover | None:
        """Return what evicts a workload; None if nothing can evict it, and no earlier eviction is left to handle."""
        is_evicted = current.eviction_tasks or PRESERVED_STATE in current.annotations
        return self.failover if self._may_evict or is_evicted else None

    def find_missing_clusters(self) -> tuple[Finding, ...]:
        """Return the finding that only other APIs have clusters, if policies select a workload."""
        return find_missing_clusters(self.other_clusters, self.snapshot.templates.values(), self.find_policy)

    def find_record(self, template: Document) -> Body | None:
        """Return the previous binding of a workload, or None."""
        return self.snapshot.previous.get(binding_key(template.key))

    def read_previous(self, template: Document, record: Body | None) -> PreviousState:
        """Read a previous binding, with the reschedule trigger of WorkloadRebalancers."""
        previous, triggers = read_previous(record), self.reschedule_triggers
        return triggers.apply_trigger(binding_key(template.key), previous) if triggers.rebalancers else previous

    def keeps_placement(self, template: Document, previous: PreviousState) -> bool:
        """Return whether the scheduler must not handle a workload: everything is fixed, or it is not known where the workload runs."""
        snapshot = self.snapshot
        if not snapshot.has_adopted or previous.clusters or snapshot.load_holds is None:
            return snapshot.fixed
        return snapshot.fixed or bool(snapshot.load_holds().find_adopted(template))

    def read_requirements(self, template: Document) -> ReplicaRequirements:
        """Return the replicas and the resource request of a workload."""
        if self.snapshot.variants and template.key in self.snapshot.variants:
            found = self.read_variant_requirements(template)
            return found.requirements if found is not None else ReplicaRequirements(None, None, None)
        if self.queue is not None and self.queue.refuses_update(template):
            return read_bound_requirements(self.find_record(template) or {})
        return self.read_wanted_requirements(template)

    def read_wanted_requirements(self, template: Document) -> ReplicaRequirements:
        """Return the replicas and the resource request that a template has, whether or not a quota allows them."""
        known = self._run.requirements.get(template.key)
        if known is None or known[0] is not template:
            known = self._run.requirements[template.key] = template, self._read_template(template)
        return known[1]

    def _read_template(self, template: Document) -> ReplicaRequirements:
        if self.settings.gates.components:
            components = read_workload_components(template)
            if components:
                return ReplicaRequirements(None, None, None, components=components)
        return read_replica_requirements(template, self.declared_paths)

    def read_variant_requirements(self, template: Document) -> VariantRequirements | None:
        """Return the replicas and requests of the variants of a workload; None if it has none."""
        variants = self.snapshot.variants.get(template.key) if self.snapshot.variants else None
        if variants is None:
            return None
        known = self._run.variants.get(template.key)
        if known is None or known[0] is not variants or known[1] is not template:
            known = variants, template, read_variant_requirements(template, variants, self.declared_paths)
            self._run.variants[template.key] = known
        return known[2]

    def find_policy(self, template: Document, record: Body | None = None) -> SelectedPolicy:
        """Return the policy of a workload, and the policy that claimed it in an earlier run.

        A claim holds as long as the policy selects the workload. `record` is the previous binding; without it the claim is read from
        the annotations of the workload. (None, claim) is a claim by a quarantined policy.
        """
        if self.queue is not None and self.queue.refuses_update(template):
            policy, claim = self.find_selecting_policy(template, record)
            return policy and use_bound_fields(policy, self.find_record(template) or {}), claim
        return self.find_selecting_policy(template, record)

    def find_selecting_policy(self, template: Document, record: Body | None) -> SelectedPolicy:
        """Return the same, with the fields of the policy as they are now, whether or not a quota allows what follows from them."""
        known = self._run.policies.get(template.key)
        if known is None or known[0] is not template or known[1] is not record:
            known = self._run.policies[template.key] = template, record, self._match_policy(template, record)
        return known[2]

    def _match_policy(self, template: Document, record: Body | None) -> SelectedPolicy:
        annotations = read_annotations(record or template.body)
        claim = read_claim(annotations) if annotations else None
        if claim is not None:
            claim = set_claim_namespace(claim, template.key.namespace)
            policy = self.policies.policies.get(claim)
            if policy is not None and not is_skipped(template.key) and self.policies.selects(policy, template):
                if self.settings.preemption:
                    policy = find_preempting_policy(policy, self.policies.list_policies_by_name(template))
                return _apply_options(policy, template, record), claim
            if policy is None and claim in self.snapshot.quarantined:
                return None, claim
        matched = self.policies.match(template)
        if (record is None or claim is not None) and self.broken_policies is not None:
            blocking = self.broken_policies.find(template, matched)
            if blocking is not None:
                return None, blocking
        return _apply_options(matched, template, record) if matched else None, claim

    def build_request(
        self,
        template: Document,
        policy: PropagationPolicy,
        requirements: ReplicaRequirements,
        current: PreviousState,
        time: datetime,
    ) -> Request:
        """Build the scheduler's request for a binding in its current state."""
        placement = policy.placement
        pending = is_rebalance_pending(current)
        variants = self.read_variant_requirements(template)
        failover = self.find_failover(current)
        queue = self.queue
        sets = make_sets(requirements.components, placement.spreads) if requirements.components else None
        one_set = sets is not None and sets.estimated and all(one.field != REGION_FIELD for one in placement.spreads)
        return Request(
            identity=read_uid(template),
            replicas=int(one_set) if sets is not None else requirements.replicas or 0,
            division=placement.division if requirements.is_workload else "everywhere",
            groups=placement.groups,
            divides=placement.is_divided,
            resource_request=requirements.resource_request,
            first_group=0 if pending else placement.find_group_index(current.observed_group),
            tolerations=placement.tolerations,
            required_api=(template.api_version, template.key.kind) if variants is None else None,
            required_fields=placement.spread_fields,
            evicted=(
                *(str(task.get("fromCluster")) for task in current.eviction_tasks),
                *(failover.list_excluded_clusters(template, policy, current, time) if failover is not None else ()),
            ),
            previous=current.clusters,
            weights=placement.weights,
            spread_constraints=() if placement.division == "static" else self._list_spreads(placement),
            fresh=pending,
            keep_empty=self.settings.enable_empty_workload_propagation,
            variants=variants.candidates if variants is not None else None,
            preferred=_read_preferred(template),
            peers=queue.find_peers(template) if queue is not None else None,
            remaining=self._find_remaining(template.key, sets),
            sets=sets,
        )

    def _list_spreads(self, placement: PolicyPlacement) -> tuple[SpreadConstraint, ...]:
        """Return the spread constraints that choose clusters."""
        return placement.list_spreads(strict=self.settings.strict_spread) if placement.spread_fields else placement.spreads

    def _find_remaining(self, workload: Key, sets: PodSets | None) -> CapacityEstimates | None:
        """Return what is free on the clusters at this moment; None if that is their capacity."""
        share = self._run.shares.get(workload)
        if share is not None:
            return share.read(self.fleet)
        if self.queue is not None and (remaining := self.queue.find_remaining()) is not None:
            return remaining
        capacities = (candidate.capacity for candidate in self.fleet.candidates)
        return None if sets is None else CapacityLedger(tuple(capacities), scales=self.snapshot.single_cycle)


def _read_autoscalers(snapshot: Snapshot, settings: KarmadaConfig) -> AutoscalerIndex:
    copies = (copy for documents in snapshot.duplicate_templates.values() for copy in documents)
    scalers = [template for template in (*snapshot.templates.values(), *copies) if template.key[:2] in AUTOSCALER_KINDS]
    return AutoscalerIndex(scalers, settings.autoscaler_limits == "divide") if scalers else NO_AUTOSCALERS


def _has_followers(snapshot: Snapshot, policies: Iterable[Document]) -> bool:
    """Return whether companions follow workloads. The annotation of a broken policy is not known, so that it may ask for it."""
    if not any(key[:2] in COMPANION_KINDS for key in snapshot.templates):
        return False
    return has_followers(snapshot.templates, policies, snapshot.config)


def _apply_options(policy: PropagationPolicy, template: Document, record: Body | None) -> PropagationPolicy:
    return apply_activation_preference(policy, template, record) if policy.is_lazy else policy


def _read_preferred(template: Document) -> tuple[str, ...] | None:
    """Return the clusters that a workload names as preferred; None without the annotation."""
    metadata = template.body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(annotations, dict) or PREFERRED_CLUSTERS not in annotations:
        return None  # almost every workload: the rest is not called
    read = read_preferred_clusters(template.body)
    return read.names if read is not None else None
