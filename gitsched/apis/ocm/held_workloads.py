"""Workloads with data that keep their clusters although their Placements choose others.

Their rollout goes on in these clusters, as if the Placements had chosen them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitsched.apis.ocm import names
from gitsched.apis.ocm.manifestworkreplicaset import make_outcome
from gitsched.apis.ocm.placement_states import PlacementState
from gitsched.apis.ocm.rollout import PreviousRollout, RolloutReports
from gitsched.apis.ocm.workload_rollout import roll_out_workload
from gitsched.apis.ocm.workloads import OcmWorkload
from gitsched.apis.snapshot import Snapshot
from gitsched.apis.stateful_holds import hold_outcome
from gitsched.model.document import Body
from gitsched.model.finding import UNSCHEDULABLE, format_names
from gitsched.model.scheduling import Outcome


def hold_workload(
    snapshot: Snapshot,
    workload: OcmWorkload,
    outcome: Outcome,
    previous_rollout: PreviousRollout,
    reports: RolloutReports,
    clusters: Mapping[str, object],
    unavailable: Mapping[str, str],
    previous: Body | None,
) -> Outcome:
    """Return the outcome of a workload whose data stays in the clusters that it leaves, else `outcome` itself.

    `clusters` are those with a document, `unavailable` those with a taint, with the reason.
    """
    if snapshot.fixed:
        kept = _keep_clusters(snapshot, workload, previous_rollout, reports, clusters, previous, sorted(previous_rollout.revisions))
        return kept._replace(policy=outcome.policy, replicas=outcome.replicas)
    if snapshot.load_holds is None:
        return outcome
    document, holds = workload.document, snapshot.load_holds()
    before = holds.drop_released(document, dict.fromkeys(sorted(previous_rollout.revisions)), clusters)
    after = {target.cluster: None for target in outcome.targets}
    left = sorted(before.keys() - after.keys())
    evicting = [name for name in left if name in unavailable]
    reason = (
        f"cluster {evicting[0]} is not available: {unavailable[evicting[0]]}"
        if evicting
        else "its Placement chooses other clusters"
    )
    if any(name not in clusters for name in left):
        reason = f"{format_names([name for name in left if name not in clusters])} has no ManagedCluster document"
    held = holds.find_hold(document, before, after, reason=reason, clusters=clusters, evicted=bool(evicting))
    if held is None:
        return outcome
    kept = _keep_clusters(snapshot, workload, previous_rollout, reports, dict.fromkeys((*clusters, *before)), previous, before)
    findings = tuple(finding for finding in outcome.findings if finding.code != UNSCHEDULABLE)
    wakeup = kept.wakeup if kept.wakeup is not None and kept.wakeup > snapshot.now else None
    objects = tuple(key for key in previous_rollout.objects if key not in workload.objects) if held.lost else kept.previous_objects
    kept = kept._replace(
        policy=outcome.policy,
        findings=findings,
        wakeup=wakeup,
        previous_objects=objects,
        replicas=outcome.replicas,
    )
    return hold_outcome(document, kept, held)


def _keep_clusters(
    snapshot: Snapshot,
    workload: OcmWorkload,
    previous_rollout: PreviousRollout,
    reports: RolloutReports,
    existing: Mapping[str, object],
    previous: Body | None,
    kept: Iterable[str],
) -> Outcome:
    """Return the outcome of a workload as if its Placement had chosen the clusters that are kept."""
    document = workload.document
    references = workload.references or ((names.placement_key(document.key.namespace, document.key.name), {}),)
    kept_workload, placement = workload._replace(references=references[:1]), references[0][0]
    decisions: Body = {"status": {"decisions": [{"clusterName": name} for name in kept]}}
    states = {placement: PlacementState([(placement, decisions)])}
    rollout = roll_out_workload(kept_workload, states, previous_rollout, reports, existing, snapshot.at, snapshot.now)
    return make_outcome(kept_workload, rollout, previous_rollout, states, previous)
