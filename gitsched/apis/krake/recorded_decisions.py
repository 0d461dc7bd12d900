"""Recorded decisions of Krake: the cloud of a Cluster, the project of a MagnumCluster, the Cluster that an Application requests."""

from __future__ import annotations

from gitsched.apis.krake.names import APPLICATION, CLUSTER, MAGNUM_CLUSTER, ResourceRef, read_ref
from gitsched.model.document import Body, Key, get_field
from gitsched.model.scheduling import RecordedDecision, RecordTarget


def describe_record(key: Key, record: Body) -> RecordedDecision | None:
    """Return the decision of a record; None if nothing is chosen. The cluster of an Application is an outcome, not a recorded decision."""
    kind = (key.group, key.kind)
    if kind == CLUSTER:
        return _describe_binding(key, "cloud", read_ref(get_field(record, "status", "scheduled_to")))
    if kind == MAGNUM_CLUSTER:
        return _describe_binding(key, "project", read_ref(get_field(record, "status", "project")))
    requested = get_field(record, "status", "auto_cluster_create_started")
    if kind != APPLICATION or not isinstance(requested, str) or get_field(record, "status", "scheduled_to"):
        return None
    return RecordedDecision(key, "new cluster", (RecordTarget(requested, key=Key(*CLUSTER, key.namespace, requested)),))


def _describe_binding(key: Key, target_kind: str, target: ResourceRef | None) -> RecordedDecision | None:
    """Name a target of the same namespace by its name, and others by namespace or kind, since they may have the same name."""
    if target is None:
        return None
    prefix = "" if target.namespace == key.namespace else f"{target.namespace or target.kind}/"
    return RecordedDecision(key, target_kind, (RecordTarget(prefix + target.name, key=Key(*target)),))
