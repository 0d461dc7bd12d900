"""Explain a WorkloadRebalancer: the result for each workload, and what it does or would do if it were requested again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from gitsched.apis.karmada.binding.resource_binding import PreviousState, binding_key, is_rebalance_pending, read_previous
from gitsched.apis.karmada.binding.scheduling_pass import is_scheduling_skipped
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.rebalancer import BindingLookup, DecideWorkload, ObservedWorkload, WorkloadRebalancer
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Document
from gitsched.model.explanation import Explanation, ExplanationTable
from gitsched.model.finding import format_names, locate_document
from gitsched.model.scheduling import Assignment, Request
from gitsched.model.taints import NO_SCHEDULE
from gitsched.model.time import add_duration, format_time
from gitsched.report.lines import format_cluster
from gitsched.schedule import pipeline
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.rejections import list_rejections

MAX_REJECTED_CLUSTERS = 5
"""Rejected clusters that one reason names; it counts the others."""

_COLUMNS = ("Workload", "Result", "Runs on", "Effect")
_LATER = timedelta(seconds=1)


def explain_unmoved(state: KarmadaState, template: Document) -> str:
    """Say why rescheduling a workload leaves it on its clusters; "" if the scheduler rejects no cluster that its policy selects."""
    record = state.find_record(template)
    policy, _ = state.find_policy(template, record)
    if policy is None:
        return "no policy selects it, so it follows the workloads that depend on it"
    current = state.read_previous(template, record)
    if is_scheduling_skipped(policy, suspended=current.scheduling_suspended):
        suspended = "its scheduling is suspended"
        return suspended if current.scheduling_suspended else f"it is for scheduler {policy.spec.get('schedulerName')}"
    reasons = list(_list_rejections(_make_fresh_request(state, template, policy, current), state.fleet))
    written = state.policies.policies.get(policy.key)
    if written is not None and written.applied_placement != policy.applied_placement:
        reasons.append("its policy is Lazy, so the placement of its binding is used until the workload is edited")
    taints = name_ignored_taints(state, policy, (target.name for target in current.clusters))
    reasons += [f"{taints} does not count for what runs there"] if taints else []
    return "; ".join(reasons)


def name_ignored_taints(state: KarmadaState, policy: PropagationPolicy, clusters: Iterable[str]) -> str:
    """Return the first NoSchedule taint that a policy does not tolerate, of clusters where a workload runs, with the names of these: they
    reject only other workloads. "" without any."""
    tolerations, found = policy.placement.tolerations, dict[str, list[str]]()
    for name in clusters:
        index = state.fleet.index.get(name)
        for taint in state.fleet.candidates[index].taints if index is not None else ():
            if taint.effect == NO_SCHEDULE and not any(each.tolerates(taint) for each in tolerations):
                found.setdefault(str(taint), []).append(name)
    text, names = next(iter(found.items()), ("", []))
    return f"the taint {text} of {format_names(sorted(names))}" if names else ""


def explain_rebalancer(state: KarmadaState, document: Document, decide: DecideWorkload) -> Explanation | None:
    """Explain a rebalancer; None if it is being deleted, so that it is not read."""
    triggers = state.reschedule_triggers
    rebalancer = next((entry for entry in triggers.rebalancers if entry.document.key == document.key), None)
    if rebalancer is None:
        return None
    lookup, location = BindingLookup(state.snapshot, decide), locate_document(document)
    rows = tuple(_make_row(state, rebalancer, entry, lookup) for entry in rebalancer.observed)
    return Explanation(
        str(document.key),
        location=f"{location.path}:{location.line}" if location else "",
        trigger=_describe_state(rebalancer),
        tables=(ExplanationTable("Workloads", _COLUMNS, rows),),
        findings=tuple(finding for finding in triggers.findings if finding.resource == document.key.resource),
    )


def _describe_state(rebalancer: WorkloadRebalancer) -> str:
    created = f"Created at {format_time(rebalancer.created)}."
    if rebalancer.expired is not None:
        return f"{created} It has finished and expired at {format_time(rebalancer.expired)}, and is not handled again."
    if rebalancer.pending:
        return f"{created} Its workloads without a result are rescheduled once, by the next reconcile in which nothing keeps them."
    finished = f" at {format_time(rebalancer.finished)}" if rebalancer.finished else ""
    end = f" It expires at {format_time(rebalancer.expiry)}." if rebalancer.expiry else " It has no ttlSecondsAfterFinished."
    return f"{created} It has finished{finished}, and is not handled again.{end}"


def _make_row(
    state: KarmadaState, rebalancer: WorkloadRebalancer, entry: ObservedWorkload, lookup: BindingLookup
) -> tuple[str, ...]:
    result = f"{entry.result}: {entry.reason}" if entry.reason else entry.result or "pending"
    if entry.workload not in rebalancer.named:
        result += ", not named any more"
    if not entry.result and lookup.find_availability(entry.workload) == "retained":
        kept, outcome = read_previous(state.snapshot.previous[entry.workload.binding]), lookup.find_outcome(entry.workload)
        reason = outcome.reason if outcome is not None and outcome.state == "stale" else "its document is not valid and unique"
        return str(entry.workload), result, _format_clusters(kept.clusters), f"none yet: {reason}"
    template = lookup.find_template(entry.workload)
    record = state.find_record(template) if template is not None else None
    if template is None or (record is None and lookup.find_availability(entry.workload) == "missing"):
        return str(entry.workload), result, "", "none: it has no binding"
    runs_on = _format_clusters(read_previous(record).clusters)
    return str(entry.workload), result, runs_on, _describe_effect(state, entry, template, lookup)


def _describe_effect(state: KarmadaState, entry: ObservedWorkload, template: Document, lookup: BindingLookup) -> str:
    """Say what this run does to a workload, or what another request would do to one that has a result."""
    record = state.find_record(template)
    before = state.read_previous(template, record)
    outcome = lookup.find_outcome(entry.workload)
    body = dict(outcome.records).get(binding_key(template.key)) if outcome is not None else None
    if outcome is None or body is None or outcome.state == "stale":
        return "none"
    after = read_previous(body)
    if not entry.result:
        if not before.clusters:
            return "none: it is placed for the first time" if after.clusters else "none: it cannot be placed"
        if set(after.clusters) != set(before.clusters):
            return f"moves to {_format_clusters(after.clusters)}"
        if not is_rebalance_pending(before):
            return "none: it was scheduled after the rebalancer was created"
        return f"none: {explain_unmoved(state, template) or 'scheduling from scratch gives the same clusters'}"
    policy, _ = state.find_policy(template, body)
    if policy is None:
        return "none: it follows the workloads that depend on it"
    decision = pipeline.schedule(_make_fresh_request(state, template, policy, after), state.fleet)
    if decision.status == "scheduled" and set(decision.assignments) != set(after.clusters):
        return f"none any more; another request would move it to {_format_clusters(decision.assignments)}"
    return "none any more; another request would not move it"


def _make_fresh_request(state: KarmadaState, template: Document, policy: PropagationPolicy, current: PreviousState) -> Request:
    """Return the scheduler's request for a workload as after a rebalance was requested."""
    if current.last_scheduled is not None:
        current = current._replace(reschedule_triggered=add_duration(current.last_scheduled, _LATER))
    return state.build_request(template, policy, state.read_requirements(template), current, state.snapshot.now)


def _list_rejections(request: Request, fleet: Fleet) -> Iterator[str]:
    """Yield why the groups before the one that is used do not fit, and which clusters of that group are rejected."""
    for group in request.groups:
        where = f"group {group.name}: " if group.name else ""
        decision = pipeline.schedule_in_group(request, group, fleet)
        if decision.status not in ("scheduled", "no-fit"):
            yield f"{where}{decision.message}"
            continue
        rejected = [
            f"{where}cluster {fleet.names[index]}: {rejection.filter.reason(request, fleet, index)}"
            for rejection in list_rejections(request, group, fleet)
            if rejection.filter.name != "ClusterAffinity"
            for index in fleet.members(rejection.mask)
        ]
        yield from rejected[:MAX_REJECTED_CLUSTERS]
        if len(rejected) > MAX_REJECTED_CLUSTERS:
            yield f"{where}{len(rejected) - MAX_REJECTED_CLUSTERS} more clusters"
        if not rejected and decision.status == "no-fit":
            yield f"{where}no cluster matches its affinity"
        if decision.status == "scheduled":
            return


def _format_clusters(clusters: tuple[Assignment, ...]) -> str:
    return ", ".join(format_cluster(target.name, target.replicas or None) for target in sorted(clusters))
