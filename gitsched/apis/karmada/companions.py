"""Companions of workloads: objects without pods that belong to them and that are bound on their own.

With propagateDeps or followTargets, an object that no policy selects follows its workloads. An object that a policy selects keeps its own
clusters, for example in a backup group, and is rescheduled on its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from gitsched.apis.capabilities import Companions
from gitsched.apis.companions import CompanionFollowers
from gitsched.apis.karmada.dependencies.references import find_written_secret_key, read_references
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.state import KarmadaState
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.document import Document, Key
from gitsched.model.finding import format_names

MAX_SELECTORS = 5
"""Selectors that one message proposes."""


def list_companions(state: KarmadaState, templates: Iterable[Document], among: Mapping[Key, Document]) -> Companions:
    """Return the objects `among` some that belong to workloads and that a policy selects. All that may belong to them are given, and all
    workloads to which these may belong as well.

    A workload refers to a ConfigMap, Secret, ServiceAccount or PersistentVolumeClaim; a Service selects its pods, an autoscaler names it,
    and an Ingress names the Service. Another object belongs to the workloads of its policy if these are all workloads that the policy
    selects in its namespace.
    """
    chosen = {template.key for template in templates}
    index = CompanionFollowers(among, state.snapshot.config)
    wanted = _list_near(chosen, among, index)
    policy_of = {key: _find_policy(state, among[key]) for key in wanted}
    workloads = {key: policy_of[key] for key in wanted if state.read_requirements(among[key]).is_workload}
    objects = {key: policy for key, policy in policy_of.items() if policy and key not in workloads.keys() | chosen}
    users = _list_users(state, workloads, objects, among, index)
    own: list[Document] = []
    shared: list[Document] = []
    for key, policy in objects.items():
        known = users.get(key, set())
        belonging = known or {one for one, other in workloads.items() if (other, one.namespace) == (policy, key.namespace)}
        if belonging and belonging <= chosen:
            own.append(among[key])
        elif known & chosen:
            shared.append(among[key])
    return Companions(tuple(own), tuple(shared))


def _list_near(chosen: Collection[Key], among: Iterable[Key], index: CompanionFollowers) -> list[Key]:
    """Return the objects in the namespaces of some workloads, and their companions."""
    namespaces = {key.namespace for key in chosen}
    related = {companion for key in chosen for companion in index.list_companions(key)}
    return [key for key in among if key.namespace in namespaces or key in related]


def describe_selection(state: KarmadaState, workload: Document, companions: Iterable[Document]) -> str:
    """Return what to add to the policy of a workload so that it selects its companions; "" without a policy."""
    policy, _ = state.find_policy(workload, state.find_record(workload))
    if policy is None:
        return ""
    selectors = dict.fromkeys(_format_selector(policy, workload, companion) for companion in companions)
    return f"add to spec.resourceSelectors of {policy.key.title}: {format_names(list(selectors), MAX_SELECTORS)}"


def _format_selector(policy: PropagationPolicy, workload: Document, companion: Document) -> str:
    """Return a selector of a companion: of its kind if the policy selects all workloads of a kind, else by its name."""
    kind = {"apiVersion": workload.api_version, "kind": workload.key.kind}
    members = {"apiVersion": companion.api_version, "kind": companion.key.kind}
    if kind not in policy.spec.get("resourceSelectors", ()):
        members["name"] = companion.key.name
        if companion.key.namespace and not policy.is_namespaced:
            members["namespace"] = companion.key.namespace
    return "{" + ", ".join(f"{name}: {value}" for name, value in members.items()) + "}"


def _find_policy(state: KarmadaState, template: Document) -> Key | None:
    policy, _ = state.find_policy(template, state.find_record(template))
    return policy.key if policy is not None else None


def _list_users(
    state: KarmadaState,
    workloads: Iterable[Key],
    objects: Mapping[Key, Key],
    templates: Mapping[Key, Document],
    followers: CompanionFollowers,
) -> dict[Key, set[Key]]:
    """Return the workloads that refer to each of some objects, or to the Secret that its controller writes, and those that it is for."""
    found = {key: set(followers.list_workloads(key)) for key in objects if key[:2] in COMPANION_KINDS}
    named = {key: key for key in objects}
    named |= {secret: key for key in objects if (secret := find_written_secret_key(templates[key])) is not None}
    for workload in workloads:
        template = templates[workload]
        paths = state.declared_paths.get((template.api_version, workload.kind))
        for reference in read_references(template, paths.pod_spec if paths else ()):
            key = named.get(reference.key) if reference.name else None
            if key is not None:
                found.setdefault(key, set()).add(workload)
    return found
