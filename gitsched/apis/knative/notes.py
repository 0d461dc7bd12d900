"""What a run has to say: what waits, what moves, what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.knative.reading import Reading, Sources
from gitsched.apis.knative.settling import Settled, count_lingering
from gitsched.model.finding import Finding, locate
from gitsched.schedule.vreplicas.adapter import Shares

NAMED = 5
"""Things of one kind that one message names."""


def describe(reading: Reading, settled: Settled, sources: Sources, cluster: str) -> Iterator[Finding]:
    """The findings of a run."""
    adapter = reading.adapter
    for node, ordinals in reading.cluster.lost.items():
        pods = _list_pods(adapter.key.name, ordinals)
        message = f"there is no Node {node}, which {pods} should run on: no new vreplicas go there until one of them is committed"
        yield Finding("warning", "knative-node-missing", message, locate(reading.cluster.pods[ordinals[0]]), ("Node", "", node))
    for key in sources.broken:
        yield Finding("warning", "stale-decision", f"{key} keeps its placements: its document cannot be used", None, key.resource)
    for name, document in reading.sources.items():
        pending = settled.state.pending[name]
        if pending:
            why = _tell_pending(pending, settled.helped.get(name, pending))
            message = f"{pending} of {reading.question.wanted[name]} vreplicas of {name} are pending: {why}"
            yield Finding("warning", "knative-pending", message, locate(document), document.key.resource)
        lingering = count_lingering(settled.adapter, settled.held[name])
        if lingering:
            marked = {o: n for o, n in settled.held[name].items() if o in settled.adapter.marked}
            where = _list_shares(adapter.key.name, marked)
            message = f"{_count('vreplica', lingering)} of {name} cannot leave marked pods, {where}: no other pod has a place"
            yield Finding("warning", "knative-lingering", message, locate(document), document.key.resource)
    yield from _describe_moves(reading, settled)
    if settled.evicted:
        message = (
            f"{_list_pods(adapter.key.name, sorted(settled.evicted))} are to be emptied: the other pods have room for all they hold"
        )
        yield Finding("info", "knative-evicted", message, locate(adapter), adapter.key.resource)
    if not cluster:
        message = (
            f"{adapter.key} is to have {settled.memory.replicas} replicas, which is rendered nowhere: "
            "name its cluster in knative.cluster, or apply what `gitsched export knative` prints"
        )
        yield Finding("info", "knative-no-cluster", message, locate(adapter), adapter.key.resource)


def _tell_pending(pending: int, helped: int) -> str:
    if not helped:
        return "no new pod could take them, either"
    return "no pod can take them now" if helped >= pending else f"no pod can take them now, and new pods no more than {helped}"


def tell_replicas(settled: Settled) -> str:
    """Why the StatefulSet has as many replicas, in one line."""
    state = settled.state
    placed = sum(state.expected.values()) - sum(state.pending.values())
    pending = sum(state.pending.values())
    return f"{placed} vreplicas placed, {pending} pending, {state.capacity} to a pod"


def _describe_moves(reading: Reading, settled: Settled) -> Iterator[Finding]:
    """What leaves a pod for another one, source by source; and in one line each what moves, gets a place and goes."""
    adapter = reading.adapter.key
    moved: dict[str, int] = {}
    placed: dict[str, int] = {}
    removed: dict[str, int] = {}
    for name, document in reading.sources.items():
        before, after = reading.held[name], settled.held[name]
        gone = {o: n - after.get(o, 0) for o, n in before.items() if n > after.get(o, 0)}
        come = {o: n - before.get(o, 0) for o, n in after.items() if n > before.get(o, 0)}
        both = min(sum(gone.values()), sum(come.values()))
        moved[name], placed[name], removed[name] = both, sum(come.values()) - both, sum(gone.values()) - both
        if both:
            where = f"from {_list_shares(adapter.name, gone)} to {_list_shares(adapter.name, come)}"
            message = (
                f"{both} of {sum(before.values())} vreplicas of {name} move, {where}; these consumers are touched, all others stay"
            )
            yield Finding("info", "knative-moved", message, locate(document), document.key.resource)
    if sum(map(bool, moved.values())) > 1:
        yield _sum_up("knative-moved", "another pod for", moved, reading)
    if any(placed.values()):
        yield _sum_up("knative-placed", "a place for", placed, reading)
    if any(removed.values()):
        yield _sum_up("knative-removed", "no longer wanted:", removed, reading)


def _sum_up(code: str, what: str, numbers: Mapping[str, int], reading: Reading) -> Finding:
    """To how many vreplicas something happens, and of which sources, those with most first."""
    some = sorted((entry for entry in numbers.items() if entry[1]), key=lambda entry: -entry[1])
    keys = {name: reading.sources[name].key for name, _ in some}
    named = _list(f"{keys[name].namespace}/{keys[name].name} ({number})" for name, number in some)
    message = f"{what} {_count('vreplica', sum(numbers.values()))} of {_count('source', len(some))}: {named}"
    return Finding("info", code, message, None, reading.adapter.key.resource)


def _count(noun: str, number: int) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _list_shares(adapter: str, shares: Shares) -> str:
    return _list(f"{adapter}-{ordinal} ({number})" for ordinal, number in sorted(shares.items()))


def _list_pods(adapter: str, ordinals: Iterable[int]) -> str:
    return _list(f"{adapter}-{ordinal}" for ordinal in ordinals)


def _list(things: Iterable[str]) -> str:
    every = list(things)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + more
