"""What Karmada's CRDs, mutating webhooks and aggregated API server fill in before they judge an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gitsched.apis.karmada.shapes import BINDING, CLUSTER, OVERRIDE, POLICY, REBALANCER, TAINT_POLICY, Shape, settle
from gitsched.model.document import Body, group_of, member
from gitsched.model.quantity import parse_quantity

_MAX_INT64 = "9223372036854775807"
_CPU = ("0", "1", "2", "4", "8", "16", "32", "64", "128", _MAX_INT64)
_MEMORY = ("0", "4Gi", "16Gi", "32Gi", "64Gi", "128Gi", "256Gi", "512Gi", "1Ti", _MAX_INT64)
_MODELS = [
    {"grade": grade, "ranges": [{"name": n, "min": t[grade], "max": t[grade + 1]} for n, t in (("cpu", _CPU), ("memory", _MEMORY))]}
    for grade in range(9)
]


def default(body: Body) -> Body:
    """The document as Karmada would store it, apart from what only a server can know (ids, finalizers, a taint's timeAdded).

    Null members are gone, and so are optional members that are empty where a webhook writes the object anew. Mistakes are left for
    the schema and the rules to name. The same object when nothing changes; also for a document that is none of Karmada's.
    """
    known = _KINDS.get((group_of(str(body.get("apiVersion"))), str(body.get("kind"))))
    if known is None:
        return body
    shape, typed, fill = known
    settled = settle(body, shape, typed=typed)
    spec = settled.get("spec")
    if fill is None or not isinstance(spec, dict):
        return settled
    return replace(settled, spec=fill(spec, settled))


def replace(body: Body, **members: Any) -> Body:
    """The object with some members exchanged; the same object when they are what it has."""
    if all(body.get(name) is value for name, value in members.items()):
        return body
    return {**body, **members}


def _fill_policy(spec: Body, body: Body) -> Body:
    if body["kind"] == "PropagationPolicy":
        spec = _fill_namespaces(spec, body)
    selectors = [s for s in _list(spec, "resourceSelectors") if isinstance(s, dict)]
    if any(s.get("kind") == "ServiceImport" and s.get("apiVersion") == "multicluster.x-k8s.io/v1alpha1" for s in selectors):
        spec = replace(spec, propagateDeps=True)
    if isinstance(placement := spec.get("placement"), dict):
        spec = replace(spec, placement=_fill_placement(placement))
    application = member(spec, "failover", "application")
    if isinstance(application, dict) and application.get("purgeMode") == "Gracefully" and "gracePeriodSeconds" not in application:
        spec = replace(spec, failover={**spec["failover"], "application": {**application, "gracePeriodSeconds": 600}})
    return spec


def _fill_namespaces(spec: Body, body: Body) -> Body:
    namespace = member(body, "metadata", "namespace") or "default"
    selectors = _list(spec, "resourceSelectors")
    filled = [{**s, "namespace": namespace} if isinstance(s, dict) and "namespace" not in s else s for s in selectors]
    return replace(spec, resourceSelectors=filled) if any(n is not o for n, o in zip(filled, selectors, strict=True)) else spec


def _fill_placement(placement: Body) -> Body:
    constraints = _list(placement, "spreadConstraints")
    filled = [_fill_constraint(c) if isinstance(c, dict) else c for c in constraints]
    if any(new is not old for new, old in zip(filled, constraints, strict=True)):
        placement = replace(placement, spreadConstraints=filled)
    scheduling = placement.get("replicaScheduling")
    if (
        isinstance(scheduling, dict)
        and scheduling.get("replicaSchedulingType") == "Divided"
        and "replicaDivisionPreference" not in scheduling
    ):
        placement = replace(placement, replicaScheduling={**scheduling, "replicaDivisionPreference": "Weighted"})
    return placement


def _fill_constraint(constraint: Body) -> Body:
    if "spreadByField" not in constraint and "spreadByLabel" not in constraint:
        constraint = {**constraint, "spreadByField": "cluster"}
    least = constraint.get("minGroups", 0)
    if least == 0 and least is not False:  # a boolean is a mistake for the schema to name
        constraint = {**constraint, "minGroups": 1}
    return constraint


def _fill_cluster(spec: Body, _: Body) -> Body:
    if spec.get("zone") and "zones" not in spec:
        spec = {**{name: value for name, value in spec.items() if name != "zone"}, "zones": [spec["zone"]]}
    models = spec.get("resourceModels")
    if models is None:
        return replace(spec, resourceModels=_MODELS)
    return replace(spec, resourceModels=_standardise(models)) if _are_models(models) else spec


def _standardise(models: list[Body]) -> list[Body]:
    """By grade; the first grade begins at zero and the last one has no end."""
    models = sorted(models, key=lambda model: model["grade"])
    models[0] = {**models[0], "ranges": [_set_bound(entry, "min", "0") for entry in models[0]["ranges"]]}
    models[-1] = {**models[-1], "ranges": [_set_bound(entry, "max", _MAX_INT64) for entry in models[-1]["ranges"]]}
    return models


def _set_bound(entry: Body, name: str, bound: str) -> Body:
    """Another bound, unless the one that is there is no quantity: that is for the rules to name."""
    return entry if parse_quantity(entry.get(name, "0")) is None else {**entry, name: bound}


def _are_models(models: Any) -> bool:
    return isinstance(models, list) and all(
        isinstance(m, dict)
        and type(m.get("grade")) is int
        and isinstance(m.get("ranges"), list)
        and all(isinstance(entry, dict) for entry in m["ranges"])
        for m in models
    )


def _list(body: Body, name: str) -> list[Any]:
    value = body.get(name)
    return value if isinstance(value, list) else []


_Fill = Callable[[Body, Body], Body]
_POLICIES, _WORK = "policy.karmada.io", "work.karmada.io"
_KINDS: Mapping[tuple[str, str], tuple[Shape, bool, _Fill | None]] = {
    (_POLICIES, "PropagationPolicy"): (POLICY, True, _fill_policy),
    (_POLICIES, "ClusterPropagationPolicy"): (POLICY, True, _fill_policy),
    (_POLICIES, "OverridePolicy"): (OVERRIDE, True, _fill_namespaces),
    (_POLICIES, "ClusterOverridePolicy"): (OVERRIDE, False, None),
    (_POLICIES, "ClusterTaintPolicy"): (TAINT_POLICY, False, None),
    (_WORK, "ResourceBinding"): (BINDING, True, None),
    (_WORK, "ClusterResourceBinding"): (BINDING, True, None),
    ("apps.karmada.io", "WorkloadRebalancer"): (REBALANCER, False, None),
    ("cluster.karmada.io", "Cluster"): (CLUSTER, True, _fill_cluster),
}
