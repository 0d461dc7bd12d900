"""Validation of Karmada's policies and bindings beyond their JSON schemas, as Karmada's admission webhooks do it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from gitsched.apis.karmada.names import DEPENDENCIES_ANNOTATION, SPREAD_FIELD, TAINT_POLICY_NO_EXECUTE
from gitsched.apis.karmada.overrides.overriders import is_tag_or_digest
from gitsched.apis.karmada.validation.cluster import (
    make_error,
    validate_annotations,
    validate_cluster,
    validate_label_key,
    validate_labels,
    validate_taints,
)
from gitsched.apis.karmada.validation.quota import validate_quota
from gitsched.apis.policy_api import DocumentValidator
from gitsched.model.document import Body, get_field, reject_constant
from gitsched.model.finding import Issue, Pointer


def validate_policy(body: Body) -> Iterator[Issue]:
    """Validate a PropagationPolicy or ClusterPropagationPolicy. Rules that compare two versions of an object are not checked."""
    spec = body["spec"]
    yield from validate_placement(spec["placement"], ("spec", "placement"))
    yield from _validate_failover(spec)
    yield from _validate_resource_selectors(body)
    if spec.get("preemption") == "Always":
        nameless = [index for index, selector in enumerate(spec["resourceSelectors"]) if not selector.get("name")]
        if nameless:
            message = (
                "name cannot be empty if preemption is Always: it would preempt the policies of resources that it does not name"
            )
            if len(nameless) > 1:
                message += f" ({len(nameless)} selectors have no name)"
            yield make_error("karmada-preemption-without-name", message, "spec", "resourceSelectors", nameless[0])
    suspension = spec.get("suspension", {})
    if suspension.get("dispatching") and get_field(suspension, "dispatchingOnClusters", "clusterNames"):
        message = "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"
        yield make_error("karmada-suspension-conflict", message, "spec", "suspension", "dispatchingOnClusters")


def validate_override_policy(body: Body) -> Iterator[Issue]:
    """Validate an OverridePolicy or ClusterOverridePolicy."""
    yield from validate_overrides(body["spec"])
    yield from _validate_resource_selectors(body)


def validate_binding(body: Body) -> Iterator[Issue]:
    """Validate a ResourceBinding; a ClusterResourceBinding has no rules."""
    text = (get_field(body, "metadata", "annotations") or {}).get(DEPENDENCIES_ANNOTATION)
    if text is not None and not _is_reference_list(text):
        message = f"{DEPENDENCIES_ANNOTATION} must be a JSON array of references to objects"
        yield make_error("karmada-binding-dependencies", message, "metadata", "annotations", DEPENDENCIES_ANNOTATION)


def validate_taint_policy(body: Body) -> Iterator[Issue]:
    """Validate a ClusterTaintPolicy. Karmada refuses a Cluster with taints that are not valid, so such a policy would set none."""
    taints = body["spec"]["taints"]
    for index, taint in enumerate(taints):
        if taint["effect"] == "NoExecute":
            condition = "unless spec.karmada.allowNoExecuteTaintPolicy in gitsched.yaml is true"
            message = f"a taint with effect NoExecute is not allowed here, {condition}"
            yield make_error(TAINT_POLICY_NO_EXECUTE, message, "spec", "taints", index, "effect")
    yield from validate_taints(taints)


def _validate_resource_selectors(body: Body) -> Iterator[Issue]:
    namespaced = body["kind"] in ("PropagationPolicy", "OverridePolicy")
    namespace = body["metadata"].get("namespace") or "default"
    for index, selector in enumerate(body["spec"].get("resourceSelectors", [])):
        at = ("spec", "resourceSelectors", index)
        if namespaced and selector["namespace"] != namespace:
            message = f"namespace of a resource selector must be the one of the policy, {namespace!r}"
            yield make_error("karmada-selector-namespace", message, *at, "namespace")
        if not (selector["apiVersion"] and selector["kind"]):
            message = "a resource selector without apiVersion and kind selects nothing"
            yield Issue("warning", "karmada-selector-empty", message, at)


def _validate_failover(spec: Body) -> Iterator[Issue]:
    failover, at = spec.get("failover", {}), ("spec", "failover")
    if "application" in failover:
        if not spec.get("propagateDeps"):
            message = "propagateDeps must be true when failover.application is set"
            yield make_error("karmada-failover-dependencies", message, *at, "application")
        yield from _validate_application_failover(failover["application"], (*at, "application"))
    for part in ("application", "cluster"):
        behavior = failover.get(part, {})
        rules = get_field(behavior, "statePreservation", "rules") if behavior else None
        if rules and behavior.get("purgeMode") != "Directly":
            message = "statePreservation has an effect only when purgeMode is Directly"
            yield Issue("warning", "karmada-state-preservation", message, (*at, part, "statePreservation"))
        for index, rule in enumerate(rules or []):
            path = (*at, part, "statePreservation", "rules", index, "aliasLabelName")
            yield from validate_label_key(rule["aliasLabelName"], path, "karmada-failover-label")


def _validate_application_failover(application: Body, at: Pointer) -> Iterator[Issue]:
    if application["decisionConditions"]["tolerationSeconds"] < 0:
        path = (*at, "decisionConditions", "tolerationSeconds")
        yield make_error("karmada-failover-seconds", "tolerationSeconds must be 0 or more", *path)
    grace = application.get("gracePeriodSeconds")
    if grace is None:
        return  # with Gracefully it has a default
    if application.get("purgeMode") != "Gracefully":
        message = "gracePeriodSeconds only takes effect when purgeMode is Gracefully"
        yield make_error("karmada-failover-grace-period", message, *at, "gracePeriodSeconds")
    if grace <= 0:
        yield make_error("karmada-failover-grace-period", "gracePeriodSeconds must be greater than 0", *at, "gracePeriodSeconds")


def _is_reference_list(text: str) -> bool:
    """Return whether Go decodes the text into a list of references: objects, or null, whose known members are strings."""
    try:
        value = json.loads(text, parse_constant=reject_constant)
    except (ValueError, RecursionError):
        return False
    return value is None or (isinstance(value, list) and all(entry is None or _is_object_reference(entry) for entry in value))


def _is_object_reference(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    names = all(isinstance(entry.get(name), str | None) for name in ("apiVersion", "kind", "namespace", "name"))
    return names and isinstance(entry.get("labelSelector"), dict | None)


VALIDATORS: Mapping[tuple[str, str], DocumentValidator] = {
    ("policy.karmada.io", "PropagationPolicy"): validate_policy,
    ("policy.karmada.io", "ClusterPropagationPolicy"): validate_policy,
    ("policy.karmada.io", "OverridePolicy"): validate_override_policy,
    ("policy.karmada.io", "ClusterOverridePolicy"): validate_override_policy,
    ("policy.karmada.io", "ClusterTaintPolicy"): validate_taint_policy,
    ("policy.karmada.io", "FederatedResourceQuota"): validate_quota,
    ("work.karmada.io", "ResourceBinding"): validate_binding,
    ("cluster.karmada.io", "Cluster"): validate_cluster,
}
"""Validation of defaulted documents that their schemas accept, by API group and kind."""


_DEPRECATED_OVERRIDERS = (
    "plaintext",
    "imageOverrider",
    "commandOverrider",
    "argsOverrider",
    "labelsOverrider",
    "annotationsOverrider",
)


def validate_overrides(spec: Body) -> Iterator[Issue]:
    if "targetCluster" in spec:
        yield from validate_affinity(spec["targetCluster"], ("spec", "targetCluster"))
    if "overrideRules" in spec:
        if "targetCluster" in spec:
            yield make_error(
                "karmada-override-conflict", "overrideRules and targetCluster cannot co-exist", "spec", "targetCluster"
            )
        if any(spec.get("overriders", {}).get(name) for name in _DEPRECATED_OVERRIDERS):
            yield make_error("karmada-override-conflict", "overrideRules and overriders cannot co-exist", "spec", "overriders")
    for index, rule in enumerate(spec.get("overrideRules", [])):
        at = ("spec", "overrideRules", index)
        yield from _validate_overriders(rule["overriders"], (*at, "overriders"))
        if "targetCluster" in rule:
            yield from validate_affinity(rule["targetCluster"], (*at, "targetCluster"))


def _validate_overriders(overriders: Body, at: Pointer) -> Iterator[Issue]:
    for index, entry in enumerate(overriders.get("annotationsOverrider", [])):
        yield from validate_annotations(
            entry["value"], (*at, "annotationsOverrider", index, "value"), "karmada-override-annotation"
        )
    for index, entry in enumerate(overriders.get("labelsOverrider", [])):
        yield from validate_labels(entry["value"], (*at, "labelsOverrider", index, "value"), "karmada-override-label")
    for index, entry in enumerate(overriders.get("imageOverrider", [])):
        if "predicate" in entry:
            yield from _validate_json_pointer(entry["predicate"]["path"], (*at, "imageOverrider", index, "predicate", "path"))
        if (entry["component"], entry["operator"]) == ("Tag", "replace") and not is_tag_or_digest(entry.get("value", "")):
            message = "value is neither a tag nor a digest: the image does not change"
            yield Issue("warning", "karmada-override-tag", message, (*at, "imageOverrider", index))
    for index, entry in enumerate(overriders.get("plaintext", [])):
        if entry["path"] and not entry["path"].startswith("/"):
            message = f"{entry['path']!r} is not a JSON pointer, which begins with /: the overrider cannot be applied"
            yield Issue("warning", "karmada-override-path", message, (*at, "plaintext", index, "path"))
    for index, entry in enumerate(overriders.get("fieldOverrider", [])):
        yield from _validate_field_overrider(entry, (*at, "fieldOverrider", index))


def _validate_field_overrider(overrider: Body, at: Pointer) -> Iterator[Issue]:
    if overrider.get("json") and overrider.get("yaml"):
        yield make_error("karmada-override-field", "fieldOverrider has both json and yaml; only one is allowed", *at)
    if not (overrider.get("json") or overrider.get("yaml")):
        yield make_error("karmada-override-field", "fieldOverrider must have either json or yaml", *at)
    yield from _validate_json_pointer(overrider["fieldPath"], (*at, "fieldPath"))
    for language in ("json", "yaml"):
        for index, patch in enumerate(overrider.get(language, [])):
            yield from _validate_patch(patch, (*at, language, index))


def _validate_patch(patch: Body, at: Pointer) -> Iterator[Issue]:
    yield from _validate_json_pointer(patch["subPath"], (*at, "subPath"))
    if patch["operator"] == "remove":
        if "value" in patch:
            yield make_error("karmada-override-value", "value is not allowed for remove", *at, "value")
    elif "value" not in patch:
        yield make_error("karmada-override-value", f"value is required for {patch['operator']}", *at)


def _validate_json_pointer(path: str, at: Pointer) -> Iterator[Issue]:
    if path and not path.startswith("/"):
        yield make_error("karmada-override-path", f"{path!r} must be a JSON pointer: empty, or beginning with /", *at)


_TOLERATION_WORDS = {
    "operator": ("Exists", "Equal"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
}
_SELECTOR_FIELDS = ("provider", "region", "zone")


def validate_placement(placement: Body, at: Pointer) -> Iterator[Issue]:
    if "clusterAffinity" in placement and "clusterAffinities" in placement:
        message = "clusterAffinities cannot co-exist with clusterAffinity"
        yield make_error("karmada-affinity-conflict", message, *at, "clusterAffinities")
    if "clusterAffinity" in placement:
        yield from validate_affinity(placement["clusterAffinity"], (*at, "clusterAffinity"))
    yield from _validate_affinity_terms(placement, (*at, "clusterAffinities"))
    yield from _validate_spread_constraints(placement.get("spreadConstraints", []), (*at, "spreadConstraints"))
    if not _has_static_weights(placement.get("replicaScheduling")):
        yield from _find_unset_maximum(placement.get("spreadConstraints", []), (*at, "spreadConstraints"))
    elif placement.get("spreadConstraints"):
        message = (
            "as in Karmada, replicas that are divided by static or equal weights are not spread: all clusters of the affinity get a "
            "share. Set weightPreference.dynamicWeight: AvailableReplicas, or remove spreadConstraints"
        )
        yield Issue("warning", "karmada-spread-unused", message, (*at, "spreadConstraints"))
    yield from _validate_workload_affinity(placement.get("workloadAffinity", {}), (*at, "workloadAffinity"))
    for index, toleration in enumerate(placement.get("clusterTolerations", [])):
        if (operator := toleration.get("operator")) in ("Lt", "Gt"):
            message = f"operator {operator} is not supported for clusters; use Exists or Equal"
            yield make_error("karmada-toleration-operator", message, *at, "clusterTolerations", index, "operator")
            continue
        for member, known in _TOLERATION_WORDS.items():
            word = toleration.get(member)
            if word and word not in known:
                message = f"the toleration matches no taint: {member} must be {' or '.join(known)}, not {str(word)[:40]!r}"
                yield Issue("warning", "karmada-toleration-inert", message, (*at, "clusterTolerations", index, member))


def validate_affinity(affinity: Body, at: Pointer) -> Iterator[Issue]:
    """Validate an affinity. Field selectors have three fields and two operators; an invalid label selector matches nothing."""
    for index, expression in enumerate(get_field(affinity, "fieldSelector", "matchExpressions") or []):
        path = (*at, "fieldSelector", "matchExpressions", index)
        key, operator = expression["key"], expression["operator"]
        if key not in _SELECTOR_FIELDS:
            yield make_error(
                "karmada-field-selector-key", f"unsupported key {key!r}, must be provider, region or zone", *path, "key"
            )
        if operator not in ("In", "NotIn"):
            message = f"unsupported operator {operator!r}, must be In or NotIn"
            yield make_error("karmada-field-selector-operator", message, *path, "operator")


def _validate_affinity_terms(placement: Body, at: Pointer) -> Iterator[Issue]:
    overflow = _allows_overflow(placement.get("replicaScheduling", {}))
    names: set[str] = set()
    for index, group in enumerate(placement.get("clusterAffinities", [])):
        name = group["affinityName"]
        yield from validate_label_key(name, (*at, index, "affinityName"), "karmada-affinity-name")
        if name in names:
            message = f"each affinity term in a policy must have a unique name; {name!r} is used more than once"
            yield make_error("karmada-affinity-name-duplicate", message, *at, index, "affinityName")
        names.add(name)
        yield from validate_affinity(group, (*at, index))
        if "overflowAffinities" in group:
            yield from _validate_overflow_affinities(group, (*at, index, "overflowAffinities"), overflow)


def _validate_overflow_affinities(group: Body, at: Pointer, allowed: bool) -> Iterator[Issue]:
    if not allowed:
        message = "overflowAffinities can only be used together with dynamic weight or aggregated scheduling"
        yield make_error("karmada-overflow-strategy", message, *at)
    if not ("labelSelector" in group or "fieldSelector" in group or group.get("clusterNames") or group.get("exclude")):
        message = "overflowAffinities can only be used if the group itself has a condition"
        yield make_error("karmada-overflow-without-primary", message, *at)
    names = {group["affinityName"]}
    for index, overflow_term in enumerate(group["overflowAffinities"]):
        name = overflow_term["affinityName"]
        yield from validate_label_key(name, (*at, index, "affinityName"), "karmada-overflow-name")
        if name in names:
            message = f"overflow affinity name {name!r} must be unique and differ from the group's own name"
            yield make_error("karmada-overflow-name-duplicate", message, *at, index, "affinityName")
        names.add(name)
        yield from validate_affinity(overflow_term, (*at, index))


def _allows_overflow(scheduling: Body) -> bool:
    if scheduling.get("replicaSchedulingType") != "Divided":
        return False
    match scheduling.get("replicaDivisionPreference"):
        case "Aggregated":
            return True
        case "Weighted":
            return bool(get_field(scheduling, "weightPreference", "dynamicWeight"))
    return False


def _has_static_weights(scheduling: Body | None) -> bool:
    """Return whether replicas are divided by weights that do not depend on the capacity of clusters."""
    return (
        scheduling is not None
        and scheduling.get("replicaSchedulingType") == "Divided"
        and scheduling.get("replicaDivisionPreference", "Weighted") == "Weighted"
        and not get_field(scheduling, "weightPreference", "dynamicWeight")
    )


def _validate_spread_constraints(constraints: list[Body], at: Pointer) -> Iterator[Issue]:
    fields: set[str] = set()
    for index, constraint in enumerate(constraints):
        field, least, most = constraint.get("spreadByField"), constraint["minGroups"], constraint.get("maxGroups", 0)
        if field and constraint.get("spreadByLabel"):
            message = "spreadByLabel cannot co-exist with spreadByField"
            yield make_error("karmada-spread-conflict", message, *at, index, "spreadByLabel")
        if least < 0:
            yield make_error("karmada-spread-groups", "minGroups lower than 0 is not allowed", *at, index, "minGroups")
        if most < 0:
            yield make_error("karmada-spread-groups", "maxGroups lower than 0 is not allowed", *at, index, "maxGroups")
        if 0 < most < least:
            yield make_error("karmada-spread-groups", "maxGroups lower than minGroups is not allowed", *at, index, "maxGroups")
        if field in ("zone", "provider"):
            message = (
                f"as in Karmada, spreading by {field} only leaves out clusters without a {field}, unless karmada.spread is strict in "
                "gitsched.yaml; workloads are spread by region and cluster"
            )
            yield Issue("warning", SPREAD_FIELD, message, (*at, index, "spreadByField"))
        if field in fields:
            message = f"multiple {field} spread constraints are not allowed"
            yield make_error("karmada-spread-duplicate", message, *at, index, "spreadByField")
        if field:
            fields.add(field)
    if fields and "cluster" not in fields:
        message = "a cluster spread constraint must be among the constraints when spreadByField is used"
        yield make_error("karmada-spread-without-cluster", message, *at)


def _find_unset_maximum(constraints: list[Body], at: Pointer) -> Iterator[Issue]:
    """Yield a warning about a constraint that no selection meets because it has no maxGroups. Where other fields group the clusters, the
    constraint by cluster needs none: one cluster of each group is selected."""
    fields = [constraint.get("spreadByField") for constraint in constraints]
    for index, constraint in enumerate(constraints):
        if not constraint.get("maxGroups") and (fields[index] == "region" or fields == ["cluster"]):
            message = (
                f"as in Karmada, a spread constraint by {fields[index]} without maxGroups cannot be met: no cluster is selected. "
                "Set maxGroups"
            )
            yield Issue("warning", "karmada-spread-groups", message, (*at, index))


def _validate_workload_affinity(affinity: Body, at: Pointer) -> Iterator[Issue]:
    keys = {side: affinity[side]["groupByLabelKey"] for side in ("affinity", "antiAffinity") if side in affinity}
    for side, key in keys.items():
        yield from validate_label_key(key, (*at, side, "groupByLabelKey"), "karmada-workload-affinity-key")
    if len(keys) == 2 and keys["affinity"] == keys["antiAffinity"]:
        message = "affinity and antiAffinity must not use the same groupByLabelKey"
        yield make_error("karmada-workload-affinity-conflict", message, *at, "antiAffinity", "groupByLabelKey")


def find_validator(group: str, kind: str) -> DocumentValidator | None:
    """Return the validator of a kind."""
    return VALIDATORS.get((group, kind))
