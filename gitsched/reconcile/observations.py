"""Observe metric values and commit statuses for one run: query trusted providers, or read what the last run recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import NamedTuple

from gitsched.apis.gitsched.config import ForgeConfig
from gitsched.apis.ocm.names import GROUP, MANAGED_CLUSTER, MANIFEST_WORK_REPLICA_SET
from gitsched.apis.ocm.rollout import waits_for_reports
from gitsched.decide.catalog import locate_finding_resources
from gitsched.decide.plan import SourceTree
from gitsched.git import Repository
from gitsched.metrics.queries import MetricQuery, ProviderUnreachable, list_metric_queries
from gitsched.model.document import Body
from gitsched.model.finding import Finding
from gitsched.model.observation import DELIVERY_STATUS, MetricFailure, Observations, read_observations
from gitsched.reconcile.run import Fetched, ObservationResult, RunContext
from gitsched.reconcile.source_tree import read_source_tree
from gitsched.render.run_metadata import RunMetadata

_UNREACHABLE_REASON = "UNREACHABLE_METRICS_PROVIDER"
_MAX_METRIC_LENGTH = 60
_UNTRUSTED_OUTPUT = (
    "no provider of metrics is asked, and recorded values are used: gitsched.yaml of the very commit that is planned says where the output "
    "is, and with it which providers may be trusted. Compare with a branch that you trust (plan BASE), or say yourself where the output is "
    "(--output-branch, --output-repository; output.path can only be trusted of a BASE)"
)


def observe(context: RunContext, fetched: Fetched, source: SourceTree, now: datetime) -> ObservationResult:
    """Observe the metrics that the documents of the source name, and the commit statuses that clusters reported."""
    settings, record, config = context.settings, fetched.record, source.config.observations
    options = ObservationOptions(
        live=settings.observations == "live",
        hosts=settings.hosts,
        timeout=config.timeout,
        list_trusted_documents=None if settings.trusted else partial(list_trusted_documents, context, fetched),
        output_trusted=fetched.output_trusted,
    )
    core = [document for document in source.documents if document.group == "core" and not document.broken]
    # Compared plans use the same values; a plan of trusted documents queries them again.
    known_values = Observations() if settings.trusted else context.caches.metric_values
    result = observe_metrics((document.body for document in core), record, options, now, known_values)
    result = result._replace(findings=locate_finding_resources(result.findings, core))
    clusters = list_reporting_clusters(source) if config.statuses is not None else set[str]()
    commits = list_recent_commits(fetched.output.repository, fetched.output_head)
    return observe_statuses(result, config.statuses, commits, clusters, record, options, now)


def list_trusted_documents(context: RunContext, fetched: Fetched) -> list[Body]:
    """Return the documents of the source commit that the output branch was made from: a maintainer has merged them."""
    record, repository = fetched.record, context.source.repository
    if record is None or not record.source or not context.source.fetch_commit(record.source):
        return []
    tree = repository.commit(record.source).tree
    return [
        document.body for document in read_source_tree(repository, tree, context.caches.files, lambda _: ()).source_tree.documents
    ]


class ObservationOptions(NamedTuple):
    """How values are come by. `live` says whether providers are asked at all, `hosts` which ones may be (None: all), `timeout` how long
    all of them together may take. `trusted` gives the documents that may be followed, None for the very documents of the run; it is not
    asked unless `vouched` says that not the run's own commit has chosen them."""

    live: bool
    hosts: Collection[str] | None
    timeout: float
    list_trusted_documents: Callable[[], Iterable[Body]] | None = None
    output_trusted: bool = True


def observe_metrics(
    bodies: Iterable[Body], record: RunMetadata | None, manner: ObservationOptions, now: datetime, heard: Observations
) -> ObservationResult:
    """The values of all metrics that come from a server. Static ones stand in the documents.

    `heard` are answers that need not be asked for once more; those of this time are added.
    """
    questions = [question for question in list_metric_queries(bodies) if question.type != "static"]
    if not questions:
        return ObservationResult(Observations())
    recorded = read_observations(record.observations, record.observed_at) if record else Observations()
    if manner.live and manner.list_trusted_documents is not None and not manner.output_trusted:
        return ObservationResult(
            read_recorded_metrics(questions, recorded), (Finding("warning", "krake-not-asked", _UNTRUSTED_OUTPUT),)
        )
    asked, left = _split_by_trust(questions, manner, record)
    told = _list_skipped_providers(left, recorded)
    if not manner.live or not asked:
        return ObservationResult(read_recorded_metrics(questions, recorded), told)
    fresh = [question for question in asked if question.key not in heard]
    if fresh:
        from gitsched.metrics.observer import observe_queries  # most runs ask nobody

        heard.update(observe_queries(fresh, manner.timeout, manner.hosts))
    found = read_recorded_metrics(left, recorded)
    found.update((question.key, heard[question.key]) for question in asked)
    found.time = now
    return ObservationResult(found, told)


