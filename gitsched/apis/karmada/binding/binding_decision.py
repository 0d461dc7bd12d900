"""Decide the binding of one workload: the passes of a run, and what follows from them for the clusters that it leaves."""

from __future__ import annotations

from collections.abc import Container, Sequence

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.held_binding import drop_lost_clusters, find_hold, hold_binding, hold_unselected
from gitsched.apis.karmada.binding.resource_binding import (
    REBALANCE_REQUESTED,
    SchedulingPass,
    binding_key,
    is_rebalance_pending,
    read_previous,
)
from gitsched.apis.karmada.binding.scheduling_pass import list_previous_targets, run_pass
from gitsched.apis.karmada.binding.unscheduled_outcomes import (
    decide_attached,
    find_broken_override,
    keep_if_overrides_fail,
    keep_previous,
    wait_for_policy,
    wait_for_prerequisite,
)
from gitsched.apis.karmada.dependencies.attached_binding import Attachment
from gitsched.apis.karmada.dependencies.dependencies_distributor import DependenciesDistributor
from gitsched.apis.karmada.policy.policy_options import MissingPrerequisite, find_missing_prerequisite
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.preferred_clusters import find_preference_findings
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.karmada.warnings import find_binding_warnings
from gitsched.apis.registered import Registered
from gitsched.model.document import Body, Document, Key
from gitsched.model.scheduling import Outcome

_FIND_MISSING_INTERPRETER = Registered("gitsched.apis.karmada.custom_interpreters", "find_missing_interpreter")


def decide_binding(
    state: KarmadaState,
    dependencies: DependenciesDistributor | None,
    template: Document,
    record: Body | None,
    attachment: Attachment | None,
) -> Outcome | None:
    """Decide the binding of a workload with the policy that selects it; None without a policy and without dependents."""
    policy, claim = state.find_policy(template, record)
    missing = _find_missing(state, policy, template, record, attachment)
    if missing is not None:
        return wait_for_prerequisite(state, template, policy, attachment, missing)
    if policy is None:
        return _decide_unselected(state, template, claim, record, attachment)
    passes = run_passes(state, dependencies, template, policy, record, attachment)
    before = list_previous_targets(passes[0].previous.clusters, record)
    snapshot, needs_holds = state.snapshot, state.snapshot.load_holds is not None and not state.snapshot.fixed
    if needs_holds and (snapshot.has_adopted or _leaves_clusters(passes, state.fleet.index)):
        scheduled = drop_lost_clusters(state, template, record)
        if scheduled is not record:
            passes, record = run_passes(state, dependencies, template, policy, scheduled, attachment), scheduled
        held = find_hold(state, template, record, read_previous(passes[-1].outcome.records[0][1]).clusters, passes)
        if held is not None:
            requirements = state.read_requirements(template)
            outcome = hold_binding(state, dependencies, template, policy, requirements, record, attachment, held)
            return outcome._replace(previous_targets=before)
    if state.overrides.policies:
        kept = keep_if_overrides_fail(state, template, attachment, [step.outcome for step in passes], record)
        if kept is not None:
            return kept
    triggers = (_find_reschedule_trigger(state, template, step) for step in reversed(passes))
    trigger = next(filter(None, triggers), "")
    outcome = passes[-1].outcome
    warnings = tuple(find_binding_warnings(state, template, passes, attached=attachment is not None))
    more = () if dependencies is None else dependencies.list_findings(template)
    if template.key.name in state.overrides.names:
        more = (*more, *state.overrides.find_unused(template, outcome.targets))
    if record is not None or warnings or more or trigger:
        outcome = outcome._replace(
            previous_targets=before,
            trigger=trigger,
            released=_list_released_clusters(state, template, policy, passes),
            findings=(*outcome.findings, *warnings, *more),
        )
    return outcome if passes[-1].request.preferred is None else _report_preference(state, template, outcome, passes[-1])


def _find_missing(
    state: KarmadaState, policy: PropagationPolicy | None, template: Document, record: Body | None, attachment: Attachment | None
) -> MissingPrerequisite | None:
    """Return what must be there before a policy applies to a workload, or before it is delivered for others, and is not."""
    missing: MissingPrerequisite | None = None
    if state.broken_overrides is not None and (policy is not None or attachment is not None):
        missing = find_broken_override(state, template, record)
    if policy is None or missing is not None:
        return missing
    if policy.has_prerequisites:
        missing = find_missing_prerequisite(policy, template, state.overrides, state.snapshot.templates)
    if missing is None and state.interpreted_kinds:
        missing = _FIND_MISSING_INTERPRETER(state.interpreted_kinds, template, policy, state.read_requirements(template))
    return missing


