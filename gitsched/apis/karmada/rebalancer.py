"""WorkloadRebalancer: reschedule triggers for bindings, and the status and expiry of each rebalancer (spec/karmada.md §10)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from gitsched.apis.karmada.binding.resource_binding import REBALANCE_REQUESTED, PreviousState, binding_key
from gitsched.apis.karmada.names import APPS_GROUP, APPS_VERSION, REBALANCER
from gitsched.apis.policy_api import Snapshot
from gitsched.model.document import Body, Document, Key, as_object, as_string_map, get_field, is_namespaced, parse_api_group
from gitsched.model.finding import Finding, Severity, locate_document
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration, format_time, parse_time

SPEC_DIGEST = "gitsched.io/spec-digest"
"""On the record of a rebalancer: the digest of the spec that was handled."""
EXPIRED_AT = "gitsched.io/expired-at"
"""On the record of an expired rebalancer: when its ttlSecondsAfterFinished ended."""
BINDING_NOT_FOUND = "ReferencedBindingNotFound"

BindingAvailability = Literal["bound", "retained", "missing"]
"""Of a workload: it has a binding; its previous binding is kept because something that it needs is invalid; it has no binding."""


class ObjectReference(NamedTuple):
    """A reference to a workload in a rebalancer; `namespace` is "" for a cluster-scoped object."""

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
        """The key of the binding. Its name does not contain the API group, which is not compared either."""
        return binding_key(self.key)


class ObservedWorkload(NamedTuple):
    """The result for one workload; "" while it is pending."""

    workload: ObjectReference
    result: str = ""
    reason: str = ""


class WorkloadRebalancer(NamedTuple):
    """A WorkloadRebalancer with its record of earlier runs.

    `observed` are its workloads in upstream's order: those of the present spec, and those that were rebalanced before they were removed
    from it. `changed` says whether they, or the spec, differ from the record. `finished` is None while a workload is pending; `expired`
    is when ttlSecondsAfterFinished ended.
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
        """The workloads that have not been rebalanced yet."""
        return tuple(entry.workload for entry in self.observed if not entry.result)

    @property
    def expiry(self) -> datetime | None:
        """When a finished rebalancer expires; None without ttlSecondsAfterFinished or while it is pending."""
        return add_duration(self.finished, max(self.ttl, 0)) if self.finished and self.ttl is not None else None


def read_rebalancer(document: Document, previous: Body | None, time: datetime) -> WorkloadRebalancer:
    """Read a valid rebalancer and its record of the last run.

    Without a record the status of the document is used. The creation time is that of the document, else the time of the commit that
    added it. A changed spec keeps the results; an expired rebalancer whose spec changes is a new one, as on a hub, which has deleted it.
    """
    spec, metadata = document.body["spec"], document.body["metadata"]
    named = frozenset(_parse_references(spec["workloads"]))
    ttl = spec.get("ttlSecondsAfterFinished")
    digest = _digest_spec(named, ttl)
    annotations = as_string_map(get_field(previous or {}, "metadata", "annotations"))
    handled = annotations.get(SPEC_DIGEST, digest) if previous is not None else None
    expired = parse_time(annotations.get(EXPIRED_AT))
    created = parse_time(metadata.get("creationTimestamp"))
    blank = WorkloadRebalancer(document, digest, ttl, named, created or time, 1, (), True, None, None)
    if expired is not None and handled == digest:
        return blank._replace(expired=expired, changed=False)
    if expired is not None:
        return blank._replace(created=created if created and created > expired else time, observed=_merge_observed((), named))
    if previous is not None:
        # The later time: a rebalancer that was added again after it expired was created then, regardless of the time in its document.
        recorded = parse_time(get_field(previous, "metadata", "creationTimestamp"))
        created = max(filter(None, (created, recorded)), default=None)
    status = as_object(get_field(previous if previous is not None else document.body, "status"))
    known = tuple(_parse_observed_workloads(status.get("observedWorkloads")))
    observed = _merge_observed(known, named)
    seen = _read_integer(status.get("observedGeneration"))
    generation = _read_integer(metadata.get("generation")) or seen if handled is None else seen + (handled != digest)
    return blank._replace(
        created=created or time,
        generation=max(generation, seen, 1),
        observed=observed,
        changed=observed != known or generation != seen,
        finished=parse_time(status.get("finishTime")),
    )


