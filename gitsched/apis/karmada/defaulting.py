"""Defaults of Karmada's CRDs, mutating webhooks and aggregated API server."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import is_
from typing import Any

from gitsched.model.document import Body, get_field, parse_api_group
from gitsched.model.quantity import parse_quantity
from gitsched.named_tuples import NamedTuple


class ObjectShape(NamedTuple):
    """How defaulting and a round trip through Karmada's Go types change an object.

    `defaults` are added when a member is missing. `zero` are members that Go always writes. `keep` are members that are written even
    when empty, but not when missing. `parts` are members that are objects or lists of objects themselves.
    """

    defaults: Mapping[str, Any] = {}
    zero: Mapping[str, Any] = {}
    keep: tuple[str, ...] = ()
    parts: Mapping[str, ObjectShape] = {}


def normalize_object(body: Body, shape: ObjectShape, *, typed: bool) -> Body:
    """Apply CRD defaults and, if a webhook decodes the object (`typed`), the round trip.

    Returns the same object when nothing changes.
    """
    defaults, zero, _, parts = shape
    changes: dict[str, Any] = {}
    if parts:
        for name, value in body.items():
            if name in parts and value is not None and (changed := _normalize_member(value, parts[name], typed=typed)) is not value:
                changes[name] = changed
    removed = _find_removed(body, shape, typed=typed) if not all(body.values()) else frozenset[str]()
    missing = {name: value for name, value in defaults.items() if body.get(name) is None or name in removed}
    if typed and zero:
        missing |= {name: value for name, value in zero.items() if body.get(name) is None}
    if not (changes or removed or missing):
        return body
    if removed:
        body = {name: value for name, value in body.items() if name not in removed}
    return {**body, **changes, **missing}


def _find_removed(body: Body, shape: ObjectShape, *, typed: bool) -> Collection[str]:
    """Return the members that are not written: null, and with a round trip empty texts and lists."""
    names = {name for name, value in body.items() if value is None or (typed and not value and value in ("", []))}
    return {name for name in names if body[name] is None or not (name in shape.zero or name in shape.keep)}


def _normalize_member(value: Any, shape: ObjectShape, *, typed: bool) -> Any:
    if isinstance(value, dict):
        return value if shape is _NOTHING_TO_ADD and all(value.values()) else normalize_object(value, shape, typed=typed)
    if isinstance(value, list):
        items = [normalize_object(item, shape, typed=typed) if isinstance(item, dict) else item for item in value]
        return value if all(map(is_, items, value)) else items
    return value


_NOTHING_TO_ADD = ObjectShape()
"""The shape of an object of which only empty members are removed."""
_SELECTOR_SHAPE = ObjectShape(parts={"matchExpressions": ObjectShape(zero={"key": "", "operator": ""})})
_AFFINITY_SHAPE = ObjectShape(parts={"labelSelector": _SELECTOR_SHAPE, "fieldSelector": _SELECTOR_SHAPE})
_AFFINITY_TERM_SHAPE = ObjectShape(parts={**_AFFINITY_SHAPE.parts, "overflowAffinities": _AFFINITY_SHAPE})
_RESOURCE_SELECTOR_SHAPE = ObjectShape(zero={"apiVersion": "", "kind": ""}, parts={"labelSelector": _SELECTOR_SHAPE})
_STATIC_WEIGHT_SHAPE = ObjectShape(zero={"targetCluster": {}}, parts={"targetCluster": _AFFINITY_SHAPE})
_PLACEMENT_SHAPE = ObjectShape(
    parts={
        "clusterAffinity": _AFFINITY_SHAPE,
        "clusterAffinities": _AFFINITY_TERM_SHAPE,
        "clusterTolerations": _NOTHING_TO_ADD,
        "spreadConstraints": _NOTHING_TO_ADD,
        "replicaScheduling": ObjectShape(
            defaults={"replicaSchedulingType": "Divided"},
            parts={"weightPreference": ObjectShape(parts={"staticWeightList": _STATIC_WEIGHT_SHAPE})},
        ),
        "workloadAffinity": ObjectShape(
            parts={"affinity": ObjectShape(keep=("groupByLabelKey",)), "antiAffinity": ObjectShape(keep=("groupByLabelKey",))}
        ),
    }
)
_STATE_PRESERVATION_SHAPE = ObjectShape(
    keep=("rules",), parts={"rules": ObjectShape(zero={"jsonPath": ""}, keep=("aliasLabelName",))}
)
_FAILOVER_SHAPE = ObjectShape(
    parts={
        "application": ObjectShape(
            defaults={"purgeMode": "Gracefully"},
            parts={
                "decisionConditions": ObjectShape(defaults={"tolerationSeconds": 300}),
                "statePreservation": _STATE_PRESERVATION_SHAPE,
            },
        ),
        "cluster": ObjectShape(defaults={"purgeMode": "Gracefully"}, parts={"statePreservation": _STATE_PRESERVATION_SHAPE}),
    }
)
_SUSPENSION_SHAPE = ObjectShape(parts={"dispatchingOnClusters": _NOTHING_TO_ADD})
_PATCH_SHAPE = ObjectShape(zero={"subPath": ""}, keep=("value",))
_OVERRIDERS_SHAPE = ObjectShape(
    parts={
        "plaintext": ObjectShape(zero={"path": ""}, keep=("value",)),
        "imageOverrider": ObjectShape(parts={"predicate": ObjectShape(zero={"path": ""})}),
        "commandOverrider": ObjectShape(zero={"containerName": ""}),
        "argsOverrider": ObjectShape(zero={"containerName": ""}),
        "labelsOverrider": _NOTHING_TO_ADD,
        "annotationsOverrider": _NOTHING_TO_ADD,
        "fieldOverrider": ObjectShape(zero={"fieldPath": ""}, parts={"json": _PATCH_SHAPE, "yaml": _PATCH_SHAPE}),
    }
)
_TARGET_CLUSTER_SHAPE = ObjectShape(zero={"name": ""}, parts={"components": ObjectShape(zero={"name": "", "replicas": 0})})
_REQUIREMENTS_SHAPE = ObjectShape(parts={"nodeClaim": ObjectShape(parts={"tolerations": _NOTHING_TO_ADD})})
_REFERENCE_SHAPE = ObjectShape(zero={"apiVersion": "", "kind": "", "name": ""})


def _make_root_shape(spec: ObjectShape, *, spec_zero: Mapping[str, Any] | None = None) -> ObjectShape:
    return ObjectShape(
        zero={} if spec_zero is None else {"spec": spec_zero},
        parts={"metadata": _NOTHING_TO_ADD, "spec": spec, "status": _NOTHING_TO_ADD},
    )


POLICY_SHAPE = _make_root_shape(
    ObjectShape(
        defaults={"priority": 0, "preemption": "Never", "schedulerName": "default-scheduler", "conflictResolution": "Abort"},
        zero={"placement": {}},
        keep=("resourceSelectors",),
        parts={
            "resourceSelectors": _RESOURCE_SELECTOR_SHAPE,
            "placement": _PLACEMENT_SHAPE,
            "failover": _FAILOVER_SHAPE,
            "suspension": _SUSPENSION_SHAPE,
            "schedulePriority": ObjectShape(zero={"priorityClassName": ""}),
        },
    )
)
OVERRIDE_SHAPE = _make_root_shape(
    ObjectShape(
        zero={"overriders": {}},
        parts={
            "resourceSelectors": _RESOURCE_SELECTOR_SHAPE,
            "overrideRules": ObjectShape(
                zero={"overriders": {}}, parts={"targetCluster": _AFFINITY_SHAPE, "overriders": _OVERRIDERS_SHAPE}
            ),
            "targetCluster": _AFFINITY_SHAPE,
            "overriders": _OVERRIDERS_SHAPE,
        },
    ),
    spec_zero={"overriders": {}},
)
TAINT_POLICY_SHAPE = _make_root_shape(
    ObjectShape(
        parts={
            "targetClusters": _AFFINITY_SHAPE,
            "addOnConditions": _NOTHING_TO_ADD,
            "removeOnConditions": _NOTHING_TO_ADD,
            "taints": _NOTHING_TO_ADD,
        }
    )
)
REBALANCER_SHAPE = _make_root_shape(ObjectShape(parts={"workloads": _NOTHING_TO_ADD}))
CLUSTER_SHAPE = _make_root_shape(
    ObjectShape(
        parts={
            "secretRef": _NOTHING_TO_ADD,
            "impersonatorSecretRef": _NOTHING_TO_ADD,
            "taints": ObjectShape(keep=("key",)),
            "resourceModels": ObjectShape(
                zero={"grade": 0, "ranges": []}, parts={"ranges": ObjectShape(zero={"name": "", "min": "0", "max": "0"})}
            ),
        }
    )
)
BINDING_SHAPE = _make_root_shape(
    ObjectShape(
        defaults={"conflictResolution": "Abort"},
        zero={"resource": {"apiVersion": "", "kind": "", "name": ""}},
        parts={
            "resource": _REFERENCE_SHAPE,
            "replicaRequirements": _REQUIREMENTS_SHAPE,
            "components": ObjectShape(zero={"name": "", "replicas": 0}, parts={"replicaRequirements": _REQUIREMENTS_SHAPE}),
            "clusters": _TARGET_CLUSTER_SHAPE,
            "placement": _PLACEMENT_SHAPE,
            "gracefulEvictionTasks": ObjectShape(zero={"fromCluster": "", "producer": ""}, keep=("reason",)),
            "requiredBy": ObjectShape(zero={"name": ""}, parts={"clusters": _TARGET_CLUSTER_SHAPE}),
            "failover": _FAILOVER_SHAPE,
            "suspension": _SUSPENSION_SHAPE,
        },
    ),
)


_MAX_INT64 = "9223372036854775807"
_CPU_BOUNDS = ("0", "1", "2", "4", "8", "16", "32", "64", "128", _MAX_INT64)
_MEMORY_BOUNDS = ("0", "4Gi", "16Gi", "32Gi", "64Gi", "128Gi", "256Gi", "512Gi", "1Ti", _MAX_INT64)
DEFAULT_RESOURCE_MODELS = [
    {
        "grade": grade,
        "ranges": [
            {"name": n, "min": t[grade], "max": t[grade + 1]} for n, t in (("cpu", _CPU_BOUNDS), ("memory", _MEMORY_BOUNDS))
        ],
    }
    for grade in range(9)
]


def apply_defaults(body: Body) -> Body:
    """Return the document as Karmada stores it, without what only a server can set (ids, finalizers, a taint's timeAdded).

    Null members are removed, and so are empty optional members of objects that a webhook decodes. Invalid values are kept for the
    validation to report. Returns the same object when nothing changes and for a kind that Karmada does not have.
    """
    entry = _DEFAULTS_BY_KIND.get((parse_api_group(str(body.get("apiVersion"))), str(body.get("kind"))))
    if entry is None:
        return body
    shape, typed, fill = entry
    normalized = normalize_object(body, shape, typed=typed)
    spec = normalized.get("spec")
    if fill is None or not isinstance(spec, dict):
        return normalized
    return replace_members(normalized, spec=fill(spec, normalized))


def replace_members(body: Body, **members: Any) -> Body:
    """Replace members of an object; returns the same object when it has these values already."""
    for name, value in members.items():
        if body.get(name) is not value:
            return {**body, **members}
    return body


def _default_policy(spec: Body, body: Body) -> Body:
    if body["kind"] == "PropagationPolicy":
        spec = _default_namespaces(spec, body)
    selectors = [s for s in _read_list(spec, "resourceSelectors") if isinstance(s, dict)]
    if any(s.get("kind") == "ServiceImport" and s.get("apiVersion") == "multicluster.x-k8s.io/v1alpha1" for s in selectors):
        spec = replace_members(spec, propagateDeps=True)
    if isinstance(placement := spec.get("placement"), dict):
        spec = replace_members(spec, placement=_default_placement(placement))
    application = get_field(spec["failover"], "application") if spec.get("failover") else None
    if isinstance(application, dict) and application.get("purgeMode") == "Gracefully" and "gracePeriodSeconds" not in application:
        spec = replace_members(spec, failover={**spec["failover"], "application": {**application, "gracePeriodSeconds": 600}})
    return spec


def _default_namespaces(spec: Body, body: Body) -> Body:
    namespace = get_field(body, "metadata", "namespace") or "default"
    selectors = _read_list(spec, "resourceSelectors")
    filled = [{**s, "namespace": namespace} if isinstance(s, dict) and "namespace" not in s else s for s in selectors]
    return (
        replace_members(spec, resourceSelectors=filled) if any(n is not o for n, o in zip(filled, selectors, strict=True)) else spec
    )


def _default_placement(placement: Body) -> Body:
    constraints = _read_list(placement, "spreadConstraints")
    filled = [_default_spread_constraint(c) if isinstance(c, dict) else c for c in constraints]
    if any(new is not old for new, old in zip(filled, constraints, strict=True)):
        placement = replace_members(placement, spreadConstraints=filled)
    scheduling = placement.get("replicaScheduling")
    if (
        isinstance(scheduling, dict)
        and scheduling.get("replicaSchedulingType") == "Divided"
        and "replicaDivisionPreference" not in scheduling
    ):
        placement = replace_members(placement, replicaScheduling={**scheduling, "replicaDivisionPreference": "Weighted"})
    return placement


def _default_spread_constraint(constraint: Body) -> Body:
    if "spreadByField" not in constraint and "spreadByLabel" not in constraint:
        constraint = {**constraint, "spreadByField": "cluster"}
    least = constraint.get("minGroups", 0)
    if least == 0 and least is not False:  # the schema rejects a boolean
        constraint = {**constraint, "minGroups": 1}
    return constraint


def _default_cluster(spec: Body, _: Body) -> Body:
    if spec.get("zone") and "zones" not in spec:
        spec = {**{name: value for name, value in spec.items() if name != "zone"}, "zones": [spec["zone"]]}
    models = spec.get("resourceModels")
    if models is None:
        return replace_members(spec, resourceModels=DEFAULT_RESOURCE_MODELS)
    return replace_members(spec, resourceModels=_standardize_resource_models(models)) if _is_model_list(models) else spec


def _standardize_resource_models(models: list[Body]) -> list[Body]:
    """Sort models by grade; the first grade begins at zero and the last one has no end."""
    models = sorted(models, key=lambda model: model["grade"])
    models[0] = {**models[0], "ranges": [_set_bound(entry, "min", "0") for entry in models[0]["ranges"]]}
    models[-1] = {**models[-1], "ranges": [_set_bound(entry, "max", _MAX_INT64) for entry in models[-1]["ranges"]]}
    return models


def _set_bound(entry: Body, name: str, bound: str) -> Body:
    """Replace a bound unless it is an invalid quantity, which the validation reports."""
    return entry if parse_quantity(entry.get(name, "0")) is None else {**entry, name: bound}


def _is_model_list(models: Any) -> bool:
    return isinstance(models, list) and all(
        isinstance(m, dict)
        and type(m.get("grade")) is int
        and isinstance(m.get("ranges"), list)
        and all(isinstance(entry, dict) for entry in m["ranges"])
        for m in models
    )


def _read_list(body: Body, name: str) -> list[Any]:
    value = body.get(name)
    return value if isinstance(value, list) else []


_Defaulter = Callable[[Body, Body], Body]
_POLICY_GROUP, _WORK_GROUP = "policy.karmada.io", "work.karmada.io"
_DEFAULTS_BY_KIND: Mapping[tuple[str, str], tuple[ObjectShape, bool, _Defaulter | None]] = {
    (_POLICY_GROUP, "PropagationPolicy"): (POLICY_SHAPE, True, _default_policy),
    (_POLICY_GROUP, "ClusterPropagationPolicy"): (POLICY_SHAPE, True, _default_policy),
    (_POLICY_GROUP, "OverridePolicy"): (OVERRIDE_SHAPE, True, _default_namespaces),
    (_POLICY_GROUP, "ClusterOverridePolicy"): (OVERRIDE_SHAPE, False, None),
    (_POLICY_GROUP, "ClusterTaintPolicy"): (TAINT_POLICY_SHAPE, False, None),
    (_WORK_GROUP, "ResourceBinding"): (BINDING_SHAPE, True, None),
    (_WORK_GROUP, "ClusterResourceBinding"): (BINDING_SHAPE, True, None),
    ("apps.karmada.io", "WorkloadRebalancer"): (REBALANCER_SHAPE, False, None),
    ("cluster.karmada.io", "Cluster"): (CLUSTER_SHAPE, True, _default_cluster),
}
