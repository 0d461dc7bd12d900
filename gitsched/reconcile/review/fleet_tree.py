"""Read what is in one cluster, or where one workload is with what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from gitsched.decide.garbage_collection import gc_paused
from gitsched.decide.plan_result import PlanDetails, mark_awaited
from gitsched.decide.relations.companion_explanation import explain_companions
from gitsched.decide.relations.reference_explanation import explain_references
from gitsched.model.changes import Move, RetainedCopy
from gitsched.model.document import Key
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding, sort_findings
from gitsched.model.fleet_status import FleetStatus, WorkloadStatus
from gitsched.model.fleet_tree import ClusterTree, WorkloadTree
from gitsched.model.scheduling import Outcome
from gitsched.model.tenants import TENANT_LIMIT
from gitsched.reconcile.fetch import fetch
from gitsched.reconcile.incremental.planned_fleet import PlannedFleet, use_fleet
from gitsched.reconcile.incremental.planned_workloads import PlannedWorkloads
from gitsched.reconcile.incremental.state_plan import plan_from_state, try_with_state
from gitsched.reconcile.output.edited_objects import describe_cluster_edits, describe_object_edits
from gitsched.reconcile.review.fleet_status import list_workload_statuses, make_fleet_status
from gitsched.reconcile.review.freezes import list_freezes
from gitsched.reconcile.review.ignored_settings import log_ignored_settings
from gitsched.reconcile.review.removed_workloads import describe_removed
from gitsched.reconcile.review.resource_names import complete_name, describe_missing, find_key, matches_name
from gitsched.reconcile.run import Fetched, RunContext, open_context
from gitsched.reconcile.run_settings import RunSettings
from gitsched.reconcile.source_plan import plan_source
from gitsched.report.lines import format_key, format_words

_CLUSTER_KINDS = ("", "cluster", "managedcluster")
_LOOK = (
    "to look at what clusters would get, gitsched reconcile --output-branch preview commits it to another branch, pushing nothing"
)


def read_fleet_tree(settings: RunSettings, kind: str, namespace: str | None, name: str) -> ClusterTree | WorkloadTree:
    """Read what is in a cluster, or where a workload is; a name alone, with kind "", is a cluster before a workload.

    `complete_name` says what may be left out. Raise Permanent where nothing has the name, or several workloads.
    """
    context = open_context(settings)
    with gc_paused():
        fetched = fetch(context, shows_findings=True)
        if fetched.output_head is None:
            look = "" if fetched.output.unfetched else f"; {_LOOK}"
            raise Permanent(f"{fetched.output.describe_missing()}{look}")
        fleet, tree = use_fleet(
            context, fetched, lambda fleet: _read_tree(context, fetched, fleet, kind, namespace, name), withholds=True
        )
        log_ignored_settings(fleet.plan)
        return tree


def _read_tree(
    context: RunContext, fetched: Fetched, fleet: PlannedFleet, kind: str, namespace: str | None, name: str
) -> ClusterTree | WorkloadTree:
    retained = mark_awaited(_read_retained(fetched), fleet.plan.findings)
    statuses = {one.key: one for one in list_workload_statuses(fleet.plan)}
    clusters = {*fleet.current, *fleet.clusters, *(name for one in statuses.values() for name in one.clusters)}
    if name in clusters and not namespace and kind.lower() in _CLUSTER_KINDS:
        found = _make_cluster_tree(make_fleet_status(context, fetched, fleet), name, retained)
        return found._replace(edits=describe_cluster_edits(fetched, name, context.settings.now))
    typed = kind, namespace, name
    kind, space, name = complete_name(statuses, kind, namespace, name)
    key, plan = find_key(statuses, kind, space, name) if kind else None, fleet.plan
    if key is None:
        raise Permanent(
            _describe_refused(plan.findings, kind, space, name)
            or _describe_unselected((one.key for one in fleet.unclaimed), kind, space, name)
            or describe_removed(context, fetched, *typed)
            or describe_missing(statuses, kind, space, name, clusters)
        )
    if key not in plan.outcomes:
        copies = tuple(copy for copy in retained if key in (copy.workload, copy.follows))
        return _add_problems(context, fetched, fleet, WorkloadTree(statuses[key], "", statuses[key].reason, copies))
    details = plan.details or try_with_state(partial(_read_details, context, fetched, key))
    if details is None:
        plan = plan_source(context, fetched, context.settings.now, withholds=True, written=False, refuses=False).plan
        details = plan.details
    assert details is not None, "a complete plan has all references"
    return _add_problems(
        context, fetched, fleet, _make_workload_tree(plan.outcomes[key], details, statuses[key], retained, plan.moves)
    )


def _add_problems(context: RunContext, fetched: Fetched, fleet: PlannedFleet, tree: WorkloadTree) -> WorkloadTree:
    """Return the tree of a workload with what keeps it in its clusters."""
    key, plan = tree.workload.key, fleet.plan
    withheld = next((move for move in plan.withheld.moves if move.key == key), None)
    return tree._replace(
        reason=tree.reason if withheld is None else withheld.reason,
        held=plan.totals.held.get(key),
        withheld=withheld,
        withheld_by=plan.withheld.withheld_by,
        allowance=plan.withheld.allowance if withheld is not None else "",
        freezes=tuple(list_freezes(context, fetched, plan)),
        now=context.settings.now,
        edits=describe_object_edits(fetched, key, context.settings.now),
    )


def _read_retained(fetched: Fetched) -> tuple[RetainedCopy, ...]:
    """Return the copies that the last run retained."""
    return fetched.record.retained if fetched.record is not None else ()


def _make_cluster_tree(status: FleetStatus, name: str, retained: Iterable[RetainedCopy]) -> ClusterTree:
    workloads = tuple(one for one in status.workloads if name in one.clusters)
    (cluster,) = (one for one in status.clusters if one.name == name)
    copies = tuple(copy for copy in retained if copy.cluster == name)
    return ClusterTree(cluster, workloads, copies, status.freezes, status.now)


def _read_details(context: RunContext, fetched: Fetched, key: Key) -> PlanDetails:
    """Return what a complete plan has about one workload that the last run has placed."""
    known = plan_from_state(context, fetched)
    workloads = PlannedWorkloads(context, fetched, known.planned.plan, known.update)
    return workloads.describe(workloads.decide([key]))


def _make_workload_tree(
    outcome: Outcome,
    details: PlanDetails,
    status: WorkloadStatus,
    retained: Iterable[RetainedCopy],
    moves: Iterable[Move],
) -> WorkloadTree:
    """Return where a workload and what belongs to it are on the output branch: before the moves of the plan."""
    before = {move.key: frozenset(move.before) for move in moves}
    key = status.key
    relations, outcomes = details.relations.database, details.decisions.outcomes
    problems = sort_findings(finding for finding in outcome.findings if finding.severity != "info")
    related = explain_companions(relations, outcomes, key, before)
    return WorkloadTree(
        status,
        outcome.group,
        outcome.reason if outcome.targets else status.reason or next((each.message for each in problems), outcome.reason),
        tuple(copy for copy in retained if key in (copy.workload, copy.follows)),
        related.targeted_by,
        related.targets,
        explain_references(relations, outcomes, key, before),
    )


def _describe_refused(findings: Iterable[Finding], kind: str, namespace: str, name: str) -> str:
    """Return that the object that is meant exceeds a limit of its Tenant, and is in no cluster; "" if there is none."""
    for finding in findings:
        if finding.code != TENANT_LIMIT or finding.resource is None:
            continue
        key = Key("", *finding.resource)
        is_meant = key.name == name and namespace in ("", key.namespace)
        if is_meant and (not kind or matches_name(key, kind.partition(".")[0], name)):
            place = f" ({finding.location.path}:{finding.location.line})" if finding.location is not None else ""
            return f"{format_key(key)} is in no cluster: {finding.message}{place}"
    return ""


def _describe_unselected(unclaimed: Iterable[Key], kind: str, namespace: str, name: str) -> str:
    """Return that no policy selects the object that is meant; "" if there is none."""
    found = (key for key in unclaimed if key.name == name and namespace in ("", key.namespace))
    other = next((key for key in found if not kind or matches_name(key, kind, name)), None)
    if other is not None:
        return f"no policy selects {other.title}, so it is in no cluster: `gitsched explain {format_words(other)}` says more"
    return ""
