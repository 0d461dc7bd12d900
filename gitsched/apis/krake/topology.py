"""Topology of Krake's Clusters, and how a simulation removes one or makes it unreachable."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.krake.cluster_states import ONLINE, read_cluster_state
from gitsched.apis.krake.names import CLUSTER, cluster_directory
from gitsched.apis.topology import ClusterLocation, Topology, copy_as
from gitsched.model.cluster_facts import FALSE, TRUE, Readiness
from gitsched.model.document import Body, Document, get_field, read_labels


def _read_location(document: Document) -> ClusterLocation:
    """Read the location from common labels, because Krake's API has no field for it."""
    labels = read_labels(document.body)
    region = labels.get("topology.kubernetes.io/region") or labels.get("region") or labels.get("location") or ""
    zone = labels.get("topology.kubernetes.io/zone") or labels.get("zone")
    name = cluster_directory(document.key.namespace, document.key.name)
    return ClusterLocation(name, region, labels.get("provider") or "", (zone,) if zone else ())


def _mark_lost(_body: Body, _time: datetime) -> Body | None:
    return None


def _mark_unreachable(body: Body, _time: datetime) -> Body:
    return {**body, "status": {**(body.get("status") or {}), "state": "OFFLINE"}}


def _read_readiness(body: Body) -> Readiness | None:
    """Return whether the state is ONLINE; None for a document without a state."""
    if not get_field(body, "status", "state") and not get_field(body, "status", "nodes"):
        return None
    found = read_cluster_state(body)
    return Readiness(TRUE if found.state == ONLINE else FALSE, found.state)


TOPOLOGY = Topology(*CLUSTER, _read_location, _mark_lost, _mark_unreachable, copy_as, _read_readiness)
