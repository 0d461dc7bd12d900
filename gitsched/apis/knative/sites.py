"""Nodes in simulations: a lost one is unreachable, as its hub would be told. Vreplicas on it stay, and do nothing."""

from __future__ import annotations

from datetime import datetime

from gitsched.apis.knative.names import UNREACHABLE, ZONE_LABEL
from gitsched.apis.sites import NODE, Site, Sites, add_taint, rename
from gitsched.model.document import Body, Document, member, text_map
from gitsched.model.taints import NO_EXECUTE
from gitsched.model.time import format_time

_REGION_LABEL = "topology.kubernetes.io/region"


def _read(document: Document) -> Site:
    labels = text_map(member(document.body, "metadata", "labels"))
    zone = labels.get(ZONE_LABEL)
    return Site(f"{NODE}/{document.key.name}", labels.get(_REGION_LABEL) or "", "", (zone,) if zone else (), NODE)


def _lose(body: Body, moment: datetime) -> Body:
    return add_taint(body, UNREACHABLE, NO_EXECUTE, format_time(moment))


SITES = Sites("", "Node", _read, _lose, _lose, None, rename, NODE)
