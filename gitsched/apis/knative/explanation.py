"""Explain why vreplicas are on their pods, with the complete state of the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.knative.documents import KnativeInputs, read_previous_rendering
from gitsched.apis.knative.findings import describe_replicas
from gitsched.apis.knative.names import SCHEDULER
from gitsched.apis.knative.scheduler import VpodSchedulingResult
from gitsched.apis.knative.vpods import read_node_name
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.explanation import ExplainedCandidate, Explanation, ExplanationTable, ReplicaShare
from gitsched.model.finding import Finding, format_count, locate_document
from gitsched.model.scheduling import CandidateResult
from gitsched.schedule.vreplicas.autoscaler import find_scale_factor
from gitsched.schedule.vreplicas.candidate_pods import CandidatePods
from gitsched.schedule.vreplicas.plugins import SchedulerPlugin


def evaluate_pods(
    inputs: KnativeInputs, result: VpodSchedulingResult, kind: str, name: str, namespace: str
) -> list[CandidateResult] | None:
    """Return the result of each pod for one more vreplica of a source, in name order; for the StatefulSet, the pods' free capacity."""
    adapter = inputs.adapter.key
    if (adapter.kind, adapter.name) == (kind, name) and namespace in ("", adapter.namespace):
        return _sort_by_name(_evaluate_free_capacity(inputs, result))
    for source, document in inputs.sources.items():
        key = document.key
        if (key.kind, key.name) == (kind, name) and namespace in ("", key.namespace):
            return _sort_by_name(_evaluate_source(inputs, result, source))
    return None


def _sort_by_name(candidates: list[CandidateResult]) -> list[CandidateResult]:
    return sorted(candidates, key=lambda candidate: candidate.name)


def _evaluate_free_capacity(inputs: KnativeInputs, result: VpodSchedulingResult) -> list[CandidateResult]:
    candidates = []
    for ordinal, reason in _list_ordinals(inputs, result).items():
        free = result.state.free[ordinal] if ordinal <= result.state.last_ordinal else result.state.capacity
        candidates.append(
            CandidateResult(
                f"{inputs.adapter.key.name}-{ordinal}", not reason, reason, {"free": free}, free if not reason else None
            )
        )
    return candidates


def _evaluate_source(inputs: KnativeInputs, result: VpodSchedulingResult, source: str) -> list[CandidateResult]:
    adapter, strategy = result.adapter, inputs.scheduling_input.strategy
    counts = {ordinal: number for ordinal, number in result.placements[source].items() if ordinal in adapter.pods}
    free = {ordinal: result.state.free[ordinal] for ordinal in adapter.pods}
    candidate_pods = CandidatePods(adapter, strategy.scheduler_profile, free, counts, list(adapter.pods))
    candidates = []
    for ordinal, reason in _list_ordinals(inputs, result).items():
        name = f"{inputs.adapter.key.name}-{ordinal}"
        relaxed = "" if reason or strategy.max_fill_up else candidate_pods.explain_relaxed_predicates(ordinal)
        refusal = reason or (
            "the pod is full"
            if strategy.max_fill_up and free[ordinal] <= 0
            else ""
            if strategy.max_fill_up
            else ""
            if relaxed
            else candidate_pods.explain_rejection(ordinal)
        )
        scores = (
            {}
            if refusal or strategy.max_fill_up
            else {plugin: float(score) for plugin, score in candidate_pods.list_scores(ordinal).items()}
        )
        candidates.append(CandidateResult(name, not refusal, refusal or relaxed, scores, sum(scores.values()) if scores else None))
    return candidates


def _list_ordinals(inputs: KnativeInputs, result: VpodSchedulingResult) -> dict[int, str]:
    """Return the ordinals of all pods that exist or hold vreplicas, each with the reason why it is unschedulable, or ""."""
    ordinals = {*inputs.adapter_pods.pods, *(ordinal for shares in result.placements.values() for ordinal in shares)}
    return {ordinal: _find_unschedulable_reason(ordinal, inputs, result) for ordinal in sorted(ordinals)}


def _find_unschedulable_reason(ordinal: int, inputs: KnativeInputs, result: VpodSchedulingResult) -> str:
    if ordinal in result.adapter.pods:
        return ""
    if ordinal >= result.adapter_state.replicas:
        return f"the StatefulSet has {format_count(result.adapter_state.replicas, 'replica')}"
    pod = inputs.adapter_pods.pods.get(ordinal)
    if pod is None:
        return "the Pod does not exist"
    if ordinal in result.adapter.unschedulable:
        return "it is marked unschedulable"
    node = read_node_name(pod)
    if not node:
        return "it has no node yet"
    return (
        f"its Node {node} does not exist"
        if node in inputs.adapter_pods.missing_nodes
        else f"its node {node} is cordoned or unreachable"
    )


