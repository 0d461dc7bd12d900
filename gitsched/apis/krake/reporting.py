"""Findings about Krake's resources: not what is wrong with a document, which admission says, but what came of it."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.apis.krake import names
from gitsched.apis.krake.backends import Binding
from gitsched.apis.krake.decisions import Decided, Decisions
from gitsched.apis.krake.inventory import ONLINE, STATES, is_deleted, state_of
from gitsched.apis.krake.metrics import Readings, Reason
from gitsched.apis.krake.records import find_owners
from gitsched.model.document import Document, Key, member
from gitsched.model.finding import Finding, locate
from gitsched.render.layout import status_path

_NAMED = 3
"""Resources named in a finding that is about many."""


def report(decisions: Decisions) -> Iterator[Finding]:
    """What is to be said about clusters, clouds, projects and Magnum clusters."""
    silent: dict[Reason, list[tuple[str, Document]]] = {}
    for cluster in decisions.clusters.values():
        document, readings = cluster.document, cluster.site.readings
        if readings.declared:
            yield from _report_metrics(document, readings, silent)
        if cluster.missing and cluster.cloud is not None:
            what = "has a broken document" if cluster.unsure else "is not there"
            message = f"{document.key} inherits nothing: its {cluster.cloud.kind} {cluster.cloud.name} {what}"
            yield _warn("krake-cloud-missing", message, document)
        state = state_of(document.body)
        if state == ONLINE:
            continue
        if member(document.body, "status", "state") is None and member(document.body, "spec", "kubeconfig"):
            message = f"nobody says that {document.key} is ONLINE, so nothing is placed there: write status.state"
            yield _warn("krake-cluster-state", message, document)
        elif state not in STATES:
            message = f"{document.key} is {state[:60]!r}, which is no state of a cluster: nothing is placed there"
            hint = "; did you mean ONLINE?" if state.upper() == ONLINE else ""
            yield _warn("krake-cluster-state", message + hint, document)
    owners = find_owners(decisions.world.documents)
    for site in decisions.sites:
        if site.ref in owners:
            yield from _report_metrics(owners[site.ref], site.readings, silent)
    yield from _report_silence(silent)
    for document, binding in (*decisions.bindings.values(), *decisions.magnum.values()):
        yield from _report_binding(document, binding)


def report_application(decided: Decided, gone: Key | None, stays: bool) -> Iterator[Finding]:
    """What is to be said about an application; `gone` is its cluster where that has no document any more."""
    document, step = decided.app.document, decided.steps[-1]
    key = document.key
    if is_deleted(document.body):
        return
    if step.action == "hold" and stays:
        yield _warn("stale-decision", f"{key} keeps its previous placement: {step.why}", document)
    elif step.action == "hold":
        yield _warn("unschedulable", f"{key} is not placed yet: {step.why}", document)
    elif step.memory.state == "FAILED":
        yield _warn("unschedulable", f"{key} has failed: {_reason(decided)}", document)
    elif step.memory.state == "DEGRADED" and step.memory.reason and not step.mask:
        where = " and stays where it is" if stays else ""
        yield _warn("unschedulable", f"{key} could not be scheduled{where}: {_reason(decided)}", document)
    elif step.memory.awaited and not stays:
        yield _warn("krake-cluster-wanted", f"{key} {_tell_wanted(decided, step.memory.awaited)}", document)
    if decided.before.target is not None and decided.before.scheduled is None:
        message = f"{key} is bound, and its status does not say since when: it counts as placed long ago"
        yield _warn("krake-timestamps", message, document)._replace(severity="info")
    if gone is not None:
        yield _warn("cluster-gone", f"{key} is bound to {gone}, which is not there: nothing is rendered for it", document)
    if not member(document.body, "spec", "manifest"):
        message = f"{key} has no spec.manifest: TOSCA is not translated, so nothing is rendered"
        yield _warn("krake-nothing-to-render", message, document)


def _tell_wanted(decided: Decided, name: str) -> str:
    """What somebody has to do, for an application that waits for a cluster."""
    if name in decided.around.clusters.fleet.index:
        return f"waits until its cluster {name} is {ONLINE}"
    where = status_path(Key(*names.CLUSTER, decided.app.key.namespace, name))
    said = f"{where} of the output branch says how. Commit it with a kubeconfig and its state"
    return f"waits for the cluster {name}, which is to be made: {said}"


def _reason(decided: Decided) -> str:
    app, around = decided.app, decided.around
    if not (around.clusters.sites or app.creates or any(key.namespace == app.key.namespace for key in around.broken)):
        return f"there is no Cluster in namespace {app.key.namespace}, and applications stay in theirs"
    reason = decided.steps[-1].memory.reason or {}
    return str(reason.get("message") or reason.get("code") or "nobody says why")


def _report_silence(silent: dict[Reason, list[tuple[str, Document]]]) -> Iterator[Finding]:
    """What providers did not answer: for each answer that is missing one finding, where it is missing everywhere."""
    for reason, entries in silent.items():
        if len(entries) <= _NAMED:
            yield from (_report_metric(metric, document, reason) for metric, document in entries)
            continue
        metrics = list(dict.fromkeys(metric for metric, _ in entries))
        asked = f"metric{'s' if len(metrics) > 1 else ''} {', '.join(metrics[:_NAMED])}{', ...' if len(metrics) > _NAMED else ''}"
        owners = list(dict.fromkeys(str(document.key) for _, document in entries))
        more = f" and {len(owners) - _NAMED} more" if len(owners) > _NAMED else ""
        message = f"the {asked} of {', '.join(owners[:_NAMED])}{more} cannot be used: {reason.told or reason.message}"
        yield _warn("krake-failing-metric", message, entries[0][1])


def _report_metric(metric: str, document: Document, reason: Reason) -> Finding:
    message = f"the metric {metric} of {document.key} cannot be used: {reason.told or reason.message}"
    return _warn("krake-failing-metric", message, document)


def _report_metrics(document: Document, readings: Readings, silent: dict[Reason, list[tuple[str, Document]]]) -> Iterator[Finding]:
    """What is wrong with the metrics of one resource; what providers alone are to blame for goes into `silent`."""
    for metric, reason in readings.reasons:
        if reason.failed:
            silent.setdefault(reason, []).append((metric, document))
        else:
            yield _report_metric(metric, document, reason)
    standing = readings.standing
    if standing is not None and not standing.weight:
        message = f"the weights of {document.key}'s metrics add up to 0: no mean can be taken, and they are left aside"
        yield _warn("krake-weights", message, document)


def _report_binding(document: Document, binding: Binding) -> Iterator[Finding]:
    if binding.action == "wait":
        yield _warn("stale-decision", f"{document.key} is not bound yet: {binding.why}", document)
    elif binding.memory.state == "FAILED" and binding.memory.reason:
        message = f"{document.key} could not be bound: {binding.memory.reason.get('message')}"
        yield _warn("unschedulable", message, document)


def _warn(code: str, message: str, document: Document) -> Finding:
    return Finding("warning", code, message, locate(document), document.key.resource)