def update_observed_workloads(
    rebalancer: WorkloadRebalancer, availabilities: Iterable[BindingAvailability], at: datetime
) -> WorkloadRebalancer:
    """Return the rebalancer after its pending workloads were handled at a time; `availabilities` are in the order of `pending`.

    A workload without a binding has failed for good. A retained binding is tried again in the next run.
    """
    if rebalancer.expired is not None:
        return rebalancer
    results = dict(zip(rebalancer.pending, availabilities, strict=True))
    observed = tuple(_update_observed(entry, results.get(entry.workload)) for entry in rebalancer.observed)
    changed = rebalancer.changed or observed != rebalancer.observed
    done = all(entry.result for entry in observed)
    finished = (at if changed else rebalancer.finished) if done else None
    return rebalancer._replace(observed=observed, changed=changed, finished=finished)


def expire_rebalancer(rebalancer: WorkloadRebalancer, now: datetime) -> WorkloadRebalancer:
    """Mark the rebalancer as expired when its ttlSecondsAfterFinished has ended."""
    end = rebalancer.expiry
    return rebalancer._replace(expired=end) if rebalancer.expired is None and end is not None and end <= now else rebalancer


def write_rebalancer_record(rebalancer: WorkloadRebalancer) -> Body:
    """Return the record under status/: the rebalancer as Karmada's API server would return it, without its spec.

    The status of an expired rebalancer is empty.
    """
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
    """Return the known results of the named workloads and of rebalanced ones that are no longer named, and new entries, in upstream's
    order."""
    kept = {entry.workload: entry for entry in known if entry.workload in named or entry.result == "Successful"}
    entries = [*kept.values(), *(ObservedWorkload(workload) for workload in named - kept.keys())]
    return tuple(sorted(entries, key=lambda entry: " ".join(entry.workload)))


def _update_observed(entry: ObservedWorkload, availability: BindingAvailability | None) -> ObservedWorkload:
    match availability:
        case "bound":
            return ObservedWorkload(entry.workload, "Successful")
        case "missing":
            return ObservedWorkload(entry.workload, "Failed", BINDING_NOT_FOUND)
    return entry


