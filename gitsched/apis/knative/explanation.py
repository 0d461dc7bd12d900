"""Explain why a vreplica goes to one pod and not to another, with the scheduler's whole state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.knative.documents import KnativeInputs, read_previous_rendering
from gitsched.apis.knative.findings import describe_replicas
from gitsched.apis.knative.names import SCHEDULER
from gitsched.apis.knative.scheduler import VpodSchedulingResult
from gitsched.apis.knative.vpods import read_node_name
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.explanation import ExplainedCandidate, Explanation, ExplanationTable, ReplicaShare
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import CandidateResult
from gitsched.schedule.vreplicas.autoscaler import find_scale_factor
from gitsched.schedule.vreplicas.candidate_pods import CandidatePods
from gitsched.schedule.vreplicas.plugins import SchedulerPlugin


def evaluate_pods(
    reading: KnativeInputs, settled: VpodSchedulingResult, kind: str, name: str, namespace: str
) -> list[CandidateResult] | None:
    """How every pod would fare for one more vreplica of a source, in name order; for the StatefulSet, how much room each has."""
    adapter = reading.adapter.key
    if (adapter.kind, adapter.name) == (kind, name) and namespace in ("", adapter.namespace):
        return _sort_by_name(_evaluate_free_capacity(reading, settled))
    for source, document in reading.sources.items():
        key = document.key
        if (key.kind, key.name) == (kind, name) and namespace in ("", key.namespace):
            return _sort_by_name(_evaluate_source(reading, settled, source))
    return None


def _sort_by_name(verdicts: list[CandidateResult]) -> list[CandidateResult]:
    return sorted(verdicts, key=lambda verdict: verdict.name)


def _evaluate_free_capacity(reading: KnativeInputs, settled: VpodSchedulingResult) -> list[CandidateResult]:
    verdicts = []
    for ordinal, why in _list_ordinals(reading, settled).items():
        free = settled.state.free[ordinal] if ordinal <= settled.state.last_ordinal else settled.state.capacity
        verdicts.append(
            CandidateResult(f"{reading.adapter.key.name}-{ordinal}", not why, why, {"free": free}, free if not why else None)
        )
    return verdicts


def _evaluate_source(reading: KnativeInputs, settled: VpodSchedulingResult, source: str) -> list[CandidateResult]:
    adapter, strategy = settled.adapter, reading.scheduling_input.strategy
    counts = {ordinal: number for ordinal, number in settled.placements[source].items() if ordinal in adapter.pods}
    free = {ordinal: settled.state.free[ordinal] for ordinal in adapter.pods}
    board = CandidatePods(adapter, strategy.scheduler_profile, free, counts, list(adapter.pods))
    verdicts = []
    for ordinal, why in _list_ordinals(reading, settled).items():
        name = f"{reading.adapter.key.name}-{ordinal}"
        refusal = why or (
            "the pod is full"
            if strategy.max_fill_up and free[ordinal] <= 0
            else ""
            if strategy.max_fill_up
            else board.explain_rejection(ordinal)
        )
        scores = (
            {}
            if refusal or strategy.max_fill_up
            else {plugin: float(score) for plugin, score in board.list_scores(ordinal).items()}
        )
        verdicts.append(CandidateResult(name, not refusal, refusal, scores, sum(scores.values()) if scores else None))
    return verdicts


def _list_ordinals(reading: KnativeInputs, settled: VpodSchedulingResult) -> dict[int, str]:
    """Every pod that there is, or should be, or that holds something, with why it may take nothing new."""
    known = {*reading.adapter_pods.pods, *(ordinal for shares in settled.placements.values() for ordinal in shares)}
    return {ordinal: _find_unschedulable_reason(ordinal, reading, settled) for ordinal in sorted(known)}


def _find_unschedulable_reason(ordinal: int, reading: KnativeInputs, settled: VpodSchedulingResult) -> str:
    if ordinal in settled.adapter.pods:
        return ""
    if ordinal >= settled.adapter_state.replicas:
        return f"the StatefulSet has {settled.adapter_state.replicas} replicas"
    pod = reading.adapter_pods.pods.get(ordinal)
    if pod is None:
        return "there is no such Pod"
    if ordinal in settled.adapter.unschedulable:
        return "it is marked to be emptied"
    node = read_node_name(pod)
    if not node:
        return "it has no node yet"
    return (
        f"there is no Node {node}" if node in reading.adapter_pods.missing_nodes else f"its node {node} is cordoned or unreachable"
    )


def explain_placements(
    reading: KnativeInputs, settled: VpodSchedulingResult, template: Document, findings: tuple[Finding, ...]
) -> Explanation | None:
    """A source's placements, or the whole state for the StatefulSet; None for anything else."""
    verdicts = evaluate_pods(reading, settled, template.key.kind, template.key.name, template.key.namespace)
    known = (reading.adapter.key, *(document.key for document in reading.sources.values()))
    if verdicts is None or template.key not in known:
        return None
    place, adapter = locate_document(template), reading.adapter.key
    explained = Explanation(
        str(template.key),
        f"{place.path}:{place.line}" if place else "",
        policy=_describe_policy(reading),
        policy_reason=_describe_plugins(reading),
        candidates=tuple(ExplainedCandidate(verdict) for verdict in verdicts),
        findings=tuple(finding for finding in findings if finding.resource == template.key.resource),
        candidate_kind="pod",
    )
    if template.key == adapter:
        replicas = ReplicaShare(reading.cluster_name or "the cluster", None, settled.adapter_state.replicas)
        tables = tuple(_make_state_tables(reading, settled))
        return explained._replace(candidates=(), trigger=describe_replicas(settled), result=(replicas,), tables=tables)
    held = settled.placements[str(template.key)]
    return explained._replace(
        result=tuple(ReplicaShare(f"{adapter.name}-{ordinal}", None, number) for ordinal, number in held.items())
    )


