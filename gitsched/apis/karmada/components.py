"""spec.components of a binding: the groups of pods of a workload with several pod templates, which clusters get whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gitsched.apis.karmada.interpreter import (
    ReplicaRequirements,
    WorkloadComponent,
    parse_quantities,
    read_pod_requirements,
    read_pods,
    write_requirements,
)
from gitsched.kinds.components import ComponentPods, read_components
from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, Document, as_object, list_objects
from gitsched.model.quantity import Quantity
from gitsched.model.scheduling import CLUSTER_FIELD, PodSets, SpreadConstraint

_PLAIN_MEMORY = "flink.apache.org"
"""Kinds of this group have their memory as a plain number of bytes in a binding."""


def read_workload_components(template: Document) -> tuple[WorkloadComponent, ...]:
    """Return the components of a workload; () for a kind without, or where a number of pods is no number."""
    kind = find_kind(template.key.group, template.key.kind)
    if kind is None or not kind.components:
        return ()
    found = read_components(template.body, kind) or ()
    return tuple(_make_component(one, is_plain=template.key.group == _PLAIN_MEMORY) for one in found)


def has_uncounted_components(template: Document) -> bool:
    """Return whether a number of pods of a component is no number, so that the workload has no components."""
    kind = find_kind(template.key.group, template.key.kind)
    return kind is not None and bool(kind.components) and read_components(template.body, kind) is None


def _make_component(pods: ComponentPods, *, is_plain: bool) -> WorkloadComponent:
    if pods.resources is None:
        return WorkloadComponent(pods.name, pods.replicas, read_pod_requirements(pods.pod)[0])
    parsed = parse_quantities(pods.resources).items()
    request = {name: Quantity(one.nano) if is_plain and name == "memory" else one for name, one in parsed if one.nano}
    claim = {name: value for name, value in (pods.pod or {}).items() if name in ("nodeSelector", "tolerations") and value}
    return WorkloadComponent(pods.name, pods.replicas, write_requirements(claim, request)[0])


def read_bound_components(components: object) -> tuple[WorkloadComponent, ...]:
    """Return the components in spec.components of a binding."""
    return tuple(
        WorkloadComponent(str(one.get("name")), one["replicas"], as_object(one.get("replicaRequirements")))
        for one in list_objects(components)
        if isinstance(one.get("replicas"), int)
    )


def read_bound_requirements(record: Body) -> ReplicaRequirements:
    """Return the requirements that a binding has."""
    spec = as_object(record.get("spec"))
    requirements, components = spec.get("replicaRequirements"), read_bound_components(spec.get("components"))
    request = read_pods(1, as_object(requirements).get("resourceRequest")).resource_request
    return ReplicaRequirements(spec.get("replicas"), requirements, None, resource_request=request, components=components)


def place_one_set(spreads: Iterable[SpreadConstraint]) -> bool:
    """Return whether spread constraints ask for exactly one cluster, so that it is estimated where a whole set fits."""
    return any((one.field, one.minimum, one.maximum) == (CLUSTER_FIELD, 1, 1) for one in spreads)


def make_sets(components: Sequence[WorkloadComponent], spreads: Iterable[SpreadConstraint]) -> PodSets | None:
    """Return what is asked of the scheduler for a workload that clusters get whole; None for another one."""
    return PodSets(tuple(one.pods for one in components), place_one_set(spreads)) if components else None
