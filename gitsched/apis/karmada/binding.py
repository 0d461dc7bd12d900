"""ResourceBinding and ClusterResourceBinding: what is carried over from the last run, and how the new one is written."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from gitsched.apis.karmada import failback
from gitsched.apis.karmada.names import (
    APPLIED_PLACEMENT,
    BINDING,
    DEFAULT_SCHEDULER,
    WORK_VERSION,
    binding_key,
    claim_annotations,
    permanent_id_label,
)
from gitsched.apis.karmada.policy import Policy
from gitsched.apis.karmada.workload import Demand
from gitsched.model.document import Body, Document, Key, as_object, list_objects, member, text_map
from gitsched.model.request import Target
from gitsched.model.time import format_time, parse_time

_IDENTITY = uuid.UUID("5f0f8d5c-6a0e-5a6f-9b0f-0c1d3f6f7a11")
BINDING_ID = "resourcebinding.karmada.io/permanent-id"
"""The label with a ResourceBinding's permanent id."""
_SUCCESS = "Binding has been scheduled successfully."


class Memory(NamedTuple):
    """The fields of a previous binding that count: those that gitsched itself writes."""

    annotations: Mapping[str, str]
    applied: str | None
    clusters: tuple[Target, ...]
    tasks: tuple[Body, ...]
    required_by: list[Any] | None
    triggered: datetime | None
    scheduled: datetime | None
    observed: str
    condition: Body
    suspended: bool


def recall(previous: Body | None) -> Memory:
    """Read a previous binding; None is a workload never bound."""
    body = previous or {}
    spec, status = as_object(body.get("spec")), as_object(body.get("status"))
    annotations = text_map(member(body, "metadata", "annotations"))
    conditions = list_objects(status.get("conditions"))
    return Memory(
        annotations,
        annotations.get(APPLIED_PLACEMENT),
        tuple(Target(str(c.get("name")), _count(c.get("replicas"))) for c in list_objects(spec.get("clusters"))),
        tuple(list_objects(spec.get("gracefulEvictionTasks"))),
        list_objects(spec.get("requiredBy")) or None,
        parse_time(spec.get("rescheduleTriggeredAt")),
        parse_time(status.get("lastScheduledTime")),
        str(status.get("schedulerObservingAffinityName") or ""),
        next((c for c in conditions if c.get("type") == "Scheduled"), {}),
        bool(member(spec, "suspension", "scheduling")),
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0


class Result(NamedTuple):
    """What a pass leaves in the binding. `reason` is that of the Scheduled condition, "" where there is none yet; `clocks` tell since when
    earlier groups could take the workload, and `notes` are further annotations."""

    clusters: tuple[Target, ...]
    tasks: tuple[Body, ...]
    applied: str | None
    observed: str
    reason: str
    message: str
    scheduled: datetime | None
    transition: datetime | None
    clocks: failback.Clocks = ()
    notes: Mapping[str, str] = {}


def write_binding(template: Document, policy: Policy, demand: Demand, memory: Memory, result: Result) -> Body:
    """The binding as Karmada's API server would show it, members in the order in which people read them."""
    key = binding_key(template.key)
    annotations = claim_annotations(policy.key)
    if result.applied is not None:
        annotations[APPLIED_PLACEMENT] = result.applied
    if result.clocks:
        annotations[failback.NOTE] = failback.write_clocks(result.clocks)
    annotations |= result.notes
    metadata: Body = {"name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    metadata["annotations"] = annotations
    metadata["labels"] = {
        permanent_id_label(policy.key.kind): _policy_id(policy),
        BINDING_ID if key.kind == BINDING else permanent_id_label(key.kind): permanent_id(key),
    }
    return {
        "apiVersion": WORK_VERSION,
        "kind": key.kind,
        "metadata": metadata,
        "spec": _spec(template, policy, demand, memory, result),
        "status": _status(result),
    }


@lru_cache(maxsize=1 << 15)
def permanent_id(key: Key) -> str:
    """A stable stand-in for the random UUID that Karmada's webhook gives: version 5, of group, kind, namespace and name."""
    return str(uuid.uuid5(_IDENTITY, "/".join(key)))


def describe_resource(template: Document) -> Body:
    """How a binding refers to its workload."""
    key = template.key
    resource = {"apiVersion": template.api_version, "kind": key.kind, "namespace": key.namespace, "name": key.name}
    for name in ("uid", "resourceVersion"):
        resource[name] = str(member(template.body, "metadata", name) or "")
    return {name: text for name, text in resource.items() if text}


def _policy_id(policy: Policy) -> str:
    labels = text_map(member(policy.document.body, "metadata", "labels"))
    return labels.get(permanent_id_label(policy.key.kind)) or permanent_id(policy.key)


def _spec(template: Document, policy: Policy, demand: Demand, memory: Memory, result: Result) -> Body:
    spec: Body = {"resource": describe_resource(template)}
    if demand.replicas is not None:
        spec["replicas"] = demand.replicas
    if demand.requirements is not None:
        spec["replicaRequirements"] = demand.requirements
    if result.clusters:
        spec["clusters"] = [{"name": t.name, "replicas": t.replicas} if t.replicas else {"name": t.name} for t in result.clusters]
    if result.tasks:
        spec["gracefulEvictionTasks"] = list(result.tasks)
    spec["placement"] = policy.spec.get("placement") or {}
    spec["schedulerName"] = policy.spec.get("schedulerName") or DEFAULT_SCHEDULER
    spec["conflictResolution"] = policy.spec.get("conflictResolution") or "Abort"
    for name in ("propagateDeps", "failover", "preserveResourcesOnDeletion"):
        if policy.spec.get(name):
            spec[name] = policy.spec[name]
    suspension = {**(policy.spec.get("suspension") or {}), **({"scheduling": True} if memory.suspended else {})}
    if suspension:
        spec["suspension"] = suspension
    if memory.required_by:
        spec["requiredBy"] = memory.required_by
    if memory.triggered:
        spec["rescheduleTriggeredAt"] = format_time(memory.triggered)
    return spec


def _status(result: Result) -> Body:
    status: Body = {}
    if result.observed:
        status["schedulerObservingAffinityName"] = result.observed
    if result.scheduled:
        status["lastScheduledTime"] = format_time(result.scheduled)
    if result.reason and result.transition:
        condition = {"type": "Scheduled", "status": "True" if result.reason == "Success" else "False", "reason": result.reason}
        message = _SUCCESS if result.reason == "Success" else result.message
        status["conditions"] = [{**condition, "message": message, "lastTransitionTime": format_time(result.transition)}]
    return status
