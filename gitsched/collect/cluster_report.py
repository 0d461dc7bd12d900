"""Report which output commit a cluster has applied and whether its workloads are healthy, from the objects of Flux and Argo CD in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from gitsched.kubectl.client import MissingObject
from gitsched.kubectl.proxy import ClusterReader
from gitsched.model.cluster_report import MAX_UNHEALTHY, ClusterReport, Health, UnhealthyWorkload, WorkloadHealth
from gitsched.model.document import Body, Key, as_object, get_field, list_objects
from gitsched.model.errors import GitschedError
from gitsched.model.finding import format_part
from gitsched.named_tuples import NamedTuple

_KUSTOMIZATIONS: Final = "/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations"
_APPLICATIONS: Final = "/apis/argoproj.io/v1alpha1/applications"
_WORKLOADS: Final = (("Deployment", "deployments"), ("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets"))
MAX_TOOL_OBJECTS, MAX_WORKLOADS = 5_000, 100_000
"""Kustomizations or Applications, and workloads of one kind, that are read of one cluster."""
_OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_OWN_SERVERS: Final = ("https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local")
_WAITING: Final = frozenset(("Progressing", "ProgressingWithRetry", "DependencyNotReady", "ReconciliationStarted"))
"""Reasons of a Ready condition that is False while Flux still works."""
_ORDER: Final[tuple[Health, ...]] = ("Healthy", "Progressing", "Degraded")
_APPS: Final = "apps"


class _Applied(NamedTuple):
    """What one object of a delivery tool says: the applied commit, and the health of what it applied."""

    commit: str
    health: Health
    unhealthy: tuple[UnhealthyWorkload, ...] = ()


def _find_hidden_health(found: Sequence[_Applied], unhealthy: Sequence[UnhealthyWorkload]) -> Health:
    """Return the health of a cluster whose tools all report that what they applied is healthy."""
    if len({one.commit for one in found}) > 1:
        return "Progressing"
    if any(one.health == "Degraded" for one in unhealthy):
        return "Degraded"
    return "Progressing" if unhealthy else "Healthy"


def read_report(
    reader: ClusterReader,
    cluster: str,
    branch: str,
    before: ClusterReport | None,
    observed: datetime,
    note: Callable[[str], None],
) -> ClusterReport | None:
    """Return the report of a cluster about the output branch; None if no object of Flux or Argo CD has applied it, or if nothing has failed
    but not everything can be read: what is not seen is not healthy.

    A cluster whose objects have applied several commits is progressing. It reports the commit of the first object by namespace and name
    that has the health of the report.
    """
    found: list[_Applied] = []
    is_complete = True
    for path, read in ((_KUSTOMIZATIONS, _read_kustomizations), (_APPLICATIONS, _read_applications)):
        try:
            found += read(reader, path, branch, before)
        except MissingObject:
            continue  # the cluster does not have this tool
        except GitschedError as error:
            is_complete = False
            note(f"the report has nothing of {path.rpartition('/')[2]}: {error}")
    health: Health = max((one.health for one in found), key=_ORDER.index, default="Healthy")
    if not found or not (is_complete or health == "Degraded"):
        return None
    commit = next(one.commit for one in found if one.health == health)
    unhealthy = sorted({workload for one in found for workload in one.unhealthy})
    if len(unhealthy) > MAX_UNHEALTHY:
        note(f"the report lists {format_part(MAX_UNHEALTHY, len(unhealthy), 'workload')} that are not healthy")
    if health == "Healthy":
        health = _find_hidden_health(found, unhealthy)
    is_same = before is not None and (before.commit, before.health) == (commit, health)
    since = before.since if before is not None and is_same else observed
    return ClusterReport(cluster, commit, health, since, tuple(unhealthy[:MAX_UNHEALTHY]))


def _read_kustomizations(reader: ClusterReader, path: str, branch: str, before: ClusterReport | None) -> list[_Applied]:
    """Return what the Kustomizations of Flux say that have applied the branch, or have failed to."""
    failed = before.commit if before is not None and before.health == "Degraded" else ""
    objects = _sort(list(reader.list_objects(path, limit=MAX_TOOL_OBJECTS)))
    applied = [(body, one) for body in objects if (one := _read_kustomization(body, branch, failed)) is not None]
    if not applied:
        return []
    owned = {entry for body, _ in applied for entry in _list_inventory(body)}
    unhealthy = tuple(_list_unhealthy(reader, owned))
    return [one._replace(unhealthy=unhealthy) for _, one in applied]


def _sort(objects: list[Body]) -> list[Body]:
    return sorted(objects, key=lambda body: tuple(str(get_field(body, "metadata", name) or "") for name in ("namespace", "name")))


def _read_kustomization(body: Body, branch: str, failed: str) -> _Applied | None:
    """Return what a Kustomization says about the branch; None for another branch.

    With `wait`, Flux records a commit as applied only when its health checks have passed, so that one that fails is only attempted. Flux
    attempts it again and again: a commit that has `failed` earlier fails until it is applied.

    Source: internal/controller/kustomization_controller.go of kustomize-controller.
    """
    applied, attempted = (_read_revision(body, branch, name) for name in ("lastAppliedRevision", "lastAttemptedRevision"))
    health = _read_flux_health(body)
    if attempted and attempted != applied and (health == "Degraded" or (health == "Progressing" and attempted == failed)):
        return _Applied(attempted, "Degraded")
    return _Applied(applied, health) if applied else None


def _read_revision(body: Body, branch: str, member: str) -> str:
    """Return the commit of a revision in the status, whose form is BRANCH@sha1:COMMIT; "" for another branch."""
    name, _, commit = str(get_field(body, "status", member) or "").rpartition("@")
    oid = commit.rpartition(":")[2]
    return oid if name.removeprefix("refs/heads/") == branch and _OID.fullmatch(oid) else ""


def _list_inventory(body: Body) -> Iterator[tuple[str, str, str]]:
    """Yield kind, namespace and name of the workloads in the inventory of a Kustomization, whose ids are NAMESPACE_NAME_GROUP_KIND."""
    for entry in list_objects(get_field(body, "status", "inventory", "entries")):
        parts = str(entry.get("id") or "").split("_")
        if len(parts) == 4 and parts[2] == _APPS:
            yield parts[3], parts[0], parts[1]


def _read_flux_health(body: Body) -> Health:
    for condition in list_objects(get_field(body, "status", "conditions")):
        if condition.get("type") == "Ready":
            if condition.get("status") == "True":
                return "Healthy"
            return "Degraded" if condition.get("status") == "False" and condition.get("reason") not in _WAITING else "Progressing"
    return "Progressing"


def _list_unhealthy(reader: ClusterReader, owned: set[tuple[str, str, str]]) -> Iterator[UnhealthyWorkload]:
    """Yield the workloads of an inventory that are missing or not healthy."""
    for kind, plural in _WORKLOADS:
        wanted = {(namespace, name) for found, namespace, name in owned if found == kind}
        if not wanted:
            continue
        for body in reader.list_objects(f"/apis/apps/v1/{plural}", limit=MAX_WORKLOADS):
            identity = str(get_field(body, "metadata", "namespace")), str(get_field(body, "metadata", "name"))
            if identity not in wanted:
                continue
            wanted.discard(identity)
            found = find_problem(kind, body)
            if found is not None:
                yield UnhealthyWorkload(Key(_APPS, kind, *identity), *found)
        for identity in sorted(wanted):
            yield UnhealthyWorkload(Key(_APPS, kind, *identity), "Missing", "the cluster does not have it")


def find_problem(kind: str, body: Body) -> tuple[WorkloadHealth, str] | None:
    """Return why a Deployment, StatefulSet or DaemonSet is not healthy, as `kubectl rollout status` decides it; None if it is."""
    status, spec = as_object(body.get("status")), as_object(body.get("spec"))
    if _get_count(status, "observedGeneration") < _get_count(as_object(body.get("metadata")), "generation"):
        return "Progressing", "its controller has not seen the last change"
    for condition in list_objects(status.get("conditions")):
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            return "Degraded", _shorten(condition.get("message")) or "it made no progress within its deadline"
    if kind == "DaemonSet":
        wanted, updated, ready = (
            _get_count(status, n) for n in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        )
    else:
        wanted = _get_count(spec, "replicas") if "replicas" in spec else 1
        updated = _get_count(status, "updatedReplicas")
        ready = _get_count(status, "availableReplicas" if kind == "Deployment" else "readyReplicas")
    if ready < wanted:
        return "Progressing", f"{format_part(ready, wanted, 'replica', 'is', 'are')} ready"
    return None if updated >= wanted else ("Progressing", f"{format_part(updated, wanted, 'replica', 'is', 'are')} updated")


def _get_count(members: Body, name: str) -> int:
    value = members.get(name)
    return value if type(value) is int else 0


def _read_applications(reader: ClusterReader, path: str, branch: str, _before: ClusterReport | None) -> list[_Applied]:
    """Return what the Applications of Argo CD say that deploy the branch into their own cluster."""
    objects = [body for body in reader.list_objects(path, limit=MAX_TOOL_OBJECTS) if _deploys_here(body, branch)]
    found = []
    for body in _sort(objects):
        synced = get_field(body, "status", "operationState", "syncResult", "revision")
        revision = str(synced or get_field(body, "status", "sync", "revision") or "")
        if _OID.fullmatch(revision):
            found.append(_Applied(revision, _read_argo_health(body), tuple(_list_argo_problems(body))))
    return found


def _deploys_here(body: Body, branch: str) -> bool:
    destination = as_object(get_field(body, "spec", "destination"))
    is_here = destination.get("server") in _OWN_SERVERS or destination.get("name") == "in-cluster"
    return is_here and get_field(body, "spec", "source", "targetRevision") == branch


def _read_argo_health(body: Body) -> Health:
    match get_field(body, "status", "health", "status"):
        case "Healthy" | "Suspended":
            phase = get_field(body, "status", "operationState", "phase")
            if phase in ("Failed", "Error"):
                return "Degraded"
            return "Healthy" if get_field(body, "status", "sync", "status") == "Synced" else "Progressing"
        case "Degraded" | "Missing":
            return "Degraded"
    return "Progressing"


def _list_argo_problems(body: Body) -> Iterator[UnhealthyWorkload]:
    for entry in list_objects(get_field(body, "status", "resources")):
        health: Any = get_field(entry, "health", "status")
        kind, name = str(entry.get("kind") or ""), str(entry.get("name") or "")
        if health in ("Progressing", "Degraded", "Missing") and kind and name:
            key = Key(str(entry.get("group") or ""), kind, str(entry.get("namespace") or ""), name)
            yield UnhealthyWorkload(key, health, _shorten(get_field(entry, "health", "message")))


def _shorten(text: Any) -> str:
    """Return a message on one line."""
    return " ".join(str(text or "").split())[:500]
