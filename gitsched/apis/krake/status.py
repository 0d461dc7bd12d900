"""Status of Krake's resources after scheduling: the records under status/, and the findings about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.krake import names
from gitsched.apis.krake.candidates import CLUSTER_STATES, FAILING_METRICS, ONLINE, ResourceCandidate, is_deleted, read_state
from gitsched.apis.krake.clusters import CloudBinding
from gitsched.apis.krake.metrics import MetricReason, MetricResults
from gitsched.apis.krake.names import ResourceRef
from gitsched.apis.krake.scheduler import ApplicationDecision, KrakeScheduler
from gitsched.apis.krake.scheduling_status import SchedulingStatus, format_optional_time, make_record
from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.render.layout import status_path

_COPIED_FIELDS = ("running_on", "migration_retries", "migration_timeout")
"""Members of an application's status that others write; the rest of it may hold what nobody should read."""


def make_application_record(document: Document, memory: SchedulingStatus) -> Body:
    """An Application with its status."""
    source = document.body.get("status") or {}
    status = {
        "state": memory.state,
        "reason": memory.reason,
        "scheduled": format_optional_time(memory.scheduled),
        "scheduled_to": memory.target.body if memory.target else None,
        "kube_controller_triggered": format_optional_time(memory.triggered),
        "retries": memory.retries,
        "scheduled_retry": format_optional_time(memory.next_retry),
        "auto_cluster_create_started": memory.awaited_cluster or None,
        **{name: source.get(name) for name in _COPIED_FIELDS},
    }
    return make_record(document, memory, status)


def make_cluster_record(
    document: Document, binding: CloudBinding, site: ResourceCandidate | None, spec: Body | None
) -> Body | None:
    """A Cluster of which there is something to say: its cloud, why it has none, or which of its metrics fail. `spec` is of one that is
    to be made."""
    memory = binding.status
    failing = site is not None and site.state == FAILING_METRICS and memory.state != "FAILED"
    if binding.action == "ignored" and not failing and memory.state not in ("FAILED",) and not memory.recorded:
        return None
    status = {
        "state": FAILING_METRICS if failing else site.state if site and memory.state != "FAILED" else memory.state,
        "reason": memory.reason,
        "metrics_reasons": _list_metric_reasons(site) if site else None,
        "scheduled": format_optional_time(memory.scheduled),
        "scheduled_to": memory.target.body if memory.target else None,
    }
    return make_record(document, memory, status, spec=spec)


def make_magnum_cluster_record(document: Document, binding: CloudBinding, projects: Mapping[ResourceRef, Document]) -> Body:
    """A MagnumCluster with its project, and the labels and metrics that it has from there; its own labels win."""
    memory = binding.status
    project = projects.get(memory.target) if memory.target else None
    labels = as_string_map(get_field(document.body, "metadata", "labels"))
    metrics = list(get_field(document.body, "spec", "metrics") or ())
    template = get_field(document.body, "status", "template")
    if project is not None:
        labels = {**as_string_map(get_field(project.body, "metadata", "labels")), **labels}
        known = {entry.get("name") for entry in metrics}
        metrics += [entry for entry in get_field(project.body, "spec", "metrics") or () if entry.get("name") not in known]
        template = get_field(project.body, "spec", "template")
    status = {
        "state": memory.state,
        "reason": memory.reason,
        "project": memory.target.body if memory.target else None,
        "template": template,
    }
    return make_record(document, memory, status, labels=labels, spec={"metrics": metrics})


def make_failing_metrics_records(
    sites: Iterable[ResourceCandidate], documents: Mapping[ResourceRef, Document]
) -> Iterator[tuple[Key, Body]]:
    """The clouds and projects whose metrics cannot be read."""
    for site in sites:
        document = documents.get(site.ref)
        if document is None or not site.metrics.reasons:
            continue
        status = {"state": FAILING_METRICS, "metrics_reasons": _list_metric_reasons(site)}
        metadata = {"name": site.ref.name} | ({"namespace": site.ref.namespace} if site.ref.namespace else {})
        yield document.key, {"api": site.ref.group, "kind": site.ref.kind, "metadata": metadata, "status": status}


def _list_metric_reasons(site: ResourceCandidate) -> Body | None:
    return {name: reason.body for name, reason in site.metrics.reasons} or None


def index_clouds_and_projects(documents: Mapping[tuple[str, str], tuple[Document, ...]]) -> dict[ResourceRef, Document]:
    """The clouds and projects of a world, by what refers to them."""
    kinds = (names.CLOUD, names.GLOBAL_CLOUD, names.PROJECT)
    return {names.make_ref(document.key): document for kind in kinds for document in documents.get(kind, ())}


_MAX_NAMED = 3
"""Resources named in a finding that is about many."""


def report_resources(decisions: KrakeScheduler) -> Iterator[Finding]:
    """What is to be said about clusters, clouds, projects and Magnum clusters."""
    silent: dict[MetricReason, list[tuple[str, Document]]] = {}
    for cluster in decisions.clusters.values():
        document, readings = cluster.document, cluster.candidate.metrics
        if readings.declared:
            yield from _report_metrics(document, readings, silent)
        if cluster.cloud_missing and cluster.cloud is not None:
            what = "has a broken document" if cluster.cloud_quarantined else "is not there"
            message = f"{document.key} inherits nothing: its {cluster.cloud.kind} {cluster.cloud.name} {what}"
            yield _warn("krake-cloud-missing", message, document)
        state = read_state(document.body)
        if state == ONLINE:
            continue
        if get_field(document.body, "status", "state") is None and get_field(document.body, "spec", "kubeconfig"):
            message = f"nobody says that {document.key} is ONLINE, so nothing is placed there: write status.state"
            yield _warn("krake-cluster-state", message, document)
        elif state not in CLUSTER_STATES:
            message = f"{document.key} is {state[:60]!r}, which is no state of a cluster: nothing is placed there"
            hint = "; did you mean ONLINE?" if state.upper() == ONLINE else ""
            yield _warn("krake-cluster-state", message + hint, document)
    owners = index_clouds_and_projects(decisions.snapshot.documents)
    for site in decisions.clouds_and_projects:
        if site.ref in owners:
            yield from _report_metrics(owners[site.ref], site.metrics, silent)
    yield from _report_failed_providers(silent)
    for document, binding in (*decisions.bindings.values(), *decisions.magnum_bindings.values()):
        yield from _report_binding(document, binding)


