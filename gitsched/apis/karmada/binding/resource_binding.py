"""ResourceBinding and ClusterResourceBinding: the previous binding, when it is scheduled again, and the document that is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha1
from typing import Any, TypeVar

from gitsched.apis.karmada.failover import failback
from gitsched.apis.karmada.interpreter import ReplicaRequirements, write_replicas
from gitsched.apis.karmada.names import (
    APPLIED_PLACEMENT_ANNOTATION,
    BINDING,
    CLUSTER_BINDING,
    CLUSTER_POLICY,
    DEFAULT_SCHEDULER,
    POLICY,
    POLICY_GROUP,
    WORK_GROUP,
    WORK_VERSION,
)
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy, has_applied_changed
from gitsched.model.document import Body, Document, Key, as_object, as_string_map, get_field, list_objects, read_annotations
from gitsched.model.scheduling import Assignment, Decision, Outcome, Request
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple


@lru_cache(maxsize=1 << 14)  # asked several times for each workload, also in one pass over all after the other
def binding_key(template: Key) -> Key:
    """Return the key of a workload's binding, named by its name and kind in lower case, with '.' for ':'."""
    name = f"{template.name.replace(':', '.')}-{template.kind}".lower()
    kind = BINDING if template.namespace else CLUSTER_BINDING
    return Key(WORK_GROUP, kind, template.namespace, name)


def make_claim_annotations(policy: Key) -> dict[str, str]:
    """Return the annotations by which a binding names the policy that claimed its workload."""
    if policy.kind == POLICY:
        return {"propagationpolicy.karmada.io/namespace": policy.namespace, "propagationpolicy.karmada.io/name": policy.name}
    return {"clusterpropagationpolicy.karmada.io/name": policy.name}


def read_claim(annotations: dict[str, str]) -> Key | None:
    """Return the policy in the claim annotations of a binding or a template."""
    name = annotations.get("propagationpolicy.karmada.io/name")
    if name:
        return Key(POLICY_GROUP, POLICY, annotations.get("propagationpolicy.karmada.io/namespace", ""), name)
    name = annotations.get("clusterpropagationpolicy.karmada.io/name")
    return Key(POLICY_GROUP, CLUSTER_POLICY, "", name) if name else None


def set_claim_namespace(claim: Key, namespace: str) -> Key:
    """Return the claim of a workload with the namespace of its policy, which annotations may leave out."""
    return claim._replace(namespace=claim.namespace or namespace) if claim.kind == POLICY else claim


_ID_NAMESPACE = bytes.fromhex("5f0f8d5c6a0e5a6f9b0f0c1d3f6f7a11")
_VERSION_BITS, _VERSION_5 = 0xF000C000 << 48, 0x50008000 << 48
"""The bits of a UUID that are its version and its variant, and their values in a UUID of version 5 (RFC 9562)."""


BINDING_ID_LABEL = "resourcebinding.karmada.io/permanent-id"
"""The label with a ResourceBinding's permanent id."""


_SUCCESS_MESSAGE = "Binding has been scheduled successfully."


class PreviousState(NamedTuple):
    """The fields of a binding that decisions depend on; gitsched writes all of them. `components` are those of each cluster of a workload
    with several pod templates."""

    annotations: Mapping[str, str]
    applied_placement: str | None
    clusters: tuple[Assignment, ...]
    eviction_tasks: tuple[Body, ...]
    required_by: list[Any] | None
    reschedule_triggered: datetime | None
    last_scheduled: datetime | None
    observed_group: str
    condition: Body
    scheduling_suspended: bool
    components: Mapping[str, list[Body]] = {}


NEVER_BOUND = PreviousState({}, None, (), (), None, None, None, "", {}, False)


