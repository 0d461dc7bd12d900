"""Karmada's admission rules that a JSON Schema cannot say.

They read a document after `default` that its schema accepts. Rules that compare two versions of an object are not here: a commit
replaces what was there before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from gitsched.apis.karmada.cluster_rules import judge_cluster
from gitsched.apis.karmada.label_rules import Pointer, error, judge_label_key
from gitsched.apis.karmada.names import TAINT_POLICY_NO_EXECUTE
from gitsched.apis.karmada.override_rules import judge_overrides
from gitsched.apis.karmada.placement_rules import judge_placement
from gitsched.model.document import Body, member
from gitsched.model.issue import Issue

DEPENDENCIES = "resourcebinding.karmada.io/dependencies"


def judge_policy(body: Body) -> Iterator[Issue]:
    """A PropagationPolicy, or a ClusterPropagationPolicy."""
    spec = body["spec"]
    yield from judge_placement(spec["placement"], ("spec", "placement"))
    yield from _judge_failover(spec)
    yield from _judge_selectors(body)
    if spec.get("preemption") == "Always":
        for index, selector in enumerate(spec["resourceSelectors"]):
            if not selector.get("name"):
                message = "name cannot be empty if preemption is Always: it would take over resources that nobody named"
                yield error("karmada-preemption-without-name", message, "spec", "resourceSelectors", index)
    suspension = spec.get("suspension", {})
    if suspension.get("dispatching") and member(suspension, "dispatchingOnClusters", "clusterNames"):
        message = "suspension dispatching cannot co-exist with dispatchingOnClusters.clusterNames"
        yield error("karmada-suspension-conflict", message, "spec", "suspension", "dispatchingOnClusters")


def judge_override(body: Body) -> Iterator[Issue]:
    """An OverridePolicy, or a ClusterOverridePolicy."""
    yield from judge_overrides(body["spec"])
    yield from _judge_selectors(body)


def judge_binding(body: Body) -> Iterator[Issue]:
    """A ResourceBinding; a ClusterResourceBinding has no rules."""
    text = (member(body, "metadata", "annotations") or {}).get(DEPENDENCIES)
    if text is not None and not _are_dependencies(text):
        message = f"{DEPENDENCIES} must be a JSON array of references to objects"
        yield error("karmada-binding-dependencies", message, "metadata", "annotations", DEPENDENCIES)


def judge_taint_policy(body: Body) -> Iterator[Issue]:
    """A ClusterTaintPolicy."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(body["spec"]["taints"]):
        key, effect = taint["key"], taint["effect"]
        if effect == "NoExecute":
            message = "a taint with effect NoExecute is not allowed here, unless karmada.allowNoExecuteTaintPolicy in gitsched.yaml is true"
            yield error(TAINT_POLICY_NO_EXECUTE, message, "spec", "taints", index, "effect")
        if (key, effect) in seen:
            message = f"a taint is there twice with key {key!r} and effect {effect!r}"
            yield error("karmada-taint-duplicate", message, "spec", "taints", index)
        seen.add((key, effect))


def _judge_selectors(body: Body) -> Iterator[Issue]:
    namespaced = body["kind"] in ("PropagationPolicy", "OverridePolicy")
    namespace = member(body, "metadata", "namespace") or "default"
    for index, selector in enumerate(body["spec"].get("resourceSelectors", [])):
        at = ("spec", "resourceSelectors", index)
        if namespaced and selector["namespace"] != namespace:
            message = f"namespace of a resource selector must be the one of the policy, {namespace!r}"
            yield error("karmada-selector-namespace", message, *at, "namespace")
        if not (selector["apiVersion"] and selector["kind"]):
            message = "a resource selector without apiVersion and kind selects nothing"
            yield Issue("warning", "karmada-selector-empty", message, at)


def _judge_failover(spec: Body) -> Iterator[Issue]:
    failover, at = spec.get("failover", {}), ("spec", "failover")
    if "application" in failover:
        if not spec.get("propagateDeps"):
            message = "propagateDeps must be true when failover.application is set"
            yield error("karmada-failover-dependencies", message, *at, "application")
        yield from _judge_application(failover["application"], (*at, "application"))
    for part in ("application", "cluster"):
        behavior = failover.get(part, {})
        if member(behavior, "statePreservation", "rules") and behavior.get("purgeMode") != "Directly":
            message = "statePreservation has an effect only when purgeMode is Directly"
            yield Issue("warning", "karmada-state-preservation", message, (*at, part, "statePreservation"))
        for index, rule in enumerate(member(failover, part, "statePreservation", "rules") or []):
            place = (*at, part, "statePreservation", "rules", index, "aliasLabelName")
            yield from judge_label_key(rule["aliasLabelName"], place, "karmada-failover-label")


def _judge_application(application: Body, at: Pointer) -> Iterator[Issue]:
    if application["decisionConditions"]["tolerationSeconds"] < 0:
        place = (*at, "decisionConditions", "tolerationSeconds")
        yield error("karmada-failover-seconds", "tolerationSeconds must be 0 or more", *place)
    grace = application.get("gracePeriodSeconds")
    if grace is None:
        return  # with Gracefully it has a default
    if application.get("purgeMode") != "Gracefully":
        message = "gracePeriodSeconds only takes effect when purgeMode is Gracefully"
        yield error("karmada-failover-grace-period", message, *at, "gracePeriodSeconds")
    if grace <= 0:
        yield error("karmada-failover-grace-period", "gracePeriodSeconds must be greater than 0", *at, "gracePeriodSeconds")


def _are_dependencies(text: str) -> bool:
    """Whether Go decodes the text into a list of references: objects, or null, whose known members are strings."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return value is None or (isinstance(value, list) and all(entry is None or _is_reference(entry) for entry in value))


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _is_reference(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    names = all(isinstance(entry.get(name), str | None) for name in ("apiVersion", "kind", "namespace", "name"))
    return names and isinstance(entry.get("labelSelector"), dict | None)


RULES: Mapping[tuple[str, str], Callable[[Body], Iterator[Issue]]] = {
    ("policy.karmada.io", "PropagationPolicy"): judge_policy,
    ("policy.karmada.io", "ClusterPropagationPolicy"): judge_policy,
    ("policy.karmada.io", "OverridePolicy"): judge_override,
    ("policy.karmada.io", "ClusterOverridePolicy"): judge_override,
    ("policy.karmada.io", "ClusterTaintPolicy"): judge_taint_policy,
    ("work.karmada.io", "ResourceBinding"): judge_binding,
    ("cluster.karmada.io", "Cluster"): judge_cluster,
}
"""By API group and kind: what is wrong with a defaulted document that its schema accepts."""
