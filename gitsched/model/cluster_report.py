"""The report of a cluster: which output commit it has applied, and whether its workloads are healthy. Written as kind ClusterReport."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, get_args

from gitsched.model.document import Body, Key, as_object, get_field, list_objects
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple

API_VERSION: Final = "gitsched.io/v1alpha1"
CLUSTER_REPORT: Final = ("gitsched.io", "ClusterReport")
"""Group and kind of the document, which is cluster-scoped and has the name of the cluster."""
Health = Literal["Healthy", "Progressing", "Degraded"]
WorkloadHealth = Literal["Progressing", "Degraded", "Missing"]
MAX_UNHEALTHY: Final = 100
"""Workloads that one report lists."""
MAX_MESSAGE_LENGTH: Final = 1024


class UnhealthyWorkload(NamedTuple):
    """A workload that is not healthy in a cluster, and why, in one line."""

    key: Key
    health: WorkloadHealth
    message: str = ""


class ClusterReport(NamedTuple):
    """The last report of a cluster.

    `commit` is the full id of the output commit that it has applied. `since` is the time from which the applied commit has this `health`,
    not that of the observation, so that a report that repeats itself has the same bytes.
    """

    cluster: str
    commit: str
    health: Health
    since: datetime
    unhealthy: tuple[UnhealthyWorkload, ...] = ()


def read_cluster_report(body: Body) -> ClusterReport | None:
    """Return the report in a document of kind ClusterReport; None for one that the schema refuses, or whose time is no time."""
    spec = as_object(body.get("spec"))
    name, commit = get_field(body, "metadata", "name"), spec.get("appliedCommit")
    health: Any = spec.get("health")
    since = parse_time(spec.get("since"))
    if not isinstance(name, str) or not isinstance(commit, str) or health not in get_args(Health) or since is None:
        return None
    unhealthy = (_read_workload(entry) for entry in list_objects(spec.get("unhealthy"))[:MAX_UNHEALTHY])
    return ClusterReport(name, commit, health, since, tuple(unhealthy))


def write_cluster_report(report: ClusterReport) -> Body:
    """Return the document of a report: the unhealthy workloads in the order of their keys, at most MAX_UNHEALTHY."""
    spec: Body = {"appliedCommit": report.commit, "health": report.health, "since": format_time(report.since)}
    if report.unhealthy:
        spec["unhealthy"] = [_write_workload(one) for one in sorted(report.unhealthy)[:MAX_UNHEALTHY]]
    return {"apiVersion": API_VERSION, "kind": CLUSTER_REPORT[1], "metadata": {"name": report.cluster}, "spec": spec}


def _read_workload(entry: Body) -> UnhealthyWorkload:
    key = Key(*(str(entry.get(name) or "") for name in ("group", "kind", "namespace", "name")))
    health: Any = entry.get("health")
    return UnhealthyWorkload(key, health, str(entry.get("message") or ""))


def _write_workload(one: UnhealthyWorkload) -> Body:
    fields = {**one.key._asdict(), "health": one.health, "message": one.message[:MAX_MESSAGE_LENGTH]}
    return {name: value for name, value in fields.items() if value}
