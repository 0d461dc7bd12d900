"""Findings about WorkloadRebalancers: targets that do not exist or do not move, and expiry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gitsched.apis.karmada.binding.resource_binding import binding_key, is_rebalance_pending, read_previous
from gitsched.apis.karmada.rebalancer import (
    BINDING_NOT_FOUND,
    BindingLookup,
    ObjectReference,
    Remark,
    WorkloadRebalancer,
    read_last_scheduled,
)
from gitsched.kinds.table import is_namespaced
from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.model.finding import FieldOrigin, Finding, Severity, locate_document
from gitsched.model.time import format_time, parse_time

ExplainUnmoved = Callable[[Document], str]
"""Say which clusters the scheduler rejects for a workload, and why; "" if it rejects none that the policy selects."""

MAX_NAMED_TARGETS = 5
"""Workloads that one message names; it counts the others."""


def make_expiry_finding(rebalancer: WorkloadRebalancer) -> Finding:
    """Return the remark that the file of an expired rebalancer can be removed."""
    assert rebalancer.expired is not None
    message = (
        f"{rebalancer.title} has finished and expired at {format_time(rebalancer.expired)}: remove it from the source with "
        "`gitsched tidy --write`"
    )
    return _make_finding("info", "rebalancer-expired", message, rebalancer)


def find_missing_targets(rebalancer: WorkloadRebalancer) -> Iterator[Finding]:
    """Yield a warning for each workload of the spec that has no binding."""
    written = _index_entries(rebalancer.document)
    for entry in rebalancer.observed:
        if entry.reason == BINDING_NOT_FOUND and entry.workload in rebalancer.named:
            message = f"{rebalancer.title} names {entry.workload}, which has no binding{_describe_scope(entry.workload)}"
            finding = _make_finding("warning", "rebalance-target-missing", message, rebalancer)
            yield finding._replace(field=written.get(tuple(entry.workload)))


def _index_entries(document: Document) -> dict[tuple[str, ...], FieldOrigin]:
    """Return the names of the workloads in the spec of a rebalancer by reference."""
    found: dict[tuple[str, ...], FieldOrigin] = {}
    for index, entry in enumerate(get_field(document.body, "spec", "workloads") or ()):
        written = tuple(str(entry.get(member) or "") for member in ("apiVersion", "kind", "namespace", "name"))
        if document.origin is not None:
            found.setdefault(written, FieldOrigin(document.origin, ("spec", "workloads", index, "name")))
    return found


def find_lost_requests(rebalancer: WorkloadRebalancer, previous: Mapping[Key, Body]) -> Iterator[Finding]:
    """Yield a warning about workloads that count as rebalanced although their bindings were never triggered.

    Earlier versions of gitsched recorded a rebalance as successful while its moves were withheld.
    """
    if rebalancer.document.key not in previous:
        return
    lost = [
        workload
        for workload, result in rebalancer.handled.items()
        if result == "Successful" and _is_untriggered(rebalancer, workload, previous)
    ]
    if lost:
        message = (
            f"{rebalancer.title} has the result Successful for {_name_workloads(lost)}, but their bindings were never rescheduled: an "
            "earlier version of gitsched recorded this while the moves were withheld. To request them again, run `gitsched rebalance` or "
            "use another name, and remove this one; else only remove it"
        )
        yield _make_finding("warning", "rebalance-lost", message, rebalancer)


def _is_untriggered(rebalancer: WorkloadRebalancer, workload: ObjectReference, previous: Mapping[Key, Body]) -> bool:
    """Return whether a binding was scheduled before a rebalancer was created, and not triggered by it or a later one."""
    record = previous.get(workload.binding)
    scheduled, triggered = read_last_scheduled(record), parse_time(get_field(record or {}, "spec", "rescheduleTriggeredAt"))
    return scheduled is not None and scheduled < rebalancer.created and (triggered is None or triggered < rebalancer.created)


def list_remark_findings(rebalancer: WorkloadRebalancer) -> list[Finding]:
    """Return the remarks of a rebalancer as findings."""
    return [_make_finding(*remark, rebalancer) for remark in rebalancer.remarks]


def find_unmoved_targets(
    before: WorkloadRebalancer,
    after: WorkloadRebalancer,
    previous: Mapping[Key, Body],
    bindings: BindingLookup,
    explain_unmoved: ExplainUnmoved,
) -> Iterator[Remark]:
    """Yield remarks about the workloads that this run handles and that stay on their clusters, with the reasons."""
    handled, unmoved = after.handled, dict[tuple[str, bool], list[ObjectReference]]()
    for workload in before.pending:
        record = previous.get(workload.binding)
        if handled.get(workload) != "Successful" or not get_field(record or {}, "spec", "clusters"):
            continue
        remark = _check_trigger(after, workload, record or {})
        if remark is not None:
            yield remark
            continue
        template, outcome = bindings.find_template(workload), bindings.find_outcome(workload)
        binding = dict(outcome.records).get(binding_key(template.key)) if template is not None and outcome is not None else None
        if template is None or binding is None or _read_clusters(binding) != _read_clusters(record):
            continue
        reason = explain_unmoved(template), is_rebalance_pending(read_previous(binding))
        unmoved.setdefault(reason, []).append(workload)
    for (text, stays_pending), workloads in unmoved.items():
        yield _make_unmoved_remark(after, workloads, text, stays_pending=stays_pending)


def _check_trigger(rebalancer: WorkloadRebalancer, workload: ObjectReference, record: Body) -> Remark | None:
    """Return a warning if the creation time of a rebalancer does not trigger a binding."""
    scheduled, triggered = read_last_scheduled(record), parse_time(get_field(record, "spec", "rescheduleTriggeredAt"))
    if scheduled is None:
        message = (
            f"{rebalancer.title} names {workload}, whose binding has no status.lastScheduledTime: as in Karmada it is not rescheduled, "
            "because the request may be older than its last scheduling; commit the binding with its status"
        )
        return Remark("warning", "rebalance-ignored", message)
    if scheduled >= rebalancer.created and triggered != rebalancer.created:
        message = (
            f"{rebalancer.title} was created at {format_time(rebalancer.created)}, but {workload} was scheduled later, at "
            f"{format_time(scheduled)}: it is not rescheduled and stays where it is; create a rebalancer with another name"
        )
        return Remark("warning", "rebalance-too-late", message)
    return None


def _make_unmoved_remark(
    rebalancer: WorkloadRebalancer, workloads: list[ObjectReference], reason: str, *, stays_pending: bool
) -> Remark:
    named = _name_workloads(workloads)
    if stays_pending:
        message = (
            f"{rebalancer.title} does not move {named} yet: {reason or 'no cluster fits'}. The request stays in the binding, and takes "
            "effect when this has changed"
        )
        return Remark("warning", "rebalance-without-effect", message)
    if not reason:
        message = f"{rebalancer.title} does not move {named}: scheduling from scratch gives the same clusters"
        return Remark("info", "rebalance-without-effect", message)
    message = (
        f"{rebalancer.title} does not move {named}: {reason}. It is handled once; when this has changed, request another rebalance, "
        "under another name or with `gitsched rebalance`, and remove this one"
    )
    return Remark("warning", "rebalance-without-effect", message)


def _name_workloads(workloads: Sequence[ObjectReference]) -> str:
    named = ", ".join(map(str, workloads[:MAX_NAMED_TARGETS]))
    more = len(workloads) - MAX_NAMED_TARGETS
    return f"{named} and {more} more" if more > 0 else named


def _read_clusters(binding: Body | None) -> list[tuple[object, object]]:
    return sorted(
        ((cluster.get("name"), cluster.get("replicas")) for cluster in list_objects(get_field(binding or {}, "spec", "clusters"))),
        key=str,
    )


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
