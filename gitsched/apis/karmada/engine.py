"""The Karmada policy engine: schedule each workload of a commit and write its binding.

A workload goes through, in this order: the policy that governs it, the end of graceful evictions, eviction by taints, the triggers, the
scheduler, the binding. When a deadline lies between the source's moment and now, the same steps are taken again at that deadline, so
that a late run writes what a punctual one would have written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.engine import ChangeProposal, Snapshot
from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding import last_valid
from gitsched.apis.karmada.binding.previous_binding import add_hub_bindings
from gitsched.apis.karmada.binding.resource_binding import (
    PreviousState,
    ScheduleResult,
    find_schedule_trigger,
    is_rebalance_pending,
    make_schedule_result,
    read_previous,
    write_binding,
)
from gitsched.apis.karmada.binding.target_clusters import find_target_clusters, mark_suspended, read_uid
from gitsched.apis.karmada.cluster.candidates import read_clusters
from gitsched.apis.karmada.cluster.taints import read_taint_policies
from gitsched.apis.karmada.dependencies.dependencies_distributor import (
    Attachment,
    DependenciesDistributor,
    decide_attached,
    list_previous_targets,
)
from gitsched.apis.karmada.failover import failback
from gitsched.apis.karmada.failover.failover import Failover
from gitsched.apis.karmada.failover.graceful_eviction import add_preserved_labels
from gitsched.apis.karmada.interpreter import ReplicaRequirements, WorkloadPaths, read_replica_requirements
from gitsched.apis.karmada.overrides.override_policy import read_overrides
from gitsched.apis.karmada.policy.propagation_policy import (
    PolicyIndex,
    PropagationPolicy,
    apply_activation_preference,
    find_preempting_policy,
    is_skipped,
    parse_policy,
)
from gitsched.apis.karmada.policy.warnings import SelectableResources, find_policy_warnings
from gitsched.apis.karmada.rebalancer import RescheduleTriggers
from gitsched.apis.karmada.simulation import describe_remedy, make_rescheduling_document
from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding, locate_document
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import Assignment, CandidateResult, Decision, Outcome, Request
from gitsched.schedule import pipeline
from gitsched.schedule.estimator import Capacity

_MAX_DEADLINES = 64
"""Deadlines that one run makes up for at most, for one workload."""


class SchedulingPass(NamedTuple):
    """One pass over a workload: `before` it, `memory` after evictions, what the scheduler would be asked, `why` it was (None: no need),
    what was decided (None: the scheduler was not asked) and what came of it."""

    time: datetime
    previous: PreviousState
    current: PreviousState
    request: Request
    trigger: str | None
    decision: Decision | None
    outcome: Outcome

    @property
    def has_removed_cluster(self) -> bool:
        """Whether the scheduler took the workload away from a cluster."""
        if self.decision is None or self.decision.status not in ("scheduled", "no-fit"):
            return False
        return not {target.name for target in self.current.clusters} <= {target.name for target in self.decision.assignments}


class KarmadaEngine:
    """See `gitsched.apis.engine.PolicyEngine`."""

    name = "karmada"

    def __init__(self, world: Snapshot) -> None:
        settings = world.config.karmada
        self.snapshot = add_hub_bindings(world)
        self.settings = settings
        self._taint_policies = read_taint_policies(
            world.documents.get((names.POLICY_GROUP, names.TAINT_POLICY), ()),
            (key for key in world.quarantined if (key.group, key.kind) == (names.POLICY_GROUP, names.TAINT_POLICY)),
            world.previous,
            world.at,
        )
        self._inventory = read_clusters(
            world.documents.get((names.CLUSTER_GROUP, names.CLUSTER), ()),
            world.quarantined,
            world.previous,
            settings.missing_facts == "assume",
            world.at,
            self._taint_policies,
        )
        self.fleet = self._inventory.fleet
        self.added_taints = self._inventory.added_taints
        self.leaving_clusters = frozenset(candidate.name for candidate in self.fleet.candidates if candidate.deleting)
        kinds = (names.BINDING, names.CLUSTER_BINDING)
        self.failover = Failover(
            self.fleet, settings, (document for kind in kinds for document in world.documents.get((names.WORK_GROUP, kind), ()))
        )
        kinds = (names.POLICY, names.CLUSTER_POLICY)
        self.policies = PolicyIndex(
            parse_policy(document) for kind in kinds for document in world.documents.get((names.POLICY_GROUP, kind), ())
        )
        self.overrides = read_overrides(world, self.fleet)
        self.declared_paths = {
            (w.api_version, w.kind): WorkloadPaths(_split_path(w.replicas_path), _split_path(w.pod_template_path))
            for w in world.config.workloads
        }
        stock = SelectableResources(world.templates, (*world.documents, *((key.group, key.kind) for key in world.quarantined)))
        self._policy_warnings = find_policy_warnings(self.policies.policies.values(), settings.preemption, self.fleet.names, stock)
        self.dependencies = DependenciesDistributor(self)
        self._reconcile_rebalancers()

    def update(self, world: Snapshot) -> bool:
        self.snapshot = add_hub_bindings(world)
        before = self.reschedule_triggers
        self._reconcile_rebalancers()
        # Whether a workload has a binding is asked of a new session: this one has yet to learn what the changed workloads need.
        same = (self.reschedule_triggers.records, self.reschedule_triggers.findings) == (before.records, before.findings)
        return same and not self.reschedule_triggers.pending

    @property
    def revision(self) -> int:
        return self.dependencies.revision

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        return self.dependencies.affected_by(dirty)

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        return self.dependencies.decision_inputs(template)

    def _reconcile_rebalancers(self) -> None:
        self.reschedule_triggers = RescheduleTriggers(self.snapshot)
        self.dependencies.clear()
        self.reschedule_triggers.reconcile(self.snapshot, self.decide)
        self.findings: tuple[Finding, ...] = (*self._inventory.findings, *self._policy_warnings, *self.reschedule_triggers.findings)
        self.wakeup: datetime | None = self.reschedule_triggers.wakeup
        self.time: datetime | None = self.reschedule_triggers.time

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        return ()

    def clusters(self) -> Mapping[str, ClusterInfo]:
        return self._inventory.facts

    def records(self) -> Iterable[tuple[Key, Body]]:
        return (*self._inventory.records, *self._taint_policies.records, *self.reschedule_triggers.records)

    def selects(self, template: Document) -> bool:
        return self.find_policy(template)[0] is not None

    def decide(self, template: Document) -> Outcome | None:
        return self.dependencies.decide(template)

    def decide_workload(self, template: Document) -> Outcome | None:
        """Decide one workload, its owners first."""
        previous = self.snapshot.previous.get(names.binding_key(template.key))
        attachment = self.dependencies.find_attachment(template)
        outcome = self._decide_binding(template, previous, attachment)
        if outcome is None or not outcome.records:
            return outcome
        outcome = outcome._replace(targets=mark_suspended(outcome.targets, outcome.records[0][1]))
        return self.dependencies.merge_dependents(template, outcome) if attachment is not None else outcome

    def _decide_binding(self, template: Document, previous: Body | None, attachment: Attachment | None) -> Outcome | None:
        policy, claim = self.find_policy(template, previous)
        if policy is None:
            if claim is not None and claim in self.snapshot.quarantined:
                return self.keep_previous(template, f"its policy {claim} is broken")
            return decide_attached(self, template, attachment, previous) if attachment else None
        missing = last_valid.find_missing_prerequisite(self, template, policy)
        if missing is not None:
            return last_valid.wait_for_prerequisite(self, template, policy, missing)
        steps = self.run_passes(template, policy, self.read_requirements(template), previous, attachment)
        kept = last_valid.keep_if_overrides_fail(self, template, (step.outcome for step in steps), previous)
        cause = next((found for step in reversed(steps) if (found := self._find_reschedule_cause(template, step))), "")
        return kept or steps[-1].outcome._replace(
            previous_targets=list_previous_targets(steps[0].previous.clusters, previous), trigger=cause
        )

    def _find_reschedule_cause(self, template: Document, step: SchedulingPass) -> str:
        """What made a pass forget the assignment: a request to rebalance, or a return to an earlier group."""
        if step.decision is None or not step.request.fresh:
            return ""
        asked = is_rebalance_pending(step.current)
        return (
            self.reschedule_triggers.describe_trigger(names.binding_key(template.key), step.current)
            if asked
            else step.trigger or ""
        )

    def run_passes(
        self,
        template: Document,
        policy: PropagationPolicy,
        demand: ReplicaRequirements,
        previous: Body | None,
        attachment: Attachment | None,
    ) -> list[SchedulingPass]:
        """The pass at the source's moment, and one at each deadline between it and now.

        A cluster that holds the workload is let in where another would not be. So where one was given up, the next pass may choose
        otherwise; upstream makes it at once, since the binding changed, and here the next run would move the workload for no reason.
        """
        steps = [self._run_pass(template, policy, demand, previous, attachment, self.snapshot.at)]
        for _ in range(_MAX_DEADLINES):
            last = steps[-1]
            if last.has_removed_cluster and not self.snapshot.single_cycle:
                again = self._run_pass(template, policy, demand, last.outcome.records[0][1], attachment, last.time)
                if again.outcome.records != last.outcome.records:
                    steps.append(again)
                    continue
            if last.outcome.wakeup is None or last.outcome.wakeup > self.snapshot.now:
                break
            steps.append(self._run_pass(template, policy, demand, last.outcome.records[0][1], attachment, last.outcome.wakeup))
        return steps

    def keep_previous(self, template: Document, why: str) -> Outcome | None:
        return last_valid.keep_previous(self, template, why)

    def evaluate_candidates(self, template: Document) -> list[CandidateResult]:
        previous = self.snapshot.previous.get(names.binding_key(template.key))
        policy, _ = self.find_policy(template, previous)
        if policy is None:
            return []
        request = self.build_request(
            template, policy, self.read_requirements(template), self._read_previous(template, previous), self.snapshot.now
        )
        decision = pipeline.schedule(request, self.fleet)
        group = next((g for g in request.groups if g.name == decision.group), request.groups[request.first_group])
        return pipeline.explain_group(request, group, self.fleet)

    def evaluate_own(self, _kind: str, _name: str, _namespace: str, /) -> list[CandidateResult] | None:
        return None

    def explain(self, template: Document) -> Explanation | None:
        from gitsched.apis.karmada.explanation.decision import explain  # only the verb explain needs it

        return explain(self, template)

    def free_capacity(self) -> Mapping[str, Capacity | None]:
        from gitsched.apis.karmada.simulation import list_free_capacity  # only simulations need it

        return list_free_capacity(self)

    def resource_request(self, template: Document) -> tuple[tuple[str, int], ...]:
        from gitsched.apis.karmada.simulation import read_resource_request

        return read_resource_request(self, template)

    def relevant_clusters(self, template: Document) -> frozenset[str] | None:
        from gitsched.apis.karmada.simulation import find_relevant_clusters

        return find_relevant_clusters(self, template)

    def make_rescheduling_document(self, templates: Iterable[Document]) -> Document:
        return make_rescheduling_document(templates)

    def describe_remedy(self, template: Document, stays: Outcome, anew: Outcome | None, wanted: Outcome) -> str:
        return describe_remedy(self, template, stays, anew, wanted)

    def propose(self, template: Document, cluster: str) -> ChangeProposal | None:
        from gitsched.apis.karmada.explanation.proposals import propose  # only the verb explain needs it

        return propose(self, template, cluster)

    def read_requirements(self, template: Document) -> ReplicaRequirements:
        """What a workload asks for."""
        return read_replica_requirements(template, self.declared_paths)

    def find_policy(self, template: Document, previous: Body | None = None) -> tuple[PropagationPolicy | None, Key | None]:
        """The policy of a workload, and the one that claimed it before. A claim holds as long as its policy selects the workload."""
        annotations = as_string_map(get_field(previous or template.body, "metadata", "annotations"))
        claim = names.read_claim(annotations)
        if claim is not None:
            claim = _set_claim_namespace(claim, template.key.namespace)
            policy = self.policies.policies.get(claim)
            if policy is not None and not is_skipped(template.key) and self.policies.selects(policy, template):
                if self.settings.preemption:
                    policy = find_preempting_policy(policy, self.policies.list_policies_by_name(template))
                return apply_activation_preference(policy, template, previous), claim
            if policy is None and claim in self.snapshot.quarantined:
                return None, claim
        matched = self.policies.match(template)
        return apply_activation_preference(matched, template, previous) if matched else None, claim

    def build_request(
        self, template: Document, policy: PropagationPolicy, demand: ReplicaRequirements, memory: PreviousState, moment: datetime
    ) -> Request:
        """What the scheduler is asked for a binding."""
        placement = policy.placement
        pending = is_rebalance_pending(memory)
        return Request(
            identity=read_uid(template),
            replicas=demand.replicas or 0,
            division=placement.division if demand.is_workload else "everywhere",
            groups=placement.groups,
            divides=placement.is_divided,
            resource_request=demand.resource_request,
            first_group=0 if pending else placement.find_group_index(memory.observed_group),
            tolerations=placement.tolerations,
            required_api=(template.api_version, template.key.kind),
            required_fields=placement.spread_fields,
            evicted=(
                *(str(task.get("fromCluster")) for task in memory.eviction_tasks),
                *self.failover.list_excluded_clusters(template, policy, memory, moment),
            ),
            previous=memory.clusters,
            weights=placement.weights,
            spread_constraints=() if placement.division == "static" else placement.spreads,
            fresh=pending,
            keep_empty=self.settings.enable_empty_workload_propagation,
        )

    def _run_pass(
        self,
        template: Document,
        policy: PropagationPolicy,
        demand: ReplicaRequirements,
        previous: Body | None,
        attachment: Attachment | None,
        moment: datetime,
    ) -> SchedulingPass:
        before = self._read_previous(template, previous)._replace(required_by=attachment.required_by if attachment else None)
        memory = self.failover.evict(template, policy, self.failover.drop_finished_tasks(template, before, moment), moment)
        why = find_schedule_trigger(policy, demand, memory, memory.clusters, self.leaving_clusters)
        request, settings = self.build_request(template, policy, demand, memory, moment), self.settings.failback
        if self.is_scheduling_skipped(policy, memory):
            turn = failback.SchedulingAttempt(request, why, None)
        else:
            turn = failback.schedule_with_failback(
                settings, request, why, failback.read_failback_timers(memory.annotations), self.fleet, moment
            )
        if settings.mode != "Never" and self.failover.read_purge_mode(policy) != "Directly":
            left = failback.make_failback_tasks(turn, memory.observed_group, memory.clusters, self.fleet.index, moment)
            memory = memory._replace(eviction_tasks=(*memory.eviction_tasks, *left))
        result = make_schedule_result(turn.decision, policy, before, memory, moment)
        result = result._replace(failback_timers=self._update_failback_timers(template, policy, demand, memory, result, moment))
        result = result._replace(annotations=self.failover.write_annotations(template, policy, before, result, moment))
        body = write_binding(template, policy, demand, memory, result)
        self.dependencies.annotate_binding(body, template, policy, attachment)
        outcome = self._build_outcome(template, policy, demand, result, body, moment, attachment)
        return SchedulingPass(moment, before, memory, *turn, outcome)

    def _read_previous(self, template: Document, previous: Body | None) -> PreviousState:
        return self.reschedule_triggers.apply_trigger(names.binding_key(template.key), read_previous(previous))

    def _update_failback_timers(
        self,
        template: Document,
        policy: PropagationPolicy,
        demand: ReplicaRequirements,
        memory: PreviousState,
        result: ScheduleResult,
        moment: datetime,
    ) -> failback.FailbackTimers:
        """The clocks of earlier groups as the next run will find them: asked of the binding as it is after this pass."""
        if self.settings.failback.mode != "AfterStabilization" or self.is_scheduling_skipped(policy, memory):
            return ()
        after = memory._replace(
            clusters=result.clusters, observed_group=result.observed_group, last_scheduled=result.last_scheduled
        )
        request = self.build_request(template, policy, demand, after, moment)
        return failback.update_failback_timers(
            self.settings.failback, request, failback.read_failback_timers(memory.annotations), self.fleet, moment
        )

    def is_scheduling_skipped(self, policy: PropagationPolicy, memory: PreviousState) -> bool:
        """Whether the binding is not for this scheduler: suspended, or another one's."""
        scheduler = policy.spec.get("schedulerName") or names.DEFAULT_SCHEDULER
        return memory.scheduling_suspended or scheduler != names.DEFAULT_SCHEDULER

    def _build_outcome(
        self,
        template: Document,
        policy: PropagationPolicy,
        demand: ReplicaRequirements,
        result: ScheduleResult,
        body: Body,
        moment: datetime,
        attachment: Attachment | None,
    ) -> Outcome:
        divided = demand.is_workload and policy.placement.is_divided
        placed, findings = find_target_clusters(self, template, result.clusters, result.eviction_tasks, demand, divided, attachment)
        placed = add_preserved_labels(template, placed, result.annotations)
        if result.reason not in ("Success", ""):
            unplaced = _describe_unplaced_replicas(demand, divided, result.clusters)
            message = f"{template.key} could not be scheduled: {result.message}{unplaced}"
            findings = (*findings, Finding("warning", "unschedulable", message, locate_document(template), template.key.resource))
        if demand.invalid_replicas and policy.placement.is_divided:
            message = f"{template.key} has no number at {demand.replicas_path}: its replicas are not divided"
            findings = (*findings, Finding("warning", "opaque-replicas", message, locate_document(template), template.key.resource))
        findings = (*findings, *self.failover.find_unpreserved_state(template, policy, result.eviction_tasks))
        group = f" in group {result.observed_group}" if result.observed_group else ""
        return Outcome(
            key=template.key,
            api=self.name,
            state="placed" if result.clusters or (attachment and attachment.clusters) else "pending",
            policy=policy.key.title,
            group=result.observed_group,
            targets=placed,
            replicas=demand.replicas,
            records=((names.binding_key(template.key), body),),
            reason=f"{policy.key.title}{group}" + (f", {attachment.reason}" if attachment else ""),
            time=moment,
            wakeup=self._find_wakeup(template, policy, result, moment),
            findings=findings,
        )

    def _find_wakeup(
        self, template: Document, policy: PropagationPolicy, result: ScheduleResult, moment: datetime
    ) -> datetime | None:
        """The next deadline; `moment` itself where one has passed already."""
        ends = (
            self.failover.find_wakeup(template, policy, result, moment),
            failback.find_failback_time(self.settings.failback, result.failback_timers),
        )
        return min((end for end in ends if end is not None), default=None)


def _describe_unplaced_replicas(demand: ReplicaRequirements, divided: bool, clusters: tuple[Assignment, ...]) -> str:
    """How many replicas are left without a place; of what is not divided all are, or none."""
    replicas = demand.replicas or 0
    missing = replicas - sum(target.replicas for target in clusters) if divided or not clusters else 0
    return f" ({missing} of {replicas} replicas have no place)" if missing > 0 else ""


def _split_path(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(".") if part)


def _set_claim_namespace(claim: Key, namespace: str) -> Key:
    return claim._replace(namespace=claim.namespace or namespace) if claim.kind == names.POLICY else claim
