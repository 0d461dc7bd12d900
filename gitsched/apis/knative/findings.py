"""Findings of a run: pending vreplicas, moves, evicted pods, missing Nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gitsched.apis.knative.documents import EventSources, KnativeInputs
from gitsched.apis.knative.names import ADAPTER_SUFFIX, UNSCHEDULABLE
from gitsched.apis.knative.preferred_pods import find_preference_findings
from gitsched.apis.knative.scheduler import VpodSchedulingResult, count_on_marked_pods
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Document
from gitsched.model.finding import Finding, choose_form, format_count, format_part, locate_document
from gitsched.model.time import format_time
from gitsched.schedule.vreplicas.autoscaler import compute_scale_down
from gitsched.schedule.vreplicas.state import VreplicasByOrdinal

MAX_NAMED = 5
"""Maximum number of items that one message lists."""


def report_missing_settings(snapshot: Snapshot, sources: list[Document]) -> Iterator[Finding]:
    """Yield a finding if there are sources with a StatefulSet or with Pods and Nodes for them, but no settings."""
    kinds = Counter(key.kind for key in snapshot.templates if key[:2] in (("", "Pod"), ("", "Node")))
    adapters = [key for key in snapshot.templates if key[:2] == ("apps", "StatefulSet") and key.name.endswith(ADAPTER_SUFFIX)]
    if not sources or not (adapters or (kinds["Pod"] and kinds["Node"])):
        return
    numbers = [
        _format_count("event source", len(sources)),
        *(f"StatefulSet {key.namespace}/{key.name}" for key in adapters[:MAX_NAMED]),
    ]
    numbers += [_format_count(kind, kinds[kind]) for kind in ("Pod", "Node") if kinds[kind]]
    message = (
        f"found {', '.join(numbers)}, but vreplicas are not scheduled: set spec.knative.capacity (vreplicas per pod) and "
        "spec.knative.cluster in gitsched.yaml" + ("" if adapters else ", and commit the StatefulSet of the adapter")
    )
    yield Finding("warning", "knative-settings", message, locate_document(sources[0]), sources[0].key.resource)


def report_run(inputs: KnativeInputs, result: VpodSchedulingResult, sources: EventSources, cluster: str) -> Iterator[Finding]:
    """Yield the findings of a run."""
    adapter = inputs.adapter
    for node, ordinals in inputs.adapter_pods.missing_nodes.items():
        pods = _format_pods(adapter.key.name, ordinals)
        message = f"Node {node} does not exist, but {pods} should run on it: commit the Node, or the pods take no new vreplicas"
        yield Finding(
            "warning", "knative-node-missing", message, locate_document(inputs.adapter_pods.pods[ordinals[0]]), ("Node", "", node)
        )
    yield from _report_wishes(inputs)
    yield from _report_unused_pods(inputs, result)
    yield from _report_marked_pods(inputs, result)
    yield from _report_unavailable(inputs, result)
    for key in sources.quarantined:
        yield Finding("warning", "stale-decision", f"{key} keeps its placements: its document is invalid", None, key.resource)
    for name, document in inputs.sources.items():
        pending = result.state.pending[name]
        if pending:
            marked = sorted(ordinal for ordinal in result.adapter.unschedulable if ordinal < result.adapter_state.replicas)
            reason = _describe_pending(pending, result.placeable_on_new_pods.get(name, pending)) + _describe_marked(inputs, marked)
            part = format_part(pending, inputs.scheduling_input.desired[name], "vreplica")
            message = f"{part} of {name} {choose_form(pending, 'is', 'are')} pending: {reason}"
            yield Finding("warning", "knative-pending", message, locate_document(document), document.key.resource)
        remaining = count_on_marked_pods(result.adapter, result.placements[name])
        if remaining:
            lingering = {o: n for o, n in result.placements[name].items() if o in result.adapter.unschedulable}
            where = _format_placements(adapter.key.name, lingering)
            message = f"{_format_count('vreplica', remaining)} of {name} stay on marked pods, {where}: no other pod can take them"
            yield Finding("warning", "knative-lingering", message, locate_document(document), document.key.resource)
    yield from _describe_moves(inputs, result)
    yield from find_preference_findings(inputs, result, cluster)
    if result.evicted:
        message = (
            f"{_format_pods(adapter.key.name, sorted(result.evicted))} are being emptied: the other pods have enough free capacity"
        )
        yield Finding("info", "knative-evicted", message, locate_document(adapter), adapter.key.resource, is_change=True)
    if not cluster:
        message = (
            f"{adapter.key} needs {format_count(result.adapter_state.replicas, 'replica')}, but is not rendered for any cluster: "
            "set spec.knative.cluster, or run `gitsched apply knative --scale`"
        )
        yield Finding("info", "knative-no-cluster", message, locate_document(adapter), adapter.key.resource)


def _report_wishes(inputs: KnativeInputs) -> Iterator[Finding]:
    """Yield a finding for each source whose number of consumers another object decides that does not say it."""
    for name, wish in inputs.wishes.items():
        if wish.consumers is None:
            message = (
                f"{wish.origin.key} scales {name}, but has no number of consumers: spec.consumers is used. Collect the "
                "HorizontalPodAutoscaler with its status"
            )
            yield Finding(
                "warning", "knative-consumers-unknown", message, locate_document(wish.origin), inputs.sources[name].key.resource
            )


def _report_unused_pods(inputs: KnativeInputs, result: VpodSchedulingResult) -> Iterator[Finding]:
    """Yield a finding about pods without vreplicas that are about to be removed, or that remain although no source is left."""
    adapter, state, replicas = inputs.adapter, result.state, result.adapter_state.replicas
    strategy, autoscaler = inputs.scheduling_input.strategy, inputs.scheduling_input.autoscaler
    used = any(any(vreplicas.values()) for vreplicas in (*result.placements.values(), *inputs.scheduling_input.other_placements))
    lowered = compute_scale_down(state, strategy) if autoscaler.attempt_scale_down and autoscaler.leader else replicas
    if (
        not replicas
        or (not used and any(state.pending.values()))
        or (used and (lowered == replicas or result.adapter_state.surplus_since is None))
    ):
        return
    unused = range(lowered, replicas) if used else range(replicas)
    names = _format_pods(adapter.key.name, unused)
    if lowered < replicas and result.wakeup is not None:
        text = f"from {format_time(result.wakeup)} on, the StatefulSet has {_format_count('replica', lowered)}"
    elif lowered < replicas:
        text = "they stay, because pods are not removed in this mode or run"
    else:
        remain = f"{_format_count('pod', replicas)} {'remains' if replicas == 1 else 'remain'}"
        text = f"{remain} for new sources, one for each zone or node; delete the StatefulSet to remove them"
    reason = "" if used else ", because no event source has vreplicas"
    verb = "is unused" if unused.stop - unused.start == 1 else "are unused"
    yield Finding("info", "knative-unused-pods", f"{names} {verb}{reason}: {text}", locate_document(adapter), adapter.key.resource)


def _report_marked_pods(inputs: KnativeInputs, result: VpodSchedulingResult) -> Iterator[Finding]:
    """Yield a finding about pods without vreplicas that the source marks and that remain, because a pod after them has vreplicas. While
    vreplicas are pending, `knative-pending` names the marks."""
    placements = (*result.placements.values(), *inputs.scheduling_input.other_placements)
    used = {ordinal for vreplicas in placements for ordinal, number in vreplicas.items() if number}
    last = max(used, default=-1)
    marked = (inputs.adapter_pods.marked & result.adapter.unschedulable) - result.adapter_state.marked - used
    unused = sorted(ordinal for ordinal in marked if ordinal < last)
    if unused and not any(result.state.pending.values()):
        name, pod = inputs.adapter.key.name, inputs.adapter_pods.pods[unused[0]]
        pods = f"{_format_pods(name, unused)} {choose_form(len(unused), 'stays', 'stay')} without vreplicas"
        message = f"{pods}, because {name}-{last} has some{_describe_marked(inputs, unused)}"
        yield Finding("info", "knative-unused-pods", message, locate_document(pod), pod.key.resource)


def _report_unavailable(inputs: KnativeInputs, result: VpodSchedulingResult) -> Iterator[Finding]:
    """Yield a finding if vreplicas are on pods that do not run, where they consume nothing."""
    adapter = inputs.adapter
    held = sorted({ordinal for shares in result.placements.values() for ordinal in shares})
    failed = [ordinal for ordinal in held if not inputs.adapter_pods.is_running(ordinal)]
    numbers = {name: sum(shares.get(ordinal, 0) for ordinal in failed) for name, shares in result.placements.items()}
    if failed:
        summary = _summarize("knative-unavailable", "unavailable:", numbers, inputs)
        message = (
            f"{_format_pods(adapter.key.name, failed)} do not run, and keep their vreplicas until they return; {summary.message}"
        )
        yield summary._replace(message=message, location=locate_document(adapter), is_change=False)


def _describe_marked(inputs: KnativeInputs, marked: Sequence[int]) -> str:
    """Return that these pods take no vreplicas because they are marked, and the cure if the source marks them; "" if there are none."""
    if not marked:
        return ""
    cure = f": remove the annotation {UNSCHEDULABLE} to use {choose_form(len(marked), 'it', 'them')}"
    pods = f"{_format_pods(inputs.adapter.key.name, marked)} {choose_form(len(marked), 'is', 'are')} marked unschedulable"
    return f"; {pods}{cure if inputs.adapter_pods.marked.issuperset(marked) else ''}"


def _describe_pending(pending: int, placeable: int) -> str:
    if not placeable:
        return "new pods cannot take them either"
    return (
        "no existing pod can take them"
        if placeable >= pending
        else f"no existing pod can take them, and new pods can take only {placeable}"
    )


def describe_replicas(result: VpodSchedulingResult) -> str:
    """Return a one-line reason for the number of replicas."""
    state = result.state
    placed = sum(state.expected.values()) - sum(state.pending.values())
    pending = sum(state.pending.values())
    return f"{format_count(placed, 'vreplica')} placed, {pending} pending, {state.capacity} per pod"


def _describe_moves(inputs: KnativeInputs, result: VpodSchedulingResult) -> Iterator[Finding]:
    """Yield a finding for each source whose vreplicas move, and one-line totals of moved, placed and removed vreplicas."""
    adapter = inputs.adapter.key
    moved: dict[str, int] = {}
    placed: dict[str, int] = {}
    removed: dict[str, int] = {}
    for name, document in inputs.sources.items():
        previous, current = inputs.placements[name], result.placements[name]
        removed_from = {o: n - current.get(o, 0) for o, n in previous.items() if n > current.get(o, 0)}
        added_to = {o: n - previous.get(o, 0) for o, n in current.items() if n > previous.get(o, 0)}
        moved_count = min(sum(removed_from.values()), sum(added_to.values()))
        moved[name], placed[name], removed[name] = (
            moved_count,
            sum(added_to.values()) - moved_count,
            sum(removed_from.values()) - moved_count,
        )
        if moved_count:
            where = f"from {_format_placements(adapter.name, removed_from)} to {_format_placements(adapter.name, added_to)}"
            part = format_part(moved_count, sum(previous.values()), "vreplica")
            verb = choose_form(moved_count, "moves", "move")
            message = f"{part} of {name} {verb}, {where}; other consumers are not affected"
            yield Finding("info", "knative-moved", message, locate_document(document), document.key.resource, is_change=True)
    if sum(map(bool, moved.values())) > 1:
        yield _summarize("knative-moved", "moved", moved, inputs)
    if any(placed.values()):
        yield _summarize("knative-placed", "placed", placed, inputs)
    if any(removed.values()):
        yield _summarize("knative-removed", "removed", removed, inputs)


def _summarize(code: str, what: str, numbers: Mapping[str, int], inputs: KnativeInputs) -> Finding:
    """Return a finding with the total number of affected vreplicas and the sources with the most of them."""
    affected = sorted((entry for entry in numbers.items() if entry[1]), key=lambda entry: -entry[1])
    keys = {name: inputs.sources[name].key for name, _ in affected}
    sources = _join_limited([f"{keys[name].namespace}/{keys[name].name} ({number})" for name, number in affected], len(affected))
    message = f"{what} {_format_count('vreplica', sum(numbers.values()))} of {_format_count('source', len(affected))}: {sources}"
    return Finding("info", code, message, None, inputs.adapter.key.resource, is_change=True)


def _format_count(noun: str, number: int) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _format_placements(adapter: str, vreplicas: VreplicasByOrdinal) -> str:
    return _join_limited([f"{adapter}-{ordinal} ({number})" for ordinal, number in sorted(vreplicas.items())], len(vreplicas))


def _format_pods(adapter: str, ordinals: Sequence[int]) -> str:
    count = ordinals.stop - ordinals.start if isinstance(ordinals, range) else len(ordinals)  # len() is limited to 63 bits
    return _join_limited([f"{adapter}-{ordinal}" for ordinal in ordinals[:MAX_NAMED]], count)


def _join_limited(items: Sequence[str], count: int) -> str:
    more = f" and {count - MAX_NAMED} more" if count > MAX_NAMED else ""
    return ", ".join(items[:MAX_NAMED]) + more
