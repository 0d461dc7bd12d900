"""spec.components of a binding: the groups of pods of a workload with several pod templates, which clusters get whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitsched.apis.karmada.interpreter import (
    ReplicaRequirements,
    ResourceRequest,
    WorkloadComponent,
    list_decimal,
    read_pod_requirements,
    write_requirements,
)
from gitsched.kinds.components import ComponentPods, read_components
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Document, as_object, list_objects
from gitsched.model.quantity import Quantity, parse_quantity
from gitsched.model.scheduling import CLUSTER_FIELD, EqualPods, PodSets, SpreadConstraint

_PLAIN_MEMORY = "flink.apache.org"
"""Kinds of this group have their memory as a plain number of bytes in a binding."""


def read_workload_components(template: Document) -> tuple[WorkloadComponent, ...]:
    """Return the components of a workload; () for a kind without, or where a number of pods is no number."""
    kind = find_kind(template.key.group, template.key.kind)
    if kind is None or not kind.components:
        return ()
    found = read_components(template.body, kind) or ()
    return tuple(_make_component(one, is_plain=template.key.group == _PLAIN_MEMORY) for one in found)


def _make_component(pods: ComponentPods, *, is_plain: bool) -> WorkloadComponent:
    if pods.resources is None:
        return WorkloadComponent(pods.name, pods.replicas, *read_pod_requirements(pods.pod))
    parsed = {name: quantity for name, text in pods.resources.items() if (quantity := parse_quantity(text)) is not None}
    request = {name: Quantity(one.nano) if is_plain and name == "memory" else one for name, one in parsed.items() if one.nano}
    claim = {name: value for name, value in (pods.pod or {}).items() if name in ("nodeSelector", "tolerations") and value}
    return WorkloadComponent(pods.name, pods.replicas, *write_requirements(claim, request))


def read_bound_pods(components: object) -> tuple[EqualPods, ...]:
    """Return the groups of pods of spec.components of a binding."""
    entries = (
        (one.get("replicas"), as_object(one.get("replicaRequirements")).get("resourceRequest")) for one in list_objects(components)
    )
    return tuple(
        EqualPods(count, read_request(request), list_decimal(request)) for count, request in entries if isinstance(count, int)
    )


def read_bound_requirements(record: Body) -> ReplicaRequirements:
    """Return the requirements that a binding has."""
    spec = as_object(record.get("spec"))
    requirements, replicas = spec.get("replicaRequirements"), spec.get("replicas")
    components = tuple(
        WorkloadComponent(str(one.get("name")), pods.replicas, one.get("replicaRequirements"), pods.resource_request)
        for one, pods in zip(list_objects(spec.get("components")), read_bound_pods(spec.get("components")), strict=False)
    )
    request = read_request(as_object(requirements).get("resourceRequest"))
    return ReplicaRequirements(replicas, requirements, None, resource_request=request, components=components)


def read_request(value: object) -> ResourceRequest | None:
    """Return a resourceRequest of a binding as estimates count it; None without one."""
    parsed = {str(name): quantity for name, text in as_object(value).items() if (quantity := parse_quantity(text)) is not None}
    return write_requirements({}, parsed)[1]


def place_one_set(spreads: Iterable[SpreadConstraint]) -> bool:
    """Return whether spread constraints ask for exactly one cluster, so that it is estimated where a whole set fits."""
    return any((one.field, one.minimum, one.maximum) == (CLUSTER_FIELD, 1, 1) for one in spreads)


def make_sets(components: Sequence[WorkloadComponent], spreads: Iterable[SpreadConstraint]) -> PodSets | None:
    """Return what is asked of the scheduler for a workload that clusters get whole; None for another one."""
    return PodSets(tuple(one.pods for one in components), place_one_set(spreads)) if components else None
