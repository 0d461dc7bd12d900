"""Karmada's Clusters in simulations.

A lost cluster is one that is being deleted, which is how a hub is told that it will not come back. Of all that Karmada knows it is the only
thing that every workload answers to: one whose replicas are divided is left as it is, short of replicas, when a document just vanishes or a
cluster is not ready, and a taint may be tolerated.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from gitsched.apis.karmada.names import CLUSTER, CLUSTER_GROUP
from gitsched.apis.sites import Site, Sites, add_taint, mark_deleted, rename, set_condition
from gitsched.model.document import Body, Document, member
from gitsched.model.taints import NO_EXECUTE
from gitsched.model.time import format_time

DRAIN: Final = "gitsched.io/drain"
"""The taint of a cluster that is emptied in a simulation."""


def _read(document: Document) -> Site:
    spec = document.body.get("spec") or {}
    zones = spec.get("zones") or ([spec["zone"]] if spec.get("zone") else ())
    return Site(document.key.name, str(spec.get("region") or ""), str(spec.get("provider") or ""), tuple(map(str, zones)))


def _lose(body: Body, moment: datetime) -> Body:
    return mark_deleted(body, format_time(moment))


def _silence(body: Body, moment: datetime) -> Body:
    return set_condition(body, "Ready", "Unknown", format_time(moment))


def _drain(body: Body, moment: datetime) -> Body:
    return add_taint(body, DRAIN, NO_EXECUTE, format_time(moment))


def _copy(body: Body, name: str) -> Body:
    """What the original has allocated is free on the copy; which APIs it serves, and how its nodes are cut, is the same."""
    summary = member(body, "status", "resourceSummary")
    renamed = rename(body, name)
    if not isinstance(summary, dict):
        return renamed
    free = {key: value for key, value in summary.items() if key not in ("allocated", "allocating", "allocatedModelings")}
    return {**renamed, "status": {**body["status"], "resourceSummary": free}}


SITES = Sites(CLUSTER_GROUP, CLUSTER, _read, _lose, _silence, _drain, _copy)
