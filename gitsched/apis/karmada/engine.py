"""The Karmada policy engine: schedule each workload of a commit and write its binding.

A pass over a workload finds its policy, removes finished graceful eviction tasks, evicts from tainted and unhealthy clusters, looks for
a schedule trigger, calls the scheduler and writes the binding. When a deadline is between the time of the commit and now, another pass
runs for that deadline, so a delayed run writes the same output as a run on time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import ChangeProposal, Companions, Continuation, ExpiredDocument, HealthReport, SnapshotChanges
from gitsched.apis.karmada import names
from gitsched.apis.karmada.autoscalers import NO_AUTOSCALERS
from gitsched.apis.karmada.binding.binding_decision import decide_binding, run_passes
from gitsched.apis.karmada.binding.repeated_binding import are_bindings_plain, is_repeated
from gitsched.apis.karmada.binding.scheduling_pass import apply_overrides, find_decisive_pass, mark_suspended
from gitsched.apis.karmada.binding.unscheduled_outcomes import keep_previous
from gitsched.apis.karmada.capacity_engine import CapacityEngine
from gitsched.apis.karmada.cluster.availability import list_reported_unready, list_unavailable
from gitsched.apis.karmada.companions import describe_selection, list_companions
from gitsched.apis.karmada.dependencies.attached_binding import Attachment
from gitsched.apis.karmada.dependencies.dependencies_distributor import DependenciesDistributor
from gitsched.apis.karmada.dependencies.references import depends_on
from gitsched.apis.karmada.explanation.rebalance_effect import explain_rebalancer, explain_unmoved
from gitsched.apis.karmada.observed_decisions import list_observed_decisions
from gitsched.apis.karmada.policy.near_selection import describe_lost_selection, describe_near_selections
from gitsched.apis.karmada.queue.coupled_decisions import needs_queue, protects_capacity
from gitsched.apis.karmada.reschedule_triggers import NO_TRIGGERS
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.karmada.warnings import PolicyWarnings, find_policy_warnings
from gitsched.apis.registered import Registered
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import Explanation, NearSelection
from gitsched.model.finding import FieldOrigin, Finding
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import AffinityGroup, CandidateResult, Outcome, Request, TargetCluster
from gitsched.model.variants import BUNDLE_KIND
from gitsched.schedule import pipeline
from gitsched.schedule.fleet import ClusterAffinityFilter

if TYPE_CHECKING:
    from gitsched.apis.karmada.binding.resource_binding import SchedulingPass
    from gitsched.apis.karmada.continuation.state_continuation import ContinuedState
    from gitsched.apis.karmada.queue.coupled_bindings import CoupledBindings
    from gitsched.apis.karmada.queue.scheduling_queue import SchedulingQueue
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.model.adoption import AdoptedRecord, RunningObjects
    from gitsched.model.changes import Cause
    from gitsched.model.source_edits import SourceEdits

_MAKE_CYCLE = Registered("gitsched.apis.karmada.queue.scheduling_queue", "SchedulingQueue")
_COUPLE = Registered("gitsched.apis.karmada.queue.coupled_bindings", "CoupledBindings")
_LIST_STATIC_QUOTAS = Registered("gitsched.apis.karmada.static_quotas", "list_static_quotas")
_FIND_WITHOUT_EFFECT = Registered("gitsched.apis.karmada.policy.policies_without_effect", "find_policies_without_effect")
_LIST_RIVALS = Registered("gitsched.apis.karmada.policy.policies_without_effect", "list_rivals")
_FIND_UNOBSERVED = Registered("gitsched.apis.karmada.queue.capacity_positions", "find_unobserved")


class KarmadaEngine(CapacityEngine):
    """See `gitsched.apis.policy_api.PolicyEngine`."""

    name = names.API_NAME
    policy_kinds = names.POLICY_KINDS

    def __init__(self, snapshot: Snapshot, continued: tuple[KarmadaEngine, ContinuedState] | None = None) -> None:
        """Read a snapshot. An engine that continues another one, which is given with its new state, takes over what that knows of
        templates, and reads none."""
        before, made = continued if continued is not None else (None, None)
        state = self.state = KarmadaState(snapshot) if made is None else made.state
        unused = (*snapshot.quarantined, *snapshot.unused)
        kinds = (*snapshot.documents, *((key.group, key.kind) for key in unused), *snapshot.part_kinds)
        # An engine that continues another one looks for them when its findings are read: a simulation reads none.
        self._policy_warnings: PolicyWarnings | None = None
        known = before._policy_warnings if before is not None else None
        self._find_policy_warnings: Callable[[], PolicyWarnings] | None = lambda: find_policy_warnings(
            state,
            kinds,
            snapshot.templates.values if made is None else made.list_templates,
            known if made is not None and made.keeps_selections else None,
        )
        if known is not None and made is not None and made.keeps_warnings:
            self._policy_warnings, self._find_policy_warnings = known, None
        if made is None:
            self._read_policy_warnings()
        # Without propagateDeps, Lazy policies and priority classes, no decision depends on another object.
        self.dependencies: DependenciesDistributor | None = None
        if state.has_dependencies or state.has_followers:
            distributor = before.dependencies if before is not None else None
            self.dependencies = (
                DependenciesDistributor(state, self) if distributor is None else distributor.continue_with(state, self)
            )
        self.coupled: CoupledBindings | None = None
        self._cycle: SchedulingQueue | None = None
        if any(state.settings.gates) and needs_queue(state):  # few settings have gates
            if snapshot.single_cycle:
                state.queue = self._cycle = _MAKE_CYCLE(state)
            else:
                earlier = before.coupled if before is not None else None
                self.coupled = _COUPLE(state) if made is None or earlier is None else earlier.continue_with(state, made.gone)
                state.queue = self.coupled
        self.protects_capacity = state.fleet.has_capacity and protects_capacity(state)
        self.shares_capacity = self.protects_capacity or self.coupled is not None
        if made is None:
            self._reconcile_rebalancers()

    def continue_with(self, snapshot: Snapshot, changes: SnapshotChanges, /) -> Continuation | None:
        from gitsched.apis.karmada.continuation.state_continuation import continue_state  # most changes are of templates

        made = continue_state(self.state, snapshot, changes)
        if made is None:
            return None
        engine, affected = KarmadaEngine(snapshot, (self, made)), made.affected
        if engine.coupled is not None:
            affected |= engine.coupled.update_groups(affected.union(changes.templates))  # findings are about the groups, too
        if made.state.reschedule_triggers.pending:
            # What a rebalancer names is decided at once, which needs the references of changed templates.
            affected |= engine.affected_by(affected.union(changes.templates))
        engine._reconcile_rebalancers()
        return Continuation(engine, affected)

    @property
    def reads_other_templates(self) -> bool:
        state = self.state
        return state.has_dependencies or state.has_followers or not state.autoscalers.is_empty

    def list_inputs(self) -> Iterable[Key]:
        brought = self.dependencies.list_related() if self.dependencies is not None else ()
        return frozenset((*brought, *self.state.autoscalers.list_related()))

    def list_selectable(self, before: PolicyEngine, after: PolicyEngine, changes: SnapshotChanges, /) -> frozenset[Key] | None:
        from gitsched.apis.karmada.continuation.brought_templates import may_bring_selected  # only to compare commits
        from gitsched.apis.karmada.continuation.selectable_templates import find_selectable

        assert isinstance(before, KarmadaEngine), "both are engines of this API"
        assert isinstance(after, KarmadaEngine), "both are engines of this API"
        if self.state.queue is not None or may_bring_selected(self.dependencies, (before.state, after.state, self.state), changes):
            return None
        return find_selectable(before.state, after.state, changes)

    def keep_outcomes(self, kept: Mapping[Key, Outcome], /) -> frozenset[Key]:
        """What depends on the workloads follows their previous bindings, and WorkloadRebalancers that name them are pending. A workload
        without a document counts as one whose document is invalid."""
        snapshot = self.state.snapshot
        gone = frozenset(key for key in kept if key not in snapshot.templates and key not in snapshot.elsewhere)
        self.state.snapshot = snapshot._replace(kept={**snapshot.kept, **kept}, quarantined=snapshot.quarantined | gone)
        self._reconcile_rebalancers()
        required = self.dependencies.list_required(gone) if self.dependencies is not None and gone else frozenset[Key]()
        others = self.coupled.keep(kept) if self.coupled is not None else frozenset[Key]()
        return self.affected_by(frozenset(kept)) | required | others

    def update(self, snapshot: Snapshot, /) -> bool:
        if self._cycle is not None:
            return False
        before = self.state.reschedule_triggers
        self.state.replace_snapshot(snapshot)
        if self.coupled is not None:
            self.coupled.restart(frozenset())
        self._reconcile_rebalancers()
        # With a pending rebalance a new engine is needed: this one has not read the references of the changed workloads yet, so it
        # cannot say which workloads have a binding.
        after = self.state.reschedule_triggers
        return (after.records, after.findings) == (before.records, before.findings) and not after.pending

    def repeats(self, template: Document, outcome: Outcome, /) -> bool:
        if self._cycle is not None or not are_bindings_plain(self.state):
            return False
        if self.dependencies is not None and self.dependencies.relates_objects:
            return False
        return is_repeated(self.state, template, outcome)

    @property
    def revision(self) -> int:
        revision = self.state.autoscalers.revision + (self.dependencies.revision if self.dependencies is not None else 0)
        return revision + (self.coupled.revision if self.coupled is not None else 0)

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        found = self.dependencies.affected_by(dirty) if self.dependencies is not None else frozenset[Key]()
        if self.coupled is not None:
            found |= self._update_groups(self.coupled, dirty | found)
        if self.state.autoscalers is NO_AUTOSCALERS:
            return found - dirty
        return found | self.state.autoscalers.affected_by(dirty | found, self.state.snapshot.templates) - dirty

    def _update_groups(self, coupled: CoupledBindings, dirty: frozenset[Key]) -> frozenset[Key]:
        """Return the others of the groups of some workloads. The findings follow the groups."""
        revision, found = coupled.revision, coupled.update_groups(dirty)
        if coupled.revision != revision:
            self.__dict__.pop("findings", None)
            if self._policy_warnings is not None:
                self.findings = self._join_findings(self._policy_warnings)
        return found

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        inputs: tuple[object, ...] = self.dependencies.decision_inputs(template) if self.dependencies is not None else ()
        if self._cycle is not None:
            inputs = (self._cycle,)  # equal to that of no other run
        elif self.coupled is not None:
            inputs = (*inputs, *self.coupled.list_inputs(template))
        return (*inputs, *self.state.autoscalers.decision_inputs(template.key, self.state.snapshot))

    def list_policy_inputs(self, template: Document) -> tuple[object, ...] | None:
        state = self.state
        depends = self.dependencies is not None or state.queue is not None or state.autoscalers is not NO_AUTOSCALERS
        if depends or state.reschedule_triggers is not NO_TRIGGERS or state.snapshot.kept:
            return None
        policy, claim = state.find_policy(template, state.find_record(template))
        return (policy and policy.document, claim)

    def describe_delivery(self, template: Document, key: Key, /) -> str:
        policy, _ = self.state.find_policy(template, self.state.find_record(template))
        if policy is None or policy.spec.get("propagateDeps") is True:
            return ""
        variants = self.state.snapshot.variants.get(template.key) if template.key[:2] == BUNDLE_KIND else None
        objects = (template,) if variants is None else (one for variant in variants.variants for one in variant.objects)
        declared = ((one, self.state.declared_paths.get((one.api_version, one.key.kind))) for one in objects)
        if not any(depends_on(one, key, paths.pod_spec if paths else ()) for one, paths in declared):
            return ""
        return f"set spec.propagateDeps: true in {policy.key.title}"

    def describe_selection(self, template: Document, companions: Iterable[Document], /) -> str:
        return describe_selection(self.state, template, companions)

    def describe_near_selections(self, templates: Iterable[Document], /) -> Mapping[Key, NearSelection]:
        return describe_near_selections(self.state, templates)

    def describe_lost_selection(self, policy: Key, workloads: Collection[Key], /) -> Cause | None:
        return describe_lost_selection(self.state, policy, workloads, self.findings)

    def find_policies_without_effect(
        self, applying: Collection[str], list_workloads: Callable[[], Iterable[tuple[Document, str]]], /
    ) -> Iterable[Finding]:
        state = self.state
        found: Iterable[Finding] = _FIND_WITHOUT_EFFECT(state.policies, applying, list_workloads, state.settings.preemption)
        return found

    def list_rivals(
        self, policy: Key, list_workloads: Callable[[], Iterable[tuple[Document, str]]], /
    ) -> list[tuple[Key, str, str]] | None:
        policies = self.state.policies
        found: list[tuple[Key, str, str]] | None = None
        if policy in policies.policies:
            found = _LIST_RIVALS(policies, policy, list_workloads())
        return found

    def _reconcile_rebalancers(self) -> None:
        triggers = self.state.reschedule_triggers
        if self.dependencies is not None:
            self.dependencies.clear()
        if triggers is not NO_TRIGGERS:
            if self.dependencies is not None:
                triggers.add_companions(self.dependencies.list_companions)
            triggers.reconcile(self.state.snapshot, self.decide, self._explain_unmoved)
        missing = self.state.find_missing_clusters() if self.state.other_clusters else ()
        unobserved, known_at = _FIND_UNOBSERVED(self.state) if self.protects_capacity else ((), None)
        self._other_findings = (*self.state.inventory.findings, *unobserved), (*missing, *triggers.findings)
        self.__dict__.pop("findings", None)
        if self._policy_warnings is not None:
            self.findings = self._join_findings(self._policy_warnings)
        self.wakeup: datetime | None = min((time for time in (triggers.wakeup, known_at) if time is not None), default=None)
        self.time: datetime | None = triggers.time

    def _explain_unmoved(self, template: Document) -> str:
        return explain_unmoved(self.state, template)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override] # the instance has it as an attribute once it is known
        return self._join_findings(self._read_policy_warnings())

    def _read_policy_warnings(self) -> PolicyWarnings:
        if self._policy_warnings is None:
            assert self._find_policy_warnings is not None, "what looks for them goes once they are known"
            self._policy_warnings, self._find_policy_warnings = self._find_policy_warnings(), None
        return self._policy_warnings

    def _join_findings(self, warnings: PolicyWarnings) -> tuple[Finding, ...]:
        first, last = self._other_findings
        coupled = self.coupled.find_warnings() if self.coupled is not None else ()
        return (*first, *warnings.findings, *coupled, *last)

    def expired_documents(self) -> Iterable[ExpiredDocument]:
        return self.state.reschedule_triggers.expired

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        has_quotas = (names.POLICY_GROUP, names.QUOTA) in self.state.snapshot.documents
        found: Iterable[tuple[Document, Outcome]] = _LIST_STATIC_QUOTAS(self.state) if has_quotas else ()
        return found

    def clusters(self) -> Mapping[str, ClusterInfo]:
        return self.state.inventory.facts

    def records(self) -> Iterable[tuple[Key, Body]]:
        state = self.state
        found = (*state.inventory.records, *state.taint_policies.records, *state.reschedule_triggers.records)
        if self._cycle is not None:
            self._cycle.run(self._decide_scaled)
        return found if state.queue is None else (*found, *state.queue.records)

    def list_health_reports(self, workload: Key, /) -> Mapping[str, HealthReport]:
        reported = self.state.failover.read_health(workload)
        return {cluster: HealthReport(health == "Healthy", self.state.snapshot.at) for cluster, health in reported.items()}

    def selects(self, template: Document) -> bool:
        return self.state.find_policy(template)[0] is not None

    def decide(self, template: Document) -> Outcome | None:
        if self._cycle is not None:
            return self._cycle.decide(template, self._decide_scaled)
        coupled = self.coupled
        if coupled is None or not coupled.takes_turn(template.key):
            return self._decide_scaled(template)
        coupled.begin_turn(template.key)
        outcome = self._decide_scaled(template)
        coupled.count(template.key, outcome)
        return outcome

    def _decide_scaled(self, template: Document) -> Outcome | None:
        outcome, autoscalers = self._decide_alone(template), self.state.autoscalers
        if outcome is None or autoscalers is NO_AUTOSCALERS or template.key in self.state.snapshot.kept:
            return outcome
        return autoscalers.add_minima(template, outcome, self.state.snapshot.templates, self._decide_alone)

    def _decide_alone(self, template: Document) -> Outcome | None:
        """Decide one workload without regard to the minima of its autoscalers."""
        return self.dependencies.decide(template) if self.dependencies is not None else self.decide_workload(template)

    def decide_workload(self, template: Document) -> Outcome | None:
        """Decide one workload after the workloads that depend on it."""
        kept = self.state.snapshot.kept.get(template.key)
        if kept is not None:
            return kept
        record = self.state.find_record(template)
        attachment = self._find_attachment(template)
        outcome = decide_binding(self.state, self.dependencies, template, record, attachment)
        if outcome is None or not outcome.records:
            return outcome
        targets = mark_suspended(outcome.targets, outcome.records[0][1])
        outcome = outcome if targets is outcome.targets else outcome._replace(targets=targets)
        outcome = self._count_sets(template, outcome)
        if self.state.autoscalers is not NO_AUTOSCALERS:
            outcome = self.state.autoscalers.divide_limits(template, outcome, self.state.snapshot.templates, self._decide_alone)
        return outcome if attachment is None or self.dependencies is None else self.dependencies.merge_dependents(template, outcome)

    def _count_sets(self, template: Document, outcome: Outcome) -> Outcome:
        """Return the outcome without a number of scheduled replicas if whole variants are placed."""
        variants = self.state.read_variant_requirements(template) if self.state.snapshot.variants else None
        return outcome if variants is None or not variants.places_sets else outcome._replace(replicas=None)

    def _find_attachment(self, template: Document) -> Attachment | None:
        """Return what the dependents of an object require; None without dependents."""
        return self.dependencies.find_attachment(template) if self.dependencies is not None else None

    def list_observed_decisions(self, document: Document, edits: SourceEdits, /) -> frozenset[Key]:
        return list_observed_decisions(self.state, self._find_attachment, document, edits)

    def keep_previous(self, template: Document, why: str) -> Outcome | None:
        outcome = keep_previous(self.state, template, self._find_attachment(template), why)
        return self._count_sets(template, outcome) if outcome is not None else None

    def evaluate_candidates(self, template: Document) -> list[CandidateResult]:
        found = self._find_explained_group(template)
        return pipeline.explain_group(*found, self.state.fleet) if found is not None else []

    def evaluate_candidate(self, template: Document, cluster: str, /) -> CandidateResult | None:
        found, index = self._find_explained_group(template), self.state.fleet.index.get(cluster)
        return pipeline.explain_candidate(*found, self.state.fleet, index) if found is not None and index is not None else None

    def _find_explained_group(self, template: Document) -> tuple[Request, AffinityGroup] | None:
        """Return the request for a workload, and the affinity group that would be used; None without a policy."""
        request = self._build_request(template)
        if request is None or len(request.groups) == 1:
            return None if request is None else (request, request.groups[0])
        decision = pipeline.schedule(request, self.state.fleet)
        return request, next((g for g in request.groups if g.name == decision.group), request.groups[request.first_group])

    def _build_request(self, template: Document) -> Request | None:
        """Return the request for a workload; None without a policy."""
        state = self.state
        record = state.find_record(template)
        policy, _ = state.find_policy(template, record)
        if policy is None:
            return None
        requirements, previous = state.read_requirements(template), state.read_previous(template, record)
        return state.build_request(template, policy, requirements, previous, state.snapshot.now)

    def may_place(self, template: Document, cluster: str, /) -> bool:
        request, index = self._build_request(template), self.state.fleet.index.get(cluster)
        if request is None:
            return True  # other workloads bring it along
        rule = ClusterAffinityFilter()
        return index is not None and any(rule.mask(request, one, self.state.fleet, 0) >> index & 1 for one in request.groups)

    def customize(self, template: Document, target: TargetCluster, /) -> TargetCluster:
        state = self.state
        if not state.overrides.policies:
            return target
        return apply_overrides(state, template, (target,), state.read_variant_requirements(template))[0][0]

    def find_overrider(self, template: Document, cluster: str, path: Sequence[str], /) -> FieldOrigin | None:
        return self.state.overrides.find_overrider(template, cluster, path)

    def unavailable_clusters(self) -> Mapping[str, str]:
        return list_unavailable(self.state)

    def clusters_reported_unready(self) -> frozenset[str]:
        return list_reported_unready(self.state)

    def evaluate_own(self, _kind: str, _name: str, _namespace: str, /) -> list[CandidateResult] | None:
        return None

    # What follows is imported where it is needed: only `explain` and simulations use it.

    def explain(self, template: Document) -> Explanation | None:
        if template.key.kind == names.REBALANCER and template.key.group == names.APPS_GROUP:
            return explain_rebalancer(self.state, template, self.decide)
        from gitsched.apis.karmada.explanation.decision import explain

        record, attachment = self.state.find_record(template), self._find_attachment(template)
        policy, _ = self.state.find_policy(template, record)
        passes: Sequence[SchedulingPass] = (
            run_passes(self.state, self.dependencies, template, policy, record, attachment) if policy is not None else ()
        )
        return explain(self.state, template, passes, attachment, self.decide(template))

    def propose(self, template: Document, cluster: str) -> ChangeProposal | None:
        record = self.state.find_record(template)
        policy, _ = self.state.find_policy(template, record)
        if policy is None or cluster not in self.state.fleet.index:
            return None
        from gitsched.apis.karmada.explanation.proposals import propose

        passes = run_passes(self.state, self.dependencies, template, policy, record, self._find_attachment(template))
        return propose(self.state, template, policy, find_decisive_pass(passes), cluster)

    def list_pending_requests(self) -> Iterable[Key]:
        return [rebalancer.document.key for rebalancer in self.state.reschedule_triggers.rebalancers if rebalancer.pending]

    def adopt(self, workloads: Iterable[Document], running: RunningObjects, /) -> Iterable[AdoptedRecord]:
        from gitsched.apis.karmada.adoption import adopt_workloads

        return adopt_workloads(self.state, workloads, running)

    def list_companions(self, templates: Iterable[Document], among: Mapping[Key, Document] | None = None) -> Companions:
        return list_companions(self.state, templates, self.state.snapshot.templates if among is None else among)
