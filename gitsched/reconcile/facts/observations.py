"""Observe metric values and commit statuses for one run: query trusted providers, or read what the last run recorded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from gitsched.apis.registered import Registered
from gitsched.decide.catalog import RawDocument, locate_finding_resources, make_raw_document
from gitsched.decide.cluster_metadata import read_cluster_metadata
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.registry import policy_apis
from gitsched.model.finding import Finding
from gitsched.model.observation import MetricFailure, MetricQuery, Observations, read_observations
from gitsched.model.rollouts import ROLLOUT_KIND
from gitsched.reconcile.facts.observation_options import ObservationOptions
from gitsched.reconcile.run import NOTHING_OBSERVED, Fetched, ObservationResult, RunContext
from gitsched.reconcile.source.source_tree import read_source_tree

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import DeliveryReports, MetricSource
    from gitsched.model.document import Body, Document
    from gitsched.render.run_metadata import RunMetadata

_STATUSES = "gitsched.reconcile.facts.cluster_statuses"
_ADD_CLUSTER_REPORTS = Registered(_STATUSES, "add_cluster_reports")
_OBSERVE_STATUSES = Registered(_STATUSES, "observe_statuses")
_UNREACHABLE_REASON = "UNREACHABLE_METRICS_PROVIDER"
_MAX_METRIC_LENGTH = 60
_UNTRUSTED_OUTPUT = (
    "no metrics provider is queried, and recorded values are used: gitsched.yaml of the planned commit itself chooses the output, and with "
    "it the trusted providers. Compare with a trusted branch (plan BASE), or choose the output with --output-branch and "
    "--output-repository (output.path is only trusted from a BASE)"
)


def observe(context: RunContext, fetched: Fetched, source: SourceTree, now: datetime) -> ObservationResult:
    """Observe the metrics that the documents of the source name, and the commit statuses that clusters reported."""
    record, result = fetched.record, NOTHING_OBSERVED
    kinds = {(document.group, document.kind) for document in source.documents}
    for api in policy_apis.values():
        documents = _list_metric_documents(api.metrics, source)
        if api.metrics is not None and documents:
            bodies, options = (document.body for document in documents), _make_options(context, fetched, source.config)
            found = observe_metrics(bodies, api.metrics, record, options, now, _find_known_values(context))
            result = _merge_results(result, found._replace(findings=locate_finding_resources(found.findings, documents)))
        clusters = list_reporting_clusters(api.delivery_reports, source) if api.delivery_reports is not None else set[str]()
        if clusters and api.delivery_reports is not None:
            options, code = _make_options(context, fetched, source.config), api.delivery_reports.unknown_code
            result = _OBSERVE_STATUSES(result, fetched, clusters, options, now, code)
            result = _ADD_CLUSTER_REPORTS(result, fetched, source)
    if fetched.trusted.config.observations.statuses is not None and ROLLOUT_KIND in kinds:
        clusters = {cluster.name for cluster in read_cluster_metadata(source.documents)}
        result = observe_all_statuses(context, fetched, source.config, clusters, now, result)
    return result


def observe_all_statuses(
    context: RunContext,
    fetched: Fetched,
    config: Config,
    clusters: Collection[str],
    now: datetime,
    observed: ObservationResult = NOTHING_OBSERVED,
) -> ObservationResult:
    """Add the commit statuses of clusters, where the settings say who reports them."""
    found: ObservationResult = _OBSERVE_STATUSES(observed, fetched, clusters, _make_options(context, fetched, config), now)
    return found


def has_delivery_reports(source: SourceTree) -> bool:
    """Return whether a rollout of a policy API waits for reports of clusters."""
    reporting = [api.delivery_reports for api in policy_apis.values() if api.delivery_reports is not None]
    return any(list_reporting_clusters(reports, source) for reports in reporting)


def observe_metrics_again(
    context: RunContext, fetched: Fetched, documents: Mapping[tuple[str, str], tuple[Document, ...]], config: Config, now: datetime
) -> Observations | None:
    """Return the metrics that the documents of policy APIs name; None if there is a finding about them, or if only some may be queried.

    Reports of clusters are not observed: the documents of the source do not wait for any.
    """
    groups = {group for api in policy_apis.values() if api.metrics is not None for group in api.metrics.groups}
    found = [make_raw_document(one.body, one.origin) for kind in documents if kind[0] in groups for one in documents[kind]]
    if not found:
        return Observations()
    if not context.settings.trusted and any(
        query.type != "static"
        for api in policy_apis.values()
        if api.metrics is not None
        for query in api.metrics.list_queries(one.body for one in found if one.group in api.metrics.groups)
    ):
        return None
    result = observe(context, fetched, SourceTree(tuple(found), {}, (), config, {}), now)
    return None if result.findings else result.observations


def _make_options(context: RunContext, fetched: Fetched, config: Config) -> ObservationOptions:
    settings = context.settings
    return ObservationOptions(
        live=settings.observations == "live",
        allow=settings.allow,
        timeout=config.observations.timeout,
        list_trusted_documents=None if settings.trusted else partial(list_trusted_documents, context, fetched),
        output_trusted=fetched.output_trusted,
    )


def _find_known_values(context: RunContext) -> Observations:
    """Return the values that need not be queried again: compared plans use the same ones. A run has none but those that it verifies."""
    caches = context.caches
    if caches.metric_values is None and not context.settings.trusted:
        caches.metric_values = Observations()
    return Observations() if caches.metric_values is None else caches.metric_values


def _list_metric_documents(metrics: MetricSource | None, source: SourceTree) -> list[RawDocument]:
    groups = metrics.groups if metrics is not None else ()
    return [document for document in source.documents if document.group in groups and not document.broken] if groups else []


def _merge_results(one: ObservationResult, other: ObservationResult) -> ObservationResult:
    times = [time for time in (one.observations.time, other.observations.time) if time is not None]
    values = Observations((*one.observations.items(), *other.observations.items()), max(times, default=None))
    return ObservationResult(values, (*one.findings, *other.findings))


def list_trusted_documents(context: RunContext, fetched: Fetched) -> list[Body]:
    """Return the documents of the source commit that the output branch was made from: a maintainer has merged them."""
    record, repository = fetched.record, context.source.repository
    if record is None or not record.source or not context.source.fetch_commit(record.source):
        return []
    tree = repository.commit(record.source).tree
    return [document.body for document in read_source_tree(repository, tree, context.caches.files, None).source_tree.documents]


def observe_metrics(
    bodies: Iterable[Body],
    metrics: MetricSource,
    record: RunMetadata | None,
    options: ObservationOptions,
    now: datetime,
    known_values: Observations,
) -> ObservationResult:
    """Return the values of all metrics that come from a server; static values are part of the documents.

    `known_values` need not be queried again; the values of this call are added to them.
    """
    queries = [query for query in metrics.list_queries(bodies) if query.type != "static"]
    if not queries:
        return ObservationResult(Observations())
    recorded = read_observations(record.observations, record.observed_at) if record else Observations()
    if options.live and options.list_trusted_documents is not None and not options.output_trusted:
        return ObservationResult(
            read_recorded_metrics(queries, recorded), (Finding("warning", metrics.not_queried_code, _UNTRUSTED_OUTPUT),)
        )
    queried, others = _split_by_trust(queries, metrics, options, record)
    findings = _list_skipped_providers(others, metrics, recorded)
    if not options.live or not queried:
        return ObservationResult(read_recorded_metrics(queries, recorded), findings)
    missing = [query for query in queried if query.key not in known_values]
    if missing:
        from gitsched.metrics.observer import observe_queries  # most runs query no provider

        known_values.update(observe_queries(missing, options.timeout, options.allow))
    found = read_recorded_metrics(others, recorded)
    found.update((query.key, known_values[query.key]) for query in queried)
    found.time = now
    return ObservationResult(found, findings)


def read_recorded_metrics(queries: Iterable[MetricQuery], recorded: Observations) -> Observations:
    """Return the recorded value of each query; a failure where none is recorded."""
    missing = "was not observed yet: a reconcile does that"
    entries = (
        (
            query.key,
            recorded.get(
                query.key,
                MetricFailure(_UNREACHABLE_REASON, f"The metric '{query.metric}' of '{query.provider}' {missing}"),
            ),
        )
        for query in queries
    )
    return Observations(entries, recorded.time)


def _split_by_trust(
    queries: list[MetricQuery], metrics: MetricSource, options: ObservationOptions, record: RunMetadata | None
) -> tuple[list[MetricQuery], list[MetricQuery]]:
    """Return the queries that trusted documents make, too, and the others."""
    if options.list_trusted_documents is None or (record is None and not options.live):
        return queries, []
    known = {query.key: query for query in metrics.list_queries(options.list_trusted_documents())}
    queried = [query for query in queries if known.get(query.key) == query]
    return queried, [query for query in queries if known.get(query.key) != query]


def _list_skipped_providers(others: Iterable[MetricQuery], source: MetricSource, recorded: Observations) -> tuple[Finding, ...]:
    """Return a finding for each provider that is not queried, or not for all of its metrics."""
    metrics: dict[tuple[str, str, str], list[MetricQuery]] = {}
    for query in others:
        metrics.setdefault(query.key[:3], []).append(query)
    findings = []
    for (kind, namespace, name), wanted in sorted(metrics.items()):
        known = any(query.key in recorded for query in wanted)
        result = "recorded values are used" if known else "its values are unknown until the next reconcile"
        names = ", ".join(query.metric[:_MAX_METRIC_LENGTH] for query in wanted[:3]) + (", ..." if len(wanted) > 3 else "")
        message = (
            f"{kind} {name} or a query for it ({names}) {'differs from' if known else 'is newer than'} the source commit of the output "
            f"branch: it is not queried, and {result}"
        )
        findings.append(Finding("warning", source.provider_changed_code, message, None, (kind, namespace, name)))
    return tuple(findings)


def list_reporting_clusters(reports: DeliveryReports, source: SourceTree) -> set[str]:
    """Return the clusters that may report statuses; none if no rollout waits for reports."""
    bodies = [document.body for document in source.documents if document.group in reports.groups]
    return reports.list_clusters(bodies) if bodies else set()
