"""Read the status of a fleet: which output commit each cluster has applied, whether it is healthy, and what is where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import filterfalse

from gitsched.decide.cluster_conditions import NO_CONDITION, ClusterCondition, read_cluster_conditions
from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.guard.guard_settings import GUARD_CODES, read_guard_record
from gitsched.decide.plan_result import Plan, mark_awaited
from gitsched.decide.rollouts.cluster_reports import KnownReports
from gitsched.model.changes import NO_RATE, RetainedCopy
from gitsched.model.cluster_facts import FALSE, TRUE, UNKNOWN
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Key
from gitsched.model.finding import FACTS_STALE, FAILOVER_OFF, NO_REPLICAS, OVERCOMMITTED, UNSCHEDULABLE, Finding, join_all
from gitsched.model.fleet_status import (
    ClusterStatus,
    FleetStatus,
    Ready,
    SourceStatus,
    WorkloadState,
    WorkloadStatus,
)
from gitsched.model.history import SourceChange
from gitsched.model.mistakes import IMPAIRMENTS, MISTAKES, choose_mistake, find_mistakes, format_sentence
from gitsched.model.scheduling import Outcome, count_by_cluster
from gitsched.model.time import add_duration, format_age
from gitsched.reconcile.facts.facts_branches import FACTS_MISSING
from gitsched.reconcile.facts.observation_times import read_observation_times
from gitsched.reconcile.fetch import fetch, fetch_output_history
from gitsched.reconcile.incremental.planned_clusters import add_later_changes
from gitsched.reconcile.incremental.planned_fleet import PlannedFleet, use_fleet
from gitsched.reconcile.output.output_commit import write
from gitsched.reconcile.output.output_edits import list_followed_edits, list_hand_edits
from gitsched.reconcile.output.removed_documents import describe_removed_clusters, name_former_clusters
from gitsched.reconcile.review.due_runs import find_due_run, find_wait_end, is_due, list_due_times
from gitsched.reconcile.review.freezes import find_push_command, list_freezes
from gitsched.reconcile.review.ignored_settings import log_ignored_settings
from gitsched.reconcile.review.recent_runs import describe_missing_history, list_recent_runs
from gitsched.reconcile.review.removed_workloads import find_unselected_names
from gitsched.reconcile.review.rollout_histories import find_rollout_histories
from gitsched.reconcile.review.run_sources import list_source_changes
from gitsched.reconcile.review.uncommitted_taints import list_uncommitted_taints
from gitsched.reconcile.review.withheld_changes import read_withheld_history
from gitsched.reconcile.rollout_input import MAX_COMMITS, list_output_commits
from gitsched.reconcile.run import Fetched, RunContext, describe_rewrite, find_newer_source, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source.source_locations import RuleLocations, locate_taints, make_blob_finder
from gitsched.report.fleet_problems import WORKLOADS_SHOWN
from gitsched.report.summary import REPORTED_ELSEWHERE

_LISTED = frozenset(
    (*MISTAKES, *IMPAIRMENTS, *GUARD_CODES, *REPORTED_ELSEWHERE, OVERCOMMITTED, FACTS_MISSING, FACTS_STALE, FAILOVER_OFF)
)
"""Codes of findings about what a status says in other lines."""


def read_fleet_status(settings: RunSettings) -> FleetStatus:
    """Read the status of a fleet. Nothing is written to a branch.

    Where the source is older than what a run has planned, it is the status with the planned commit: that decided what is where.
    """
    context = open_context(settings)
    with gc_paused():
        fetched = fetch(context, shows_findings=True)
        newer = find_newer_source(context, fetched)
        if newer:
            status = read_fleet_status(settings._replace(revision=newer))
            named = status.source._replace(newer=newer, newer_branch=fetched.other_branch, uncommitted=())
            return status._replace(source=named)
        fetch_output_history(fetched, MAX_COMMITS)
        record = fetched.record
        differs = record is not None and record.source_tree != fetched.source.tree and not _is_reconciled(context, fetched)
        overdue = list_due_times(context, fetched)
        fleet, (status, may_be_due) = use_fleet(
            context,
            fetched,
            lambda found: _compare_with_output(context, fetched, found, differs=differs, has_passed=bool(overdue)),
            written=differs or bool(overdue),
            withholds=True,
        )
        log_ignored_settings(fleet.plan)
        removed = describe_removed_clusters(context, fetched, [one.name for one in status.gone])
        waiting, waiting_count = _find_waiting(context, fetched, status.time) if status.pending else (None, 0)
        recent = list_recent_runs(context, fetched, status.workloads, (one.key for one in status.unclaimed))
        renamed = find_unselected_names(context, fetched, recent, status.unclaimed)
        return status._replace(
            recent=tuple(run.mark_unselected(renamed) for run in recent),
            rollout_histories=find_rollout_histories(context, fetched, status.rollouts),
            retained=mark_awaited(record.retained, fleet.plan.findings) if record is not None else (),
            withheld_history=read_withheld_history(context, fetched, status.withheld),
            from_origin=_is_from_origin(fetched),
            source=status.source._replace(
                renamed=renamed,
                due=find_due_run(context, fetched, overdue, fleet.plan, differs=differs) if may_be_due else None,
                waiting=waiting,
                waiting_count=waiting_count,
                removed_clusters=tuple(removed),
                uncommitted=tuple(list_uncommitted_taints(context, fetched, fleet.catalog)),
                followed_edits=tuple(list_followed_edits(fetched)),
            ),
            diverges=_diverges_from_origin(fetched),
            lacks_history=describe_missing_history(context, fetched),
            unpushed_freeze=find_push_command(fetched, fetched.output_head),
        )


def _compare_with_output(
    context: RunContext, fetched: Fetched, fleet: PlannedFleet, *, differs: bool, has_passed: bool
) -> tuple[FleetStatus, bool]:
    """Return the status of a planned fleet, and whether time or new facts may have changed it. The source `differs` from that of the last
    run, or a time `has_passed` from which a run may change something."""
    record, plan = fetched.record, fleet.plan
    # A run records other withheld changes: a freeze was lifted, or something is allowed now.
    withheld = read_guard_record(record.guard).digest if record is not None else ""
    pending = fetched.output_head is None or withheld not in ("", plan.withheld.digest)
    changes = (differs or has_passed) and write(context, fetched, fleet.planned).changed
    found = make_fleet_status(context, fetched, fleet, pending=pending or (differs and changes))
    allowed = len(plan.moves) if withheld and not plan.withheld.moves else 0
    is_time = not (differs or allowed or fetched.is_edited or fetched.output_head is None) and is_due(plan)
    return found._replace(source=found.source._replace(allowed_changes=allowed)), is_time or (has_passed and changes)


def _is_reconciled(context: RunContext, fetched: Fetched) -> bool:
    """Return whether a run has planned the tree of the source, also if it changed nothing."""
    source, planned = context.source.repository, fetched.reconciled.source
    return bool(planned) and source.has_commit(planned) and source.commit(planned).tree == fetched.source.tree


def _is_from_origin(fetched: Fetched) -> bool:
    """Return whether the output branch is the one of origin, as a clone fetched it last."""
    output = fetched.output
    tracked = output.repository.resolve_ref(f"refs/remotes/origin/{output.branch}") if output.remote is None else None
    return tracked is not None and tracked == fetched.output_head


def _diverges_from_origin(fetched: Fetched) -> bool:
    """Return whether the local output branch and the one of origin, as of the last fetch, both have commits that the other lacks."""
    repository, branch = fetched.output.repository, fetched.output.branch
    local, origin = (repository.resolve_ref(f"refs/{prefix}/{branch}") for prefix in ("heads", "remotes/origin"))
    if local is None or origin is None or local == origin or repository.is_shallow:
        return False
    return not (repository.has_ancestor(origin, local) or repository.has_ancestor(local, origin))


def _find_waiting(context: RunContext, fetched: Fetched, last: datetime | None) -> tuple[SourceChange | None, int]:
    """Return the first commit of the source after those that runs have followed, and their number, if it and the `last` output commit are
    old."""
    source, deadline = context.source.repository, find_wait_end(context.settings.now)
    if last is None or last > deadline or not fetched.reconciled.source:
        return None, 0
    found = list_source_changes(source, fetched.reconciled.source, fetched.source.oid)  # none where only facts have changed
    first = next((one for one in found[-1:] if one.time is not None and one.time <= deadline), None)
    return first, len(found) if first is not None else 0


def make_fleet_status(context: RunContext, fetched: Fetched, fleet: PlannedFleet, *, pending: bool = False) -> FleetStatus:
    """Return the status of a planned fleet; whether a run would change the output branch is given."""
    repository, head = fetched.output.repository, fetched.output_head
    plan = fleet.plan._replace(findings=name_former_clusters(fetched, fleet.plan.findings))
    commit = repository.commit(head) if head is not None else None
    rate = read_guard_record(fetched.record.guard).rate if fetched.record is not None else NO_RATE
    period = plan.totals.config.guard.period
    workloads = tuple(list_workload_statuses(plan))
    return FleetStatus(
        fetched.output.branch,
        head or "",
        commit.time if commit is not None else None,
        pending,
        _list_cluster_statuses(context, fetched, fleet, workloads),
        plan.rollouts,
        workloads,
        fleet.unclaimed,
        describe_rewrite(fetched),
        len(rate.waiting),
        add_duration(rate.start, period) if rate.waiting and rate.start is not None else None,
        next((finding.message for finding in fetched.output.unfetched), ""),
        tuple(list_freezes(context, fetched, plan)),
        plan.totals.held,
        plan.withheld,
        tuple(each for each in plan.findings if each.severity == "error" and each.code not in GUARD_CODES),
        tuple(list_hand_edits(fetched)),
        tuple(each for each in plan.findings if each.code == OVERCOMMITTED),
        tuple(_list_impairments(plan.findings, workloads)),
        plan.observations.time,
        context.settings.now,
        source=SourceStatus(
            missing_facts=tuple(each for each in plan.findings if each.code == FACTS_MISSING and commit is not None),
            mistakes=tuple(_list_mistakes(plan.findings, workloads)) if commit is not None else (),
            warnings=tuple(each for each in plan.findings if each.severity == "warning" and _is_listed_alone(each)),
        ),
    )


def _list_mistakes(findings: Collection[Finding], workloads: Iterable[WorkloadStatus]) -> Iterator[Finding]:
    """Yield the warnings about what documents want and nothing has, without documents of which one is the reason of a workload that is
    listed: one of the first that are unplaced, lack replicas or whose change is withheld."""
    mistakes, known = find_mistakes(findings), tuple(workloads)
    lists = (
        [one for one in known if one.is_unplaced],
        [one for one in known if one.missing],
        [one for one in known if one.state == "withheld"],
    )
    listed = [one for found in lists for one in found[:WORKLOADS_SHOWN]] if mistakes else []
    chosen = [(choose_mistake(mistakes, one.key.title, one.policy), one.reason) for one in listed]
    reported = {found.resource for found, reason in chosen if found is not None and format_sentence(found) in reason}
    for finding in findings:
        if finding.code in MISTAKES and finding.severity == "warning" and finding.resource not in reported:
            yield finding


def _is_listed_alone(finding: Finding) -> bool:
    """Return whether a status says nothing else about what a finding is about."""
    return not (finding.is_change or finding.code in _LISTED)


def _list_impairments(findings: Iterable[Finding], workloads: Iterable[WorkloadStatus]) -> Iterable[Finding]:
    """Yield the findings that workloads in clusters have less than they need. What is unplaced or held counts as that."""
    placed = {one.key.resource for one in workloads if one.clusters and not one.state}
    for finding in findings:
        is_about_objects = finding.resource is not None and finding.resource[0] != "Cluster"
        if finding.code in IMPAIRMENTS and is_about_objects and (finding.code != UNSCHEDULABLE or finding.resource in placed):
            yield finding


def _list_cluster_statuses(
    context: RunContext, fetched: Fetched, fleet: PlannedFleet, workloads: Collection[WorkloadStatus]
) -> tuple[ClusterStatus, ...]:
    """Return the status of each cluster that has a document, or that had one and still has workloads or a directory, with how many commits
    it is behind."""
    repository, plan = fetched.output.repository, fleet.plan
    commits = list_output_commits(repository, fetched.output_head)
    placed, retained = (
        count_by_cluster(one.clusters for one in workloads),
        fetched.record.retained if fetched.record is not None else (),
    )
    copies, last_copies = _count_copies(retained, workloads), {copy.cluster for copy in retained if copy.until is None}
    gone = {*placed, *fleet.clusters} - fleet.current
    names = sorted(fleet.current | gone)
    reports = KnownReports(fleet.catalog.api_documents.get(CLUSTER_REPORT, ()), fleet.observations, commits)
    last = add_later_changes(
        repository, fetched.prefix, commits, {name: one for name in names if (one := reports.find_last(name)) is not None}
    )
    conditions, locations = read_cluster_conditions(fleet.catalog), RuleLocations(context.source.repository)
    find_blob = make_blob_finder(context.source.repository, fetched.source.tree)
    observed = read_observation_times(context, fetched.facts, plan.totals.config)
    deadline = add_duration(context.settings.now, -plan.totals.config.source.facts.stale_after)
    staying = {each.resource[2]: each.reason for each in plan.findings if each.code == FAILOVER_OFF and each.resource is not None}
    found = []
    for name in names:
        condition, unready, seen = conditions.get(name, NO_CONDITION), fleet.unready.get(name, ""), observed.get(name)
        is_stale = seen is not None and seen <= deadline
        found.append(
            ClusterStatus(
                name,
                "it has no document any more" if name in gone else _describe_unready(condition, unready, context.settings.now),
                placed.get(name, (0, 0))[0],
                last.get(name),
                "Gone" if name in gone else _choose_ready(condition, unready, is_stale=is_stale),
                locate_taints(condition.taints, locations, find_blob),
                seen,
                placed.get(name, (0, 0))[1],
                is_stale,
                copies[name],
                name in last_copies,
                fleet.resources.get(name, ()),
                staying.get(name, ""),
            )
        )
    return tuple(found)


def _count_copies(retained: Iterable[RetainedCopy], workloads: Iterable[WorkloadStatus]) -> Counter[str]:
    """Return by cluster of how many workloads that are not placed there copies stay."""
    found = {(copy.workload, copy.cluster) for copy in retained}
    if found:
        found -= {(one.key, name) for one in workloads for name in one.clusters}
    return Counter(cluster for _, cluster in found)


def _describe_unready(condition: ClusterCondition, unready: str, now: datetime) -> str:
    """Return why a cluster is not available, with what its condition says, and since when."""
    readiness = condition.readiness
    if not unready or readiness is None or readiness.status == TRUE:
        return unready
    said = ": ".join(filter(None, (readiness.reason, readiness.message)))
    age = f" for {format_age(readiness.since, now)}" if readiness.since is not None else ""
    said = said or ("its condition is Unknown" if readiness.status == UNKNOWN else "")
    return f"{unready}{age} ({said})" if said else f"{unready}{age}"


def _choose_ready(condition: ClusterCondition, unready: str, *, is_stale: bool) -> Ready:
    """Return whether a cluster with a document is ready. A taint of people says nothing about that, nor do stale facts."""
    readiness = condition.readiness
    if is_stale or (readiness is not None and readiness.status == UNKNOWN):
        return "Unknown"
    if readiness is not None and readiness.status == FALSE:
        return "False"
    if unready and not any(taint.evicts for taint in condition.taints):
        return "False"
    return "True" if readiness is not None and readiness.status == TRUE else "Unknown"


def list_workload_statuses(plan: Plan) -> Iterable[WorkloadStatus]:
    """Yield where each workload is on the output branch, then those that no policy selects any more and are still there."""
    moves = {move.key: move for move in plan.moves}
    held = _find_waves(plan)
    withheld, waiting = ({move.key for move in found} for found in (plan.withheld.moves, plan.withheld.waiting))
    states: tuple[tuple[WorkloadState, Container[Key]], ...]
    states = ("waiting", waiting), ("withheld", withheld), ("held", plan.totals.held)
    mistakes = find_mistakes(plan.findings)
    lost = {move.key: move.reason for move in plan.withheld.moves if move.becomes_unplaced}
    for key, outcome in plan.outcomes.items():
        clusters = moves[key].before if key in moves else outcome.replicas_by_cluster
        state: WorkloadState = "" if clusters else _choose_unplaced_state(outcome)
        for name, keys in states:
            state = name if key in keys else state
        lacking, cause = _find_lacking(outcome, held.get(key, ()))
        missing = lacking if clusters and state in ("", "held") else 0
        is_lost = not clusters or key in lost
        own = lost.get(key, cause)
        reason = _find_reason(outcome, own, mistakes if is_lost else {}) if is_lost or missing else ""
        waves = held.get(key, {})
        lacks = tuple(filterfalse(waves.__getitem__, waves))
        yield WorkloadStatus(key, outcome.policy, clusters, tuple(waves), state, reason, missing, lacks)
    yield from _list_removed(plan)


def _find_waves(plan: Plan) -> dict[Key, dict[str, bool]]:
    """Return by workload the clusters that wait for a wave of a rollout, and whether each has content from before."""
    found: dict[Key, dict[str, bool]] = {}
    for files in sorted(files for record in plan.rollout_records for files in record.held):
        found.setdefault(files.workload, {})[files.cluster] = bool(files.paths)
    return found


def _find_lacking(outcome: Outcome, held: Container[str]) -> tuple[int, str]:
    """Return how many replicas no cluster gets of a workload, and why. What waits for a wave of a rollout in a cluster is `held`."""
    found = {one.cluster: one.wanted or 0 for one in outcome.targets if one.waits and not one.evicting}
    undelivered = [name for name, number in sorted(found.items()) if number and name not in held]
    cause = f"its manifest is not delivered to {join_all(undelivered)}" if undelivered else outcome.reason
    return (outcome.unassigned or 0) + sum(found[name] for name in undelivered), cause


def _choose_unplaced_state(outcome: Outcome) -> WorkloadState:
    return "stopped" if any(each.code == NO_REPLICAS for each in outcome.findings) else "unplaced"


def _list_removed(plan: Plan) -> Iterable[WorkloadStatus]:
    """Yield where the workloads are that a run removes, or would remove if the guard did not withhold it."""
    withheld = {move.key: move for move in plan.withheld.moves}
    for key, move in {**{move.key: move for move in plan.moves}, **withheld}.items():
        if key not in plan.outcomes and move.before:
            yield WorkloadStatus(key, "", move.before, state="withheld" if key in withheld else "", reason=move.reason)


def _find_reason(outcome: Outcome, reason: str, mistakes: Mapping[str, Finding]) -> str:
    """Return why a workload, or some of its replicas, are in no cluster; first what is wrong in what it wants of clusters, if one of the
    `mistakes` is its own. Without a finding it is the `reason` of its decision."""
    mistake = choose_mistake(mistakes, outcome.key.title, outcome.policy)
    found = [each for each in outcome.findings if each.severity != "info"]
    found.sort(key=lambda each: each.code != UNSCHEDULABLE)
    if mistake is None:
        return found[0].message if found else reason
    is_unscheduled = bool(found) and found[0].code == UNSCHEDULABLE
    return f"{format_sentence(mistake)}; {found[0].reason if is_unscheduled else found[0].message if found else reason}"
