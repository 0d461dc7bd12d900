"""WorkloadRebalancer: its workloads with their results, its record and its expiry (spec/karmada.md §10)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable
from datetime import datetime
from typing import Any, Literal

from gitsched.apis.karmada.binding.resource_binding import binding_key
from gitsched.apis.karmada.names import APPS_VERSION, ONLY_UNAVAILABLE, REBALANCER
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Document, Key, as_object, get_field, parse_api_group, read_annotations, read_json
from gitsched.model.finding import Severity
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration, format_time, parse_time
from gitsched.named_tuples import NamedTuple

SPEC_DIGEST = "gitsched.io/spec-digest"
"""On the record of a rebalancer: the digest of the spec that was handled."""
EXPIRED_AT = "gitsched.io/expired-at"
"""On the record of an expired rebalancer: when its ttlSecondsAfterFinished ended."""
REMARKS = "gitsched.io/remarks"
"""On the record of a rebalancer: findings about workloads that it left on their clusters, as a JSON list of severity, code and message."""
BINDING_NOT_FOUND = "ReferencedBindingNotFound"

_SEVERITIES: dict[str, Severity] = {"warning": "warning", "info": "info"}

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


class Remark(NamedTuple):
    """A finding about the effect of a rebalancer, which later runs repeat from the record."""

    severity: Severity
    code: str
    message: str


class WorkloadRebalancer(NamedTuple):
    """A WorkloadRebalancer with its record of earlier runs.

    `observed` are its workloads in upstream's order: those of the present spec, and those that were rebalanced before they were removed
    from it. `changed` says whether they, or the spec, differ from the record. `finished` is None while a workload is pending; `expired`
    is when ttlSecondsAfterFinished ended. `remarks` are about workloads that it left on their clusters. `was_pending` says that an earlier
    run has left a workload pending.
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
    remarks: tuple[Remark, ...] = ()
    was_pending: bool = False

    @property
    def pending(self) -> tuple[ObjectReference, ...]:
        """The workloads that have not been rebalanced yet."""
        return tuple(entry.workload for entry in self.observed if not entry.result)

    @property
    def handled(self) -> dict[ObjectReference, str]:
        """The result of each workload of the spec that has one."""
        return {entry.workload: entry.result for entry in self.observed if entry.result and entry.workload in self.named}

    @property
    def title(self) -> str:
        """Kind and name."""
        return f"{REBALANCER} {self.document.key.name}"

    @property
    def keeps_available(self) -> bool:
        """Whether replicas that clusters report as available stay."""
        return read_annotations(self.document.body).get(ONLY_UNAVAILABLE) == "true"

    @property
    def expiry(self) -> datetime | None:
        """When a finished rebalancer expires; None without ttlSecondsAfterFinished or while it is pending."""
        return add_duration(self.finished, max(self.ttl, 0)) if self.finished and self.ttl is not None else None


