"""Companions of workloads: objects without pods that the same policy selects, so that they are bound on their own.

With propagateDeps, an object that no policy selects follows the workloads that refer to it. An object that a policy selects keeps its own
clusters, for example in a backup group, and is rescheduled on its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.apis.capabilities import Companions
from gitsched.apis.karmada.dependencies.references import read_references
from gitsched.apis.karmada.state import KarmadaState
from gitsched.model.document import Document, Key, as_string_map, get_field


def list_companions(state: KarmadaState, templates: Iterable[Document]) -> Companions:
    """Return the objects of the policies of these workloads that belong to them.

    A workload refers to a ConfigMap, Secret, ServiceAccount or PersistentVolumeClaim, a Service selects its pods, and a
    HorizontalPodAutoscaler or PodDisruptionBudget refers to it. Another object belongs to the workloads of its policy if these are all
    workloads that the policy selects in its namespace.
    """
    chosen = {template.key: template for template in templates}
    policies = {key for template in chosen.values() if (key := _find_policy(state, template)) is not None}
    namespaces = {key.namespace for key in chosen}
    workloads: list[Document] = []
    objects: list[tuple[Document, Key]] = []
    for template in state.snapshot.templates.values():
        policy = _find_policy(state, template) if template.key.namespace in namespaces else None
        if state.read_requirements(template).is_workload:
            if template.key.namespace in namespaces:
                workloads.append(template)
        elif policy in policies and policy is not None and template.key not in chosen:
            objects.append((template, policy))
    own: list[Document] = []
    shared: list[Document] = []
    for template, policy in objects:
        users = [workload for workload in workloads if _belongs(state, template, workload)]
        users = users or [
            workload
            for workload in workloads
            if workload.key.namespace == template.key.namespace and _find_policy(state, workload) == policy
        ]
        outside = [workload for workload in users if workload.key not in chosen]
        if users and not outside:
            own.append(template)
        elif len(outside) < len(users) and any(_belongs(state, template, workload) for workload in users):
            shared.append(template)
    return Companions(tuple(own), tuple(shared))


def _find_policy(state: KarmadaState, template: Document) -> Key | None:
    policy, _ = state.find_policy(template, state.find_record(template))
    return policy.key if policy is not None else None


def _belongs(state: KarmadaState, template: Document, workload: Document) -> bool:
    """Return whether an object and a workload refer to each other."""
    if template.key.namespace != workload.key.namespace:
        return False
    paths = state.declared_paths.get((workload.api_version, workload.key.kind))
    if any(reference.matches(template) for reference in read_references(workload, paths.pod_spec if paths else ())):
        return True
    target = get_field(template.body, "spec", "scaleTargetRef")
    if isinstance(target, dict):
        return (target.get("kind"), target.get("name")) == (workload.key.kind, workload.key.name)
    selector = get_field(template.body, "spec", "selector")
    labels = as_string_map(get_field(workload.body, "spec", "template", "metadata", "labels"))
    wanted = as_string_map(selector.get("matchLabels", selector)) if isinstance(selector, dict) else {}
    return bool(wanted) and all(labels.get(name) == value for name, value in wanted.items())