def read_previous(record: Body | None) -> PreviousState:
    """Read a previous binding; None is a workload that was never bound."""
    if record is None:
        return NEVER_BOUND
    spec, status = as_object(record.get("spec")), as_object(record.get("status"))
    annotations = read_annotations(record)
    conditions = list_objects(status.get("conditions"))
    return PreviousState(
        annotations,
        annotations.get(APPLIED_PLACEMENT_ANNOTATION),
        tuple(Assignment(str(c.get("name")), _read_count(c.get("replicas"))) for c in list_objects(spec.get("clusters"))),
        tuple(map(_read_task, list_objects(spec.get("gracefulEvictionTasks")))),
        list_objects(spec.get("requiredBy")) or None,
        parse_time(spec.get("rescheduleTriggeredAt")),
        parse_time(status.get("lastScheduledTime")),
        str(status.get("schedulerObservingAffinityName") or ""),
        next((c for c in conditions if c.get("type") == "Scheduled"), {}),
        bool(get_field(spec, "suspension", "scheduling")),
        {str(c.get("name")): c["components"] for c in list_objects(spec.get("clusters")) if isinstance(c.get("components"), list)},
    )


def _read_task(task: Body) -> Body:
    """Return an eviction task without members that cannot be: someone may have edited the record."""
    if not isinstance(task.get("fromCluster", ""), str):
        task = {**task, "fromCluster": str(task["fromCluster"])}
    if parse_time(task.get("creationTimestamp")) is None and "creationTimestamp" in task:
        return {name: value for name, value in task.items() if name != "creationTimestamp"}
    return task


def _read_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else 0


StatusFields = tuple[str, str, str, datetime | None, datetime | None]
"""The fields of a ScheduleResult that the status is made from."""


class ScheduleResult(NamedTuple):
    """What a pass writes into the binding.

    `reason` is that of the Scheduled condition, "" when there is none yet; `failback_timers` say since when earlier affinity groups
    could run the workload, and `annotations` are further annotations. `components` are what the clusters get of a workload with several pod
    templates.
    """

    clusters: tuple[Assignment, ...]
    eviction_tasks: tuple[Body, ...]
    applied_placement: str | None
    observed_group: str
    reason: str
    message: str
    last_scheduled: datetime | None
    last_transition: datetime | None
    failback_timers: failback.FailbackTimers = ()
    annotations: Mapping[str, str] = {}
    components: Mapping[str, list[Body]] = {}

    @property
    def status_fields(self) -> StatusFields:
        return self.observed_group, self.reason, self.message, self.last_scheduled, self.last_transition


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_MAX_PARTS = 1_000


class SharedParts(dict[Hashable, Any]):
    """Parts of bindings that are equal for many workloads: each is made, and later written, once. They are not stored with the engine."""

    def __reduce__(self) -> tuple[type[SharedParts], tuple[()]]:
        return type(self), ()

    def share(self, make: Callable[[K], V], of: K) -> V:
        """Return what `make` returns for a value, always the same object."""
        known: V | None = self.get((make, of))
        if known is None:
            if len(self) >= _MAX_PARTS:
                self.clear()
            known = self[make, of] = make(of)
        return known


