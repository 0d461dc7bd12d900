"""Read the workload and its clusters from a rollout of the previous output that no workload has any more."""

from __future__ import annotations

from gitsched.apis.ocm import names
from gitsched.apis.ocm.rollout import read_previous_rollout
from gitsched.apis.ocm.workloads import record_name
from gitsched.apis.policy_api import RemovedWorkload
from gitsched.model.document import Body, Key, as_object


def read_removed_workload(record: Body) -> RemovedWorkload | None:
    """Return the workload of a previous rollout that has no document or Placement any more; None if it has no cluster.

    The record of a template is about the template itself, with one object; that of a ManifestWorkReplicaSet about the set.
    """
    metadata = as_object(record.get("metadata"))
    rollout = read_previous_rollout(record)
    if record.get("kind") != names.MANIFEST_WORK_REPLICA_SET or not rollout.revisions:
        return None
    key = Key(names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET, str(metadata.get("namespace") or ""), str(metadata.get("name")))
    if len(rollout.objects) == 1 and record_name(rollout.objects[0]) == key.name:
        key = rollout.objects[0]
    return RemovedWorkload(key, dict.fromkeys(sorted(rollout.revisions)), objects=rollout.objects)
