"""The clusters of a plan, with their facts and sites: from a complete plan, or from the state that an incremental one continues."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.decide.catalog import Catalog
from gitsched.decide.rollouts.cluster_reports import KnownReports
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.finding import locate_document
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.rollout_input import list_output_commits
from gitsched.render.output_files import CLUSTERS, escape_segment
from gitsched.simulate.fleet_topology import TopologyInput, read_topology

if TYPE_CHECKING:
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.plan_state import ClusterRow
    from gitsched.decide.plan_result import Plan
    from gitsched.git import Repository
    from gitsched.model.changes import Move
    from gitsched.model.document import Document, Key
    from gitsched.model.fleet_status import LastReport
    from gitsched.model.fleet_topology import ClusterSite
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.reconcile.run import RunResult, StateUpdate


MAX_LOCATED = 1_000
"""Workloads up to which it is said where each is written: that reads their documents."""


class PlannedClusters(NamedTuple):
    """Clusters by name: `facts` of all that have a directory, `sites` of all that have a document."""

    facts: Mapping[str, ClusterInfo]
    sites: Mapping[str, ClusterSite]


class PlacedLocations(NamedTuple):
    """Where workloads and policies are written, as file:line: by key, and by what outcomes call a policy."""

    workloads: Mapping[Key, str] = {}
    policies: Mapping[str, str] = {}


def locate_placed(run: RunResult) -> PlacedLocations:
    """Return where the workloads of a run and their policies are written; nothing of more than MAX_LOCATED. As below for the thread."""
    if run.plan.totals.overview.workload_count > MAX_LOCATED:
        return PlacedLocations()
    outcomes = {outcome.key: outcome.policy for outcome in run.plan.outcomes.values()}
    if run.update is not None:
        snapshot = run.update.incremental.decided.snapshot
        templates, documents = snapshot.templates, snapshot.documents
    else:
        templates, documents = run.plan.decisions.templates, run.plan.decisions.catalog.api_documents
    found = ((key, templates.get(key)) for key in outcomes)
    wanted = set(outcomes.values())
    policies = (one for several in documents.values() for one in several if one.key.title in wanted)
    return PlacedLocations(
        {key: _format_origin(document) for key, document in found if document is not None},
        {one.key.title: _format_origin(one) for one in policies},
    )


def _format_origin(document: Document) -> str:
    location = locate_document(document)
    return location.text if location is not None else ""


def read_applied(run: RunResult, repository: Repository, clusters: Iterable[str]) -> dict[str, LastReport]:
    """Return the last report of each cluster that has made one: which output commit it has applied, and how many later ones concern it.
    As below for the thread."""
    if run.update is not None:
        documents = run.update.incremental.decided.snapshot.documents.get(CLUSTER_REPORT, ())
    else:
        documents = run.plan.decisions.catalog.api_documents.get(CLUSTER_REPORT, ())
    if not (documents or run.plan.observations):
        return {}
    commits = list_output_commits(repository, run.after or run.before)
    reports = KnownReports(documents, run.plan.observations, commits)
    found = ((name, reports.find_last(name)) for name in clusters)
    return add_later_changes(repository, run.prefix, commits, {name: report for name, report in found if report is not None})


def add_later_changes(
    repository: Repository, prefix: str, commits: Sequence[str], reports: Mapping[str, LastReport]
) -> dict[str, LastReport]:
    """Return reports with the number of `commits`, the newest first, after the applied one that changed the directory of the cluster."""
    ages = {name: report.age for name, report in reports.items() if report.age is not None}
    counts = dict.fromkeys(ages, 0)
    names = {escape_segment(name): name for name in ages}
    later, later_entry = None, None
    for age, commit in enumerate(commits[: max(ages.values(), default=-1) + 1]):
        tree = repository.commit(commit).tree
        entry = repository.find_entry(tree, f"{prefix}{CLUSTERS}")
        if later is not None and entry == later_entry:
            continue
        directories = repository.list_directory(tree, f"{prefix}{CLUSTERS}")
        if later is not None:
            for segment, name in names.items():
                counts[name] += age <= ages[name] and later.get(segment) != directories.get(segment)
        later, later_entry = directories, entry
    return {name: report._replace(behind=counts.get(name)) for name, report in reports.items()}


def read_planned_clusters(run: RunResult, moves: Sequence[Move]) -> PlannedClusters:
    """Return the clusters of a run's plan, whose resources the moves change.

    After an incremental plan, only the thread of the run may call this: it reads the plan cache.
    """
    if run.update is not None:
        return PlannedClusters(list_cluster_facts(run.update), read_topology(_make_topology_input(run.plan, run.update, moves)))
    plan, decisions = run.plan, run.plan.decisions
    source = TopologyInput(decisions.catalog, decisions.engines, plan.totals, moves, decisions.outcomes, decisions.templates)
    return PlannedClusters(plan.cluster_facts, read_topology(source))


def list_cluster_facts(update: StateUpdate) -> dict[str, ClusterInfo]:
    """Return the facts of all clusters with a directory after an incremental plan, by name."""
    rows: dict[str, ClusterRow | None] = {**dict(update.cache.list_clusters()), **update.incremental.changes.clusters}
    return {name: row.facts for name, row in sorted(rows.items()) if row is not None}


def make_catalog(snapshot: Snapshot) -> Catalog:
    """Return a catalog with the documents of policy APIs alone, which are those of clusters among others."""
    return Catalog(dict(snapshot.documents), {}, {}, {}, {}, {}, {}, ())


def changes_clusters(run: RunResult) -> bool:
    """Return whether the facts or sites of clusters may differ from those of the run before."""
    if run.update is None:
        return True
    incremental = run.update.incremental
    return bool(incremental.decided.diff.api_documents or incremental.changes.clusters)


def _make_topology_input(plan: Plan, update: StateUpdate, moves: Sequence[Move]) -> TopologyInput:
    decided = update.incremental.decided
    engines, snapshot = decided.continued.engines or update.cache.engines, decided.snapshot
    return TopologyInput(make_catalog(snapshot), engines, plan.totals, moves, plan.outcomes, snapshot.templates)