def explain_previous(template: Document, records: Iterable[tuple[Key, Body]], finding: Finding) -> Explanation | None:
    """Why something is as the last run left it; None for what the last run left nothing about."""
    record = dict(records).get(template.key)
    if record is None:
        return None
    place = locate_document(template)
    held = get_field(record, "status", "placements") or ()
    rendering = read_previous_rendering(record)
    where = (ReplicaShare(rendering.cluster, None, rendering.replicas),) if rendering else ()
    return Explanation(
        str(template.key),
        f"{place.path}:{place.line}" if place else "",
        policy="none that can be used",
        policy_reason=finding.message,
        result=where or tuple(ReplicaShare(entry["podName"], None, entry["vreplicas"]) for entry in held),
        findings=(finding,),
        candidate_kind="pod",
    )


def _describe_policy(reading: KnativeInputs) -> str:
    if reading.scheduling_input.strategy.max_fill_up:
        return "MAXFILLUP"
    return f"ConfigMap {reading.adapter.key.namespace}/{SCHEDULER}" if reading.has_scheduler_policy else "gitsched's own"


def _describe_plugins(reading: KnativeInputs) -> str:
    strategy = reading.scheduling_input.strategy
    if strategy.max_fill_up:
        return "pods are filled one after the other"
    predicates = ", ".join(_describe_plugin(predicate) for predicate in strategy.scheduler_profile.predicates) or "no predicates"
    priorities = (
        ", ".join(f"{priority.name} x {weight}" for priority, weight in strategy.scheduler_profile.priorities) or "no priorities"
    )
    return f"{predicates}; {priorities}"


def _describe_plugin(plugin: SchedulerPlugin) -> str:
    return f"{plugin.name}({plugin.argument} {plugin.value})" if plugin.argument else plugin.name


def _make_state_tables(reading: KnativeInputs, settled: VpodSchedulingResult) -> Iterator[ExplanationTable]:
    """Every field of the state collector."""
    state, adapter = settled.state, reading.adapter.key.name
    facts = {
        "capacity of a pod": state.capacity,
        "replicas": settled.adapter_state.replicas,
        "schedulable pods": len(state.schedulable),
        "free capacity": state.free_capacity,
        "last ordinal": state.last_ordinal,
        "nodes": len(state.zones),
        "zones": len(set(state.zones.values())),
        "pods at a time": find_scale_factor(state, reading.scheduling_input.strategy),
        "expected vreplicas": sum(state.expected.values()),
        "pending vreplicas": sum(state.pending.values()),
    }
    yield ExplanationTable("State", ("what", "value"), tuple((name, str(value)) for name, value in facts.items()))
    rows = []
    for ordinal, why in _list_ordinals(reading, settled).items():
        pod = reading.adapter_pods.pods.get(ordinal)
        node = read_node_name(pod) if pod else ""
        free = state.free[ordinal] if ordinal <= state.last_ordinal else state.capacity
        rows.append((f"{adapter}-{ordinal}", str(free), node or "-", state.zones.get(node, "-"), why or "yes"))
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
    return " ".join(f"{place}={number}" for place, number in counts.items()) or "-"
