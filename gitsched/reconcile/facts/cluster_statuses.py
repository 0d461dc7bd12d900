"""Observe what clusters report about output commits: commit statuses for rollouts, and ClusterReports for rollouts of policy APIs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from gitsched.decide.plan_input import SourceTree
from gitsched.decide.rollouts.cluster_reports import STATES
from gitsched.git import Repository
from gitsched.metrics.commit_statuses import fetch_commit_statuses
from gitsched.metrics.queries import ProviderUnreachable
from gitsched.model.cluster_report import CLUSTER_REPORT, read_cluster_report
from gitsched.model.finding import Finding
from gitsched.model.observation import DELIVERY_STATUS, DeliveryStatus, Observations, read_observations
from gitsched.reconcile.facts.observation_options import ObservationOptions
from gitsched.reconcile.rollout_input import list_output_commits
from gitsched.reconcile.run import Fetched, ObservationResult

ROLLOUT_CODE = "rollout-statuses-unknown"
MAX_RECENT_COMMITS = 5
"""Output commits whose statuses are fetched."""


def observe_statuses(
    observed: ObservationResult,
    fetched: Fetched,
    clusters: Collection[str],
    options: ObservationOptions,
    now: datetime,
    api_code: str = "",
) -> ObservationResult:
    """Add the statuses that clusters reported at the forge for the latest output commits; recorded ones where documents are not trusted.

    `api_code` is the code of the finding that there are none, where a policy API reads them; "" for those that Rollouts read.
    """
    forge, record = fetched.trusted.config.observations.statuses, fetched.record
    if forge is None or not clusters:
        return observed
    recorded = read_observations(record.observations, record.observed_at) if record else Observations()
    findings = observed.findings
    found = Observations(observed.observations.items(), observed.observations.time)
    if options.live and options.list_trusted_documents is None:
        commits = list_recent_commits(fetched.output.repository, fetched.output_head)
        try:
            found.update(fetch_commit_statuses(forge, commits, clusters, options.timeout, options.allow))
            found.time = now
            return ObservationResult(found, findings)
        except ProviderUnreachable as error:
            message = f"commit statuses are not available, so the recorded ones are used: {error}"
            findings = (*findings, Finding("warning", api_code if api_code else ROLLOUT_CODE, message))
    found.update((key, value) for key, value in recorded.items() if key[0] == DELIVERY_STATUS)
    found.time = found.time or recorded.time
    return ObservationResult(found, findings)


def add_cluster_reports(result: ObservationResult, fetched: Fetched, source: SourceTree) -> ObservationResult:
    """Add the ClusterReports about known output commits, as the statuses of these commits."""
    repository = fetched.output.repository
    bodies = (document.body for document in source.documents if (document.group, document.kind) == CLUSTER_REPORT)
    reports = [report for body in bodies if (report := read_cluster_report(body)) is not None]
    known = frozenset(list_output_commits(repository, fetched.output_head)) if reports else frozenset()
    found = Observations(result.observations.items(), result.observations.time)
    for report in reports:
        if report.commit in known:
            status = DeliveryStatus(STATES.get(report.health, report.health), repository.commit(report.commit).time, report.since)
            found[DELIVERY_STATUS, "", report.cluster, report.commit] = status
    return result._replace(observations=found) if reports else result


def list_recent_commits(repository: Repository, head: str | None) -> Iterator[tuple[str, datetime]]:
    """Return the latest output commits with their times, the newest first: slow clusters still report about an earlier one."""
    return ((commit.oid, commit.time) for commit in repository.list_first_parents(head, MAX_RECENT_COMMITS))
