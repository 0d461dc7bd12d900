"""What the page of a plan shows of the fleet: the clusters, where they are, and why workloads have their placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.model.errors import NeedsCompletePlan
from gitsched.reconcile.incremental.planned_clusters import list_cluster_facts
from gitsched.reconcile.incremental.planned_workloads import PlannedWorkloads
from gitsched.reconcile.review.explanation import explain_workloads
from gitsched.report.page import FleetView, choose_explained
from gitsched.simulate.fleet_topology import TopologyInput, read_topology

if TYPE_CHECKING:
    from gitsched.model.progress import Progress
    from gitsched.reconcile.review.compared_plans import PlannedCommit
    from gitsched.reconcile.run import RunContext
    from gitsched.report.review import Review


def view_fleet(context: RunContext, planned: PlannedCommit, review: Review, progress: Progress | None = None) -> FleetView:
    """Return what the page of a review shows of the fleet. Raise NeedsCompletePlan if only a complete plan can tell that."""
    plan, update = planned.run.plan, planned.update
    if update is None:
        clusters = plan.cluster_facts
        outcomes = choose_explained(review, len(clusters))
        decisions = plan.decisions
    else:
        clusters = list_cluster_facts(update)
        if len(clusters) != plan.cluster_count:
            raise NeedsCompletePlan("the rows have not every cluster")
        outcomes = choose_explained(review, len(clusters))
        workloads, keys = PlannedWorkloads(context, planned.fetched, plan, update), [outcome.key for outcome in outcomes]
        decisions = workloads.decide(keys)
        plan = plan._replace(details=workloads.describe(decisions))
    explained = explain_workloads(context.source.repository, plan, outcomes, progress)
    topology = TopologyInput(decisions.catalog, decisions.engines, plan.totals, review.moves, plan.outcomes, decisions.templates)
    return FleetView(clusters, explained, read_topology(topology))