def _digest_spec(named: Iterable[ObjectReference], ttl: int | None) -> str:
    """Return the digest of a spec; the order of its workloads and duplicates do not matter."""
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
    """The WorkloadRebalancers of a snapshot and the reschedule triggers of bindings.

    `records`, `findings`, `wakeup` and `time` are set by `reconcile`. `wakeup` is when the next rebalancer expires, `time` when the
    latest one expired that this run found expired.
    """

    __slots__ = ("_rebalancers", "_trigger_times", "findings", "records", "time", "wakeup")

    def __init__(self, snapshot: Snapshot) -> None:
        self._rebalancers = tuple(
            read_rebalancer(document, snapshot.previous.get(document.key), snapshot.at)
            for document in snapshot.documents.get((APPS_GROUP, REBALANCER), ())
            if not get_field(document.body, "metadata", "deletionTimestamp")  # being deleted
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
        """Whether a workload has not been rebalanced yet."""
        return bool(self._trigger_times)

    def apply_trigger(self, binding: Key, current: PreviousState) -> PreviousState:
        """Set spec.rescheduleTriggeredAt of a binding as the rebalancers do: only to a later time."""
        triggered = self._trigger_times.get(binding)
        return (
            current
            if triggered is None or (current.reschedule_triggered and current.reschedule_triggered >= triggered)
            else current._replace(reschedule_triggered=triggered)
        )

    def describe_trigger(self, binding: Key, current: PreviousState) -> str:
        """Describe the reschedule trigger of a binding: the rebalancers, if they still exist, and the time."""
        names = [
            f"{REBALANCER} {rebalancer.document.key.name}"
            for rebalancer in self._rebalancers
            if rebalancer.created == current.reschedule_triggered
            and any(workload.binding == binding for workload in rebalancer.named)
        ]
        by = f" by {', '.join(names)}" if names else ""
        return f"{REBALANCE_REQUESTED}{by}" + (
            f" at {format_time(current.reschedule_triggered)}" if current.reschedule_triggered else ""
        )

    def reconcile(self, snapshot: Snapshot, decide: DecideWorkload) -> None:
        """Update the observed workloads of each rebalancer.

        The bindings are those of this run: a workload that the same commit adds has one, a workload that it removes has none.
        """
        bindings = _BindingLookup(snapshot, decide)
        findings: list[Finding] = []
        quarantined = sorted(filter(_is_rebalancer, snapshot.quarantined))
        records = [(key, snapshot.previous[key]) for key in quarantined if key in snapshot.previous]
        for before in self._rebalancers:
            observed = update_observed_workloads(before, map(bindings.find_availability, before.pending), snapshot.at)
            after = expire_rebalancer(observed, snapshot.now)
            records.append((after.document.key, write_rebalancer_record(after)))
            if after.expired is None and after.expiry is not None:
                self.wakeup = min(self.wakeup or after.expiry, after.expiry)
            elif before.expired is None and after.expired is not None and after.expired > snapshot.at:
                self.time = max(self.time or after.expired, after.expired)
            findings += _check_rebalancer(before, after, snapshot.previous)
        self.records, self.findings = tuple(records), tuple(findings)


class _BindingLookup:
    """The bindings of this run, found by name as upstream does."""

    def __init__(self, snapshot: Snapshot, decide: DecideWorkload) -> None:
        self._snapshot, self._decide = snapshot, decide
        self._named: dict[Key, Document] | None = None

    def find_availability(self, workload: ObjectReference) -> BindingAvailability:
        if workload.key in self._snapshot.quarantined:
            return "retained" if workload.binding in self._snapshot.previous else "missing"
        template = self._snapshot.templates.get(workload.key) or self._find_template(workload.binding)
        outcome = self._decide(template) if template is not None else None
        if outcome is None or not outcome.records:
            return "missing"
        return "retained" if outcome.state == "stale" else "bound"

    def _find_template(self, binding: Key) -> Document | None:
        """Return the workload of a binding: a reference may have another API group, or a name with '.' for ':'."""
        if self._named is None:
            self._named = {binding_key(key): template for key, template in self._snapshot.templates.items()}
        return self._named.get(binding)


def _is_rebalancer(key: Key) -> bool:
    return (key.group, key.kind) == (APPS_GROUP, REBALANCER)


def _check_rebalancer(before: WorkloadRebalancer, after: WorkloadRebalancer, previous: Mapping[Key, Body]) -> Iterator[Finding]:
    """Report rebalancers that have expired or cannot have an effect."""
    name = f"{REBALANCER} {after.document.key.name}"
    if after.expired is not None:
        message = f"{name} has finished and expired at {format_time(after.expired)}: delete its file"
        yield _make_finding("info", "rebalancer-expired", message, after)
    rebalanced = {entry.workload for entry in after.observed if entry.result == "Successful"}
    for workload in before.pending:
        binding = previous.get(workload.binding) or {}
        scheduled, triggered = (
            parse_time(get_field(binding, "status", "lastScheduledTime")),
            get_field(binding, "spec", "rescheduleTriggeredAt"),
        )
        if (
            workload in rebalanced
            and scheduled is not None
            and scheduled >= after.created
            and parse_time(triggered) != after.created
        ):
            message = (
                f"{name} was created at {format_time(after.created)}, but {workload} was scheduled later, at {format_time(scheduled)}: "
                "it is not rescheduled; create a rebalancer with another name"
            )
            yield _make_finding("warning", "rebalance-too-late", message, after)
        elif workload in rebalanced and scheduled is None and get_field(binding, "spec", "clusters"):
            message = (
                f"{name} names {workload}, whose binding has no status.lastScheduledTime: as in Karmada it is not rescheduled, because "
                "the request may be older than its last scheduling; commit the binding with its status"
            )
            yield _make_finding("warning", "rebalance-ignored", message, after)
    for entry in after.observed if after.expired is None else ():
        if entry.reason == BINDING_NOT_FOUND and entry.workload in after.named:
            message = f"{name} names {entry.workload}, which has no binding{_describe_scope(entry.workload)}"
            yield _make_finding("warning", "rebalance-target-missing", message, after)


def _describe_scope(workload: ObjectReference) -> str:
    namespaced = is_namespaced(workload.key.group, workload.kind)
    if namespaced and not workload.namespace:
        return f"; a {workload.kind} is namespaced: add the namespace"
    if namespaced is False and workload.namespace:
        return f"; a {workload.kind} is cluster-scoped: remove the namespace"
    return ""


def _make_finding(severity: Severity, code: str, message: str, rebalancer: WorkloadRebalancer) -> Finding:
    document = rebalancer.document
    return Finding(severity, code, message, locate_document(document), document.key.resource)
