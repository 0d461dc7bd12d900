"""Topology of clusters and nodes (zone, region, provider), and how a simulation changes their documents."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from gitsched.model.document import Body, Document

CLUSTER, NODE = "cluster", "node"


class ClusterLocation(NamedTuple):
    """A cluster by its name on the output branch, or a node of one as node/NAME; "" and () where its document does not say."""

    name: str
    region: str
    provider: str
    zones: tuple[str, ...]
    level: str = CLUSTER

    def domains(self, by: str) -> tuple[str, ...]:
        """Where it stands by one of the dimensions: cluster, node, zone, region or provider."""
        match by:
            case "cluster" | "node":
                return (self.name.removeprefix(f"{NODE}/"),) if by == self.level else ()
            case "zone":
                return self.zones
        return tuple(filter(None, (self.region if by == "region" else self.provider,)))


class Topology(NamedTuple):
    """The documents of one (group, kind) that stand for clusters, or for the nodes of one.

    `lose` gives the document of a cluster that everything must leave, or None where the document has to be gone for that; `silence` that of
    one which does not answer, as its hub would say it; `drain` that of
    one which workloads leave unless they tolerate it, None where the API knows no such thing. `copy` gives an empty cluster like another
    one, under another name.
    """

    group: str
    kind: str
    read_location: Callable[[Document], ClusterLocation]
    mark_lost: Callable[[Body, datetime], Body | None]
    mark_unreachable: Callable[[Body, datetime], Body]
    drain: Callable[[Body, datetime], Body] | None
    copy: Callable[[Body, str], Body]
    level: str = CLUSTER


def copy_as(body: Body, name: str) -> Body:
    """A document under another name, without what only a server or an earlier life of it could say."""
    kept = {key: value for key, value in (body.get("metadata") or {}).items() if key in ("labels", "annotations", "namespace")}
    return {**body, "metadata": {**kept, "name": name}}


def add_taint(body: Body, key: str, effect: str, since: str) -> Body:
    """A document with one more entry under spec.taints."""
    spec = body.get("spec") or {}
    taint = {"key": key, "effect": effect, "timeAdded": since}
    return {**body, "spec": {**spec, "taints": [*(spec.get("taints") or ()), taint]}}


def set_condition(body: Body, kind: str, status: str, moment: str) -> Body:
    """A document with a condition of one type, in place of the one that it has."""
    old = body.get("status") or {}
    others = [condition for condition in old.get("conditions") or () if condition.get("type") != kind]
    condition = {"type": kind, "status": status, "reason": "Simulated", "lastTransitionTime": moment}
    return {**body, "status": {**old, "conditions": [*others, condition]}}


def mark_deleted(body: Body, moment: str) -> Body:
    """A document whose object is being deleted since a moment."""
    return {**body, "metadata": {**(body.get("metadata") or {}), "deletionTimestamp": moment}}
