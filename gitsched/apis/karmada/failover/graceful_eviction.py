"""Graceful eviction tasks, and the health in aggregatedStatus that ends them early."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.model.document import Body, Document, Key, get_field, list_objects
from gitsched.model.scheduling import Assignment
from gitsched.model.taints import NO_EXECUTE, Taint, Toleration, parse_toleration
from gitsched.model.time import add_duration, format_time, parse_time

TAINT_UNTOLERATED, APPLICATION_FAILURE = "TaintUntolerated", "ApplicationFailure"
"""Reasons of evictions."""


class EvictionTasks(NamedTuple):
    """Graceful eviction tasks that still live, and the first moment at which one of them ends."""

    active: tuple[Body, ...]
    wakeup: datetime | None


def read_applied_tolerations(applied: str | None) -> tuple[Toleration, ...] | None:
    """The tolerations of the placement last acted on: those, not the present policy's, decide about eviction.

    None where nobody knows them: then nothing is evicted, until the workload was scheduled under a placement that is known.
    """
    try:
        placement: Any = json.loads(applied) if applied else None
    except ValueError:
        return None
    if not isinstance(placement, dict):
        return None
    entries = placement.get("clusterTolerations")
    return tuple(map(parse_toleration, entries if isinstance(entries, list) else ()))


def find_eviction_time(taints: Iterable[Taint], tolerations: tuple[Toleration, ...], moment: datetime) -> datetime | None:
    """When a placement must leave a cluster with these taints: a moment, `moment` itself for now, or None for never.

    Each NoExecute taint needs a toleration; the first that tolerates it is used. A used toleration with seconds ends that long after each
    taint it tolerates was added.
    """
    harmful = [taint for taint in taints if taint.effect == NO_EXECUTE]
    used: list[Toleration] = []
    for taint in harmful:
        toleration = next((t for t in tolerations if t.tolerates(taint)), None)
        if toleration is None:
            return moment
        used.append(toleration)
    ends = [
        add_duration(taint.since or moment, max(toleration.seconds, 0))
        for toleration in used
        if toleration.seconds is not None
        for taint in harmful
        if toleration.tolerates(taint)
    ]
    return max(min(ends), moment) if ends else None


def make_eviction_task(
    target: Assignment,
    purge_mode: str,
    moment: datetime,
    reason: str = TAINT_UNTOLERATED,
    producer: str = "TaintManager",
    **more: Any,
) -> Body:
    """The graceful eviction task that one of Karmada's controllers writes, by default its taint manager; `more` are members of its own,
    of which empty ones are left out."""
    task: Body = {"fromCluster": target.name, "purgeMode": purge_mode}
    if target.replicas:
        task["replicas"] = target.replicas
    task |= {"reason": reason, "producer": producer}
    return {**task, **{name: value for name, value in more.items() if value}, "creationTimestamp": format_time(moment)}


def drop_expired_tasks(tasks: Iterable[Body], timeout: timedelta, moment: datetime) -> EvictionTasks:
    """Drop the tasks that are over at `moment`; one without a creation time starts now.

    suppressDeletion true keeps a task for ever and false ends it; otherwise it ends gracePeriodSeconds (or `timeout`) after its creation.
    """
    live: list[Body] = []
    ends: list[datetime] = []
    for task in tasks:
        created = parse_time(task.get("creationTimestamp"))
        entry = task if created else {**task, "creationTimestamp": format_time(moment)}
        suppressed = task.get("suppressDeletion")
        if suppressed is False:
            continue
        if suppressed is not True:
            grace = task.get("gracePeriodSeconds")
            end = add_duration(created or moment, max(grace, 0) if isinstance(grace, int) else timeout)
            if end <= moment:
                continue
            ends.append(end)
        live.append(entry)
    return EvictionTasks(tuple(live), min(ends, default=None))


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
