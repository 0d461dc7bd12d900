"""Status of Krake's resources after scheduling: the records under status/, and the findings about them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from gitsched.apis.krake.applications import NO_MATCH_REASON
from gitsched.apis.krake.candidates import ResourceCandidate, ScoredCandidates, is_deleted
from gitsched.apis.krake.cluster_states import CLUSTER_STATES, FAILING_METRICS, FAILURE_STATES, ONLINE, read_cluster_state
from gitsched.apis.krake.clusters import CloudBinding, read_constraints
from gitsched.apis.krake.constraints import ConstraintSet
from gitsched.apis.krake.generated_clusters import UNUSED_SINCE_ANNOTATION, report_unused_clusters
from gitsched.apis.krake.impossible_constraints import describe_impossible_constraints
from gitsched.apis.krake.metrics import MetricReason, MetricResults
from gitsched.apis.krake.names import CLOUD, CLUSTER, GLOBAL_CLOUD, PROJECT, ResourceRef, make_ref
from gitsched.apis.krake.pending_clusters import find_pending_cluster, has_binding, report_pending_clusters
from gitsched.apis.krake.preferred_clusters import find_preference_findings
from gitsched.apis.krake.scheduler import ApplicationDecision, KrakeScheduler
from gitsched.apis.krake.scheduling_status import SchedulingStatus, format_optional_time, make_record
from gitsched.apis.krake.settings import SETTINGS
from gitsched.model.document import Body, Document, Key, as_object, get_field, read_annotations, read_json, read_labels
from gitsched.model.finding import FieldOrigin, Finding, locate_document
from gitsched.model.known_values import find_near, list_values
from gitsched.model.time import format_time
from gitsched.render.output_files import status_path

_COPIED_FIELDS = ("running_on", "migration_retries", "migration_timeout")
"""Status fields that other controllers write. Other fields may contain secrets and are not copied."""


OBJECTS_ANNOTATION = "gitsched.io/objects"
"""On the record of an Application: its objects in the cluster as JSON, each with group, kind, namespace and name."""


def make_application_record(document: Document, scheduling: SchedulingStatus, objects: Iterable[Key]) -> Body:
    """Return the record of an Application. `objects` are those in its cluster; none without one."""
    source = document.body.get("status") or {}
    status = {
        "state": scheduling.state,
        "reason": scheduling.reason,
        "scheduled": format_optional_time(scheduling.scheduled),
        "scheduled_to": scheduling.target.body if scheduling.target else None,
        "kube_controller_triggered": format_optional_time(scheduling.triggered),
        "retries": scheduling.retries,
        "scheduled_retry": format_optional_time(scheduling.next_retry),
        "auto_cluster_create_started": scheduling.awaited_cluster or None,
        **{name: source.get(name) for name in _COPIED_FIELDS},
    }
    record = make_record(document, scheduling, status)
    keys = [list(key) for key in sorted(objects)]
    if keys:
        record["metadata"]["annotations"][OBJECTS_ANNOTATION] = json.dumps(keys, separators=(",", ":"))
    return record


def read_recorded_objects(record: Body) -> tuple[Key, ...]:
    """Return the objects of an Application in its cluster, as its record has them; none if it was written without them."""
    try:
        return tuple(Key(*map(str, entry)) for entry in read_json(read_annotations(record).get(OBJECTS_ANNOTATION, "[]")))
    except (ValueError, TypeError):
        return ()


def make_cluster_record(
    document: Document,
    binding: CloudBinding,
    candidate: ResourceCandidate | None,
    spec: Body | None,
    unused_since: datetime | None = None,
) -> Body | None:
    """Return the record of a Cluster; None if there is no recorded cloud, failure, failing metric or `unused_since`.

    `spec` is the spec of a cluster that an application requested. `unused_since` is the time since which no application uses a cluster that
    was created for one.
    """
    scheduling = binding.status
    failing = candidate is not None and candidate.state == FAILING_METRICS and scheduling.state != "FAILED"
    keeps_cloud = scheduling.target is not None and bool(scheduling.digest)  # a binding outlives changes of the document
    is_known = scheduling.recorded or keeps_cloud or unused_since is not None
    if binding.action == "ignored" and not failing and scheduling.state != "FAILED" and not is_known:
        return None
    status = {
        "state": FAILING_METRICS
        if failing
        else candidate.state
        if candidate and scheduling.state != "FAILED"
        else scheduling.state,
        "reason": scheduling.reason,
        "metrics_reasons": _list_metric_reasons(candidate) if candidate else None,
        "scheduled": format_optional_time(scheduling.scheduled),
        "scheduled_to": scheduling.target.body if scheduling.target else None,
    }
    record = make_record(document, scheduling, status, spec=spec)
    if unused_since is not None:
        record["metadata"]["annotations"][UNUSED_SINCE_ANNOTATION] = format_time(unused_since)
    return record


def make_magnum_cluster_record(document: Document, binding: CloudBinding, projects: Mapping[ResourceRef, Document]) -> Body:
    """Return the record of a MagnumCluster with its project and the project's labels and metrics. Its own labels take precedence."""
    scheduling = binding.status
    project = projects.get(scheduling.target) if scheduling.target else None
    labels = read_labels(document.body)
    metrics = list(get_field(document.body, "spec", "metrics") or ())
    template = get_field(document.body, "status", "template")
    if project is not None:
        labels = {**read_labels(project.body), **labels}
        known = {entry.get("name") for entry in metrics}
        metrics += [entry for entry in get_field(project.body, "spec", "metrics") or () if entry.get("name") not in known]
        template = get_field(project.body, "spec", "template")
    status = {
        "state": scheduling.state,
        "reason": scheduling.reason,
        "project": scheduling.target.body if scheduling.target else None,
        "template": template,
    }
    return make_record(document, scheduling, status, labels=labels, spec={"metrics": metrics})


