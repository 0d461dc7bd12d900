"""Workloads as outcomes: where each is, what is rendered there, and the record that says so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gitsched.apis.ocm.memory import ROLLOUT, Memory, remember
from gitsched.apis.ocm.rollout import NOTHING
from gitsched.apis.ocm.workloads import Spreading, Standing, Workload
from gitsched.model.document import Body, Document, Key, member, text_map
from gitsched.model.finding import Finding, locate
from gitsched.model.outcome import Outcome, Placed
from gitsched.model.time import format_time

API = "ocm"


def deliver(
    workload: Workload, spreading: Spreading, memory: Memory, placements: Mapping[Key, Standing], previous: Body | None
) -> Outcome:
    """The outcome of a workload."""
    document, progress = workload.document, spreading.progress
    placed = tuple(Placed(name, kept=step.revision != workload.revision) for name, step in sorted(progress.steps.items()))
    time = spreading.time
    referred = ", ".join(str(placement) for placement, _ in workload.references)
    former = tuple(key for key in memory.objects if key not in workload.objects) if any(place.kept for place in placed) else ()
    known = [placements[placement] for placement in spreading.groups]
    return Outcome(
        key=document.key,
        api=API,
        state="placed" if placed else "pending",
        policy=referred,
        group="",
        placed=placed,
        replicas=None,
        documents=((workload.record, _record(workload, spreading, former, previous, time)),),
        reason=_reason(workload, spreading, referred),
        time=time,
        wakeup=min(
            (moment for moment in (progress.wakeup, *(found.wakeup for found in known)) if moment is not None), default=None
        ),
        findings=tuple(_notes(workload, spreading, placed)),
        before=tuple(Placed(name) for name in sorted(memory.steps)),
        manifests=workload.manifests,
        former=former,
    )


def keep(document: Document, record: Key, memory: Memory, previous: Body, why: str, at: datetime) -> Outcome:
    """What a workload had, for one whose document is broken."""
    placed = tuple(Placed(name, kept=True) for name in sorted(memory.steps))
    message = f"{document.key} keeps its previous placement: {why}"
    own = document.key == record  # a ManifestWorkReplicaSet is never rendered itself
    return Outcome(
        key=document.key,
        api=API,
        state="stale",
        policy="",
        group="",
        placed=placed,
        replicas=None,
        documents=((record, previous),),
        reason=why,
        time=max((step.since for step in memory.steps.values()), default=at),
        findings=(Finding("warning", "stale-decision", message, locate(document), document.key.resource),),
        before=placed,
        manifests=() if own else None,
        former=memory.objects if own else (),
    )


def _reason(workload: Workload, spreading: Spreading, referred: str) -> str:
    progress = spreading.progress
    waiting = _waiting(workload, spreading)
    if not workload.revision or not waiting:
        return referred
    current = sum(step.revision == workload.revision for step in progress.steps.values())
    return f"{referred}: {current} of {current + len(waiting)} clusters have the present revision"


def _waiting(workload: Workload, spreading: Spreading) -> list[str]:
    """Clusters that are chosen and not due yet."""
    steps = spreading.progress.steps
    chosen = (name for groups in spreading.groups.values() for group in groups for name in group.clusters)
    return [name for name in chosen if steps.get(name, NOTHING).revision != workload.revision]


def _notes(workload: Workload, spreading: Spreading, placed: tuple[Placed, ...]) -> list[Finding]:
    document, progress = workload.document, spreading.progress
    findings = []
    for placement, _ in workload.references:
        if placement not in spreading.groups:
            message = f"{document.key} refers to {placement}, which is not there"
            findings.append(Finding("warning", "ocm-placement-missing", message, locate(document), document.key.resource))
    if not placed:
        why = "its Placement has chosen none" if spreading.groups else "no Placement says where it goes"
        message = f"{document.key} has no cluster: {why}"
        findings.append(Finding("warning", "unschedulable", message, locate(document), document.key.resource))
    if progress.failed:
        told = ", ".join(sorted(progress.failed)[:5])
        message = f"{document.key} is not well in {len(progress.failed)} of its clusters: {told}"
        findings.append(Finding("warning", "ocm-rollout-failed", message, locate(document), document.key.resource))
    return findings


def _record(workload: Workload, spreading: Spreading, former: tuple[Key, ...], previous: Body | None, time: datetime) -> Body:
    """The ManifestWorkReplicaSet with its status; for a template one that only stands for it."""
    key, progress = workload.record, spreading.progress
    waiting = _waiting(workload, spreading)
    current = len(progress.steps) - sum(step.revision != workload.revision for step in progress.steps.values())
    rollout = remember(progress.steps, (*workload.objects, *former))
    counts = {
        "total": current + len(waiting),
        "applied": current,
        "available": len(progress.done),
        "degraded": len(progress.failed),
    }
    before: Body = member(previous or {}, "status", "summary") or {}
    same = text_map(member(previous or {}, "metadata", "annotations")).get(ROLLOUT) == rollout
    if same and before.get("degraded") == counts["degraded"] and counts["available"] < counts["total"]:
        counts["available"] = before.get("available", 0)  # that one more has reported is no reason for a commit: all of them are
    return {
        "apiVersion": f"{key.group}/v1alpha1",
        "kind": key.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "annotations": {ROLLOUT: rollout},
        },
        "status": {
            "conditions": [
                _condition("PlacementVerified", *_verify(spreading), previous, time),
                _condition("PlacementRolledOut", *_complete(waiting), previous, time),
            ],
            "summary": counts,
            "placementSummary": [
                {"name": placement.name, "availableDecisionGroups": _summarise(placement, workload, spreading)}
                for placement in spreading.groups
            ],
        },
    }


def _verify(spreading: Spreading) -> tuple[str, str]:
    if not spreading.groups:
        return "False", "PlacementDecisionNotFound"
    empty = not any(group.clusters for groups in spreading.groups.values() for group in groups)
    return ("False", "PlacementDecisionEmpty") if empty else ("True", "AsExpected")


def _complete(waiting: list[str]) -> tuple[str, str]:
    return ("False", "Progressing") if waiting else ("True", "Complete")


def _summarise(placement: Key, workload: Workload, spreading: Spreading) -> str:
    steps, groups = spreading.progress.steps, spreading.groups[placement]
    current = [
        sum(steps.get(name, NOTHING).revision == workload.revision for name in group.clusters) for group in groups if group.clusters
    ]
    begun = sum(count > 0 for count in current)
    return f"{begun} ({sum(current)} / {sum(len(group.clusters) for group in groups)} clusters applied)"


def _condition(kind: str, status: str, reason: str, previous: Body | None, time: datetime) -> Body:
    conditions = member(previous or {}, "status", "conditions") or ()
    before: Body = next((condition for condition in conditions if condition.get("type") == kind), {})
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    stamp = since or format_time(time.replace(microsecond=0))
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": stamp}
