"""WorkloadRebalancer: one request for a fresh placement, from the document to its status (spec/karmada.md §10).

The record under status/ is its memory: when the rebalancer came, the digest of the spec that was acted on, and what became of each
workload. One whose time is over keeps a record without a status, else the file, which still lies in the repository, would fire again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, NamedTuple

from gitsched.apis.karmada.names import APPS_VERSION, REBALANCER, binding_key
from gitsched.model.document import Body, Document, Key, as_object, group_of, member, text_map
from gitsched.model.time import format_time, later, parse_time

DIGEST = "gitsched.io/spec-digest"
"""On a rebalancer's record: the digest of the spec that was acted on."""
EXPIRED = "gitsched.io/expired-at"
"""On the record of a rebalancer that is over: when its ttlSecondsAfterFinished ended."""
NOT_FOUND = "ReferencedBindingNotFound"

Standing = Literal["bound", "held", "missing"]
"""Of a workload: it has a binding; it has one that must stay as it is for now, since something it needs is broken; it has none."""


class Reference(NamedTuple):
    """A workload as a rebalancer names it; `namespace` is "" for what is cluster-scoped."""

    api_version: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return " ".join(part for part in self if part)

    @property
    def key(self) -> Key:
        return Key(group_of(self.api_version), self.kind, self.namespace, self.name)

    @property
    def binding(self) -> Key:
        """The binding that is looked for. It has no part of the API group in its name, and none is compared."""
        return binding_key(self.key)


class Observed(NamedTuple):
    """What became of one workload; `result` is "" while nothing did."""

    workload: Reference
    result: str = ""
    reason: str = ""


class Rebalancer(NamedTuple):
    """A rebalancer and what earlier runs left of it.

    `observed` are its workloads in upstream's order, those of the present spec and those that were rebalanced before they left it.
    `changed` tells whether that, or the spec, differs from what was acted on. `finished` is None until nothing is left to do; `expired`
    is the end of a rebalancer that is over.
    """

    document: Document
    digest: str
    ttl: int | None
    named: frozenset[Reference]
    created: datetime
    generation: int
    observed: tuple[Observed, ...]
    changed: bool
    finished: datetime | None
    expired: datetime | None

    @property
    def pending(self) -> tuple[Reference, ...]:
        """The workloads that are still to be rebalanced."""
        return tuple(entry.workload for entry in self.observed if not entry.result)

    @property
    def end(self) -> datetime | None:
        """When a finished one goes away; None for never, or not yet."""
        return later(self.finished, max(self.ttl, 0)) if self.finished and self.ttl is not None else None


def read_rebalancer(document: Document, previous: Body | None, moment: datetime) -> Rebalancer:
    """A rebalancer whose document passed its schema, and its record of the last run.

    Without a record the status of a dump counts. The creation time is the document's own, else that of the event that brought it. A
    changed spec keeps what was done; but one that is over and changes is a new one, as it would be on a hub, which deleted the old.
    """
    spec, metadata = document.body["spec"], document.body["metadata"]
    named = frozenset(_references(spec["workloads"]))
    ttl = spec.get("ttlSecondsAfterFinished")
    digest = _digest(named, ttl)
    noted = text_map(member(previous or {}, "metadata", "annotations"))
    acted = noted.get(DIGEST, digest) if previous is not None else None
    expired = parse_time(noted.get(EXPIRED))
    created = parse_time(metadata.get("creationTimestamp"))
    blank = Rebalancer(document, digest, ttl, named, created or moment, 1, (), True, None, None)
    if expired is not None and acted == digest:
        return blank._replace(expired=expired, changed=False)
    if expired is not None:
        return blank._replace(created=created if created and created > expired else moment, observed=_merge((), named))
    if previous is not None:
        # The later one, for one that came anew after it was over dates from then, whatever its document says.
        noted_then = parse_time(member(previous, "metadata", "creationTimestamp"))
        created = max(filter(None, (created, noted_then)), default=None)
    status = as_object(member(previous if previous is not None else document.body, "status"))
    known = tuple(_observations(status.get("observedWorkloads")))
    observed = _merge(known, named)
    seen = _whole(status.get("observedGeneration"))
    generation = _whole(metadata.get("generation")) or seen if acted is None else seen + (acted != digest)
    return blank._replace(
        created=created or moment,
        generation=max(generation, seen, 1),
        observed=observed,
        changed=observed != known or generation != seen,
        finished=parse_time(status.get("finishTime")),
    )


