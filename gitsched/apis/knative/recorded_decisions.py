"""Recorded decisions of Knative: the pods of a source's vreplicas, the replicas of a StatefulSet, the marks of pods."""

from __future__ import annotations

from gitsched.apis.knative.names import RENDERED_TO, SOURCE_REPLICAS, UNSCHEDULABLE, is_true
from gitsched.model.document import Body, Key, get_field, read_annotations
from gitsched.model.scheduling import RecordedDecision, RecordTarget


def describe_record(key: Key, record: Body) -> RecordedDecision | None:
    """Return the decision of a record; None for other records. A StatefulSet that is rendered to a cluster is an outcome.

    The group of a pod is the cluster that runs it, if the settings name one.
    """
    annotations = read_annotations(record)
    if (key.group, key.kind) == ("apps", "StatefulSet"):
        replicas = get_field(record, "spec", "replicas")
        if SOURCE_REPLICAS not in annotations or annotations.get(RENDERED_TO) or type(replicas) is not int:
            return None
        return RecordedDecision(key, "scale", (RecordTarget("replicas", replicas),))
    if (key.group, key.kind) == ("", "Pod"):
        if UNSCHEDULABLE not in annotations:
            return None
        mark = "unschedulable" if is_true(annotations[UNSCHEDULABLE]) else "schedulable"
        return RecordedDecision(key, "mark", (RecordTarget(mark),))
    placements = get_field(record, "status", "placements")
    if not isinstance(placements, list):
        return None
    cluster = annotations.get(RENDERED_TO, "")
    entries = ((entry.get("podName"), entry.get("vreplicas")) for entry in placements if isinstance(entry, dict))
    counts = ((pod, count) for pod, count in entries if isinstance(pod, str) and type(count) is int and count > 0)
    return RecordedDecision(key, "pod", tuple(RecordTarget(pod, count, cluster) for pod, count in counts))
