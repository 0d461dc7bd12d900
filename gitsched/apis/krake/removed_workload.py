"""Read the workload of a previous record that has not been written again."""

from __future__ import annotations

from gitsched.apis.krake.names import APPLICATION, cluster_directory
from gitsched.apis.krake.status import read_recorded_objects
from gitsched.apis.policy_api import RemovedWorkload
from gitsched.model.document import Body, Key, as_object, get_field


def read_removed_workload(record: Body) -> RemovedWorkload | None:
    """Return the Application of a record and its cluster; None for a record that places nothing."""
    target, metadata = get_field(record, "status", "scheduled_to"), as_object(record.get("metadata"))
    if (record.get("api"), record.get("kind")) != APPLICATION or not isinstance(target, dict):
        return None
    key = Key(*APPLICATION, str(metadata.get("namespace")), str(metadata.get("name")))
    cluster = cluster_directory(str(target.get("namespace")), str(target.get("name")))
    return RemovedWorkload(key, {cluster: None}, objects=read_recorded_objects(record))
