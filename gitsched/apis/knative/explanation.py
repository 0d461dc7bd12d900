"""Why a vreplica goes to one pod and not to another, and the whole state that decided it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.knative.memory import recall_rendering
from gitsched.apis.knative.names import SCHEDULER
from gitsched.apis.knative.notes import tell_replicas
from gitsched.apis.knative.pods import node_of
from gitsched.apis.knative.reading import Reading
from gitsched.apis.knative.settling import Settled
from gitsched.model.decision import Verdict
from gitsched.model.document import Body, Document, Key, member
from gitsched.model.explanation import Candidate, Explanation, Share, Table
from gitsched.model.finding import Finding, locate
from gitsched.schedule.vreplicas.autoscaling import find_factor
from gitsched.schedule.vreplicas.board import Board
from gitsched.schedule.vreplicas.plugins import Plugin


def judge(reading: Reading, settled: Settled, kind: str, name: str, namespace: str) -> list[Verdict] | None:
    """How every pod would fare for one more vreplica of a source, in name order; for the StatefulSet, how much room each has."""
    adapter = reading.adapter.key
    if (adapter.kind, adapter.name) == (kind, name) and namespace in ("", adapter.namespace):
        return _sorted(_show_room(reading, settled))
    for source, document in reading.sources.items():
        key = document.key
        if (key.kind, key.name) == (kind, name) and namespace in ("", key.namespace):
            return _sorted(_judge_source(reading, settled, source))
    return None


def _sorted(verdicts: list[Verdict]) -> list[Verdict]:
    return sorted(verdicts, key=lambda verdict: verdict.name)


def _show_room(reading: Reading, settled: Settled) -> list[Verdict]:
    verdicts = []
    for ordinal, why in _ordinals(reading, settled).items():
        free = settled.state.free[ordinal] if ordinal <= settled.state.last else settled.state.capacity
        verdicts.append(Verdict(f"{reading.adapter.key.name}-{ordinal}", not why, why, {"free": free}, free if not why else None))
    return verdicts


def _judge_source(reading: Reading, settled: Settled, source: str) -> list[Verdict]:
    adapter, strategy = settled.adapter, reading.question.strategy
    counts = {ordinal: number for ordinal, number in settled.held[source].items() if ordinal in adapter.pods}
    free = {ordinal: settled.state.free[ordinal] for ordinal in adapter.pods}
    board = Board(adapter, strategy.adding, free, counts, list(adapter.pods))
    verdicts = []
    for ordinal, why in _ordinals(reading, settled).items():
        name = f"{reading.adapter.key.name}-{ordinal}"
        refusal = why or (
            "the pod is full" if strategy.packs and free[ordinal] <= 0 else "" if strategy.packs else board.refusal(ordinal)
        )
        scores = {} if refusal or strategy.packs else {plugin: float(score) for plugin, score in board.scores(ordinal).items()}
        verdicts.append(Verdict(name, not refusal, refusal, scores, sum(scores.values()) if scores else None))
    return verdicts


def _ordinals(reading: Reading, settled: Settled) -> dict[int, str]:
    """Every pod that there is, or should be, or that holds something, with why it may take nothing new."""
    known = {*reading.cluster.pods, *(ordinal for shares in settled.held.values() for ordinal in shares)}
    return {ordinal: _why_not(ordinal, reading, settled) for ordinal in sorted(known)}


def _why_not(ordinal: int, reading: Reading, settled: Settled) -> str:
    if ordinal in settled.adapter.pods:
        return ""
    if ordinal >= settled.memory.replicas:
        return f"the StatefulSet has {settled.memory.replicas} replicas"
    pod = reading.cluster.pods.get(ordinal)
    if pod is None:
        return "there is no such Pod"
    if ordinal in settled.adapter.marked:
        return "it is marked to be emptied"
    node = node_of(pod)
    if not node:
        return "it has no node yet"
    return f"there is no Node {node}" if node in reading.cluster.lost else f"its node {node} is cordoned or unreachable"


def explain(reading: Reading, settled: Settled, template: Document, findings: tuple[Finding, ...]) -> Explanation | None:
    """A source's placements, or the whole state for the StatefulSet; None for anything else."""
    verdicts = judge(reading, settled, template.key.kind, template.key.name, template.key.namespace)
    known = (reading.adapter.key, *(document.key for document in reading.sources.values()))
    if verdicts is None or template.key not in known:
        return None
    place, adapter = locate(template), reading.adapter.key
    explained = Explanation(
        str(template.key),
        f"{place.path}:{place.line}" if place else "",
        policy=_name_policy(reading),
        policy_reason=_list_plugins(reading),
        candidates=tuple(Candidate(verdict) for verdict in verdicts),
        findings=tuple(finding for finding in findings if finding.resource == template.key.resource),
        among="pod",
    )
    if template.key == adapter:
        replicas = Share(reading.cluster_name or "the cluster", None, settled.memory.replicas)
        tables = tuple(_show_state(reading, settled))
        return explained._replace(candidates=(), trigger=tell_replicas(settled), result=(replicas,), tables=tables)
    held = settled.held[str(template.key)]
    return explained._replace(result=tuple(Share(f"{adapter.name}-{ordinal}", None, number) for ordinal, number in held.items()))


