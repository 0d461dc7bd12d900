"""Findings of a run: pending vreplicas, moves, evicted pods, missing Nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.knative.documents import EventSources, KnativeInputs
from gitsched.apis.knative.scheduler import VpodSchedulingResult, count_on_marked_pods
from gitsched.model.finding import Finding, locate_document
from gitsched.schedule.vreplicas.state import VreplicasByOrdinal

MAX_NAMED = 5
"""Things of one kind that one message names."""


def report_run(reading: KnativeInputs, settled: VpodSchedulingResult, sources: EventSources, cluster: str) -> Iterator[Finding]:
    """The findings of a run."""
    adapter = reading.adapter
    for node, ordinals in reading.adapter_pods.missing_nodes.items():
        pods = _format_pods(adapter.key.name, ordinals)
        message = f"there is no Node {node}, which {pods} should run on: no new vreplicas go there until one of them is committed"
        yield Finding(
            "warning", "knative-node-missing", message, locate_document(reading.adapter_pods.pods[ordinals[0]]), ("Node", "", node)
        )
    for key in sources.quarantined:
        yield Finding("warning", "stale-decision", f"{key} keeps its placements: its document cannot be used", None, key.resource)
    for name, document in reading.sources.items():
        pending = settled.state.pending[name]
        if pending:
            why = _describe_pending(pending, settled.placeable_on_new_pods.get(name, pending))
            message = f"{pending} of {reading.scheduling_input.desired[name]} vreplicas of {name} are pending: {why}"
            yield Finding("warning", "knative-pending", message, locate_document(document), document.key.resource)
        lingering = count_on_marked_pods(settled.adapter, settled.placements[name])
        if lingering:
            marked = {o: n for o, n in settled.placements[name].items() if o in settled.adapter.unschedulable}
            where = _format_placements(adapter.key.name, marked)
            message = (
                f"{_format_count('vreplica', lingering)} of {name} cannot leave marked pods, {where}: no other pod has a place"
            )
            yield Finding("warning", "knative-lingering", message, locate_document(document), document.key.resource)
    yield from _describe_moves(reading, settled)
    if settled.evicted:
        message = f"{_format_pods(adapter.key.name, sorted(settled.evicted))} are to be emptied: the other pods have room for all they hold"
        yield Finding("info", "knative-evicted", message, locate_document(adapter), adapter.key.resource)
    if not cluster:
        message = (
            f"{adapter.key} is to have {settled.adapter_state.replicas} replicas, which is rendered nowhere: "
            "name its cluster in knative.cluster, or apply what `gitsched export knative` prints"
        )
        yield Finding("info", "knative-no-cluster", message, locate_document(adapter), adapter.key.resource)


def _describe_pending(pending: int, helped: int) -> str:
    if not helped:
        return "no new pod could take them, either"
    return "no pod can take them now" if helped >= pending else f"no pod can take them now, and new pods no more than {helped}"


def describe_replicas(settled: VpodSchedulingResult) -> str:
    """Why the StatefulSet has as many replicas, in one line."""
    state = settled.state
    placed = sum(state.expected.values()) - sum(state.pending.values())
    pending = sum(state.pending.values())
    return f"{placed} vreplicas placed, {pending} pending, {state.capacity} to a pod"


def _describe_moves(reading: KnativeInputs, settled: VpodSchedulingResult) -> Iterator[Finding]:
    """What leaves a pod for another one, source by source; and in one line each what moves, gets a place and goes."""
    adapter = reading.adapter.key
    moved: dict[str, int] = {}
    placed: dict[str, int] = {}
    removed: dict[str, int] = {}
    for name, document in reading.sources.items():
        before, after = reading.placements[name], settled.placements[name]
        gone = {o: n - after.get(o, 0) for o, n in before.items() if n > after.get(o, 0)}
        come = {o: n - before.get(o, 0) for o, n in after.items() if n > before.get(o, 0)}
        both = min(sum(gone.values()), sum(come.values()))
        moved[name], placed[name], removed[name] = both, sum(come.values()) - both, sum(gone.values()) - both
        if both:
            where = f"from {_format_placements(adapter.name, gone)} to {_format_placements(adapter.name, come)}"
            message = (
                f"{both} of {sum(before.values())} vreplicas of {name} move, {where}; these consumers are touched, all others stay"
            )
            yield Finding("info", "knative-moved", message, locate_document(document), document.key.resource)
    if sum(map(bool, moved.values())) > 1:
        yield _summarize("knative-moved", "another pod for", moved, reading)
    if any(placed.values()):
        yield _summarize("knative-placed", "a place for", placed, reading)
    if any(removed.values()):
        yield _summarize("knative-removed", "no longer wanted:", removed, reading)


def _summarize(code: str, what: str, numbers: Mapping[str, int], reading: KnativeInputs) -> Finding:
    """To how many vreplicas something happens, and of which sources, those with most first."""
    some = sorted((entry for entry in numbers.items() if entry[1]), key=lambda entry: -entry[1])
    keys = {name: reading.sources[name].key for name, _ in some}
    named = _join_limited(f"{keys[name].namespace}/{keys[name].name} ({number})" for name, number in some)
    message = f"{what} {_format_count('vreplica', sum(numbers.values()))} of {_format_count('source', len(some))}: {named}"
    return Finding("info", code, message, None, reading.adapter.key.resource)


def _format_count(noun: str, number: int) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _format_placements(adapter: str, shares: VreplicasByOrdinal) -> str:
    return _join_limited(f"{adapter}-{ordinal} ({number})" for ordinal, number in sorted(shares.items()))


def _format_pods(adapter: str, ordinals: Iterable[int]) -> str:
    return _join_limited(f"{adapter}-{ordinal}" for ordinal in ordinals)


def _join_limited(things: Iterable[str]) -> str:
    every = list(things)
    more = f" and {len(every) - MAX_NAMED} more" if len(every) > MAX_NAMED else ""
    return ", ".join(every[:MAX_NAMED]) + more