def observe_statuses(
    gathered: ObservationResult,
    forge: ForgeConfig | None,
    commits: Iterable[tuple[str, datetime]],
    clusters: Collection[str],
    record: RunMetadata | None,
    manner: ObservationOptions,
    now: datetime,
) -> ObservationResult:
    """The same with what clusters report at the forge, of the output's latest commits; of what nobody may follow, what was recorded."""
    if forge is None or not clusters:
        return gathered
    recorded = read_observations(record.observations, record.observed_at) if record else Observations()
    found, findings = gathered
    if manner.live and manner.list_trusted_documents is None:
        from gitsched.metrics.commit_statuses import fetch_commit_statuses  # most runs ask nobody

        try:
            found.update(fetch_commit_statuses(forge, commits, clusters, manner.timeout, manner.hosts))
            found.time = now
            return ObservationResult(found, findings)
        except ProviderUnreachable as error:
            message = f"commit statuses are not known, and what was recorded last counts: {error}"
            findings = (*findings, Finding("warning", "ocm-statuses-unknown", message))
    found.update((key, value) for key, value in recorded.items() if key[0] == DELIVERY_STATUS)
    found.time = found.time or recorded.time
    return ObservationResult(found, findings)


def read_recorded_metrics(questions: Iterable[MetricQuery], recorded: Observations) -> Observations:
    """What the record says about questions; of what it does not say, nobody knows anything."""
    missing = "was not observed yet: a reconcile does that"
    entries = (
        (
            question.key,
            recorded.get(
                question.key,
                MetricFailure(_UNREACHABLE_REASON, f"The metric '{question.metric}' of '{question.provider}' {missing}"),
            ),
        )
        for question in questions
    )
    return Observations(entries, recorded.time)


def _split_by_trust(
    questions: list[MetricQuery], manner: ObservationOptions, record: RunMetadata | None
) -> tuple[list[MetricQuery], list[MetricQuery]]:
    """Those that may be asked, and those that are other ones than the output branch was made with."""
    if manner.list_trusted_documents is None or (record is None and not manner.live):
        return questions, []
    known = {question.key: question for question in list_metric_queries(manner.list_trusted_documents())}
    asked = [question for question in questions if known.get(question.key) == question]
    return asked, [question for question in questions if known.get(question.key) != question]


def _list_skipped_providers(left: Iterable[MetricQuery], recorded: Observations) -> tuple[Finding, ...]:
    """One finding for each provider that is not asked, or not everything."""
    metrics: dict[tuple[str, str, str], list[MetricQuery]] = {}
    for question in left:
        metrics.setdefault(question.key[:3], []).append(question)
    findings = []
    for (kind, namespace, name), wanted in sorted(metrics.items()):
        known = any(question.key in recorded for question in wanted)
        end = "recorded values are used" if known else "nobody knows the values before a reconcile does"
        few = ", ".join(question.metric[:_MAX_METRIC_LENGTH] for question in wanted[:3]) + (", ..." if len(wanted) > 3 else "")
        message = (
            f"{kind} {name} or what it is asked for ({few}) is {'not what' if known else 'new since'} the output branch was made"
            f"{' with' if known else ''}: it is not asked, and {end}"
        )
        findings.append(Finding("warning", "krake-provider-changed", message, None, (kind, namespace, name)))
    return tuple(findings)


MAX_RECENT_COMMITS = 5
"""Output commits that are asked for what clusters reported of them."""


def list_reporting_clusters(snapshot: SourceTree) -> set[str]:
    """The clusters that may report; none where no rollout follows what they say."""
    if not any(waits_for_reports(loose.body) for loose in snapshot.documents if loose.kind == MANIFEST_WORK_REPLICA_SET):
        return set()
    return {loose.name for loose in snapshot.documents if (loose.group, loose.kind) == (GROUP, MANAGED_CLUSTER)}


def list_recent_commits(repository: Repository, head: str | None) -> Iterator[tuple[str, datetime]]:
    """The latest commits of the output with their dates, the newest first: clusters that are slow still speak of the one before."""
    for _ in range(MAX_RECENT_COMMITS):
        if not head or not repository.has(head):
            break
        commit = repository.commit(head)
        yield head, commit.time
        head = commit.parents[0] if commit.parents else None
