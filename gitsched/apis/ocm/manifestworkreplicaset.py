"""Write outcome and record of ManifestWorkReplicaSets, and of templates annotated with a Placement."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gitsched.apis.ocm.missing_placements import NO_PLACEMENTS, PlacementNames
from gitsched.apis.ocm.names import PLACEMENT_LABEL
from gitsched.apis.ocm.placement_states import PlacementState
from gitsched.apis.ocm.preferred_clusters import report_workload
from gitsched.apis.ocm.rollout import ROLLOUT_ANNOTATION, PreviousRollout, format_rollout
from gitsched.apis.ocm.workload_rollout import WorkloadRollout
from gitsched.apis.ocm.workloads import OcmWorkload
from gitsched.model.document import Body, Document, Key, as_object, get_field, list_objects, read_annotations
from gitsched.model.finding import UNSCHEDULABLE, Finding, choose_form, format_names, format_part, locate_document, locate_field
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.time import format_time
from gitsched.schedule.rollout import NO_REVISION

API_NAME = "ocm"


def make_outcome(
    workload: OcmWorkload,
    rollout: WorkloadRollout,
    previous_rollout: PreviousRollout,
    placements: Mapping[Key, PlacementState],
    previous: Body | None,
    names: PlacementNames = NO_PLACEMENTS,
) -> Outcome:
    """Return the outcome of a workload."""
    document, progress = workload.document, rollout.progress
    placed = tuple(
        TargetCluster(name, keeps_manifest=step.revision != workload.revision, copied_from=rollout.copied.get(name, ""))
        for name, step in sorted(progress.revisions.items())
    )
    time = rollout.time
    policy = ", ".join(str(placement) for placement, _ in workload.references)
    keeps_manifests = any(target.keeps_manifest for target in placed)
    previous_objects = tuple(key for key in previous_rollout.objects if key not in workload.objects) if keeps_manifests else ()
    states = [placements[placement] for placement in rollout.groups]
    no_clusters = "" if placed else _describe_no_clusters(workload, rollout, placements)
    return Outcome(
        key=document.key,
        api=API_NAME,
        state="placed" if placed else "pending",
        policy=policy,
        group="",
        targets=placed,
        replicas=None,
        records=((workload.record, _write_record(workload, rollout, previous_objects, previous, time)),),
        reason=_describe_reason(workload, rollout, policy) if placed else no_clusters,
        time=time,
        wakeup=min(
            (wakeup for wakeup in (progress.wakeup, *(state.wakeup for state in states)) if wakeup is not None), default=None
        ),
        findings=tuple(_make_findings(workload, rollout, placed, names, no_clusters)),
        previous_targets=tuple(TargetCluster(name) for name in sorted(previous_rollout.revisions)),
        manifests=workload.manifests,
        previous_objects=previous_objects,
        waiting=frozenset(name for name in _list_pending_clusters(workload, rollout) if name not in progress.revisions),
    )


def make_stale_outcome(
    document: Document, record: Key, previous_rollout: PreviousRollout, previous: Body, reason: str, at: datetime
) -> Outcome:
    """Return the outcome of a workload with an invalid document: it keeps its previous clusters and objects."""
    placed = tuple(TargetCluster(name, keeps_manifest=True) for name in sorted(previous_rollout.revisions))
    message = f"{document.key} keeps its previous placement: {reason}"
    own = document.key == record  # a ManifestWorkReplicaSet is never rendered itself
    return Outcome(
        key=document.key,
        api=API_NAME,
        state="stale",
        policy="",
        group="",
        targets=placed,
        replicas=None,
        records=((record, previous),),
        reason=reason,
        time=max((step.applied_at for step in previous_rollout.revisions.values()), default=at),
        findings=(Finding("warning", "stale-decision", message, locate_document(document), document.key.resource),),
        previous_targets=placed,
        manifests=() if own else None,
        previous_objects=previous_rollout.objects if own else (),
    )


def _describe_reason(workload: OcmWorkload, rollout: WorkloadRollout, policy: str) -> str:
    progress = rollout.progress
    pending = _list_pending_clusters(workload, rollout)
    if not workload.revision or not pending:
        return policy
    current = sum(step.revision == workload.revision for step in progress.revisions.values())
    return f"{policy}: {format_part(current, current + len(pending), 'cluster', 'has', 'have')} the current revision"


def _describe_no_clusters(workload: OcmWorkload, rollout: WorkloadRollout, placements: Mapping[Key, PlacementState]) -> str:
    """Describe for each Placement why the workload has no cluster."""
    reasons = []
    for placement, _ in workload.references:
        if placement not in rollout.groups:
            why = "it does not exist"
        elif not any(group.clusters for group in rollout.groups[placement]):
            why = placements[placement].reason or "none of its clusters exists"
        else:
            why = "the rollout has not started"
        reasons.append(f"{placement}: {why}")
    return "; ".join(reasons)


def _list_pending_clusters(workload: OcmWorkload, rollout: WorkloadRollout) -> list[str]:
    """Return the chosen clusters that do not have the current revision."""
    revisions = rollout.progress.revisions
    chosen = (name for groups in rollout.groups.values() for group in groups for name in group.clusters)
    return [name for name in chosen if revisions.get(name, NO_REVISION).revision != workload.revision]


def _make_findings(
    workload: OcmWorkload,
    rollout: WorkloadRollout,
    placed: tuple[TargetCluster, ...],
    names: PlacementNames,
    no_clusters: str,
) -> list[Finding]:
    document, progress = workload.document, rollout.progress
    named = report_workload(document, (key for key, _ in workload.references))
    findings = [named] if named is not None else []
    for index, (placement, _) in enumerate(workload.references):
        if placement not in rollout.groups:
            annotated, reference = workload.manifests is None, ("spec", "placementRefs", index, "name")
            hint = names.suggest(placement, in_annotation=annotated)
            message = f"{document.key} references {placement}, which does not exist{hint}"
            field = locate_field(document.origin, ("metadata", "annotations", PLACEMENT_LABEL) if annotated else reference)
            location, resource = locate_document(document), document.key.resource
            findings.append(Finding("warning", "ocm-placement-missing", message, location, resource, field))
    if not placed:
        message = f"{document.key} is not placed: {no_clusters}"
        findings.append(Finding("warning", UNSCHEDULABLE, message, locate_document(document), document.key.resource))
    if progress.failed:
        shown = ", ".join(sorted(progress.failed)[:5])
        message = f"{document.key} failed in {len(progress.failed)} of its clusters: {shown}"
        if lost := sorted(progress.failed & rollout.lost.keys()):
            message += (
                f"; {format_names(lost)} {choose_form(len(lost), 'was', 'were')} lost before reporting that it is healthy: to go on, "
                "make the cluster available again, remove it, exclude it in the Placement, or raise maxFailures; to go back, revert"
            )
        findings.append(Finding("warning", "ocm-rollout-failed", message, locate_document(document), document.key.resource))
    if rollout.skipped:
        message = (
            f"{document.key} is rolled out further without {format_names(rollout.skipped)}, which had the revision and has not "
            "reported that it is healthy: its document is removed, or no Placement chooses it any more"
        )
        findings.append(Finding("info", "ocm-rollout-skipped", message, locate_document(document), document.key.resource))
    return findings


def _write_record(
    workload: OcmWorkload, rollout: WorkloadRollout, previous_objects: tuple[Key, ...], previous: Body | None, time: datetime
) -> Body:
    """Return the record: a ManifestWorkReplicaSet with its status, also for a template."""
    key, progress = workload.record, rollout.progress
    pending = _list_pending_clusters(workload, rollout)
    current = len(progress.revisions) - sum(step.revision != workload.revision for step in progress.revisions.values())
    annotation = format_rollout(progress.revisions, (*workload.objects, *previous_objects), rollout.lost)
    counts = {
        "total": current + len(pending),
        "applied": current,
        "available": len(progress.succeeded),
        "degraded": len(progress.failed),
    }
    last_summary = as_object(get_field(previous or {}, "status", "summary"))
    is_unchanged = read_annotations(previous or {}).get(ROLLOUT_ANNOTATION) == annotation
    if is_unchanged and last_summary.get("degraded") == counts["degraded"] and counts["available"] < counts["total"]:
        counts["available"] = last_summary.get(
            "available", 0
        )  # one more success does not need a commit, success of all clusters does
    return {
        "apiVersion": f"{key.group}/v1alpha1",
        "kind": key.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "annotations": {ROLLOUT_ANNOTATION: annotation},
        },
        "status": {
            "conditions": [
                _write_condition("PlacementVerified", *_placement_verified(rollout), previous, time),
                _write_condition("PlacementRolledOut", *_placement_rolled_out(pending), previous, time),
            ],
            "summary": counts,
            "placementSummary": [
                {"name": placement.name, "availableDecisionGroups": _summarize_placement(placement, workload, rollout)}
                for placement in rollout.groups
            ],
        },
    }


def _placement_verified(rollout: WorkloadRollout) -> tuple[str, str]:
    if not rollout.groups:
        return "False", "PlacementDecisionNotFound"
    empty = not any(group.clusters for groups in rollout.groups.values() for group in groups)
    return ("False", "PlacementDecisionEmpty") if empty else ("True", "AsExpected")


def _placement_rolled_out(pending: list[str]) -> tuple[str, str]:
    return ("False", "Progressing") if pending else ("True", "Complete")


def _summarize_placement(placement: Key, workload: OcmWorkload, rollout: WorkloadRollout) -> str:
    revisions, groups = rollout.progress.revisions, rollout.groups[placement]
    current = [
        sum(revisions.get(name, NO_REVISION).revision == workload.revision for name in group.clusters)
        for group in groups
        if group.clusters
    ]
    started = sum(count > 0 for count in current)
    return f"{started} ({sum(current)} / {sum(len(group.clusters) for group in groups)} clusters applied)"


def _write_condition(kind: str, status: str, reason: str, previous: Body | None, time: datetime) -> Body:
    conditions = list_objects(get_field(previous or {}, "status", "conditions"))
    last: Body = next((condition for condition in conditions if condition.get("type") == kind), {})
    since = last.get("lastTransitionTime") if last.get("status") == status else None
    transition_time = since or format_time(time.replace(microsecond=0))
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": transition_time}
