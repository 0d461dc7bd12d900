"""Krake's Clusters in simulations: an application whose cluster is gone looks for another one; Krake knows no taints to drain one with."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.krake.names import CLUSTER, directory_of
from gitsched.apis.sites import Site, Sites, rename
from gitsched.model.document import Body, Document, member, text_map


def _read(document: Document) -> Site:
    """By the labels that people use: Krake has no place for where a cluster stands."""
    labels = text_map(member(document.body, "metadata", "labels"))
    region = labels.get("topology.kubernetes.io/region") or labels.get("region") or labels.get("location") or ""
    zone = labels.get("topology.kubernetes.io/zone") or labels.get("zone")
    name = directory_of(document.key.namespace, document.key.name)
    return Site(name, region, labels.get("provider") or "", (zone,) if zone else ())


def _lose(_body: Body, _moment: datetime) -> Body | None:
    return None


def _silence(body: Body, _moment: datetime) -> Body:
    return {**body, "status": {**(body.get("status") or {}), "state": "OFFLINE"}}


SITES = Sites(*CLUSTER, _read, _lose, _silence, None, rename)
