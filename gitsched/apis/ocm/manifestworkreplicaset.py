"""ManifestWorkReplicaSets, and templates annotated with a Placement: resolve decisions, roll out, and write outcome and record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.ocm import names
from gitsched.apis.ocm.rollout import ROLLOUT_ANNOTATION, PreviousRollout, RolloutReports, format_rollout
from gitsched.kinds.table import is_namespaced
from gitsched.model.document import (
    Body,
    Document,
    Key,
    as_object,
    get_field,
    list_objects,
    parse_api_group,
    read_annotations,
    read_labels,
)
from gitsched.model.finding import FieldOrigin, Finding, format_part, locate_document
from gitsched.model.known_values import find_near
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.time import format_time
from gitsched.schedule.rollout import (
    NO_REVISION,
    ClusterRevision,
    RolloutGroup,
    RolloutProgress,
    RolloutReport,
    RolloutStrategy,
    advance_rollout,
    parse_rollout_strategy,
)

MAX_ROLLOUT_STEPS = 64
"""Steps of a rollout at missed deadlines that one run takes; the next run takes those after them."""


class OcmWorkload(NamedTuple):
    """A ManifestWorkReplicaSet, or a template annotated with a Placement.

    `references` are its Placements with their rollout strategies. `manifests` are its objects by key, None for a template. `revision` is
    a hash of the manifests, "" for a template, which changes in all clusters at once.
    """

    document: Document
    record: Key
    references: tuple[tuple[Key, Body], ...]
    manifests: tuple[tuple[Key, Body], ...] | None
    revision: str

    @property
    def objects(self) -> tuple[Key, ...]:
        return (self.document.key,) if self.manifests is None else tuple(key for key, _ in self.manifests)


def read_replica_set(document: Document) -> OcmWorkload:
    """Read a ManifestWorkReplicaSet; of manifests with the same key, the last is used."""
    spec = document.body["spec"]
    manifests = {read_manifest_key(body): body for body in list_manifests(document.body)}
    references = tuple(
        (names.placement_key(document.key.namespace, reference["name"]), reference.get("rolloutStrategy") or {})
        for reference in spec.get("placementRefs") or ()
    )
    return OcmWorkload(document, document.key, references, tuple(manifests.items()), _hash_manifests(list(manifests.values())))


def list_manifests(replica_set: Body) -> list[Body]:
    """Return the objects in a ManifestWorkReplicaSet, which may be invalid."""
    manifests = get_field(replica_set, "spec", "manifestWorkTemplate", "workload", "manifests")
    return [body for body in manifests if isinstance(body, dict)] if isinstance(manifests, list) else []


def read_template(template: Document) -> OcmWorkload | None:
    """Read a template annotated with a Placement; None for other templates."""
    placement = read_placement_annotation(template)
    if placement is None:
        return None
    return OcmWorkload(template, template_record(template.key, placement.namespace), ((placement, {}),), None, "")


def template_record(key: Key, namespace: str) -> Key:
    """Return the key of the record of a template in the namespace of its Placement."""
    return Key(names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET, namespace, record_name(key))


def read_placement_annotation(template: Document) -> Key | None:
    """Return the Placement in the annotation of a template: `name` in its own namespace, or `namespace/name`."""
    text = read_annotations(template.body).get(names.PLACEMENT_LABEL)
    if not text:
        return None
    namespace, _, name = text.rpartition("/")
    return names.placement_key(namespace or template.key.namespace or "default", name)


def record_name(key: Key) -> str:
    """Return the record name of a template, such as `web.deployment.apps`."""
    return f"{key.name}.{key.kind.lower()}{f'.{key.group}' if key.group else ''}"


def read_manifest_key(body: Body) -> Key:
    """Return the key of a manifest in a ManifestWorkReplicaSet."""
    group, kind, metadata = parse_api_group(str(body["apiVersion"])), str(body["kind"]), body["metadata"]
    namespaced = is_namespaced(group, kind)
    namespace = str(metadata.get("namespace") or ("default" if namespaced else ""))
    return Key(group, kind, "" if namespaced is False else namespace, str(metadata.get("name") or ""))


def _hash_manifests(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class PlacementState(NamedTuple):
    """The current decisions of a Placement, its clustersPerDecisionGroup, when the decisions can change without a commit, and why
    they have no cluster."""

    decisions: Sequence[tuple[Key, Body]]
    clusters_per_group: object = None
    wakeup: datetime | None = None
    reason: str = ""


class WorkloadRollout(NamedTuple):
    """The decision groups by Placement, the progress of the rollout, and when it changed last (the commit time if it did not)."""

    groups: Mapping[Key, tuple[RolloutGroup, ...]]
    progress: RolloutProgress
    time: datetime


def roll_out_workload(
    workload: OcmWorkload,
    placements: Mapping[Key, PlacementState],
    previous_rollout: PreviousRollout,
    reports: RolloutReports,
    clusters: Mapping[str, object],
    at: datetime,
    now: datetime,
) -> WorkloadRollout:
    """Advance the rollout of a workload from the commit time `at` through each deadline until `now`.

    The time when commit statuses were read counts as a deadline, too. Only `clusters` that exist are used.
    """
    groups: dict[Key, tuple[RolloutGroup, ...]] = {}
    assigned: set[str] = set()
    strategies: list[tuple[RolloutStrategy, tuple[RolloutGroup, ...]]] = []
    for placement, rollout_strategy in workload.references:
        state = placements.get(placement)
        if state is None or placement in groups:
            continue
        groups[placement] = tuple(_read_rollout_groups(state.decisions, clusters, assigned))
        assigned.update(name for group in groups[placement] for name in group.clusters)
        strategies.append((parse_rollout_strategy(rollout_strategy, state.clusters_per_group), groups[placement]))
    revisions: Mapping[str, ClusterRevision] = previous_rollout.revisions
    time_step = time = at
    steps = 0  # the deadlines of recorded steps are processed once more and do not count, so that each run gets further
    while True:
        progress = _advance_strategies(strategies, workload.revision, revisions, reports.known_at(time_step), time_step)
        if progress.revisions != revisions and time_step > at:
            time, steps = time_step, steps + 1
        revisions = progress.revisions
        deadlines = [event for event in (progress.wakeup, reports.observed_at) if event is not None and time_step < event <= now]
        if not deadlines or steps >= MAX_ROLLOUT_STEPS:
            break
        time_step = min(deadlines)
    return WorkloadRollout(groups, progress, time)


def _advance_strategies(
    strategies: Sequence[tuple[RolloutStrategy, tuple[RolloutGroup, ...]]],
    revision: str,
    revisions: Mapping[str, ClusterRevision],
    reports: Mapping[str, RolloutReport],
    now: datetime,
) -> RolloutProgress:
    parts = [advance_rollout(strategy, groups, revision, revisions, reports, now) for strategy, groups in strategies]
    return RolloutProgress(
        {name: step for part in parts for name, step in part.revisions.items()},
        frozenset().union(*(part.succeeded for part in parts)),
        frozenset().union(*(part.failed for part in parts)),
        min((part.wakeup for part in parts if part.wakeup is not None), default=None),
    )


def _read_rollout_groups(
    decisions: Sequence[tuple[Key, Body]], clusters: Mapping[str, object], assigned: set[str]
) -> list[RolloutGroup]:
    """Return the decision groups of a Placement, without clusters that do not exist or belong to an earlier Placement."""
    clusters_by_group: dict[tuple[int, str], list[str]] = {}
    for _, body in decisions:
        labels = read_labels(body)
        index = labels.get(names.GROUP_INDEX_LABEL, "0")
        group_index = int(index) if index.isdecimal() and len(index) < 10 else 0
        group = clusters_by_group.setdefault((group_index, labels.get(names.GROUP_NAME_LABEL, "")), [])
        entries = list_objects(get_field(body, "status", "decisions"))
        group += [name for entry in entries if (name := str(entry.get("clusterName"))) in clusters and name not in assigned]
    return [RolloutGroup(name, group_index, tuple(group)) for (group_index, name), group in clusters_by_group.items()]


API_NAME = "ocm"


def make_outcome(
    workload: OcmWorkload,
    rollout: WorkloadRollout,
    previous_rollout: PreviousRollout,
    placements: Mapping[Key, PlacementState],
    previous: Body | None,
) -> Outcome:
    """Return the outcome of a workload."""
    document, progress = workload.document, rollout.progress
    placed = tuple(
        TargetCluster(name, keeps_manifest=step.revision != workload.revision) for name, step in sorted(progress.revisions.items())
    )
    time = rollout.time
    policy = ", ".join(str(placement) for placement, _ in workload.references)
    keeps_manifests = any(target.keeps_manifest for target in placed)
    previous_objects = tuple(key for key in previous_rollout.objects if key not in workload.objects) if keeps_manifests else ()
    states = [placements[placement] for placement in rollout.groups]
    return Outcome(
        key=document.key,
        api=API_NAME,
        state="placed" if placed else "pending",
        policy=policy,
        group="",
        targets=placed,
        replicas=None,
        records=((workload.record, _write_record(workload, rollout, previous_objects, previous, time)),),
        reason=_describe_reason(workload, rollout, policy) if placed else _describe_no_clusters(workload, rollout, placements),
        time=time,
        wakeup=min(
            (wakeup for wakeup in (progress.wakeup, *(state.wakeup for state in states)) if wakeup is not None), default=None
        ),
        findings=tuple(_make_findings(workload, rollout, placed, placements)),
        previous_targets=tuple(TargetCluster(name) for name in sorted(previous_rollout.revisions)),
        manifests=workload.manifests,
        previous_objects=previous_objects,
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
    workload: OcmWorkload, rollout: WorkloadRollout, placed: tuple[TargetCluster, ...], placements: Collection[Key]
) -> list[Finding]:
    document, progress = workload.document, rollout.progress
    findings = []
    for index, (placement, _) in enumerate(workload.references):
        if placement not in rollout.groups:
            near = find_near(placement.name, [key.name for key in placements if key.namespace == placement.namespace])
            hint = f"; did you mean {near}?" if near else ""
            message = f"{document.key} references {placement}, which does not exist{hint}"
            field = FieldOrigin(document.origin, ("spec", "placementRefs", index, "name")) if document.origin is not None else None
            location, resource = locate_document(document), document.key.resource
            findings.append(Finding("warning", "ocm-placement-missing", message, location, resource, field))
    if not placed:
        reason = "its Placement chooses no cluster" if rollout.groups else "none of its Placements exists"
        message = f"{document.key} is not placed: {reason}"
        findings.append(Finding("warning", "unschedulable", message, locate_document(document), document.key.resource))
    if progress.failed:
        shown = ", ".join(sorted(progress.failed)[:5])
        message = f"{document.key} failed in {len(progress.failed)} of its clusters: {shown}"
        findings.append(Finding("warning", "ocm-rollout-failed", message, locate_document(document), document.key.resource))
    return findings


def _write_record(
    workload: OcmWorkload, rollout: WorkloadRollout, previous_objects: tuple[Key, ...], previous: Body | None, time: datetime
) -> Body:
    """Return the record: a ManifestWorkReplicaSet with its status, also for a template."""
    key, progress = workload.record, rollout.progress
    pending = _list_pending_clusters(workload, rollout)
    current = len(progress.revisions) - sum(step.revision != workload.revision for step in progress.revisions.values())
    annotation = format_rollout(progress.revisions, (*workload.objects, *previous_objects))
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
