"""Health and status of running workloads, read from the aggregatedStatus of a committed ResourceBinding.

gitsched talks to no cluster, so this is all it knows of their health. A report is as true as its last commit; where health is Unhealthy
the workload is, until another report says otherwise.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.model.time import format_time, parse_time

UNHEALTHY_SINCE = "gitsched.io/unhealthy-since"
"""On a binding: since when the workload is unhealthy where it runs, or where it ran until it was evicted for that, as JSON."""
HEALTH_AT_EVICTION = "gitsched.io/health-at-eviction"
"""On a binding with graceful eviction tasks: a digest of the report that was known when the last of them was made."""

UnhealthySince = Mapping[str, datetime]


class AggregatedStatus(NamedTuple):
    """`health` is Healthy, Unhealthy or Unknown and `statuses` the status of the copy, by cluster. `tasks` are the graceful eviction tasks
    of the document, in which a person may set suppressDeletion. `digest` is of the aggregated status as a whole."""

    health: Mapping[str, str]
    statuses: Mapping[str, Body]
    eviction_tasks: tuple[Body, ...]
    digest: str

    @property
    def unhealthy_clusters(self) -> list[str]:
        return [cluster for cluster, health in self.health.items() if health == "Unhealthy"]

    def is_healthy_in_all(self, clusters: Collection[str]) -> bool:
        """Whether every one of some clusters, and there must be one, reports that the workload is well."""
        return bool(clusters) and all(self.health.get(cluster) == "Healthy" for cluster in clusters)


class AggregatedStatuses:
    """The ResourceBindings and ClusterResourceBindings of a commit, each read when it is first asked for."""

    __slots__ = ("_documents", "_known")

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = {document.key: document for document in documents}
        self._known: dict[Key, AggregatedStatus | None] = {}

    def get(self, binding: Key) -> AggregatedStatus | None:
        """The report on a binding; None without one, or when it says nothing."""
        if binding not in self._documents:
            return None
        if binding not in self._known:
            self._known[binding] = read_aggregated_status(self._documents[binding].body)
        return self._known[binding]


def read_aggregated_status(body: Body) -> AggregatedStatus | None:
    """What a binding reports. Entries that name no cluster are passed over."""
    entries = list_objects(get_field(body, "status", "aggregatedStatus"))
    tasks = tuple(list_objects(get_field(body, "spec", "gracefulEvictionTasks")))
    named = [entry for entry in entries if isinstance(entry.get("clusterName"), str)]
    if not named and not tasks:
        return None
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return AggregatedStatus(
        {entry["clusterName"]: str(entry.get("health") or "") for entry in named},
        {entry["clusterName"]: entry["status"] for entry in named if isinstance(entry.get("status"), dict)},
        tasks,
        hashlib.sha256(text.encode()).hexdigest()[:16] if named else "",
    )


def apply_suppress_deletion(tasks: Iterable[Body], report: AggregatedStatus) -> tuple[Body, ...]:
    """The tasks with suppressDeletion as the repository's document sets it: false lets the old copy go, true keeps it.

    A task is the same when it is from the same cluster, and of the same time where the document names one.
    """
    return tuple(_apply_to_task(task, report.eviction_tasks) for task in tasks)


def update_unhealthy_since(
    report: AggregatedStatus, since: UnhealthySince, held: Collection[str], overdue: Collection[str], moment: datetime
) -> dict[str, datetime]:
    """Since when the workload is unhealthy, after a pass that left it on the `held` clusters.

    Healthy and Unknown forget. Where it is not held any more that is forgotten, too, but for the `overdue` clusters, which it left, or
    does not come to, just because of that.
    """
    followed: dict[str, datetime] = {}
    for cluster in sorted({*held, *overdue}):
        health = report.health.get(cluster, "")
        if health == "Unhealthy":
            followed[cluster] = since.get(cluster, moment)
        elif not health and cluster in since and cluster in held:
            followed[cluster] = since[cluster]  # nothing was collected lately
    return followed


def read_unhealthy_since(annotations: Mapping[str, str]) -> dict[str, datetime]:
    """The start of each timer on a binding; anything malformed is left out."""
    try:
        noted: Any = json.loads(annotations.get(UNHEALTHY_SINCE, "{}"))
    except ValueError:
        return {}
    moments = {name: parse_time(text) for name, text in noted.items()} if isinstance(noted, dict) else {}
    return {name: moment for name, moment in moments.items() if moment is not None}


def write_unhealthy_since(since: UnhealthySince) -> str:
    """The annotation's text."""
    return json.dumps({name: format_time(moment) for name, moment in sorted(since.items())}, separators=(",", ":"))


def _apply_to_task(task: Body, written: Iterable[Body]) -> Body:
    for entry in written:
        same = entry.get("fromCluster") == task.get("fromCluster")
        suppressed = entry.get("suppressDeletion")
        if same and isinstance(suppressed, bool) and entry.get("creationTimestamp") in (None, task.get("creationTimestamp")):
            return {**task, "suppressDeletion": suppressed}
    return task
