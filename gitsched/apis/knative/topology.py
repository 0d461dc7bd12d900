"""Topology of Nodes, and how a simulation marks a Node unreachable."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.knative.names import GROUP, KAFKA, UNREACHABLE, ZONE_LABEL
from gitsched.apis.topology import NODE, ClusterLocation, Topology, add_taint, copy_as
from gitsched.model.document import Body, Document, read_labels
from gitsched.model.taints import NO_EXECUTE
from gitsched.model.time import format_time

_REGION_LABEL = "topology.kubernetes.io/region"


def _read_location(document: Document) -> ClusterLocation:
    labels = read_labels(document.body)
    zone = labels.get(ZONE_LABEL)
    return ClusterLocation(f"{NODE}/{document.key.name}", labels.get(_REGION_LABEL) or "", "", (zone,) if zone else (), NODE)


def _mark_unreachable(body: Body, time: datetime) -> Body:
    return add_taint(body, UNREACHABLE, NO_EXECUTE, format_time(time))


_REPLICAS = {(GROUP, KAFKA): (("spec", "consumers"),)}

TOPOLOGY = Topology("", "Node", _read_location, _mark_unreachable, _mark_unreachable, copy_as, level=NODE, replica_paths=_REPLICAS)
