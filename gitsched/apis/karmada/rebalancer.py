"""WorkloadRebalancer: reschedule triggers for bindings, and the status and expiry of each rebalancer (spec/karmada.md §10)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from gitsched.apis.engine import Snapshot
from gitsched.apis.karmada.binding.resource_binding import REBALANCE_REQUESTED, PreviousState
from gitsched.apis.karmada.names import APPS_GROUP, APPS_VERSION, REBALANCER, binding_key
from gitsched.model.document import Body, Document, Key, as_object, as_string_map, get_field, is_namespaced, parse_api_group
from gitsched.model.finding import Finding, Severity, locate_document
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration, format_time, parse_time

SPEC_DIGEST = "gitsched.io/spec-digest"
"""On a rebalancer's record: the digest of the spec that was acted on."""
EXPIRED_AT = "gitsched.io/expired-at"
"""On the record of a rebalancer that is over: when its ttlSecondsAfterFinished ended."""
BINDING_NOT_FOUND = "ReferencedBindingNotFound"

BindingAvailability = Literal["bound", "held", "missing"]
"""Of a workload: it has a binding; it has one that must stay as it is for now, since something it needs is broken; it has none."""


class ObjectReference(NamedTuple):
    """A workload as a rebalancer names it; `namespace` is "" for what is cluster-scoped."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return " ".join(part for part in self if part)

    @property
    def key(self) -> Key:
        return Key(parse_api_group(self.api_version), self.kind, self.namespace, self.name)

    @property
    def binding(self) -> Key:
        """The binding that is looked for. It has no part of the API group in its name, and none is compared."""
        return binding_key(self.key)


class ObservedWorkload(NamedTuple):
    """What became of one workload; `result` is "" while nothing did."""

    workload: ObjectReference
    result: str = ""
    reason: str = ""


class WorkloadRebalancer(NamedTuple):
    """A rebalancer and what earlier runs left of it.

    `observed` are its workloads in upstream's order, those of the present spec and those that were rebalanced before they left it.
    `changed` tells whether that, or the spec, differs from what was acted on. `finished` is None until nothing is left to do; `expired`
    is the end of a rebalancer that is over.
    """

    document: Document
    digest: str
    ttl: int | None
    named: frozenset[ObjectReference]
    created: datetime
    generation: int
    observed: tuple[ObservedWorkload, ...]
    changed: bool
    finished: datetime | None
    expired: datetime | None

    @property
    def pending(self) -> tuple[ObjectReference, ...]:
        """The workloads that are still to be rebalanced."""
        return tuple(entry.workload for entry in self.observed if not entry.result)

    @property
    def expiry(self) -> datetime | None:
        """When a finished one goes away; None for never, or not yet."""
        return add_duration(self.finished, max(self.ttl, 0)) if self.finished and self.ttl is not None else None


def read_rebalancer(document: Document, previous: Body | None, moment: datetime) -> WorkloadRebalancer:
    """A rebalancer whose document passed its schema, and its record of the last run.

    Without a record the status of a dump counts. The creation time is the document's own, else that of the event that brought it. A
    changed spec keeps what was done; but one that is over and changes is a new one, as it would be on a hub, which deleted the old.
    """
    spec, metadata = document.body["spec"], document.body["metadata"]
    named = frozenset(_parse_references(spec["workloads"]))
    ttl = spec.get("ttlSecondsAfterFinished")
    digest = _digest_spec(named, ttl)
    noted = as_string_map(get_field(previous or {}, "metadata", "annotations"))
    acted = noted.get(SPEC_DIGEST, digest) if previous is not None else None
    expired = parse_time(noted.get(EXPIRED_AT))
    created = parse_time(metadata.get("creationTimestamp"))
    blank = WorkloadRebalancer(document, digest, ttl, named, created or moment, 1, (), True, None, None)
    if expired is not None and acted == digest:
        return blank._replace(expired=expired, changed=False)
    if expired is not None:
        return blank._replace(created=created if created and created > expired else moment, observed=_merge_observed((), named))
    if previous is not None:
        # The later one, for one that came anew after it was over dates from then, whatever its document says.
        noted_then = parse_time(get_field(previous, "metadata", "creationTimestamp"))
        created = max(filter(None, (created, noted_then)), default=None)
    status = as_object(get_field(previous if previous is not None else document.body, "status"))
    known = tuple(_parse_observed_workloads(status.get("observedWorkloads")))
    observed = _merge_observed(known, named)
    seen = _read_integer(status.get("observedGeneration"))
    generation = _read_integer(metadata.get("generation")) or seen if acted is None else seen + (acted != digest)
    return blank._replace(
        created=created or moment,
        generation=max(generation, seen, 1),
        observed=observed,
        changed=observed != known or generation != seen,
        finished=parse_time(status.get("finishTime")),
    )


def update_observed_workloads(
    rebalancer: WorkloadRebalancer, standings: Iterable[BindingAvailability], at: datetime
) -> WorkloadRebalancer:
    """The rebalancer after its pending workloads, which stand like this, were dealt with at a moment.

    A workload without a binding has failed for good. One that is held back is tried again in the next run.
    """
    if rebalancer.expired is not None:
        return rebalancer
    results = dict(zip(rebalancer.pending, standings, strict=True))
    observed = tuple(_update_observed(entry, results.get(entry.workload)) for entry in rebalancer.observed)
    changed = rebalancer.changed or observed != rebalancer.observed
    done = all(entry.result for entry in observed)
    finished = (at if changed else rebalancer.finished) if done else None
    return rebalancer._replace(observed=observed, changed=changed, finished=finished)


def expire_rebalancer(rebalancer: WorkloadRebalancer, now: datetime) -> WorkloadRebalancer:
    """The rebalancer, over where its time is."""
    end = rebalancer.expiry
    return rebalancer._replace(expired=end) if rebalancer.expired is None and end is not None and end <= now else rebalancer


def write_rebalancer_record(rebalancer: WorkloadRebalancer) -> Body:
    """The record under status/: the rebalancer as Karmada's API server would show it, without its spec; an empty status once it is over."""
    notes = {SPEC_DIGEST: rebalancer.digest}
    metadata: Body = {"name": rebalancer.document.key.name}
    status: Body = {}
    if rebalancer.expired is not None:
        notes[EXPIRED_AT] = format_time(rebalancer.expired)
    else:
        metadata |= {"generation": rebalancer.generation, "creationTimestamp": format_time(rebalancer.created)}
        status["observedWorkloads"] = [_format_observed(entry) for entry in rebalancer.observed]
        status["observedGeneration"] = rebalancer.generation
        if rebalancer.finished is not None:
            status["finishTime"] = format_time(rebalancer.finished)
    return {"apiVersion": APPS_VERSION, "kind": REBALANCER, "metadata": {**metadata, "annotations": notes}, "status": status}


