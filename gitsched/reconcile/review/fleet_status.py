"""Read the status of a fleet: which output commit each cluster has applied, whether it is healthy, and what is where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.guard.guard_settings import read_guard_record
from gitsched.decide.plan_result import Plan
from gitsched.decide.rollouts.cluster_reports import KnownReports
from gitsched.git import Repository
from gitsched.model.changes import NO_RATE
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Key
from gitsched.model.fleet_status import ClusterStatus, FleetStatus, LastReport, WorkloadStatus
from gitsched.model.time import add_duration
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.incremental.planned_fleet import PlannedFleet, use_fleet
from gitsched.reconcile.output.output_commit import write
from gitsched.reconcile.review.ignored_settings import log_ignored_settings
from gitsched.reconcile.rollout_input import list_output_commits
from gitsched.reconcile.run import Fetched, describe_rewrite, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.render.output_files import CLUSTERS, escape_segment


def read_fleet_status(settings: RunSettings) -> FleetStatus:
    """Read the status of a fleet. Nothing is written to a branch."""
    context = open_context(settings)
    with gc_paused():
        fetched = fetch(context)
        record = fetched.record
        differs = record is not None and record.source_tree != fetched.source.tree

        def make_status(fleet: PlannedFleet) -> FleetStatus:
            pending = fetched.output_head is None or (differs and write(context, fetched, fleet.planned).changed)
            return make_fleet_status(fetched, fleet, pending=pending)

        fleet, status = use_fleet(context, fetched, make_status, written=differs)
        log_ignored_settings(fleet.plan)
        return status


def make_fleet_status(fetched: Fetched, fleet: PlannedFleet, *, pending: bool = False) -> FleetStatus:
    """Return the status of a planned fleet; whether a run would change the output branch is given."""
    repository, head, plan = fetched.output.repository, fetched.output_head, fleet.plan
    commits = list_output_commits(repository, head)
    reports = KnownReports(fleet.catalog.api_documents.get(CLUSTER_REPORT, ()), fleet.observations, commits)
    last = {name: reports.find_last(name) for name in sorted(fleet.clusters)}
    limit = max((report.age for report in last.values() if report is not None and report.age is not None), default=0)
    behind = _count_changes(repository, fetched, commits[: limit + 1], last)
    clusters = tuple(
        ClusterStatus(name, fleet.unready.get(name, ""), facts.workloads, last[name], behind.get(name))
        for name, facts in sorted(fleet.clusters.items())
    )
    commit = repository.commit(head) if head is not None else None
    rate = read_guard_record(fetched.record.guard).rate if fetched.record is not None else NO_RATE
    period = plan.totals.config.guard.period
    return FleetStatus(
        fetched.output.branch,
        head or "",
        commit.time if commit is not None else None,
        pending,
        clusters,
        plan.rollouts,
        tuple(list_workload_statuses(plan)),
        fleet.unclaimed,
        fleet.nearest,
        describe_rewrite(fetched),
        len(rate.waiting),
        add_duration(rate.start, period) if rate.waiting and rate.start is not None else None,
        next((finding.message for finding in fetched.output.unfetched), ""),
    )


def _count_changes(
    repository: Repository, fetched: Fetched, commits: Iterable[str], reports: Mapping[str, LastReport | None]
) -> dict[str, int]:
    """Return how many commits after the applied one changed the directory of each cluster that has reported."""
    counts: dict[str, int] = {}
    later: Mapping[str, tuple[str, int]] | None = None
    for age, commit in enumerate(commits):
        tree = repository.commit(commit).tree
        directories = repository.list_directory(tree, f"{fetched.prefix}{CLUSTERS}")
        for name, report in reports.items():
            if report is None or report.age is None:
                continue
            counts.setdefault(name, 0)
            segment = escape_segment(name)
            if later is not None and age <= report.age and later.get(segment) != directories.get(segment):
                counts[name] += 1
        later = directories
    return counts


def list_workload_statuses(plan: Plan) -> Iterable[WorkloadStatus]:
    """Yield where each workload is on the output branch."""
    moves = {move.key: move for move in plan.moves}
    held: dict[Key, list[str]] = {}
    for record in plan.rollout_records:
        for files in record.held:
            held.setdefault(files.workload, []).append(files.cluster)
    for key, outcome in plan.outcomes.items():
        clusters = moves[key].before if key in moves else outcome.replicas_by_cluster
        yield WorkloadStatus(key, outcome.policy, clusters, tuple(sorted(held.get(key, ()))))