def explain_stay(template: Document, records: Iterable[tuple[Key, Body]], finding: Finding) -> Explanation | None:
    """Why something is as the last run left it; None for what the last run left nothing about."""
    record = dict(records).get(template.key)
    if record is None:
        return None
    place = locate(template)
    held = member(record, "status", "placements") or ()
    rendering = recall_rendering(record)
    where = (Share(rendering.cluster, None, rendering.replicas),) if rendering else ()
    return Explanation(
        str(template.key),
        f"{place.path}:{place.line}" if place else "",
        policy="none that can be used",
        policy_reason=finding.message,
        result=where or tuple(Share(entry["podName"], None, entry["vreplicas"]) for entry in held),
        findings=(finding,),
        among="pod",
    )


def _name_policy(reading: Reading) -> str:
    if reading.question.strategy.packs:
        return "MAXFILLUP"
    return f"ConfigMap {reading.adapter.key.namespace}/{SCHEDULER}" if reading.configured else "gitsched's own"


def _list_plugins(reading: Reading) -> str:
    strategy = reading.question.strategy
    if strategy.packs:
        return "pods are filled one after the other"
    predicates = ", ".join(_describe(predicate) for predicate in strategy.adding.predicates) or "no predicates"
    priorities = ", ".join(f"{priority.name} x {weight}" for priority, weight in strategy.adding.priorities) or "no priorities"
    return f"{predicates}; {priorities}"


def _describe(plugin: Plugin) -> str:
    return f"{plugin.name}({plugin.argument} {plugin.value})" if plugin.argument else plugin.name


def _show_state(reading: Reading, settled: Settled) -> Iterator[Table]:
    """Every field of the state collector."""
    state, adapter = settled.state, reading.adapter.key.name
    facts = {
        "capacity of a pod": state.capacity,
        "replicas": settled.memory.replicas,
        "schedulable pods": len(state.schedulable),
        "free capacity": state.free_capacity,
        "last ordinal": state.last,
        "nodes": len(state.zones),
        "zones": len(set(state.zones.values())),
        "pods at a time": find_factor(state, reading.question.strategy),
        "expected vreplicas": sum(state.expected.values()),
        "pending vreplicas": sum(state.pending.values()),
    }
    yield Table("State", ("what", "value"), tuple((name, str(value)) for name, value in facts.items()))
    rows = []
    for ordinal, why in _ordinals(reading, settled).items():
        pod = reading.cluster.pods.get(ordinal)
        node = node_of(pod) if pod else ""
        free = state.free[ordinal] if ordinal <= state.last else state.capacity
        rows.append((f"{adapter}-{ordinal}", str(free), node or "-", state.zones.get(node, "-"), why or "yes"))
    yield Table("Pods", ("pod", "free", "node", "zone", "schedulable"), tuple(rows))
    yield Table("Usable nodes", ("node", "zone"), tuple(state.zones.items()))
    yield Table(
        "Sources",
        ("source", "expected", "pending", "on pods", "on nodes", "in zones"),
        tuple(
            (
                name,
                str(expected),
                str(state.pending[name]),
                _spread(state.pod_spread[name]),
                _spread(state.node_spread[name]),
                _spread(state.zone_spread[name]),
            )
            for name, expected in state.expected.items()
        ),
    )


def _spread(counts: Mapping[int, int] | Mapping[str, int]) -> str:
    return " ".join(f"{place}={number}" for place, number in counts.items()) or "-"
