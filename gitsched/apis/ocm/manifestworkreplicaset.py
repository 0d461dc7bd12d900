"""ManifestWorkReplicaSets, and templates annotated with a Placement: resolve decisions, roll out, and write outcome and record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.ocm import names
from gitsched.apis.ocm.rollout import (
    NO_REVISION,
    ROLLOUT_ANNOTATION,
    ClusterRevision,
    PreviousRollout,
    RolloutGroup,
    RolloutProgress,
    RolloutReport,
    RolloutReports,
    RolloutStrategy,
    advance_rollout,
    format_rollout,
    parse_rollout_strategy,
)
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, is_namespaced, parse_api_group
from gitsched.model.finding import Finding, locate_document
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.time import format_time

MAX_ROLLOUT_DEADLINES = 64
"""Deadlines of a rollout that one run makes up for at most."""


class OcmWorkload(NamedTuple):
    """`references` are Placements with how their clusters follow each other. `manifests` are the objects, None for a template, which is
    its own manifest. `revision` names what is in them; a template, which changes everywhere at once, has none."""

    document: Document
    record: Key
    references: tuple[tuple[Key, Body], ...]
    manifests: tuple[tuple[Key, Body], ...] | None
    revision: str

    @property
    def objects(self) -> tuple[Key, ...]:
        return (self.document.key,) if self.manifests is None else tuple(key for key, _ in self.manifests)


def read_replica_set(document: Document) -> OcmWorkload:
    """A ManifestWorkReplicaSet; an object that is there twice is rendered as it was said last."""
    spec = document.body["spec"]
    written = get_field(spec, "manifestWorkTemplate", "workload", "manifests") or ()
    manifests = {read_manifest_key(body): body for body in written}
    references = tuple(
        (names.placement_key(document.key.namespace, reference["name"]), reference.get("rolloutStrategy") or {})
        for reference in spec.get("placementRefs") or ()
    )
    return OcmWorkload(document, document.key, references, tuple(manifests.items()), _hash_manifests(list(manifests.values())))


def read_template(template: Document) -> OcmWorkload | None:
    """A template whose annotation names a Placement, as `name` in its own namespace or as `namespace/name`; None for any other."""
    wanted = read_placement_annotation(template)
    if wanted is None:
        return None
    key = template.key
    record = Key(names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET, wanted.namespace, record_name(key))
    return OcmWorkload(template, record, ((wanted, {}),), None, "")


def read_placement_annotation(template: Document) -> Key | None:
    """The Placement that a template's annotation names."""
    text = as_string_map(get_field(template.body, "metadata", "annotations")).get(names.PLACEMENT_LABEL)
    if not text:
        return None
    namespace, _, name = text.rpartition("/")
    return names.placement_key(namespace or template.key.namespace or "default", name)


def record_name(key: Key) -> str:
    """The name of the record of a template: its own, its kind and group behind, as kubectl writes them together."""
    return f"{key.name}.{key.kind.lower()}{f'.{key.group}' if key.group else ''}"


def read_manifest_key(body: Body) -> Key:
    """The identity of an object in a ManifestWorkReplicaSet."""
    group, kind, metadata = parse_api_group(str(body["apiVersion"])), str(body["kind"]), body["metadata"]
    namespaced = is_namespaced(group, kind)
    namespace = str(metadata.get("namespace") or ("default" if namespaced else ""))
    return Key(group, kind, "" if namespaced is False else namespace, str(metadata.get("name") or ""))


