"""Region, provider and zones of Karmada Clusters, and how a simulation drains, loses or copies a Cluster.

A lost cluster is one that is being deleted, which is how a hub is told that it will not come back. Of all that Karmada knows it is the only
thing that every workload answers to: one whose replicas are divided is left as it is, short of replicas, when a document just vanishes or a
cluster is not ready, and a taint may be tolerated.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from gitsched.apis.karmada.names import CLUSTER, CLUSTER_GROUP
from gitsched.apis.topology import ClusterLocation, Topology, add_taint, copy_as, mark_deleted, set_condition
from gitsched.model.document import Body, Document, get_field
from gitsched.model.taints import NO_EXECUTE
from gitsched.model.time import format_time

DRAIN_TAINT: Final = "gitsched.io/drain"
"""The taint of a cluster that is emptied in a simulation."""


def _read_topology(document: Document) -> ClusterLocation:
    spec = document.body.get("spec") or {}
    zones = spec.get("zones") or ([spec["zone"]] if spec.get("zone") else ())
    return ClusterLocation(
        document.key.name, str(spec.get("region") or ""), str(spec.get("provider") or ""), tuple(map(str, zones))
    )


def _mark_lost(body: Body, moment: datetime) -> Body:
    return mark_deleted(body, format_time(moment))


def _mark_unreachable(body: Body, moment: datetime) -> Body:
    return set_condition(body, "Ready", "Unknown", format_time(moment))


def _add_drain_taint(body: Body, moment: datetime) -> Body:
    return add_taint(body, DRAIN_TAINT, NO_EXECUTE, format_time(moment))


def _copy_cluster(body: Body, name: str) -> Body:
    """What the original has allocated is free on the copy; which APIs it serves, and how its nodes are cut, is the same."""
    summary = get_field(body, "status", "resourceSummary")
    renamed = copy_as(body, name)
    if not isinstance(summary, dict):
        return renamed
    free = {key: value for key, value in summary.items() if key not in ("allocated", "allocating", "allocatedModelings")}
    return {**renamed, "status": {**body["status"], "resourceSummary": free}}


TOPOLOGY = Topology(CLUSTER_GROUP, CLUSTER, _read_topology, _mark_lost, _mark_unreachable, _add_drain_taint, _copy_cluster)
