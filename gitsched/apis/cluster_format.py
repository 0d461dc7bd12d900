"""How a policy API describes clusters with facts that machines collect, and reads the clusters of its own hub."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from gitsched.model.cluster_facts import ClusterFacts, CollectedCluster, Readiness, StaleRule
from gitsched.model.document import Body, as_object, list_objects
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple


class StaleFacts(NamedTuple):
    """Facts that are too old: since when, and how their cluster is treated."""

    since: datetime
    rule: StaleRule


class HubClusters(NamedTuple):
    """The clusters of a hub: the path of their list in its API, and the function that reads one of them, observed at a time."""

    path: str
    read: Callable[[Body, datetime], CollectedCluster]


class ClusterFormat(NamedTuple):
    """How an API writes clusters as documents.

    `apply` returns a document with the facts in its status; stale facts are None or say how the cluster is treated. It changes neither
    labels nor anything else that selects the cluster. `write` returns a document for the source. `hub` is None for an API without a
    hub that has clusters.
    """

    group: str
    kind: str
    apply: Callable[[Body, ClusterFacts, StaleFacts | None], Body]
    write: Callable[[CollectedCluster], Body]
    hub: HubClusters | None = None


def replace_condition(status: Mapping[str, object], kind: str, readiness: Readiness) -> list[Body]:
    """Return the conditions of a status with one of a type in place of the others of this type."""
    others = [condition for condition in list_objects(status.get("conditions")) if condition.get("type") != kind]
    since = {"lastTransitionTime": format_time(readiness.since)} if readiness.since is not None else {}
    texts = {name: text for name, text in (("reason", readiness.reason), ("message", readiness.message)) if text}
    return [*others, {"type": kind, "status": readiness.status, **texts, **since}]


def translate_taints(taints: Iterable[Mapping[str, Any]], effects: Mapping[str, str]) -> list[Body]:
    """Return taints with the effects of another API, by its own ones; an effect without another name stays."""
    return [{**taint, "effect": effects.get(str(taint.get("effect")), taint.get("effect"))} for taint in taints]


def read_condition(body: Body, kind: str) -> Readiness | None:
    """Return a condition of the status of an object; None if it has none of the type with a valid status."""
    for condition in list_objects(as_object(body.get("status")).get("conditions")):
        if condition.get("type") == kind and condition.get("status") in ("True", "False", "Unknown"):
            reason, message = (str(condition.get(name) or "")[:limit] for name, limit in (("reason", 256), ("message", 1024)))
            return Readiness(condition["status"], reason, message, parse_time(condition.get("lastTransitionTime")))
    return None