def make_failing_metrics_records(
    candidates: Iterable[ResourceCandidate], documents: Mapping[ResourceRef, Document]
) -> Iterator[tuple[Key, Body]]:
    """Yield the records of the clouds and projects whose metrics cannot be read."""
    for candidate in candidates:
        document = documents.get(candidate.ref)
        if document is None or not candidate.metrics.reasons:
            continue
        status = {"state": FAILING_METRICS, "metrics_reasons": _list_metric_reasons(candidate)}
        metadata = {"name": candidate.ref.name} | ({"namespace": candidate.ref.namespace} if candidate.ref.namespace else {})
        yield document.key, {"api": candidate.ref.group, "kind": candidate.ref.kind, "metadata": metadata, "status": status}


def _list_metric_reasons(candidate: ResourceCandidate) -> Body | None:
    return {name: reason.body for name, reason in candidate.metrics.reasons} or None


def index_clouds_and_projects(documents: Mapping[tuple[str, str], tuple[Document, ...]]) -> dict[ResourceRef, Document]:
    """Return the clouds and projects by reference."""
    kinds = (CLOUD, GLOBAL_CLOUD, PROJECT)
    return {make_ref(document.key): document for kind in kinds for document in documents.get(kind, ())}


_MAX_NAMED = 3
"""Maximum number of resources that one finding names."""


def _describe_missing_cloud(scheduler: KrakeScheduler, cloud: ResourceRef, *, is_invalid: bool) -> str:
    if is_invalid:
        return f"{cloud.kind} {cloud.name} has an invalid document"
    known = index_clouds_and_projects(scheduler.snapshot.documents)
    near = find_near(cloud.name, [ref.name for ref in known if ref.kind == cloud.kind])
    return f"{cloud.kind} {cloud.name} does not exist" + (f"; did you mean {near}?" if near else "")


def _report_state(document: Document) -> Iterator[Finding]:
    """Yield the finding about the state of a Cluster in which nothing is scheduled there."""
    state, observation = read_cluster_state(document.body)
    if state == ONLINE:
        return
    if state in FAILURE_STATES:
        message = f"{document.key} is {state}, so nothing is scheduled there: {observation or FAILURE_STATES[state]}"
        yield _warn("krake-cluster-unavailable", message, document)
    elif get_field(document.body, "status", "state") is None and get_field(document.body, "spec", "kubeconfig"):
        message = f"the state of {document.key} is not set, so nothing is scheduled there: set status.state, for example to ONLINE"
        yield _warn("krake-cluster-state", message, document)
    elif state not in CLUSTER_STATES:
        message = f"{document.key} is {state[:60]!r}, which is not a state of a cluster, so nothing is scheduled there"
        hint = "; did you mean ONLINE?" if state.upper() == ONLINE else ""
        yield _warn("krake-cluster-state", message + hint, document)


