"""Why a vreplica goes to one pod and not to another, and the whole state that decided it."""

from __future__ import annotations

from gitsched.apis.knative.pods import node_of
from gitsched.apis.knative.reading import Reading, locate
from gitsched.apis.knative.settling import Settled
from gitsched.model.decision import Verdict
from gitsched.model.document import Document
from gitsched.model.explanation import Candidate, Explanation, Share
from gitsched.model.finding import Finding
from gitsched.schedule.vreplicas.board import Board


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
    place = locate(template)
    location = f"{place.path}:{place.line}" if place else ""
    mine = tuple(finding for finding in findings if finding.resource == template.key.resource)
    verdicts = judge(reading, settled, template.key.kind, template.key.name, template.key.namespace)
    if verdicts is None:
        return None
    candidates = tuple(Candidate(verdict) for verdict in verdicts)
    held = settled.held.get(str(template.key), {})
    result = tuple(Share(f"{reading.adapter.key.name}-{ordinal}", None, number) for ordinal, number in held.items())
    return Explanation(str(template.key), location, "knative", candidates=candidates, result=result, findings=mine)