def _hash_manifests(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class PlacementState(NamedTuple):
    """What stands of a Placement: its decisions, its clustersPerDecisionGroup, and when time alone may change them."""

    decisions: Sequence[tuple[Key, Body]]
    clusters_per_group: object = None
    wakeup: datetime | None = None


class WorkloadRollout(NamedTuple):
    """`groups` are by the Placement, `progress` where the rollout is, `time` the moment that changed it last, else the source's."""

    groups: Mapping[Key, tuple[RolloutGroup, ...]]
    progress: RolloutProgress
    time: datetime


def roll_out_workload(
    workload: OcmWorkload,
    placements: Mapping[Key, PlacementState],
    memory: PreviousRollout,
    reports: RolloutReports,
    known: Mapping[str, object],
    at: datetime,
    now: datetime,
) -> WorkloadRollout:
    """Where a workload is to be now. What was observed is an event of its own, as a deadline is.

    `known` are the clusters that there are: nothing is rendered for others."""
    groups: dict[Key, tuple[RolloutGroup, ...]] = {}
    taken: set[str] = set()
    strategies: list[tuple[RolloutStrategy, tuple[RolloutGroup, ...]]] = []
    for placement, written in workload.references:
        found = placements.get(placement)
        if found is None or placement in groups:
            continue
        groups[placement] = tuple(_read_rollout_groups(found.decisions, known, taken))
        taken.update(name for group in groups[placement] for name in group.clusters)
        strategies.append((parse_rollout_strategy(written, found.clusters_per_group), groups[placement]))
    steps: Mapping[str, ClusterRevision] = memory.revisions
    moment = time = at
    for _ in range(MAX_ROLLOUT_DEADLINES):
        progress = _advance_strategies(strategies, workload.revision, steps, reports.known_at(moment), moment)
        if progress.revisions != steps and moment > at:
            time = moment
        steps = progress.revisions
        coming = [event for event in (progress.wakeup, reports.observed_at) if event is not None and moment < event <= now]
        if not coming:
            break
        moment = min(coming)
    return WorkloadRollout(groups, progress, time)


def _advance_strategies(
    strategies: Sequence[tuple[RolloutStrategy, tuple[RolloutGroup, ...]]],
    revision: str,
    steps: Mapping[str, ClusterRevision],
    reports: Mapping[str, RolloutReport],
    moment: datetime,
) -> RolloutProgress:
    parts = [advance_rollout(strategy, groups, revision, steps, reports, moment) for strategy, groups in strategies]
    return RolloutProgress(
        {name: step for part in parts for name, step in part.revisions.items()},
        frozenset().union(*(part.succeeded for part in parts)),
        frozenset().union(*(part.failed for part in parts)),
        min((part.wakeup for part in parts if part.wakeup is not None), default=None),
    )


def _read_rollout_groups(decisions: Sequence[tuple[Key, Body]], known: Mapping[str, object], taken: set[str]) -> list[RolloutGroup]:
    """The decision groups of a Placement, slices of one group together, without clusters that are gone or another one has taken."""
    clusters: dict[tuple[int, str], list[str]] = {}
    for _, body in decisions:
        labels = as_string_map(get_field(body, "metadata", "labels"))
        index = labels.get(names.GROUP_INDEX_LABEL, "0")
        place = int(index) if index.isdecimal() else 0
        group = clusters.setdefault((place, labels.get(names.GROUP_NAME_LABEL, "")), [])
        entries = get_field(body, "status", "decisions") or ()
        group += [name for entry in entries if (name := entry.get("clusterName")) in known and name not in taken]
    return [RolloutGroup(name, place, tuple(group)) for (place, name), group in clusters.items()]


API_NAME = "ocm"


def make_outcome(
    workload: OcmWorkload,
    spreading: WorkloadRollout,
    memory: PreviousRollout,
    placements: Mapping[Key, PlacementState],
    previous: Body | None,
) -> Outcome:
    """The outcome of a workload."""
    document, progress = workload.document, spreading.progress
    placed = tuple(
        TargetCluster(name, keeps_manifest=step.revision != workload.revision) for name, step in sorted(progress.revisions.items())
    )
    time = spreading.time
    referred = ", ".join(str(placement) for placement, _ in workload.references)
    former = (
        tuple(key for key in memory.objects if key not in workload.objects) if any(place.keeps_manifest for place in placed) else ()
    )
    known = [placements[placement] for placement in spreading.groups]
    return Outcome(
        key=document.key,
        api=API_NAME,
        state="placed" if placed else "pending",
        policy=referred,
        group="",
        targets=placed,
        replicas=None,
        records=((workload.record, _write_record(workload, spreading, former, previous, time)),),
        reason=_describe_reason(workload, spreading, referred),
        time=time,
        wakeup=min(
            (moment for moment in (progress.wakeup, *(found.wakeup for found in known)) if moment is not None), default=None
        ),
        findings=tuple(_make_findings(workload, spreading, placed)),
        previous_targets=tuple(TargetCluster(name) for name in sorted(memory.revisions)),
        manifests=workload.manifests,
        previous_objects=former,
    )


def make_stale_outcome(document: Document, record: Key, memory: PreviousRollout, previous: Body, why: str, at: datetime) -> Outcome:
    """What a workload had, for one whose document is broken."""
    placed = tuple(TargetCluster(name, keeps_manifest=True) for name in sorted(memory.revisions))
    message = f"{document.key} keeps its previous placement: {why}"
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
        reason=why,
        time=max((step.applied_at for step in memory.revisions.values()), default=at),
        findings=(Finding("warning", "stale-decision", message, locate_document(document), document.key.resource),),
        previous_targets=placed,
        manifests=() if own else None,
        previous_objects=memory.objects if own else (),
    )