def _decide_unselected(
    state: KarmadaState, template: Document, claim: Key | None, record: Body | None, attachment: Attachment | None
) -> Outcome | None:
    """Decide the binding of a workload that no policy selects; None without dependents. `claim` is the policy that selected it before."""
    if claim is not None and claim in state.snapshot.quarantined:
        kept = keep_previous(state, template, attachment, f"its policy {claim} is broken")
        if kept is not None or attachment is None:
            return kept or wait_for_policy(state, template, claim)
    if record is not None and state.snapshot.load_holds is not None:
        held = hold_unselected(state, template, attachment, record)
        if held is not None:
            return held
    attached = decide_attached(state, template, attachment, record) if attachment else None
    return _report_preference(state, template, attached, None) if attached is not None else None


def _report_preference(state: KarmadaState, template: Document, outcome: Outcome, last: SchedulingPass | None) -> Outcome:
    """Add the findings about the preferred clusters of a workload."""
    findings = tuple(find_preference_findings(state, template, last))
    return outcome._replace(findings=(*outcome.findings, *findings), has_preference=last is not None)


def _list_released_clusters(
    state: KarmadaState, template: Document, policy: PropagationPolicy, passes: Sequence[SchedulingPass]
) -> frozenset[str]:
    """Return the clusters that lose their copy at once, by the purge mode or because a person ended an eviction."""
    first = passes[0].previous
    if not first.clusters and not first.eviction_tasks:
        return frozenset()
    failover = state.failover
    released = failover.list_ended_tasks(template, first.eviction_tasks) if first.eviction_tasks else frozenset()
    released |= {
        str(task.get("fromCluster"))
        for step in passes
        for task in step.current.eviction_tasks
        if task.get("purgeMode") == "Directly"
    }
    return released | {target.name for target in first.clusters} if failover.purges_directly(policy) else released


def _find_reschedule_trigger(state: KarmadaState, template: Document, step: SchedulingPass) -> str:
    """Return why a pass scheduled without regard to the previous assignment: a requested rebalance, or failback to an earlier group."""
    if step.decision is None or not (step.request.fresh or step.trigger == REBALANCE_REQUESTED):
        return ""
    if is_rebalance_pending(step.current):
        return state.reschedule_triggers.describe_trigger(binding_key(template.key), step.current)
    return step.trigger or ""


def run_passes(
    state: KarmadaState,
    dependencies: DependenciesDistributor | None,
    template: Document,
    policy: PropagationPolicy,
    record: Body | None,
    attachment: Attachment | None,
) -> list[SchedulingPass]:
    """Run a pass for the time of the commit and one for each deadline between it and now.

    The filters admit a cluster that already runs the workload where they would reject it otherwise. So after the scheduler removed
    a cluster the next pass may decide differently. Upstream runs that pass at once because the binding changed; without it the next
    run would move the workload for no visible reason.
    """
    snapshot, requirements = state.snapshot, state.read_requirements(template)
    passes = [run_pass(state, dependencies, template, policy, requirements, record, attachment, snapshot.at)]
    for _ in range(names.MAX_DEADLINES):
        last = passes[-1]
        record = last.outcome.records[0][1]
        if _has_removed_cluster(last) and not snapshot.single_cycle:
            repeated = run_pass(state, dependencies, template, policy, requirements, record, attachment, last.time)
            if repeated.outcome.records != last.outcome.records:
                passes.append(repeated)
                continue
        if last.outcome.wakeup is None or last.outcome.wakeup > snapshot.now:
            break
        passes.append(run_pass(state, dependencies, template, policy, requirements, record, attachment, last.outcome.wakeup))
    return passes


def _has_removed_cluster(step: SchedulingPass) -> bool:
    """Return whether the scheduler removed the workload from a cluster."""
    if step.decision is None or step.decision.status not in ("scheduled", "no-fit"):
        return False
    return not {target.name for target in step.current.clusters} <= {target.name for target in step.decision.assignments}


def _leaves_clusters(passes: Sequence[SchedulingPass], existing: Container[str]) -> bool:
    """Return whether the clusters after some passes differ from those before, or one of them has no document."""
    before = {assignment.name for assignment in passes[0].previous.clusters}
    if not before:
        return False
    after = {str(entry.get("name")) for entry in passes[-1].outcome.records[0][1]["spec"].get("clusters", ())}
    return before != after or any(name not in existing for name in before)
