"""What Karmada demands of a placement beyond its schema."""

from __future__ import annotations

from collections.abc import Iterator

from gitsched.apis.karmada.label_rules import Pointer, error, judge_label_key
from gitsched.model.document import Body, member
from gitsched.model.issue import Issue

_FIELDS = ("provider", "region", "zone")


def judge_placement(placement: Body, at: Pointer) -> Iterator[Issue]:
    if "clusterAffinity" in placement and "clusterAffinities" in placement:
        message = "clusterAffinities cannot co-exist with clusterAffinity"
        yield error("karmada-affinity-conflict", message, *at, "clusterAffinities")
    if "clusterAffinity" in placement:
        yield from judge_affinity(placement["clusterAffinity"], (*at, "clusterAffinity"))
    yield from _judge_groups(placement, (*at, "clusterAffinities"))
    yield from _judge_spread(placement.get("spreadConstraints", []), (*at, "spreadConstraints"))
    yield from _judge_workload_affinity(placement.get("workloadAffinity", {}), (*at, "workloadAffinity"))
    for index, toleration in enumerate(placement.get("clusterTolerations", [])):
        if (operator := toleration.get("operator")) in ("Lt", "Gt"):
            message = f"operator {operator} is not supported for clusters; use Exists or Equal"
            yield error("karmada-toleration-operator", message, *at, "clusterTolerations", index, "operator")


def judge_affinity(affinity: Body, at: Pointer) -> Iterator[Issue]:
    """Field selectors know three fields and two operators; a label selector is taken as it is, and a bad one matches nothing."""
    for index, expression in enumerate(member(affinity, "fieldSelector", "matchExpressions") or []):
        place = (*at, "fieldSelector", "matchExpressions", index)
        key, operator = expression["key"], expression["operator"]
        if key not in _FIELDS:
            yield error("karmada-field-selector-key", f"unsupported key {key!r}, must be provider, region or zone", *place, "key")
        if operator not in ("In", "NotIn"):
            message = f"unsupported operator {operator!r}, must be In or NotIn"
            yield error("karmada-field-selector-operator", message, *place, "operator")


def _judge_groups(placement: Body, at: Pointer) -> Iterator[Issue]:
    overflow = _allows_overflow(placement.get("replicaScheduling", {}))
    names: set[str] = set()
    for index, group in enumerate(placement.get("clusterAffinities", [])):
        name = group["affinityName"]
        yield from judge_label_key(name, (*at, index, "affinityName"), "karmada-affinity-name")
        if name in names:
            message = f"each affinity term in a policy must have a unique name; {name!r} is used before"
            yield error("karmada-affinity-name-duplicate", message, *at, index, "affinityName")
        names.add(name)
        yield from judge_affinity(group, (*at, index))
        if "overflowAffinities" in group:
            yield from _judge_overflow(group, (*at, index, "overflowAffinities"), overflow)


def _judge_overflow(group: Body, at: Pointer, allowed: bool) -> Iterator[Issue]:
    if not allowed:
        message = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling"
        yield error("karmada-overflow-strategy", message, *at)
    if not ("labelSelector" in group or "fieldSelector" in group or group.get("clusterNames") or group.get("exclude")):
        message = "overflowAffinities can only be used beside a condition of the group itself"
        yield error("karmada-overflow-without-primary", message, *at)
    names = {group["affinityName"]}
    for index, spill in enumerate(group["overflowAffinities"]):
        name = spill["affinityName"]
        yield from judge_label_key(name, (*at, index, "affinityName"), "karmada-overflow-name")
        if name in names:
            message = f"overflow affinity name {name!r} must be unique and differ from the group's own name"
            yield error("karmada-overflow-name-duplicate", message, *at, index, "affinityName")
        names.add(name)
        yield from judge_affinity(spill, (*at, index))


def _allows_overflow(scheduling: Body) -> bool:
    if scheduling.get("replicaSchedulingType") != "Divided":
        return False
    match scheduling.get("replicaDivisionPreference"):
        case "Aggregated":
            return True
        case "Weighted":
            return bool(member(scheduling, "weightPreference", "dynamicWeight"))
    return False


def _judge_spread(constraints: list[Body], at: Pointer) -> Iterator[Issue]:
    fields: set[str] = set()
    for index, constraint in enumerate(constraints):
        field, least, most = constraint.get("spreadByField"), constraint["minGroups"], constraint.get("maxGroups", 0)
        if field and constraint.get("spreadByLabel"):
            message = "spreadByLabel cannot co-exist with spreadByField"
            yield error("karmada-spread-conflict", message, *at, index, "spreadByLabel")
        if least < 0:
            yield error("karmada-spread-groups", "minGroups lower than 0 is not allowed", *at, index, "minGroups")
        if most < 0:
            yield error("karmada-spread-groups", "maxGroups lower than 0 is not allowed", *at, index, "maxGroups")
        if 0 < most < least:
            yield error("karmada-spread-groups", "maxGroups lower than minGroups is not allowed", *at, index, "maxGroups")
        if field in fields:
            message = f"multiple {field} spread constraints are not allowed"
            yield error("karmada-spread-duplicate", message, *at, index, "spreadByField")
        if field:
            fields.add(field)
    if fields and "cluster" not in fields:
        message = "a cluster spread constraint must be among the constraints when spreadByField is used"
        yield error("karmada-spread-without-cluster", message, *at)


def _judge_workload_affinity(affinity: Body, at: Pointer) -> Iterator[Issue]:
    keys = {side: affinity[side]["groupByLabelKey"] for side in ("affinity", "antiAffinity") if side in affinity}
    for side, key in keys.items():
        yield from judge_label_key(key, (*at, side, "groupByLabelKey"), "karmada-workload-affinity-key")
    if len(keys) == 2 and keys["affinity"] == keys["antiAffinity"]:
        message = "affinity and antiAffinity must not use the same groupByLabelKey"
        yield error("karmada-workload-affinity-conflict", message, *at, "antiAffinity", "groupByLabelKey")