def _describe_reason(workload: OcmWorkload, spreading: WorkloadRollout, referred: str) -> str:
    progress = spreading.progress
    waiting = _list_pending_clusters(workload, spreading)
    if not workload.revision or not waiting:
        return referred
    current = sum(step.revision == workload.revision for step in progress.revisions.values())
    return f"{referred}: {current} of {current + len(waiting)} clusters have the present revision"


def _list_pending_clusters(workload: OcmWorkload, spreading: WorkloadRollout) -> list[str]:
    """Clusters that are chosen and not due yet."""
    steps = spreading.progress.revisions
    chosen = (name for groups in spreading.groups.values() for group in groups for name in group.clusters)
    return [name for name in chosen if steps.get(name, NO_REVISION).revision != workload.revision]


def _make_findings(workload: OcmWorkload, spreading: WorkloadRollout, placed: tuple[TargetCluster, ...]) -> list[Finding]:
    document, progress = workload.document, spreading.progress
    findings = []
    for placement, _ in workload.references:
        if placement not in spreading.groups:
            message = f"{document.key} refers to {placement}, which is not there"
            findings.append(Finding("warning", "ocm-placement-missing", message, locate_document(document), document.key.resource))
    if not placed:
        why = "its Placement has chosen none" if spreading.groups else "no Placement says where it goes"
        message = f"{document.key} has no cluster: {why}"
        findings.append(Finding("warning", "unschedulable", message, locate_document(document), document.key.resource))
    if progress.failed:
        told = ", ".join(sorted(progress.failed)[:5])
        message = f"{document.key} is not well in {len(progress.failed)} of its clusters: {told}"
        findings.append(Finding("warning", "ocm-rollout-failed", message, locate_document(document), document.key.resource))
    return findings


def _write_record(
    workload: OcmWorkload, spreading: WorkloadRollout, former: tuple[Key, ...], previous: Body | None, time: datetime
) -> Body:
    """The ManifestWorkReplicaSet with its status; for a template one that only stands for it."""
    key, progress = workload.record, spreading.progress
    waiting = _list_pending_clusters(workload, spreading)
    current = len(progress.revisions) - sum(step.revision != workload.revision for step in progress.revisions.values())
    rollout = format_rollout(progress.revisions, (*workload.objects, *former))
    counts = {
        "total": current + len(waiting),
        "applied": current,
        "available": len(progress.succeeded),
        "degraded": len(progress.failed),
    }
    before: Body = get_field(previous or {}, "status", "summary") or {}
    same = as_string_map(get_field(previous or {}, "metadata", "annotations")).get(ROLLOUT_ANNOTATION) == rollout
    if same and before.get("degraded") == counts["degraded"] and counts["available"] < counts["total"]:
        counts["available"] = before.get("available", 0)  # that one more has reported is no reason for a commit: all of them are
    return {
        "apiVersion": f"{key.group}/v1alpha1",
        "kind": key.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "annotations": {ROLLOUT_ANNOTATION: rollout},
        },
        "status": {
            "conditions": [
                _write_condition("PlacementVerified", *_placement_verified(spreading), previous, time),
                _write_condition("PlacementRolledOut", *_placement_rolled_out(waiting), previous, time),
            ],
            "summary": counts,
            "placementSummary": [
                {"name": placement.name, "availableDecisionGroups": _summarize_placement(placement, workload, spreading)}
                for placement in spreading.groups
            ],
        },
    }


def _placement_verified(spreading: WorkloadRollout) -> tuple[str, str]:
    if not spreading.groups:
        return "False", "PlacementDecisionNotFound"
    empty = not any(group.clusters for groups in spreading.groups.values() for group in groups)
    return ("False", "PlacementDecisionEmpty") if empty else ("True", "AsExpected")


def _placement_rolled_out(waiting: list[str]) -> tuple[str, str]:
    return ("False", "Progressing") if waiting else ("True", "Complete")


def _summarize_placement(placement: Key, workload: OcmWorkload, spreading: WorkloadRollout) -> str:
    steps, groups = spreading.progress.revisions, spreading.groups[placement]
    current = [
        sum(steps.get(name, NO_REVISION).revision == workload.revision for name in group.clusters)
        for group in groups
        if group.clusters
    ]
    begun = sum(count > 0 for count in current)
    return f"{begun} ({sum(current)} / {sum(len(group.clusters) for group in groups)} clusters applied)"


def _write_condition(kind: str, status: str, reason: str, previous: Body | None, time: datetime) -> Body:
    conditions = get_field(previous or {}, "status", "conditions") or ()
    before: Body = next((condition for condition in conditions if condition.get("type") == kind), {})
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    stamp = since or format_time(time.replace(microsecond=0))
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": stamp}
