"""Region, provider and zones of Karmada Clusters, and how a simulation drains, loses or copies a Cluster.

A lost cluster is simulated as one that is being deleted. In Karmada this is the only change that moves every workload: a workload with
divided replicas stays short of replicas when the document is removed or the cluster is not ready, and a taint may be tolerated.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from gitsched.apis.cluster_format import read_condition
from gitsched.apis.karmada.names import CLUSTER, CLUSTER_GROUP
from gitsched.apis.topology import (
    ClusterLocation,
    MaintenanceTaints,
    Topology,
    copy_as,
    mark_deleted,
    set_condition,
)
from gitsched.model.cluster_facts import Readiness
from gitsched.model.document import Body, Document, as_object, get_field, get_text, list_texts
from gitsched.model.quantity import Quantity, get_unit, parse_quantity
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE
from gitsched.model.time import format_time

_CORDON_TAINT = "cluster.karmada.io/unschedulable"
"""The key that `karmadactl cordon` writes, too."""


def _read_topology(document: Document) -> ClusterLocation:
    spec = as_object(document.body.get("spec"))
    zones = list_texts(spec.get("zones")) or list(filter(None, (get_text(spec, "zone"),)))
    return ClusterLocation(document.key.name, get_text(spec, "region"), get_text(spec, "provider"), tuple(zones))


def _mark_lost(body: Body, time: datetime) -> Body:
    return mark_deleted(body, format_time(time))


def _mark_unreachable(body: Body, time: datetime) -> Body:
    return set_condition(body, "Ready", "Unknown", format_time(time))


def _copy_cluster(body: Body, name: str) -> Body:
    """Return a copy of a Cluster with the same API enablements and resource models, and with nothing allocated."""
    summary = get_field(body, "status", "resourceSummary")
    renamed = copy_as(body, name)
    if not isinstance(summary, dict):
        return renamed
    free = {key: value for key, value in summary.items() if key not in ("allocated", "allocating", "allocatedModelings")}
    return {**renamed, "status": {**body["status"], "resourceSummary": free}}


def _read_readiness(body: Body) -> Readiness | None:
    return read_condition(body, "Ready")


_TAINTS = MaintenanceTaints(
    NO_EXECUTE, NO_SCHEDULE, frozenset(("cluster.karmada.io/not-ready", "cluster.karmada.io/unreachable")), _CORDON_TAINT
)


def _add_capacity(body: Body, amounts: Mapping[str, int]) -> Body:
    """Return a Cluster with more in status.resourceSummary.allocatable."""
    summary = as_object(get_field(body, "status", "resourceSummary"))
    allocatable = dict(as_object(summary.get("allocatable")))
    for name, amount in amounts.items():
        found = parse_quantity(allocatable.get(name)) or Quantity(0)
        allocatable[name] = str(Quantity(found.nano + amount * get_unit(name), found.binary))
    return {**body, "status": {**as_object(body.get("status")), "resourceSummary": {**summary, "allocatable": allocatable}}}


TOPOLOGY = Topology(
    CLUSTER_GROUP,
    CLUSTER,
    _read_topology,
    _mark_lost,
    _mark_unreachable,
    _copy_cluster,
    _read_readiness,
    _TAINTS,
    add_capacity=_add_capacity,
)