def report_application(decided: ApplicationDecision, gone: Key | None, stays: bool) -> Iterator[Finding]:
    """What is to be said about an application; `gone` is its cluster where that has no document any more."""
    document, step = decided.app.document, decided.attempts[-1]
    key = document.key
    if is_deleted(document.body):
        return
    if step.action == "hold" and stays:
        yield _warn("stale-decision", f"{key} keeps its previous placement: {step.reason}", document)
    elif step.action == "hold":
        yield _warn("unschedulable", f"{key} is not placed yet: {step.reason}", document)
    elif step.status.state == "FAILED":
        yield _warn("unschedulable", f"{key} has failed: {_describe_failure(decided)}", document)
    elif step.status.state == "DEGRADED" and step.status.reason and not step.matching:
        where = " and stays where it is" if stays else ""
        yield _warn("unschedulable", f"{key} could not be scheduled{where}: {_describe_failure(decided)}", document)
    elif step.status.awaited_cluster and not stays:
        yield _warn("krake-cluster-wanted", f"{key} {_describe_awaited_cluster(decided, step.status.awaited_cluster)}", document)
    if decided.previous.target is not None and decided.previous.scheduled is None:
        message = f"{key} is bound, and its status does not say since when: it counts as placed long ago"
        yield _warn("krake-timestamps", message, document)._replace(severity="info")
    if gone is not None:
        yield _warn("cluster-gone", f"{key} is bound to {gone}, which is not there: nothing is rendered for it", document)
    if not get_field(document.body, "spec", "manifest"):
        message = f"{key} has no spec.manifest: TOSCA is not translated, so nothing is rendered"
        yield _warn("krake-nothing-to-render", message, document)


def _describe_awaited_cluster(decided: ApplicationDecision, name: str) -> str:
    """What somebody has to do, for an application that waits for a cluster."""
    if name in decided.context.clusters.fleet.index:
        return f"waits until its cluster {name} is {ONLINE}"
    where = status_path(Key(*names.CLUSTER, decided.app.key.namespace, name))
    said = f"{where} of the output branch says how. Commit it with a kubeconfig and its state"
    return f"waits for the cluster {name}, which is to be made: {said}"


def _describe_failure(decided: ApplicationDecision) -> str:
    app, around = decided.app, decided.context
    if not (
        around.clusters.candidates
        or app.creates_cluster
        or any(key.namespace == app.key.namespace for key in around.uncertain_clusters)
    ):
        return f"there is no Cluster in namespace {app.key.namespace}, and applications stay in theirs"
    reason = decided.attempts[-1].status.reason or {}
    return str(reason.get("message") or reason.get("code") or "nobody says why")


def _report_failed_providers(silent: dict[MetricReason, list[tuple[str, Document]]]) -> Iterator[Finding]:
    """What providers did not answer: for each answer that is missing one finding, where it is missing everywhere."""
    for reason, entries in silent.items():
        if len(entries) <= _MAX_NAMED:
            yield from (_report_metric(metric, document, reason) for metric, document in entries)
            continue
        metrics = list(dict.fromkeys(metric for metric, _ in entries))
        asked = f"metric{'s' if len(metrics) > 1 else ''} {', '.join(metrics[:_MAX_NAMED])}{', ...' if len(metrics) > _MAX_NAMED else ''}"
        owners = list(dict.fromkeys(str(document.key) for _, document in entries))
        more = f" and {len(owners) - _MAX_NAMED} more" if len(owners) > _MAX_NAMED else ""
        message = f"the {asked} of {', '.join(owners[:_MAX_NAMED])}{more} cannot be used: {reason.description or reason.message}"
        yield _warn("krake-failing-metric", message, entries[0][1])


def _report_metric(metric: str, document: Document, reason: MetricReason) -> Finding:
    message = f"the metric {metric} of {document.key} cannot be used: {reason.description or reason.message}"
    return _warn("krake-failing-metric", message, document)


def _report_metrics(
    document: Document, readings: MetricResults, silent: dict[MetricReason, list[tuple[str, Document]]]
) -> Iterator[Finding]:
    """What is wrong with the metrics of one resource; what providers alone are to blame for goes into `silent`."""
    for metric, reason in readings.reasons:
        if reason.provider_failed:
            silent.setdefault(reason, []).append((metric, document))
        else:
            yield _report_metric(metric, document, reason)
    standing = readings.weighted_sum
    if standing is not None and not standing.weight:
        message = f"the weights of {document.key}'s metrics add up to 0: no mean can be taken, and they are left aside"
        yield _warn("krake-weights", message, document)


def _report_binding(document: Document, binding: CloudBinding) -> Iterator[Finding]:
    if binding.action == "wait":
        yield _warn("stale-decision", f"{document.key} is not bound yet: {binding.reason}", document)
    elif binding.status.state == "FAILED" and binding.status.reason:
        message = f"{document.key} could not be bound: {binding.status.reason.get('message')}"
        yield _warn("unschedulable", message, document)


def _warn(code: str, message: str, document: Document) -> Finding:
    return Finding("warning", code, message, locate_document(document), document.key.resource)
