"""Options of a PropagationPolicy: preemption, activationPreference, schedulePriority and dependentOverrides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Any

from gitsched.apis.karmada import names
from gitsched.apis.karmada.policy.propagation_policy import PolicyPlacement, PropagationPolicy, parse_placement, serialize_placement
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, read_annotations
from gitsched.model.finding import Finding, join_all, locate_document, locate_field
from gitsched.named_tuples import NamedTuple


def find_preempting_policy(claiming: PropagationPolicy, candidates: Iterable[PropagationPolicy]) -> PropagationPolicy:
    """Return the policy that preempts the one that claimed a workload, else the claiming policy.

    `candidates` are the policies that select the workload by name. The highest priority wins, then the first name.
    """
    preempting = [policy for policy in candidates if _may_preempt(policy, claiming)]
    return min(preempting, key=lambda policy: (not policy.is_namespaced, -policy.priority, policy.key.name), default=claiming)


def _may_preempt(policy: PropagationPolicy, claiming: PropagationPolicy) -> bool:
    if policy.spec.get("preemption") != "Always" or policy.key == claiming.key:
        return False
    if policy.is_namespaced != claiming.is_namespaced:
        return policy.is_namespaced
    return policy.priority > claiming.priority


def describe_takeover(policy: PropagationPolicy, claiming: PropagationPolicy, *, by_name: bool, enabled: bool) -> str:
    """Return what lets a policy take over a workload that another one has claimed, as an imperative.

    `by_name`: it selects the workload by its name. `enabled`: the settings let policies preempt others.
    """
    release = f"let {claiming.key.title} no longer select it"
    if claiming.is_namespaced and not policy.is_namespaced:
        return release
    steps = ["preemption: Always"] if policy.spec.get("preemption") != "Always" else []
    if policy.is_namespaced == claiming.is_namespaced and policy.priority <= claiming.priority:
        steps.append(f"a priority above {claiming.priority}")
    if not by_name:
        steps.append("a selector with its name")
    done = [f"give {policy.key.title} {join_all(steps)}"] if steps else []
    done += [] if enabled else ["set spec.karmada.preemption to true in gitsched.yaml"]
    return f"{', and '.join(done)}; or {release}" if done else release


TEMPLATE_DIGEST = "gitsched.io/template-digest"
"""On a binding whose policy is Lazy: the digest of the manifest for which the policy was last applied."""
_BINDING_FIELDS = (
    "schedulerName",
    "propagateDeps",
    "failover",
    "conflictResolution",
    "preserveResourcesOnDeletion",
    "schedulePriority",
)
_CLAIM_PREFIXES = ("policy.karmada.io", "propagationpolicy.karmada.io", "clusterpropagationpolicy.karmada.io")
_SERVER_FIELDS = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink")


def digest_template(template: Document) -> str:
    """Return the SHA-256, in hex, of a manifest without its status, server-side metadata and Karmada's claim labels."""
    body = {name: value for name, value in template.body.items() if name != "status"}
    metadata = {name: value for name, value in (body.get("metadata") or {}).items() if name not in _SERVER_FIELDS}
    for field in ("labels", "annotations"):
        kept = {name: text for name, text in as_string_map(metadata.pop(field, None)).items() if not _is_claim_label(name)}
        if kept:
            metadata[field] = kept
    text = json.dumps({**body, "metadata": metadata}, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_activation_pending(policy: PropagationPolicy, template: Document, binding: Body | None) -> bool:
    """Return whether the policy is Lazy and the workload has not been edited since its binding was written."""
    if not policy.is_lazy or not isinstance(get_field(binding or {}, "spec", "placement"), dict):
        return False
    digest = read_annotations(binding or {}).get(TEMPLATE_DIGEST)
    return digest is None or digest == digest_template(template)


def apply_activation_preference(policy: PropagationPolicy, template: Document, binding: Body | None) -> PropagationPolicy:
    """Return the policy with the fields of the previous binding while its activation is pending, else the policy.

    A workload without a binding is bound at once: it is unknown whether the workload or the policy came first. A binding without a
    digest was written before the policy became Lazy, which is an edit of the policy like any other.
    """
    return policy if binding is None or not is_activation_pending(policy, template, binding) else use_bound_fields(policy, binding)


def use_bound_fields(policy: PropagationPolicy, binding: Body) -> PropagationPolicy:
    """Return a policy with the fields that a binding has of it."""
    bound: Body = binding["spec"]
    placement: Body = bound.get("placement") or {}
    spec = {name: value for name, value in policy.spec.items() if name not in (*_BINDING_FIELDS, "placement", "suspension")}
    spec |= {name: bound[name] for name in _BINDING_FIELDS if name in bound}
    suspension = {name: value for name, value in (bound.get("suspension") or {}).items() if name != "scheduling"}
    applied = serialize_placement(placement)
    spec |= {"placement": placement, **({"suspension": suspension} if suspension else {})}
    return policy._replace(spec=spec, placement=_parse_applied_placement(applied), applied_placement=applied)


@lru_cache(maxsize=1 << 10)
def _parse_applied_placement(applied: str) -> PolicyPlacement:
    placement: Any = json.loads(applied)
    return parse_placement(placement)


def _is_claim_label(name: str) -> bool:
    """Return whether a label or annotation says which policy claimed the workload."""
    return name.partition("/")[0] in _CLAIM_PREFIXES


PRIORITY_CLASS_GROUP, PRIORITY_CLASS_KIND = "scheduling.k8s.io", "PriorityClass"
_SYSTEM_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The PriorityClasses that every API server has."""


def priority_class_key(name: str) -> Key:
    """Return the key of a PriorityClass."""
    return Key(PRIORITY_CLASS_GROUP, PRIORITY_CLASS_KIND, "", name)


def read_schedule_priority(policy: PropagationPolicy, templates: Mapping[Key, Document]) -> Body | None:
    """Return spec.schedulePriority of a binding; None without a PriorityClass or when it does not exist."""
    name = policy.priority_class_name
    if not name:
        priority = policy.spec.get("schedulePriority")  # of a Lazy policy, from the binding
        return dict(priority) if isinstance(priority, dict) else None
    value = read_priority_value(name, templates)
    return None if value is None else {"priority": value} if value else {}


def read_priority_value(name: str, templates: Mapping[Key, Document]) -> int | None:
    """Return the value of a PriorityClass; None when it does not exist or has no number."""
    template = templates.get(priority_class_key(name))
    value = get_field(template.body, "value") if template is not None else _SYSTEM_PRIORITY_CLASSES.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class MissingPrerequisite(NamedTuple):
    """What a policy waits for: `reason` is for the workload, `finding` for the policy. One that `holds_attached` also holds back what other
    workloads need."""

    reason: str
    finding: Finding
    holds_attached: bool = False


def find_missing_prerequisite(
    policy: PropagationPolicy, template: Document, overrides: Container[Key], templates: Mapping[Key, Document]
) -> MissingPrerequisite | None:
    """Return the override policies (dependentOverrides) or the PriorityClass that must exist before the policy applies, if any."""
    location, resource = locate_document(policy.document), policy.key.resource
    absent = list_missing_overrides(policy, overrides)
    if absent:
        missing = ", ".join(key.title for key in absent)
        message = f"{policy.key.title} depends on {missing}, which does not exist: the policy is not applied to new workloads"
        return MissingPrerequisite(
            f"its policy waits for {missing}", Finding("warning", "override-awaited", message, location, resource)
        )
    name = policy.priority_class_name if template.key.namespace else ""
    if name and read_priority_value(name, templates) is None:
        message = f"{policy.key.title} names PriorityClass {name}, which does not exist: the policy is not applied to new workloads"
        origin = policy.document.origin
        field = locate_field(origin, ("spec", "schedulePriority", "priorityClassName"))
        finding = Finding("warning", "karmada-priority-class-missing", message, location, resource, field)
        return MissingPrerequisite(f"its policy waits for PriorityClass {name}", finding)
    return None


def list_missing_overrides(policy: PropagationPolicy, overrides: Container[Key]) -> list[Key]:
    """Return the policies of spec.dependentOverrides that do not exist.

    A PropagationPolicy names OverridePolicies of its own namespace, a ClusterPropagationPolicy names ClusterOverridePolicies.
    """
    kind = names.OVERRIDE if policy.is_namespaced else names.CLUSTER_OVERRIDE
    dependent = policy.spec.get("dependentOverrides") or ()
    keys = (Key(names.POLICY_GROUP, kind, policy.key.namespace, name) for name in dependent)
    return [key for key in keys if key not in overrides]