def _merge_observed(known: Iterable[ObservedWorkload], named: frozenset[ObjectReference]) -> tuple[ObservedWorkload, ...]:
    """What is known of the workloads named, and of those no longer named that were rebalanced; the new ones; in upstream's order."""
    kept = {entry.workload: entry for entry in known if entry.workload in named or entry.result == "Successful"}
    entries = [*kept.values(), *(ObservedWorkload(workload) for workload in named - kept.keys())]
    return tuple(sorted(entries, key=lambda entry: " ".join(entry.workload)))


def _update_observed(entry: ObservedWorkload, standing: BindingAvailability | None) -> ObservedWorkload:
    match standing:
        case "bound":
            return ObservedWorkload(entry.workload, "Successful")
        case "missing":
            return ObservedWorkload(entry.workload, "Failed", BINDING_NOT_FOUND)
    return entry


def _digest_spec(named: Iterable[ObjectReference], ttl: int | None) -> str:
    """Of what the spec says: neither the order of its workloads nor naming one twice says anything."""
    text = json.dumps({"ttlSecondsAfterFinished": ttl, "workloads": sorted(named)}, separators=(",", ":"), sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _parse_observed_workloads(value: Any) -> Iterable[ObservedWorkload]:
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            for workload in _parse_references([entry.get("workload")]):
                yield ObservedWorkload(workload, str(entry.get("result") or ""), str(entry.get("reason") or ""))


def _parse_references(value: Iterable[Any]) -> Iterable[ObjectReference]:
    for entry in value:
        if isinstance(entry, dict):
            yield ObjectReference(*(str(entry.get(name) or "") for name in ("apiVersion", "kind", "namespace", "name")))


def _format_observed(entry: ObservedWorkload) -> Body:
    workload = entry.workload
    reference = {"apiVersion": workload.api_version, "kind": workload.kind, "name": workload.name}
    if workload.namespace:
        reference["namespace"] = workload.namespace
    shown: Body = {"workload": reference}
    if entry.result:
        shown["result"] = entry.result
    if entry.reason:
        shown["reason"] = entry.reason
    return shown


def _read_integer(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


DecideWorkload = Callable[[Document], Outcome | None]


class RescheduleTriggers:
    """The rebalancers of a world. `ask` is right from the start; `records` and what follows are there after `settle`.

    `wakeup` is when the next one is over by time alone, `time` when the latest one was that this run found to be over.
    """

    __slots__ = ("_rebalancers", "_trigger_times", "findings", "records", "time", "wakeup")

    def __init__(self, world: Snapshot) -> None:
        self._rebalancers = tuple(
            read_rebalancer(document, world.previous.get(document.key), world.at)
            for document in world.documents.get((APPS_GROUP, REBALANCER), ())
            if not get_field(document.body, "metadata", "deletionTimestamp")  # on its way out, it asks for nothing any more
        )
        self._trigger_times: dict[Key, datetime] = {}
        for rebalancer in self._rebalancers:
            for workload in rebalancer.pending:
                known = self._trigger_times.get(workload.binding)
                self._trigger_times[workload.binding] = max(known or rebalancer.created, rebalancer.created)
        self.records: tuple[tuple[Key, Body], ...] = ()
        self.findings: tuple[Finding, ...] = ()
        self.wakeup: datetime | None = None
        self.time: datetime | None = None

    @property
    def pending(self) -> bool:
        """Whether anything is still to be rebalanced."""
        return bool(self._trigger_times)

    def apply_trigger(self, binding: Key, memory: PreviousState) -> PreviousState:
        """A binding as it is when the rebalancers have written into it: only a later request than the one it knows counts."""
        asked = self._trigger_times.get(binding)
        return (
            memory
            if asked is None or (memory.reschedule_triggered and memory.reschedule_triggered >= asked)
            else memory._replace(reschedule_triggered=asked)
        )

    def describe_trigger(self, binding: Key, memory: PreviousState) -> str:
        """The request that a binding has: of which rebalancers, if they are still there, and when."""
        names = [
            f"{REBALANCER} {rebalancer.document.key.name}"
            for rebalancer in self._rebalancers
            if rebalancer.created == memory.reschedule_triggered
            and any(workload.binding == binding for workload in rebalancer.named)
        ]
        by = f" by {', '.join(names)}" if names else ""
        return f"{REBALANCE_REQUESTED}{by}" + (
            f" at {format_time(memory.reschedule_triggered)}" if memory.reschedule_triggered else ""
        )

    def reconcile(self, world: Snapshot, place: DecideWorkload) -> None:
        """Find out which bindings there are, and what becomes of each rebalancer.

        A workload is looked for among those of this very run: one that comes in the same commit is found, one that goes is not.
        """
        bindings = _BindingLookup(world, place)
        findings: list[Finding] = []
        records = [(key, world.previous[key]) for key in sorted(world.quarantined) if _is_rebalancer(key) and key in world.previous]
        for before in self._rebalancers:
            observed = update_observed_workloads(before, map(bindings.find_availability, before.pending), world.at)
            after = expire_rebalancer(observed, world.now)
            records.append((after.document.key, write_rebalancer_record(after)))
            if after.expired is None and after.expiry is not None:
                self.wakeup = min(self.wakeup or after.expiry, after.expiry)
            elif before.expired is None and after.expired is not None and after.expired > world.at:
                self.time = max(self.time or after.expired, after.expired)
            findings += _check_rebalancer(before, after, world.previous)
        self.records, self.findings = tuple(records), tuple(findings)


class _BindingLookup:
    """The bindings of this run, by name as upstream finds them."""

    def __init__(self, world: Snapshot, place: DecideWorkload) -> None:
        self._world, self._decide = world, place
        self._named: dict[Key, Document] | None = None

    def find_availability(self, workload: ObjectReference) -> BindingAvailability:
        if workload.key in self._world.quarantined:
            return "held" if workload.binding in self._world.previous else "missing"
        template = self._world.templates.get(workload.key) or self._find_template(workload.binding)
        outcome = self._decide(template) if template is not None else None
        if outcome is None or not outcome.records:
            return "missing"
        return "held" if outcome.state == "stale" else "bound"

    def _find_template(self, binding: Key) -> Document | None:
        """The workload that has this binding: a reference may name another API group, or a name with ':' written as '.'."""
        if self._named is None:
            self._named = {binding_key(key): template for key, template in self._world.templates.items()}
        return self._named.get(binding)


def _is_rebalancer(key: Key) -> bool:
    return (key.group, key.kind) == (APPS_GROUP, REBALANCER)


def _check_rebalancer(before: WorkloadRebalancer, after: WorkloadRebalancer, previous: Mapping[Key, Body]) -> Iterator[Finding]:
    """What somebody who wrote a rebalancer should know."""
    name = f"{REBALANCER} {after.document.key.name}"
    if after.expired is not None:
        message = f"{name} is done, and its time was over at {format_time(after.expired)}: the file can be deleted"
        yield _make_finding("info", "rebalancer-expired", message, after)
    rebalanced = {entry.workload for entry in after.observed if entry.result == "Successful"}
    for workload in before.pending:
        binding = previous.get(workload.binding) or {}
        done, asked = (
            parse_time(get_field(binding, "status", "lastScheduledTime")),
            get_field(binding, "spec", "rescheduleTriggeredAt"),
        )
        if workload in rebalanced and done is not None and done >= after.created and parse_time(asked) != after.created:
            message = (
                f"{name} dates from {format_time(after.created)}, and {workload} was scheduled after that, at {format_time(done)}: "
                "it is not placed anew; a rebalancer with another name asks again"
            )
            yield _make_finding("warning", "rebalance-too-late", message, after)
        elif workload in rebalanced and done is None and get_field(binding, "spec", "clusters"):
            message = (
                f"{name} asks for {workload}, whose binding has no status.lastScheduledTime: as in Karmada it is not placed anew, for "
                "nobody knows whether that was asked for before; take the status along with the binding"
            )
            yield _make_finding("warning", "rebalance-ignored", message, after)
    for entry in after.observed if after.expired is None else ():
        if entry.reason == BINDING_NOT_FOUND and entry.workload in after.named:
            message = f"{name} names {entry.workload}, which has no binding{_describe_scope(entry.workload)}"
            yield _make_finding("warning", "rebalance-target-missing", message, after)


def _describe_scope(workload: ObjectReference) -> str:
    namespaced = is_namespaced(workload.key.group, workload.kind)
    if namespaced and not workload.namespace:
        return f"; a {workload.kind} is in a namespace: name it"
    if namespaced is False and workload.namespace:
        return f"; a {workload.kind} is in no namespace: name none"
    return ""


def _make_finding(severity: Severity, code: str, message: str, rebalancer: WorkloadRebalancer) -> Finding:
    document = rebalancer.document
    return Finding(severity, code, message, locate_document(document), document.key.resource)