def write_binding(
    template: Document,
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    current: PreviousState,
    result: ScheduleResult,
    parts: SharedParts,
) -> Body:
    """Return the binding as Karmada's API server would return it, with its members in reading order."""
    key = binding_key(template.key)
    annotations = parts.share(_make_annotations, (policy.key, result.applied_placement))
    if result.failback_timers:
        annotations = {**annotations, failback.FAILBACK_ANNOTATION: failback.write_failback_timers(result.failback_timers)}
    if result.annotations:
        annotations = {**annotations, **result.annotations}
    metadata: Body = {"name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    metadata["annotations"] = annotations
    metadata["labels"] = {
        permanent_id_label(policy.key.kind): _policy_permanent_id(policy),
        BINDING_ID_LABEL if key.kind == BINDING else permanent_id_label(key.kind): make_permanent_id(key),
    }
    return {
        "apiVersion": WORK_VERSION,
        "kind": key.kind,
        "metadata": metadata,
        "spec": _make_spec(template, policy, requirements, current, result, parts),
        "status": parts.share(_make_status, result.status_fields),
    }


def _make_annotations(of: tuple[Key, str | None]) -> dict[str, str]:
    policy, applied_placement = of
    applied = {APPLIED_PLACEMENT_ANNOTATION: applied_placement} if applied_placement is not None else {}
    return {**make_claim_annotations(policy), **applied}


@lru_cache(maxsize=1 << 8)
def permanent_id_label(kind: str) -> str:
    """Return the label with the permanent id of a policy or binding of this kind."""
    return f"{kind.lower()}.karmada.io/permanent-id"


@lru_cache(maxsize=1 << 15)
def make_permanent_id(key: Key) -> str:
    """Return a deterministic permanent id: a UUID version 5 of group, kind, namespace and name. Karmada's webhook sets a random UUID."""
    digest = sha1(_ID_NAMESPACE + "/".join(key).encode(), usedforsecurity=False).digest()
    number = int.from_bytes(digest[:16], "big") & ~_VERSION_BITS | _VERSION_5
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def make_resource_reference(template: Document) -> Body:
    """Return spec.resource, the reference of a binding to its workload."""
    key = template.key
    resource = {"apiVersion": template.api_version, "kind": key.kind, "namespace": key.namespace, "name": key.name}
    metadata = template.body.get("metadata")
    if isinstance(metadata, dict):
        resource |= {name: str(metadata.get(name) or "") for name in ("uid", "resourceVersion")}
    return {name: text for name, text in resource.items() if text}


def _policy_permanent_id(policy: PropagationPolicy) -> str:
    labels = as_string_map((policy.document.body.get("metadata") or {}).get("labels"))
    return labels.get(permanent_id_label(policy.key.kind)) or make_permanent_id(policy.key)


def _make_spec(
    template: Document,
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    current: PreviousState,
    result: ScheduleResult,
    parts: SharedParts,
) -> Body:
    spec: Body = {"resource": make_resource_reference(template), **write_replicas(requirements)}
    if result.clusters:
        spec["clusters"] = parts.share(write_clusters, result.clusters)
        if result.components:
            spec["clusters"] = [_add_components(one, result.components) for one in spec["clusters"]]
    if result.eviction_tasks:
        spec["gracefulEvictionTasks"] = list(result.eviction_tasks)
    spec["placement"] = policy.spec.get("placement") or {}
    spec["schedulerName"] = policy.spec.get("schedulerName") or DEFAULT_SCHEDULER
    spec["conflictResolution"] = policy.spec.get("conflictResolution") or "Abort"
    for name in ("propagateDeps", "failover", "preserveResourcesOnDeletion"):
        if policy.spec.get(name):
            spec[name] = policy.spec[name]
    suspension = {**(policy.spec.get("suspension") or {}), **({"scheduling": True} if current.scheduling_suspended else {})}
    if suspension:
        spec["suspension"] = suspension
    if current.required_by:
        spec["requiredBy"] = current.required_by
    if current.reschedule_triggered:
        spec["rescheduleTriggeredAt"] = format_time(current.reschedule_triggered)
    return spec


def write_clusters(clusters: tuple[Assignment, ...]) -> list[Body]:
    """Return spec.clusters of a binding."""
    return [{"name": name, "replicas": count} if count else {"name": name} for name, count in clusters]


def _add_components(cluster: Body, components: Mapping[str, list[Body]]) -> Body:
    return {**cluster, "components": components[cluster["name"]]} if cluster["name"] in components else cluster


def _make_status(fields: StatusFields) -> Body:
    observed_group, reason, message, last_scheduled, last_transition = fields
    status: Body = {}
    if observed_group:
        status["schedulerObservingAffinityName"] = observed_group
    if last_scheduled:
        status["lastScheduledTime"] = format_time(last_scheduled)
    if reason and last_transition:
        condition = {"type": "Scheduled", "status": "True" if reason == "Success" else "False", "reason": reason}
        text = _SUCCESS_MESSAGE if reason == "Success" else message
        status["conditions"] = [{**condition, "message": text, "lastTransitionTime": format_time(last_transition)}]
    return status


class SchedulingPass(NamedTuple):
    """One pass over a workload at a time.

    `previous` is the binding before the pass, `current` the binding after evictions, `request` the scheduler's input, `trigger` why
    the scheduler was called (None: it was not necessary) and `decision` its result (None: it was not called). `may_exceed` says that one of
    its clusters may have no capacity for it.
    """

    time: datetime
    previous: PreviousState
    current: PreviousState
    request: Request
    trigger: str | None
    decision: Decision | None
    outcome: Outcome
    may_exceed: bool


def is_rebalance_pending(current: PreviousState) -> bool:
    """Return whether a rebalance was requested after the last successful scheduling; without one there is nothing to rebalance."""
    return bool(current.reschedule_triggered and current.last_scheduled and current.reschedule_triggered > current.last_scheduled)


PLACEMENT_CHANGED = "the placement changed"
REPLICAS_CHANGED = "the replicas changed"
REBALANCE_REQUESTED = "a rebalance was requested"
EVALUATED_ALWAYS = "it is evaluated on every run"


def find_schedule_trigger(
    policy: PropagationPolicy,
    requirements: ReplicaRequirements,
    current: PreviousState,
    clusters: tuple[Assignment, ...],
    leaving: Collection[str],
) -> str | None:
    """Return the first reason to schedule a binding, in upstream's order, or None when it stays as it is."""
    if has_applied_changed(policy.applied_placement, current.applied_placement, current.observed_group):
        return PLACEMENT_CHANGED
    if policy.placement.has_replica_scheduling and _replicas_changed(policy, requirements, clusters):
        return REPLICAS_CHANGED
    if is_rebalance_pending(current):
        return REBALANCE_REQUESTED
    if not requirements.is_workload or not policy.placement.is_divided:
        return EVALUATED_ALWAYS
    if any(target.name in leaving for target in clusters):
        return "a cluster is being deleted"
    return None


def _replicas_changed(policy: PropagationPolicy, requirements: ReplicaRequirements, clusters: tuple[Assignment, ...]) -> bool:
    if requirements.components and not clusters:
        return True
    desired = requirements.replicas or 0
    if policy.placement.is_divided:
        return sum(target.replicas for target in clusters) != desired
    return any(target.replicas != desired for target in clusters)


_CONDITION_REASONS = {"scheduled": "Success", "no-fit": "NoClusterFit", "unschedulable": "Unschedulable", "error": "SchedulerError"}


def make_schedule_result(
    decision: Decision | None, policy: PropagationPolicy, previous: PreviousState, current: PreviousState, time: datetime
) -> ScheduleResult:
    """Return what a decision writes into the binding (spec/karmada.md §8). Times change only with the fields that they describe."""
    reason, message = str(current.condition.get("reason") or ""), str(current.condition.get("message") or "")
    clusters, applied, observed = current.clusters, current.applied_placement, current.observed_group
    scheduled = current.last_scheduled
    if decision is not None:
        reason, message = _CONDITION_REASONS[decision.status], decision.message
        if decision.status in ("scheduled", "no-fit"):
            # Free capacity changes the order of the clusters; the same set of clusters is the same decision.
            clusters = clusters if _have_same_members(clusters, decision.assignments) else decision.assignments
            applied = policy.applied_placement
        if decision.status == "scheduled" and decision.group:
            observed = decision.group
        pending = is_rebalance_pending(current)
        changed = not _have_same_members(clusters, previous.clusters) or observed != previous.observed_group or pending
        if decision.status == "scheduled" and (changed or scheduled is None or previous.condition.get("reason") != reason):
            # Every request until now is done, also one with a later time than this commit, and one from before the first placement.
            scheduled = max(time, current.reschedule_triggered or time)
    same = previous.condition.get("reason") == reason
    transition = parse_time(previous.condition.get("lastTransitionTime")) if same else time
    found = ScheduleResult(clusters, current.eviction_tasks, applied, observed, reason, message, scheduled, transition or time)
    return found._replace(components=current.components) if current.components else found


def _have_same_members(one: tuple[Assignment, ...], other: tuple[Assignment, ...]) -> bool:
    """Return whether the same clusters get the same replicas, in whatever order."""
    return one == other or (bool(one) and bool(other) and set(one) == set(other))
