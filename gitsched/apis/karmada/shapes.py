"""What a round trip through Karmada's typed objects does to a document, as data.

Karmada's mutating webhooks decode an object and write it back. On the way null members vanish, optional members that are empty
vanish, and members that are always written come back with their zero value. CRD defaults are applied before and once more after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gitsched.model.document import Body


class Shape(NamedTuple):
    """An object of Karmada's API, as far as a round trip changes it.

    `defaults` are filled in when the member is missing. `zero` are the members that are always written.
    `keep` are members that are written even when empty, but not when missing. `parts` are members that are objects, or lists of
    objects, themselves.
    """

    defaults: Mapping[str, Any] = {}
    zero: Mapping[str, Any] = {}
    keep: tuple[str, ...] = ()
    parts: Mapping[str, Shape] = {}


def settle(body: Body, shape: Shape, *, typed: bool) -> Body:
    """The object after CRD defaults and, where a webhook decodes it (`typed`), the round trip.

    The same object when nothing changes.
    """
    changes: dict[str, Any] = {}
    gone: set[str] = set()
    for name, value in body.items():
        if value is None or (typed and value in ("", []) and name not in shape.zero and name not in shape.keep):
            gone.add(name)
        elif name in shape.parts and (settled := _settle_part(value, shape.parts[name], typed=typed)) is not value:
            changes[name] = settled
    missing = {name: value for name, value in shape.defaults.items() if body.get(name) is None or name in gone}
    if typed:
        missing |= {name: value for name, value in shape.zero.items() if body.get(name) is None}
    if not (changes or gone or missing):
        return body
    return {name: changes.get(name, value) for name, value in body.items() if name not in gone} | missing


def _settle_part(value: Any, shape: Shape, *, typed: bool) -> Any:
    if isinstance(value, dict):
        return settle(value, shape, typed=typed)
    if isinstance(value, list):
        items = [settle(item, shape, typed=typed) if isinstance(item, dict) else item for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


_SELECTOR = Shape(parts={"matchExpressions": Shape(zero={"key": "", "operator": ""})})
_AFFINITY = Shape(parts={"labelSelector": _SELECTOR, "fieldSelector": _SELECTOR})
_TERM = Shape(parts={**_AFFINITY.parts, "overflowAffinities": _AFFINITY})
_RESOURCES = Shape(zero={"apiVersion": "", "kind": ""}, parts={"labelSelector": _SELECTOR})
_STATIC_WEIGHT = Shape(zero={"targetCluster": {}}, parts={"targetCluster": _AFFINITY})
_PLACEMENT = Shape(
    parts={
        "clusterAffinity": _AFFINITY,
        "clusterAffinities": _TERM,
        "clusterTolerations": Shape(),
        "spreadConstraints": Shape(),
        "replicaScheduling": Shape(
            defaults={"replicaSchedulingType": "Divided"},
            parts={"weightPreference": Shape(parts={"staticWeightList": _STATIC_WEIGHT})},
        ),
        "workloadAffinity": Shape(
            parts={"affinity": Shape(keep=("groupByLabelKey",)), "antiAffinity": Shape(keep=("groupByLabelKey",))}
        ),
    }
)
_PRESERVED = Shape(keep=("rules",), parts={"rules": Shape(zero={"jsonPath": ""}, keep=("aliasLabelName",))})
_FAILOVER = Shape(
    parts={
        "application": Shape(
            defaults={"purgeMode": "Gracefully"},
            parts={"decisionConditions": Shape(defaults={"tolerationSeconds": 300}), "statePreservation": _PRESERVED},
        ),
        "cluster": Shape(defaults={"purgeMode": "Gracefully"}, parts={"statePreservation": _PRESERVED}),
    }
)
_SUSPENSION = Shape(parts={"dispatchingOnClusters": Shape()})
_PATCH = Shape(zero={"subPath": ""}, keep=("value",))
_OVERRIDERS = Shape(
    parts={
        "plaintext": Shape(zero={"path": ""}, keep=("value",)),
        "imageOverrider": Shape(parts={"predicate": Shape(zero={"path": ""})}),
        "commandOverrider": Shape(zero={"containerName": ""}),
        "argsOverrider": Shape(zero={"containerName": ""}),
        "labelsOverrider": Shape(),
        "annotationsOverrider": Shape(),
        "fieldOverrider": Shape(zero={"fieldPath": ""}, parts={"json": _PATCH, "yaml": _PATCH}),
    }
)
_TARGET = Shape(zero={"name": ""}, parts={"components": Shape(zero={"name": "", "replicas": 0})})
_REQUIREMENTS = Shape(parts={"nodeClaim": Shape(parts={"tolerations": Shape()})})
_REFERENCE = Shape(zero={"apiVersion": "", "kind": "", "name": ""})


def _root(spec: Shape, *, spec_zero: Mapping[str, Any] | None = None) -> Shape:
    return Shape(
        zero={} if spec_zero is None else {"spec": spec_zero}, parts={"metadata": Shape(), "spec": spec, "status": Shape()}
    )


POLICY = _root(
    Shape(
        defaults={"priority": 0, "preemption": "Never", "schedulerName": "default-scheduler", "conflictResolution": "Abort"},
        zero={"placement": {}},
        keep=("resourceSelectors",),
        parts={
            "resourceSelectors": _RESOURCES,
            "placement": _PLACEMENT,
            "failover": _FAILOVER,
            "suspension": _SUSPENSION,
            "schedulePriority": Shape(zero={"priorityClassName": ""}),
        },
    )
)
OVERRIDE = _root(
    Shape(
        zero={"overriders": {}},
        parts={
            "resourceSelectors": _RESOURCES,
            "overrideRules": Shape(zero={"overriders": {}}, parts={"targetCluster": _AFFINITY, "overriders": _OVERRIDERS}),
            "targetCluster": _AFFINITY,
            "overriders": _OVERRIDERS,
        },
    ),
    spec_zero={"overriders": {}},
)
TAINT_POLICY = _root(
    Shape(parts={"targetClusters": _AFFINITY, "addOnConditions": Shape(), "removeOnConditions": Shape(), "taints": Shape()})
)
REBALANCER = _root(Shape(parts={"workloads": Shape()}))
CLUSTER = _root(
    Shape(
        parts={
            "secretRef": Shape(),
            "impersonatorSecretRef": Shape(),
            "taints": Shape(keep=("key",)),
            "resourceModels": Shape(
                zero={"grade": 0, "ranges": []}, parts={"ranges": Shape(zero={"name": "", "min": "0", "max": "0"})}
            ),
        }
    )
)
BINDING = _root(
    Shape(
        defaults={"conflictResolution": "Abort"},
        zero={"resource": {"apiVersion": "", "kind": "", "name": ""}},
        parts={
            "resource": _REFERENCE,
            "replicaRequirements": _REQUIREMENTS,
            "components": Shape(zero={"name": "", "replicas": 0}, parts={"replicaRequirements": _REQUIREMENTS}),
            "clusters": _TARGET,
            "placement": _PLACEMENT,
            "gracefulEvictionTasks": Shape(zero={"fromCluster": "", "producer": ""}, keep=("reason",)),
            "requiredBy": Shape(zero={"name": ""}, parts={"clusters": _TARGET}),
            "failover": _FAILOVER,
            "suspension": _SUSPENSION,
        },
    ),
)