def report_resources(scheduler: KrakeScheduler) -> Iterator[Finding]:
    """Yield the findings about Clusters, clouds, Projects and MagnumClusters."""
    failed_providers: dict[MetricReason, list[tuple[str, Document]]] = {}
    for cluster in scheduler.clusters.values():
        document, metrics = cluster.document, cluster.candidate.metrics
        if metrics.declared:
            yield from _report_metrics(document, metrics, failed_providers)
        if cluster.cloud_missing and cluster.cloud is not None:
            what = _describe_missing_cloud(scheduler, cluster.cloud, is_invalid=cluster.cloud_quarantined)
            yield _warn("krake-cloud-missing", f"{document.key} inherits nothing: its {what}", document)
        yield from _report_state(document)
    yield from report_unused_clusters(scheduler)
    owners = index_clouds_and_projects(scheduler.snapshot.documents)
    for candidate in scheduler.clouds_and_projects:
        if candidate.ref in owners:
            yield from _report_metrics(owners[candidate.ref], candidate.metrics, failed_providers)
    yield from _report_failed_providers(failed_providers)
    for document, binding in (*scheduler.bindings.values(), *scheduler.magnum_bindings.values()):
        yield from _report_binding(document, binding, scheduler.get_backend_sets(document.key))
        if binding.action != "ignored":
            yield from _report_constraints(document, read_constraints(document), scheduler.get_backend_sets(document.key))
    if scheduler.snapshot.config.settings_of(SETTINGS).provisioner == "none":
        bindings = (*scheduler.bindings.items(), *scheduler.magnum_bindings.items())
        pending = (
            find_pending_cluster(document, binding.status.target)
            for key, (document, binding) in bindings
            if key not in scheduler.created_clusters  # the Application that waits for it has a finding
        )
        yield from report_pending_clusters(one for one in pending if one is not None and not has_binding(one))


def _report_constraints(
    document: Document, constraints: ConstraintSet, candidate_sets: Sequence[ScoredCandidates]
) -> Iterator[Finding]:
    """Yield a warning about each constraint that no candidate can satisfy, at its line."""
    for (member, index), reason in describe_impossible_constraints(constraints, candidate_sets):
        finding = _warn("krake-constraint-impossible", f"{document.key}: {reason}", document)
        lists = as_object(get_field(document.body, "spec", "constraints"))
        section = next((name for name, entry in lists.items() if as_object(entry).get(member)), None)
        if section is not None and document.origin is not None:
            finding = finding._replace(field=FieldOrigin(document.origin, ("spec", "constraints", section, member, index)))
        yield finding


def report_application(decision: ApplicationDecision, missing_cluster: Key | None, is_placed: bool) -> Iterator[Finding]:
    """Yield the findings about an application; `missing_cluster` is its cluster if that no longer has a document."""
    document, attempt = decision.app.document, decision.attempts[-1]
    key = document.key
    if is_deleted(document.body):
        return
    if attempt.action == "hold" and is_placed:
        yield _warn("stale-decision", f"{key} keeps its previous placement: {attempt.reason}", document)
    elif attempt.action == "hold":
        yield _warn("unschedulable", f"{key} is not placed yet: {attempt.reason}", document)
    elif attempt.status.state == "FAILED":
        yield _warn("unschedulable", f"{key} has failed: {_describe_failure(decision)}", document)
    elif attempt.status.state == "DEGRADED" and attempt.status.reason and not attempt.matching:
        where = " and stays where it is" if is_placed else ""
        yield _warn("unschedulable", f"{key} could not be scheduled{where}: {_describe_failure(decision)}", document)
    elif attempt.status.waits_for_cluster:
        yield _warn(
            "krake-cluster-wanted", f"{key} {_describe_awaited_cluster(decision, attempt.status.awaited_cluster)}", document
        )
    yield from _report_constraints(document, decision.app.constraints, decision.context.candidate_sets)
    if decision.app.preferred is not None:
        yield from find_preference_findings(decision)
    if decision.previous.target is not None and decision.previous.scheduled is None:
        message = f"{key} is bound, but status.scheduled is missing: it is assumed to be scheduled long ago"
        yield _warn("krake-timestamps", message, document)._replace(severity="info")
    if missing_cluster is not None:
        yield _warn(
            "cluster-gone", f"{key} is bound to {missing_cluster}, which does not exist, so nothing is rendered for it", document
        )
    if not get_field(document.body, "spec", "manifest"):
        message = f"{key} has no spec.manifest, and TOSCA is not translated, so nothing is rendered"
        yield _warn("krake-nothing-to-render", message, document)


def _describe_awaited_cluster(decision: ApplicationDecision, name: str) -> str:
    """Describe what an application is waiting for, and how to create the cluster that it requested."""
    if decision.context.clusters.find_index(ResourceRef(*CLUSTER, decision.app.key.namespace, name)) is not None:
        return f"is waiting until its cluster {name} is {ONLINE}"
    where = status_path(Key(*CLUSTER, decision.app.key.namespace, name))
    instruction = (
        f"commit {where} from the output branch with spec.tosca for `gitsched export krake`, or with a kubeconfig and its state"
    )
    return f"is waiting for the cluster {name}, which has to be created: {instruction}"