def observe(rebalancer: Rebalancer, standings: Iterable[Standing], at: datetime) -> Rebalancer:
    """The rebalancer after its pending workloads, which stand like this, were dealt with at a moment.

    A workload without a binding has failed for good. One that is held back is tried again in the next run.
    """
    if rebalancer.expired is not None:
        return rebalancer
    results = dict(zip(rebalancer.pending, standings, strict=True))
    observed = tuple(_judge(entry, results.get(entry.workload)) for entry in rebalancer.observed)
    changed = rebalancer.changed or observed != rebalancer.observed
    done = all(entry.result for entry in observed)
    finished = (at if changed else rebalancer.finished) if done else None
    return rebalancer._replace(observed=observed, changed=changed, finished=finished)


def expire(rebalancer: Rebalancer, now: datetime) -> Rebalancer:
    """The rebalancer, over where its time is."""
    end = rebalancer.end
    return rebalancer._replace(expired=end) if rebalancer.expired is None and end is not None and end <= now else rebalancer


def write_record(rebalancer: Rebalancer) -> Body:
    """The record under status/: the rebalancer as Karmada's API server would show it, without its spec; an empty status once it is over."""
    notes = {DIGEST: rebalancer.digest}
    metadata: Body = {"name": rebalancer.document.key.name}
    status: Body = {}
    if rebalancer.expired is not None:
        notes[EXPIRED] = format_time(rebalancer.expired)
    else:
        metadata |= {"generation": rebalancer.generation, "creationTimestamp": format_time(rebalancer.created)}
        status["observedWorkloads"] = [_show(entry) for entry in rebalancer.observed]
        status["observedGeneration"] = rebalancer.generation
        if rebalancer.finished is not None:
            status["finishTime"] = format_time(rebalancer.finished)
    return {"apiVersion": APPS_VERSION, "kind": REBALANCER, "metadata": {**metadata, "annotations": notes}, "status": status}


def _merge(known: Iterable[Observed], named: frozenset[Reference]) -> tuple[Observed, ...]:
    """What is known of the workloads named, and of those no longer named that were rebalanced; the new ones; in upstream's order."""
    kept = {entry.workload: entry for entry in known if entry.workload in named or entry.result == "Successful"}
    entries = [*kept.values(), *(Observed(workload) for workload in named - kept.keys())]
    return tuple(sorted(entries, key=lambda entry: " ".join(entry.workload)))


def _judge(entry: Observed, standing: Standing | None) -> Observed:
    match standing:
        case "bound":
            return Observed(entry.workload, "Successful")
        case "missing":
            return Observed(entry.workload, "Failed", NOT_FOUND)
    return entry


def _digest(named: Iterable[Reference], ttl: int | None) -> str:
    """Of what the spec says: neither the order of its workloads nor naming one twice says anything."""
    text = json.dumps({"ttlSecondsAfterFinished": ttl, "workloads": sorted(named)}, separators=(",", ":"), sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _observations(value: Any) -> Iterable[Observed]:
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            for workload in _references([entry.get("workload")]):
                yield Observed(workload, str(entry.get("result") or ""), str(entry.get("reason") or ""))


def _references(value: Iterable[Any]) -> Iterable[Reference]:
    for entry in value:
        if isinstance(entry, dict):
            yield Reference(*(str(entry.get(name) or "") for name in ("apiVersion", "kind", "namespace", "name")))


def _show(entry: Observed) -> Body:
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


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
