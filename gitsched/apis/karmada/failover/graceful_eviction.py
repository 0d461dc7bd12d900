"""Graceful eviction tasks, and the health in aggregatedStatus that ends them early.

gitsched does not connect to clusters: the aggregatedStatus of a committed ResourceBinding is its only source of health. A workload that is
reported Unhealthy is unhealthy until another status is committed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from gitsched.apis.karmada.policy.propagation_policy import read_applied_placement
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Document, Key, get_field, list_objects, parse_api_group, read_json
from gitsched.model.scheduling import Assignment
from gitsched.model.taints import NO_EXECUTE, Taint, Toleration, TolerationIndex, parse_toleration
from gitsched.model.time import add_duration, format_time, parse_time
from gitsched.named_tuples import NamedTuple

TAINT_UNTOLERATED, APPLICATION_FAILURE = "TaintUntolerated", "ApplicationFailure"
"""Values of `reason` in a graceful eviction task."""


UNLIMITED_EVICTION_END = "somebody sets suppressDeletion: false in spec.gracefulEvictionTasks of its committed binding"
"""What ends a graceful eviction task with suppressDeletion: true."""


class EvictionTasks(NamedTuple):
    """Graceful eviction tasks that are not over, and when the first of them times out."""

    active: tuple[Body, ...]
    wakeup: datetime | None


def read_applied_tolerations(applied: str | None) -> tuple[Toleration, ...] | None:
    """Return the tolerations of the applied placement; these, not those of the present policy, decide about eviction.

    None without a readable placement: then the workload is not evicted until it has been scheduled again.
    """
    placement = read_applied_placement(applied)
    if placement is None:
        return None
    entries = placement.get("clusterTolerations")
    return tuple(map(parse_toleration, entries if isinstance(entries, list) else ()))


def find_eviction_time(taints: Iterable[Taint], tolerations: tuple[Toleration, ...], time: datetime) -> datetime | None:
    """Return when a workload must leave a cluster with these taints: `time` for at once, None for never.

    Each NoExecute taint needs a toleration; the first that tolerates it is used. A toleration with seconds expires that long after each
    taint that it tolerates was added.
    """
    no_execute = [taint for taint in taints if taint.effect == NO_EXECUTE]
    if not no_execute:
        return None
    used: dict[Toleration, None] = {}
    by_key: dict[str, list[Taint]] = {"": no_execute}
    index = TolerationIndex(tolerations)
    for taint in no_execute:
        toleration = index.find_first(taint)
        if toleration is None:
            return time
        used[toleration] = None
        if taint.key:
            by_key.setdefault(taint.key, []).append(taint)
    ends = [
        add_duration(taint.since or time, max(toleration.seconds, 0))
        for toleration in used
        if toleration.seconds is not None
        for taint in by_key[toleration.key]
        if toleration.tolerates(taint)
    ]
    return max(min(ends), time) if ends else None


def make_eviction_task(
    target: Assignment,
    purge_mode: str,
    time: datetime,
    reason: str = TAINT_UNTOLERATED,
    producer: str = "TaintManager",
    **more: Any,
) -> Body:
    """Return a graceful eviction task as Karmada's taint manager, or another `producer`, writes it.

    `more` are further members; empty ones are left out.
    """
    task: Body = {"fromCluster": target.name, "purgeMode": purge_mode}
    if target.replicas:
        task["replicas"] = target.replicas
    task |= {"reason": reason, "producer": producer}
    return {**task, **{name: value for name, value in more.items() if value}, "creationTimestamp": format_time(time)}


def drop_expired_tasks(tasks: Iterable[Body], timeout: timedelta, time: datetime) -> EvictionTasks:
    """Remove the tasks that are over at `time`; a task without a creation time starts at `time`.

    suppressDeletion true keeps a task without limit and false ends it; otherwise it ends gracePeriodSeconds (or `timeout`) after its
    creation.
    """
    active: list[Body] = []
    ends: list[datetime] = []
    for task in tasks:
        created = parse_time(task.get("creationTimestamp"))
        entry = task if created else {**task, "creationTimestamp": format_time(time)}
        suppressed = task.get("suppressDeletion")
        if suppressed is False:
            continue
        if suppressed is not True:
            end = find_task_end(task, timeout, created or time)
            if end <= time:
                continue
            ends.append(end)
        active.append(entry)
    return EvictionTasks(tuple(active), min(ends, default=None))


def find_task_end(task: Body, timeout: timedelta, created: datetime) -> datetime:
    """Return when a task that was `created` then is over, unless it has suppressDeletion."""
    grace = task.get("gracePeriodSeconds")
    return add_duration(created, max(grace, 0) if isinstance(grace, int) else timeout)


UNHEALTHY_SINCE = "gitsched.io/unhealthy-since"
"""On a binding: since when the workload is unhealthy, by cluster that runs it or evicted it for that reason, as JSON."""


HEALTH_AT_EVICTION = "gitsched.io/health-at-eviction"
"""On a binding with graceful eviction tasks: the digest of the aggregatedStatus when the last task was created."""


UnhealthySince = Mapping[str, datetime]


class AggregatedStatus(NamedTuple):
    """The aggregatedStatus of a committed binding.

    `health` (Healthy, Unhealthy or Unknown), `statuses`, the status of the workload, and the complete `entries` are by cluster.
    `eviction_tasks` are those of the document, in which a person may set suppressDeletion. `digest` identifies the aggregatedStatus.
    """

    health: Mapping[str, str]
    statuses: Mapping[str, Body]
    eviction_tasks: tuple[Body, ...]
    digest: str
    entries: Mapping[str, Body] = {}

    @property
    def unhealthy_clusters(self) -> list[str]:
        return [cluster for cluster, health in self.health.items() if health == "Unhealthy"]

    def is_healthy_in_all(self, clusters: Collection[str]) -> bool:
        """Return whether there are any clusters and each of them reports Healthy."""
        return bool(clusters) and all(self.health.get(cluster) == "Healthy" for cluster in clusters)


class AggregatedStatuses:
    """The aggregatedStatus of the committed ResourceBindings and ClusterResourceBindings, read on first use."""

    __slots__ = ("_documents", "_known")

    def __init__(self, documents: Iterable[Document]) -> None:
        self._documents = {document.key: document for document in documents}
        self._known: dict[Key, AggregatedStatus | None] = {}

    def get(self, binding: Key) -> AggregatedStatus | None:
        """Return the status of a binding; None when there is no such document or it has none."""
        if binding not in self._documents:
            return None
        if binding not in self._known:
            self._known[binding] = read_aggregated_status(self._documents[binding].body)
        return self._known[binding]


def read_aggregated_status(body: Body) -> AggregatedStatus | None:
    """Read the status of a binding. Entries without clusterName are ignored."""
    entries = list_objects(get_field(body, "status", "aggregatedStatus"))
    tasks = tuple(list_objects(get_field(body, "spec", "gracefulEvictionTasks")))
    named = [entry for entry in entries if isinstance(entry.get("clusterName"), str)]
    if not named and not tasks:
        return None
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return AggregatedStatus(
        {entry["clusterName"]: str(entry.get("health") or "") or _interpret_status(entry, body) for entry in named},
        {entry["clusterName"]: entry["status"] for entry in named if isinstance(entry.get("status"), dict)},
        tasks,
        hashlib.sha256(text.encode()).hexdigest()[:16] if named else "",
        {entry["clusterName"]: entry for entry in named},
    )


def _interpret_status(entry: Body, binding: Body) -> str:
    """Return the health of an entry without one by the rule for the kind (InterpretHealth); "" if there is no status or no rule.

    Karmada applies the rule to the object in the cluster. The binding has its status, and the number of replicas assigned to the cluster.
    """
    status, resource = entry.get("status"), get_field(binding, "spec", "resource")
    if not isinstance(status, dict) or not isinstance(resource, dict):
        return ""
    row = find_kind(parse_api_group(str(resource.get("apiVersion"))), str(resource.get("kind")))
    if row is None or not row.health:
        return ""
    from gitsched.kinds.health import interpret_health  # few bindings report a status without the health

    clusters = list_objects(get_field(binding, "spec", "clusters"))
    replicas = next((found.get("replicas") for found in clusters if found.get("name") == entry["clusterName"]), None)
    generation = status.get("generation", status.get("observedGeneration"))
    observed = {"metadata": {"generation": generation}, "spec": {"replicas": replicas}, "status": status}
    healthy = interpret_health(observed, row)
    return "" if healthy is None else "Healthy" if healthy else "Unhealthy"


def apply_suppress_deletion(tasks: Iterable[Body], status: AggregatedStatus) -> tuple[Body, ...]:
    """Set suppressDeletion in tasks as the committed binding has it: false removes the old copy, true keeps it.

    Tasks match by fromCluster, and by creationTimestamp when the document has one.
    """
    return tuple(_apply_to_task(task, status.eviction_tasks) for task in tasks)


def update_unhealthy_since(
    status: AggregatedStatus, since: UnhealthySince, bound: Collection[str], overdue: Collection[str], time: datetime
) -> dict[str, datetime]:
    """Return since when the workload is unhealthy, after a pass that bound it to the `bound` clusters.

    Healthy and Unknown end a timer, and so does a cluster that is no longer bound, except for the `overdue` clusters: the workload was
    evicted from them, or is kept out of them, for this reason.
    """
    updated: dict[str, datetime] = {}
    for cluster in sorted({*bound, *overdue}):
        health = status.health.get(cluster, "")
        if health == "Unhealthy":
            updated[cluster] = since.get(cluster, time)
        elif not health and cluster in since and cluster in bound:
            updated[cluster] = since[cluster]  # no status was collected recently
    return updated


def read_unhealthy_since(annotations: Mapping[str, str]) -> dict[str, datetime]:
    """Read the start of each timer from the annotations of a binding; malformed entries are ignored."""
    try:
        value: Any = read_json(annotations.get(UNHEALTHY_SINCE, "{}"))
    except ValueError:
        return {}
    times = {name: parse_time(text) for name, text in value.items()} if isinstance(value, dict) else {}
    return {name: time for name, time in times.items() if time is not None}


def write_unhealthy_since(since: UnhealthySince) -> str:
    """Return the value of the annotation."""
    return json.dumps({name: format_time(time) for name, time in sorted(since.items())}, separators=(",", ":"))


def _apply_to_task(task: Body, document_tasks: Iterable[Body]) -> Body:
    for entry in document_tasks:
        same = entry.get("fromCluster") == task.get("fromCluster")
        suppressed = entry.get("suppressDeletion")
        if same and isinstance(suppressed, bool) and entry.get("creationTimestamp") in (None, task.get("creationTimestamp")):
            return {**task, "suppressDeletion": suppressed}
    return task