def read_rebalancer(document: Document, previous: Body | None, time: datetime) -> WorkloadRebalancer:
    """Read a valid rebalancer and its record of the last run.

    Without a record the status of the document is used. The creation time is that of the document, else `time`. A changed spec keeps the
    results. An expired rebalancer whose spec changes is a new one, as on a hub, which has deleted it; so is one whose document has a
    later creation time than the record.
    """
    spec, metadata = document.body["spec"], document.body["metadata"]
    named = frozenset(_parse_references(spec["workloads"]))
    ttl = spec.get("ttlSecondsAfterFinished")
    digest = _digest_spec(named, ttl)
    annotations = read_annotations(previous or {})
    handled = annotations.get(SPEC_DIGEST, digest) if previous is not None else None
    expired = parse_time(annotations.get(EXPIRED_AT))
    created = parse_time(metadata.get("creationTimestamp"))
    recorded = parse_time(get_field(previous or {}, "metadata", "creationTimestamp"))
    new = WorkloadRebalancer(document, digest, ttl, named, created or time, 1, _merge_observed((), named), True, None, None)
    last = max(filter(None, (expired, recorded)), default=None)
    if created is not None and last is not None and created > last:
        return new
    if expired is not None and handled != digest:
        return new._replace(created=time)
    status = as_object(get_field(previous if previous is not None else document.body, "status"))
    known = tuple(_parse_observed_workloads(status.get("observedWorkloads")))
    seen = _read_integer(status.get("observedGeneration"))
    finished = parse_time(status.get("finishTime"))
    # The later time: a rebalancer that was added again after it expired was created then, regardless of the time in its document.
    created = max(filter(None, (created, recorded)), default=time)
    if handled == digest:
        new = new._replace(remarks=_parse_remarks(annotations.get(REMARKS)))
    if expired is not None:
        return new._replace(
            created=created, generation=max(seen, 1), observed=known, changed=False, finished=finished, expired=expired
        )
    observed = _merge_observed(known, named)
    generation = _read_integer(metadata.get("generation")) or seen if handled is None else seen + (handled != digest)
    return new._replace(
        created=created,
        generation=max(generation, seen, 1),
        observed=observed,
        changed=observed != known or generation != seen,
        finished=finished,
        was_pending=previous is not None and any(not entry.result for entry in known if entry.workload in named),
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


def write_rebalancer_record(rebalancer: WorkloadRebalancer, *, keep_results: bool = True) -> Body:
    """Return the record under status/: the rebalancer as Karmada's API server would return it, without its spec.

    A hub deletes an expired rebalancer: without `keep_results` its record has an empty status, as in earlier versions of gitsched.
    """
    notes = {SPEC_DIGEST: rebalancer.digest}
    metadata: Body = {"name": rebalancer.document.key.name}
    status: Body = {}
    if rebalancer.expired is not None:
        notes[EXPIRED_AT] = format_time(rebalancer.expired)
    if rebalancer.remarks:
        notes[REMARKS] = json.dumps(rebalancer.remarks, ensure_ascii=False)
    if rebalancer.expired is None or (rebalancer.observed and keep_results):
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


def _parse_remarks(text: str | None) -> tuple[Remark, ...]:
    """Return the remarks of a record; a modified record may hold anything."""
    try:
        entries = read_json(text or "[]")
        return tuple(Remark(_SEVERITIES[severity], str(code), str(message)) for severity, code, message in entries)
    except (KeyError, TypeError, ValueError):
        return ()


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


def read_references(document: Document) -> Iterable[ObjectReference]:
    """Return the workloads that a valid rebalancer names, as written."""
    return _parse_references(document.body["spec"]["workloads"])


def is_expired(record: Body) -> bool:
    """Return whether the record of a rebalancer says that it has expired."""
    return EXPIRED_AT in read_annotations(record)


def read_last_scheduled(binding: Body | None) -> datetime | None:
    """Return when a binding was last scheduled successfully; None if it never was."""
    return parse_time(get_field(binding or {}, "status", "lastScheduledTime"))


DecideWorkload = Callable[[Document], Outcome | None]


class BindingLookup:
    """The bindings of this run, found by name as upstream does, without some that are known to be `absent`."""

    def __init__(self, snapshot: Snapshot, decide: DecideWorkload, absent: Container[Key] = frozenset()) -> None:
        self._snapshot, self._decide, self._absent = snapshot, decide, absent
        self._named: dict[Key, Document] | None = None
        self._outcomes: dict[Key, Outcome | None] = {}

    def find_availability(self, workload: ObjectReference) -> BindingAvailability:
        """Return whether a workload has a binding in this run, also if that is decided elsewhere."""
        kept = self._snapshot.kept.get(workload.key)
        if kept is not None:
            return "retained" if kept.records else "missing"
        if workload.key in self._snapshot.elsewhere:
            return "bound" if workload.binding in self._snapshot.previous else "retained"
        if workload.key in self._snapshot.quarantined:
            return "retained" if workload.binding in self._snapshot.previous else "missing"
        outcome = self.find_outcome(workload)
        if outcome is None or not outcome.records:
            return "missing"
        return "retained" if outcome.state == "stale" else "bound"

    def find_outcome(self, workload: ObjectReference) -> Outcome | None:
        """Return the decision of this run about a workload; None without a policy that selects it."""
        template = self.find_template(workload)
        if template is None:
            return None
        if template.key not in self._outcomes:
            self._outcomes[template.key] = self._decide(template)
        return self._outcomes[template.key]

    def find_template(self, workload: ObjectReference) -> Document | None:
        """Return the workload of a reference, which may have another API group, or a name with '.' for ':'."""
        template = self._snapshot.templates.get(workload.key)
        if template is not None or workload.binding in self._absent:
            return template
        if self._named is None:
            self._named = {binding_key(key): template for key, template in self._snapshot.templates.items()}
        return self._named.get(workload.binding)
