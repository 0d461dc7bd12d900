"""ManagedClusters in simulations: read region, zone and provider, and remove, drain or mark a cluster unreachable."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.cluster_format import read_condition
from gitsched.apis.ocm.availability import AVAILABLE_CONDITION, NO_SELECT, TAINT_KEYS
from gitsched.apis.ocm.names import GROUP, MANAGED_CLUSTER
from gitsched.apis.topology import ClusterLocation, MaintenanceTaints, Topology, copy_as, set_condition
from gitsched.model.cluster_facts import Readiness
from gitsched.model.document import Body, Document, get_field, list_objects, read_labels
from gitsched.model.time import format_time

_CLAIM_SUFFIX = "open-cluster-management.io"
_TOPOLOGY_PREFIX = "topology.kubernetes.io"


def _read_claims(body: Body) -> dict[str, str]:
    """Return the claims that the agent reports."""
    return {str(claim.get("name")): str(claim.get("value")) for claim in list_objects(get_field(body, "status", "clusterClaims"))}


def _read_topology(document: Document) -> ClusterLocation:
    """Read the location of a cluster from the claims that the agent reports, then from common labels."""
    claims = _read_claims(document.body)
    labels = read_labels(document.body)
    region = claims.get(f"region.{_CLAIM_SUFFIX}") or labels.get(f"{_TOPOLOGY_PREFIX}/region") or labels.get("region") or ""
    provider = claims.get(f"platform.{_CLAIM_SUFFIX}") or labels.get("cloud") or ""
    zone = claims.get(f"zone.{_CLAIM_SUFFIX}") or labels.get(f"{_TOPOLOGY_PREFIX}/zone") or labels.get("zone")
    return ClusterLocation(document.key.name, region, provider, (zone,) if zone else ())


def _remove(_body: Body, _time: datetime) -> Body | None:
    return None


def _make_unreachable(body: Body, time: datetime) -> Body:
    """Set the condition that the hub sets, which adds a taint."""
    return set_condition(body, AVAILABLE_CONDITION, "Unknown", format_time(time))


def _read_readiness(body: Body) -> Readiness | None:
    return read_condition(body, AVAILABLE_CONDITION)


TOPOLOGY = Topology(
    GROUP,
    MANAGED_CLUSTER,
    _read_topology,
    _remove,
    _make_unreachable,
    copy_as,
    _read_readiness,
    MaintenanceTaints(NO_SELECT, "NoSelectIfNew", frozenset(TAINT_KEYS.values())),
    _read_claims,
)