def _describe_failure(decision: ApplicationDecision) -> str:
    app, context = decision.app, decision.context
    if not (
        context.clusters.candidates
        or app.creates_cluster
        or any(context.shares_clusters or key.namespace == app.key.namespace for key in context.uncertain_clusters)
    ):
        if context.shares_clusters:
            return "no Cluster found"
        rule = "an application runs on clusters of its own namespace (krake.applicationClusters)"
        near = find_near(app.key.namespace, context.cluster_namespaces)
        others = f"; there are Clusters in {list_values(context.cluster_namespaces)}" if context.cluster_namespaces else ""
        hint = f"; did you mean the namespace {near}?" if near else others
        return f"no Cluster found in namespace {app.key.namespace}, and {rule}{hint}"
    reason = decision.attempts[-1].status.reason or {}
    if get_field(app.document.body, "status", "state") == "FAILED":
        found = reason.get("message") or reason.get("code")
        cause = f" ({found})" if found else ""
        return f"status.state of its document is FAILED{cause}; to schedule it again, remove the state"
    message = str(reason.get("message") or reason.get("code") or "unknown reason")
    if reason != NO_MATCH_REASON:
        return message
    waits = decision.attempts[-1].status.state == "FAILED" and context.clusters.match_constraints(app.constraints)
    retry = "; it is scheduled again when its document changes" if waits else ""
    return message + _describe_rejections((context.clusters,), app.constraints) + retry


def _describe_rejections(candidate_sets: Iterable[ScoredCandidates], constraints: ConstraintSet) -> str:
    """Return why the first candidates do not match; "" if there are none."""
    every = [(candidates, index) for candidates in candidate_sets for index in range(len(candidates.candidates))]
    reasons = []
    for candidates, index in every[:_MAX_NAMED]:
        candidate = candidates.candidates[index]
        matches = "its metrics cannot be used" if candidate.metrics.reasons else "it matches now"
        reasons.append(f"{candidate.display_name}: {candidates.describe_rejection(index, constraints) or matches}")
    more = f"; and {len(every) - _MAX_NAMED} more" if len(every) > _MAX_NAMED else ""
    return f" ({'; '.join(reasons)}{more})" if reasons else ""


def _report_failed_providers(failed_providers: dict[MetricReason, list[tuple[str, Document]]]) -> Iterator[Finding]:
    """Yield the findings about failed providers: one for each reason that concerns many resources."""
    for reason, entries in failed_providers.items():
        if len(entries) <= _MAX_NAMED:
            yield from (_report_metric(metric, document, reason) for metric, document in entries)
            continue
        metrics = list(dict.fromkeys(metric for metric, _ in entries))
        subject = f"metric{'s' if len(metrics) > 1 else ''} {', '.join(metrics[:_MAX_NAMED])}{', ...' if len(metrics) > _MAX_NAMED else ''}"
        owners = list(dict.fromkeys(str(document.key) for _, document in entries))
        more = f" and {len(owners) - _MAX_NAMED} more" if len(owners) > _MAX_NAMED else ""
        message = f"the {subject} of {', '.join(owners[:_MAX_NAMED])}{more} cannot be used: {reason.description or reason.message}"
        yield _warn("krake-failing-metric", message, entries[0][1])


def _report_metric(metric: str, document: Document, reason: MetricReason) -> Finding:
    message = f"the metric {metric} of {document.key} cannot be used: {reason.description or reason.message}"
    return _warn("krake-failing-metric", message, document)


def _report_metrics(
    document: Document, metrics: MetricResults, failed_providers: dict[MetricReason, list[tuple[str, Document]]]
) -> Iterator[Finding]:
    """Yield the findings about one resource's metrics; failures of providers are collected in `failed_providers` instead."""
    for metric, reason in metrics.reasons:
        if reason.provider_failed:
            failed_providers.setdefault(reason, []).append((metric, document))
        else:
            yield _report_metric(metric, document, reason)
    weighted_sum = metrics.weighted_sum
    if weighted_sum is not None and not weighted_sum.weight:
        message = f"the weights of {document.key}'s metrics add up to 0: its score is undefined, so its metrics are ignored"
        yield _warn("krake-weights", message, document)


def _report_binding(document: Document, binding: CloudBinding, backends: Sequence[ScoredCandidates]) -> Iterator[Finding]:
    if binding.action == "wait":
        yield _warn("stale-decision", f"{document.key} is not bound yet: {binding.reason}", document)
    elif binding.status.state == "FAILED" and binding.status.reason:
        rejections = _describe_rejections(backends, read_constraints(document)) if binding.action == "fail" else ""
        message = f"{document.key} could not be bound: {binding.status.reason.get('message')}{rejections}"
        yield _warn("unschedulable", message, document)


def _warn(code: str, message: str, document: Document) -> Finding:
    return Finding("warning", code, message, locate_document(document), document.key.resource)