def explain_placements(
    inputs: KnativeInputs, result: VpodSchedulingResult, template: Document, findings: tuple[Finding, ...]
) -> Explanation | None:
    """Explain the placements of a source, or the complete state of the StatefulSet; None for other documents."""
    candidates = evaluate_pods(inputs, result, template.key.kind, template.key.name, template.key.namespace)
    ordinals = (inputs.adapter.key, *(document.key for document in inputs.sources.values()))
    if candidates is None or template.key not in ordinals:
        return None
    location, adapter = locate_document(template), inputs.adapter.key
    explanation = Explanation(
        str(template.key),
        f"{location.path}:{location.line}" if location else "",
        policy=_describe_policy(inputs),
        policy_reason=_describe_plugins(inputs),
        candidates=tuple(ExplainedCandidate(candidate) for candidate in candidates),
        findings=tuple(finding for finding in findings if finding.resource == template.key.resource),
        candidate_kind="pod",
    )
    if template.key == adapter:
        replicas = ReplicaShare(inputs.cluster_name or "the cluster", None, result.adapter_state.replicas)
        tables = tuple(_make_state_tables(inputs, result))
        return explanation._replace(candidates=(), trigger=describe_replicas(result), result=(replicas,), tables=tables)
    placements = result.placements[str(template.key)]
    wish = inputs.wishes.get(str(template.key))
    trigger = f"{wish.origin.key} wants {wish.consumers} consumers" if wish and wish.consumers is not None else ""
    return explanation._replace(
        trigger=trigger,
        result=tuple(ReplicaShare(f"{adapter.name}-{ordinal}", None, number) for ordinal, number in placements.items()),
    )


def explain_previous(template: Document, records: Iterable[tuple[Key, Body]], finding: Finding) -> Explanation | None:
    """Explain a previous record that was kept; None if there is no such record."""
    record = dict(records).get(template.key)
    if record is None:
        return None
    location = locate_document(template)
    placements = get_field(record, "status", "placements") or ()
    rendering = read_previous_rendering(record)
    rendered_replicas = (ReplicaShare(rendering.cluster, None, rendering.replicas),) if rendering else ()
    return Explanation(
        str(template.key),
        f"{location.path}:{location.line}" if location else "",
        policy="no valid policy",
        policy_reason=finding.message,
        result=rendered_replicas or tuple(ReplicaShare(entry["podName"], None, entry["vreplicas"]) for entry in placements),
        findings=(finding,),
        candidate_kind="pod",
    )


def _describe_policy(inputs: KnativeInputs) -> str:
    if inputs.scheduling_input.strategy.max_fill_up:
        return "MAXFILLUP"
    return f"ConfigMap {inputs.adapter.key.namespace}/{SCHEDULER}" if inputs.has_scheduler_policy else "gitsched's defaults"


def _describe_plugins(inputs: KnativeInputs) -> str:
    strategy = inputs.scheduling_input.strategy
    if strategy.max_fill_up:
        return "fill pods one after the other"
    predicates = ", ".join(_describe_plugin(predicate) for predicate in strategy.scheduler_profile.predicates) or "no predicates"
    priorities = (
        ", ".join(f"{priority.name} x {weight}" for priority, weight in strategy.scheduler_profile.priorities) or "no priorities"
    )
    return f"{predicates}; {priorities}"


def _describe_plugin(plugin: SchedulerPlugin) -> str:
    return f"{plugin.name}({plugin.argument} {plugin.value})" if plugin.argument else plugin.name


def _make_state_tables(inputs: KnativeInputs, result: VpodSchedulingResult) -> Iterator[ExplanationTable]:
    """Yield the fields of the scheduler's State as tables."""
    state, adapter = result.state, inputs.adapter.key.name
    facts = {
        "capacity of a pod": state.capacity,
        "replicas": result.adapter_state.replicas,
        "schedulable pods": len(state.schedulable),
        "free capacity": state.free_capacity,
        "last ordinal": state.last_ordinal,
        "nodes": len(state.zones),
        "zones": len(set(state.zones.values())),
        "pods at a time": find_scale_factor(state, inputs.scheduling_input.strategy),
        "expected vreplicas": sum(state.expected.values()),
        "pending vreplicas": sum(state.pending.values()),
    }
    yield ExplanationTable("State", ("what", "value"), tuple((name, str(value)) for name, value in facts.items()))
    rows = []
    for ordinal, reason in _list_ordinals(inputs, result).items():
        pod = inputs.adapter_pods.pods.get(ordinal)
        node = read_node_name(pod) if pod else ""
        free = state.free[ordinal] if ordinal <= state.last_ordinal else state.capacity
        rows.append((f"{adapter}-{ordinal}", str(free), node or "-", state.zones.get(node, "-"), reason or "yes"))
    yield ExplanationTable("Pods", ("pod", "free", "node", "zone", "schedulable"), tuple(rows))
    yield ExplanationTable("Usable nodes", ("node", "zone"), tuple(state.zones.items()))
    yield ExplanationTable(
        "Sources",
        ("source", "expected", "pending", "on pods", "on nodes", "in zones"),
        tuple(
            (
                name,
                str(expected),
                str(state.pending[name]),
                _format_counts(state.pod_spread[name]),
                _format_counts(state.node_spread[name]),
                _format_counts(state.zone_spread[name]),
            )
            for name, expected in state.expected.items()
        ),
    )


def _format_counts(counts: Mapping[int, int] | Mapping[str, int]) -> str:
    return " ".join(f"{name}={number}" for name, number in counts.items()) or "-"
