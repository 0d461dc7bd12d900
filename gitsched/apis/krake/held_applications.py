"""Applications with data that keep their cluster although the scheduler chooses another one."""

from __future__ import annotations

from collections.abc import Container, Mapping

from gitsched.apis.krake.names import cluster_directory
from gitsched.apis.krake.scheduler import ApplicationDecision
from gitsched.apis.krake.status import make_application_record
from gitsched.apis.snapshot import Snapshot
from gitsched.apis.stateful_holds import hold_outcome
from gitsched.model.scheduling import Outcome, TargetCluster


def hold_application(
    snapshot: Snapshot, decision: ApplicationDecision, outcome: Outcome, clusters: Container[str], unavailable: Mapping[str, str]
) -> Outcome:
    """Return the outcome of an application whose data stays in the cluster that it leaves, else `outcome` itself.

    `clusters` are those with a document, `unavailable` those that are not online, with the reason.
    """
    target = decision.previous.target
    if snapshot.load_holds is None or target is None:
        return outcome
    document, holds, name = decision.app.document, snapshot.load_holds(), cluster_directory(target.namespace, target.name)
    before = holds.drop_released(document, {name: None}, clusters)
    reason = outcome.trigger or outcome.reason
    if name in unavailable:
        reason = f"cluster {name} is not available: {unavailable[name]}"
    elif name not in clusters:
        reason = f"{name} has no Cluster document"
    held = holds.find_hold(
        document, before, outcome.replicas_by_cluster, reason=reason, clusters=clusters, evicted=name in unavailable
    )
    return outcome if held is None else hold_outcome(document, fix_application(snapshot, decision, outcome), held)


def fix_application(snapshot: Snapshot, decision: ApplicationDecision, outcome: Outcome) -> Outcome:
    """Return the outcome of an application that stays in the cluster of its record."""
    target = decision.previous.target
    if target is None:
        return outcome
    document, objects = decision.app.document, [key for key, _ in outcome.manifests or ()]
    record = make_application_record(document, decision.previous, objects)
    return outcome._replace(
        targets=(TargetCluster(cluster_directory(target.namespace, target.name)),),
        records=((document.key, record), *outcome.records[1:]),
        time=snapshot.at,
        wakeup=None,
        trigger="",
        findings=tuple(finding for finding in outcome.findings if finding.code != "unschedulable"),
    )
