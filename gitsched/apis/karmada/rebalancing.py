"""Every WorkloadRebalancer of a commit: whom they ask for, which bindings there are, and the records they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from gitsched.apis.karmada.binding import Memory
from gitsched.apis.karmada.names import APPS_GROUP, REBALANCER, binding_key
from gitsched.apis.karmada.rebalancer import (
    NOT_FOUND,
    Rebalancer,
    Reference,
    Standing,
    expire,
    observe,
    read_rebalancer,
    write_record,
)
from gitsched.apis.karmada.triggers import REBALANCE
from gitsched.apis.world import World
from gitsched.model.document import Body, Document, Key, member
from gitsched.model.finding import Finding, Severity, locate
from gitsched.model.outcome import Outcome
from gitsched.model.scope import is_namespaced
from gitsched.model.time import format_time, parse_time

Place = Callable[[Document], Outcome | None]


class Rebalancing:
    """The rebalancers of a world. `ask` is right from the start; `records` and what follows are there after `settle`.

    `wakeup` is when the next one is over by time alone, `time` when the latest one was that this run found to be over.
    """

    __slots__ = ("_asked", "_asking", "findings", "records", "time", "wakeup")

    def __init__(self, world: World) -> None:
        self._asking = tuple(
            read_rebalancer(document, world.previous.get(document.key), world.at)
            for document in world.documents.get((APPS_GROUP, REBALANCER), ())
            if not member(document.body, "metadata", "deletionTimestamp")  # on its way out, it asks for nothing any more
        )
        self._asked: dict[Key, datetime] = {}
        for rebalancer in self._asking:
            for workload in rebalancer.pending:
                known = self._asked.get(workload.binding)
                self._asked[workload.binding] = max(known or rebalancer.created, rebalancer.created)
        self.records: tuple[tuple[Key, Body], ...] = ()
        self.findings: tuple[Finding, ...] = ()
        self.wakeup: datetime | None = None
        self.time: datetime | None = None

    @property
    def pending(self) -> bool:
        """Whether anything is still to be rebalanced."""
        return bool(self._asked)

    def ask(self, binding: Key, memory: Memory) -> Memory:
        """A binding as it is when the rebalancers have written into it: only a later request than the one it knows counts."""
        asked = self._asked.get(binding)
        return memory if asked is None or (memory.triggered and memory.triggered >= asked) else memory._replace(triggered=asked)

    def tell(self, binding: Key, memory: Memory) -> str:
        """The request that a binding has: of which rebalancers, if they are still there, and when."""
        names = [
            f"{REBALANCER} {rebalancer.document.key.name}"
            for rebalancer in self._asking
            if rebalancer.created == memory.triggered and any(workload.binding == binding for workload in rebalancer.named)
        ]
        by = f" by {', '.join(names)}" if names else ""
        return f"{REBALANCE}{by}" + (f" at {format_time(memory.triggered)}" if memory.triggered else "")

    def settle(self, world: World, place: Place) -> None:
        """Find out which bindings there are, and what becomes of each rebalancer.

        A workload is looked for among those of this very run: one that comes in the same commit is found, one that goes is not.
        """
        bindings = _Bindings(world, place)
        findings: list[Finding] = []
        records = [(key, world.previous[key]) for key in sorted(world.broken) if _is_rebalancer(key) and key in world.previous]
        for before in self._asking:
            observed = observe(before, map(bindings.find, before.pending), world.at)
            after = expire(observed, world.now)
            records.append((after.document.key, write_record(after)))
            if after.expired is None and after.end is not None:
                self.wakeup = min(self.wakeup or after.end, after.end)
            elif before.expired is None and after.expired is not None and after.expired > world.at:
                self.time = max(self.time or after.expired, after.expired)
            findings += _tell(before, after, world.previous)
        self.records, self.findings = tuple(records), tuple(findings)


class _Bindings:
    """The bindings of this run, by name as upstream finds them."""

    def __init__(self, world: World, place: Place) -> None:
        self._world, self._place = world, place
        self._named: dict[Key, Document] | None = None

    def find(self, workload: Reference) -> Standing:
        if workload.key in self._world.broken:
            return "held" if workload.binding in self._world.previous else "missing"
        template = self._world.templates.get(workload.key) or self._search(workload.binding)
        outcome = self._place(template) if template is not None else None
        if outcome is None or not outcome.documents:
            return "missing"
        return "held" if outcome.state == "stale" else "bound"

    def _search(self, binding: Key) -> Document | None:
        """The workload that has this binding: a reference may name another API group, or a name with ':' written as '.'."""
        if self._named is None:
            self._named = {binding_key(key): template for key, template in self._world.templates.items()}
        return self._named.get(binding)


def _is_rebalancer(key: Key) -> bool:
    return (key.group, key.kind) == (APPS_GROUP, REBALANCER)


def _tell(before: Rebalancer, after: Rebalancer, previous: Mapping[Key, Body]) -> Iterator[Finding]:
    """What somebody who wrote a rebalancer should know."""
    name = f"{REBALANCER} {after.document.key.name}"
    if after.expired is not None:
        message = f"{name} is done, and its time was over at {format_time(after.expired)}: the file can be deleted"
        yield _finding("info", "rebalancer-expired", message, after)
    rebalanced = {entry.workload for entry in after.observed if entry.result == "Successful"}
    for workload in before.pending:
        binding = previous.get(workload.binding) or {}
        done, asked = parse_time(member(binding, "status", "lastScheduledTime")), member(binding, "spec", "rescheduleTriggeredAt")
        if workload in rebalanced and done is not None and done >= after.created and parse_time(asked) != after.created:
            message = (
                f"{name} dates from {format_time(after.created)}, and {workload} was scheduled after that, at {format_time(done)}: "
                "it is not placed anew; a rebalancer with another name asks again"
            )
            yield _finding("warning", "rebalance-too-late", message, after)
        elif workload in rebalanced and done is None and member(binding, "spec", "clusters"):
            message = (
                f"{name} asks for {workload}, whose binding has no status.lastScheduledTime: as in Karmada it is not placed anew, for "
                "nobody knows whether that was asked for before; take the status along with the binding"
            )
            yield _finding("warning", "rebalance-ignored", message, after)
    for entry in after.observed if after.expired is None else ():
        if entry.reason == NOT_FOUND and entry.workload in after.named:
            message = f"{name} names {entry.workload}, which has no binding{_hint(entry.workload)}"
            yield _finding("warning", "rebalance-target-missing", message, after)


def _hint(workload: Reference) -> str:
    namespaced = is_namespaced(workload.key.group, workload.kind)
    if namespaced and not workload.namespace:
        return f"; a {workload.kind} is in a namespace: name it"
    if namespaced is False and workload.namespace:
        return f"; a {workload.kind} is in no namespace: name none"
    return ""


def _finding(severity: Severity, code: str, message: str, rebalancer: Rebalancer) -> Finding:
    document = rebalancer.document
    return Finding(severity, code, message, locate(document), document.key.resource)
