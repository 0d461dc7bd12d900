"""Open Cluster Management's ManagedClusters in simulations: Placements are evaluated on every run, so one that is gone is left at once."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.ocm.names import CLUSTER, GROUP
from gitsched.apis.sites import Site, Sites, add_taint, rename, set_condition
from gitsched.model.document import Body, Document, member, text_map
from gitsched.model.time import format_time

_CLAIMS = "open-cluster-management.io"
_TOPOLOGY = "topology.kubernetes.io"


def _read(document: Document) -> Site:
    """By the claims that the agent makes, then by the labels that people use."""
    claims = {str(c.get("name")): str(c.get("value")) for c in member(document.body, "status", "clusterClaims") or ()}
    labels = text_map(member(document.body, "metadata", "labels"))
    region = claims.get(f"region.{_CLAIMS}") or labels.get(f"{_TOPOLOGY}/region") or labels.get("region") or ""
    provider = claims.get(f"platform.{_CLAIMS}") or labels.get("cloud") or ""
    zone = claims.get(f"zone.{_CLAIMS}") or labels.get(f"{_TOPOLOGY}/zone") or labels.get("zone")
    return Site(document.key.name, region, provider, (zone,) if zone else ())


def _lose(_body: Body, _moment: datetime) -> Body | None:
    return None


def _silence(body: Body, moment: datetime) -> Body:
    """With the taint that its hub adds; it does not look at the condition itself."""
    since = format_time(moment)
    silent = set_condition(body, "ManagedClusterConditionAvailable", "Unknown", since)
    return add_taint(silent, "cluster.open-cluster-management.io/unreachable", "NoSelect", since)


def _drain(body: Body, moment: datetime) -> Body:
    return add_taint(body, "gitsched.io/drain", "NoSelect", format_time(moment))


SITES = Sites(GROUP, CLUSTER, _read, _lose, _silence, _drain, rename)
