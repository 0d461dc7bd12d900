"""What simulations and comparisons read from the engine: free capacity, resource requests, relevant clusters and rescheduling."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from gitsched.apis.karmada import names
from gitsched.apis.karmada.binding.resource_binding import binding_key, read_previous
from gitsched.apis.karmada.dependencies.attached_binding import Attachment
from gitsched.apis.karmada.explanation.rebalance_effect import name_ignored_taints
from gitsched.apis.karmada.failover.graceful_eviction import drop_expired_tasks
from gitsched.apis.karmada.policy.matching_clusters import list_matching_clusters
from gitsched.apis.karmada.policy.policy_options import describe_takeover, is_activation_pending
from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
from gitsched.apis.karmada.policy.request_class import build_request_class
from gitsched.apis.karmada.state import KarmadaState
from gitsched.apis.registered import Registered
from gitsched.model.changes import LEFT_IN_PLACE
from gitsched.model.document import Body, Document, Key, get_field
from gitsched.model.finding import format_names
from gitsched.model.scheduling import Outcome
from gitsched.model.template_index import PlacementSummary, TemplateIndex
from gitsched.model.time import EPOCH
from gitsched.schedule.estimator import PODS, Capacity
from gitsched.schedule.fleet import Fleet
from gitsched.schedule.request_classes import is_verdict_shared

_COMPARE_CANDIDATES = Registered("gitsched.schedule.plugins", "compare_candidates")


def list_free_capacity(fleet: Fleet) -> Mapping[str, Capacity | None]:
    """Return the free capacity of each cluster; a cluster whose document is invalid has none."""
    return {c.name: Capacity({}) if c.frozen else c.capacity for c in fleet.candidates}


def read_resource_request(state: KarmadaState, template: Document, cluster: str) -> tuple[tuple[str, int], ...]:
    """Return what one replica uses in a cluster: its pod, and what it requests. A set that is placed as a whole uses what all of its
    workloads request."""
    variants = state.read_variant_requirements(template)
    requirements = state.read_requirements(template)
    if variants is not None:
        candidate = next((candidate for candidate in variants.candidates if cluster in candidate.names), None)
        request = candidate.resource_request if candidate is not None else None
        if variants.places_sets:
            return request or ()
        requirements = requirements._replace(resource_request=request)
    return tuple(({PODS: 1} | dict(requirements.resource_request or ())).items()) if requirements.is_workload else ()


def find_relevant_clusters(state: KarmadaState, template: Document, attachment: Attachment | None) -> frozenset[str] | None:
    """Return the clusters of all affinity groups and of the previous binding.

    None means any cluster: the decision about an attached object follows from other workloads, and a filter may compare clusters.
    """
    if attachment is not None or _COMPARE_CANDIDATES():
        return None
    record = state.find_record(template)
    policy, _ = state.find_policy(template, record)
    previous, fleet = read_previous(record), state.fleet
    bound = {*(target.name for target in previous.clusters), *(str(task.get("fromCluster")) for task in previous.eviction_tasks)}
    return frozenset(bound) | (list_matching_clusters(fleet, policy) if policy is not None else frozenset())


def evaluates_alike(state: KarmadaState, placement: PlacementSummary, api: tuple[str, str], cluster: str) -> bool:
    """Return whether what decides about a cluster that a settled workload without variants does not have follows from its summary and its
    API (apiVersion, kind)."""
    if state.has_reported_bindings:
        return False
    kind, *namespace, name = placement.policy.split("/") if "/" in placement.policy else ("", placement.policy)
    policy = state.policies.policies.get(Key(names.POLICY_GROUP, kind, "".join(namespace), name))
    index = state.fleet.index.get(cluster)
    if policy is None or policy.is_lazy or index is None:
        return False
    used = policy.placement.find_group_index(placement.group)
    requests = (build_request_class(state, policy, api, division, used) for division in {policy.placement.division, "everywhere"})
    return all(is_verdict_shared(request, policy.placement.groups[used], state.fleet, index) for request in requests)


def list_concerned(state: KarmadaState, index: TemplateIndex, clusters: frozenset[str]) -> frozenset[Key]:
    """Return the workloads of the last plan to which one of some clusters may be relevant: all, if a filter may compare clusters."""
    own = [(key, entry.placement) for key, entry in index.items() if entry.placement and entry.placement.api == names.API_NAME]
    if _COMPARE_CANDIDATES():
        return frozenset(key for key, _ in own)
    policies = state.policies.policies.values()
    concerned = {policy.key.title: not clusters.isdisjoint(list_matching_clusters(state.fleet, policy)) for policy in policies}
    verdicts = {
        placement: not (clusters.isdisjoint(placement.clusters) and placement.is_settled) or concerned.get(placement.policy, True)
        for placement in {placement for _, placement in own}
    }
    return frozenset(key for key, placement in own if verdicts[placement])


_REBALANCER_NAME = "gitsched-what-if"


def make_rescheduling_document(
    templates: Iterable[Document], name: str = _REBALANCER_NAME, ttl: timedelta | None = None
) -> Document:
    """Return a WorkloadRebalancer that names these workloads."""
    workloads: list[Body] = []
    for template in templates:
        key = template.key
        workload = {"apiVersion": template.api_version, "kind": key.kind, "namespace": key.namespace, "name": key.name}
        workloads.append({name: value for name, value in workload.items() if value})
    spec: Body = {"workloads": workloads}
    if ttl is not None:
        spec = {"ttlSecondsAfterFinished": int(ttl.total_seconds()), **spec}
    body: Body = {"apiVersion": names.APPS_VERSION, "kind": names.REBALANCER, "metadata": {"name": name}, "spec": spec}
    return Document(Key(names.APPS_GROUP, names.REBALANCER, "", name), names.APPS_VERSION, body)


_MAX_SUBJECT = 40


def make_reschedule_request(
    state: KarmadaState, templates: Iterable[Document], ttl: timedelta | None, *, only_unavailable: bool = False
) -> Document:
    """Return a WorkloadRebalancer to commit, whose name has a digest of its workloads and of when they were scheduled last.

    A rebalancer that was handled has another name: that changes spec.rescheduleTriggeredAt of the bindings. One that was recorded as
    handled and never took effect would have the same.
    """
    chosen = sorted(templates, key=lambda template: (template.key.namespace, template.key.kind, template.key.name, template.key))
    history = []
    for template in chosen:
        record = state.find_record(template) or {}
        times = (get_field(record, "spec", "rescheduleTriggeredAt"), get_field(record, "status", "lastScheduledTime"))
        history.append([*template.key, *times])
    if only_unavailable:
        history.append([names.ONLY_UNAVAILABLE])
    handled = {each.document.key.name for each in state.reschedule_triggers.rebalancers if not each.pending}
    workloads = {template.key.name for template in chosen}
    text = chosen[0].key.name.lower() if len(workloads) == 1 else f"{len(chosen)}-objects"
    subject = re.sub(r"[^a-z0-9]+", "-", text)[:_MAX_SUBJECT].strip("-") or "workload"
    for _ in range(len(handled) + 1):
        digest = hashlib.sha256(json.dumps(history).encode()).hexdigest()[:8]
        name = f"rebalance-{subject}-{digest}"
        if name not in handled:
            break
        history.append([name])
    document = make_rescheduling_document(chosen, name, ttl)
    if only_unavailable:
        document.body["metadata"]["annotations"] = {names.ONLY_UNAVAILABLE: "true"}
    return document


def list_evictions(state: KarmadaState, template: Document, outcome: Outcome) -> dict[str, datetime | None]:
    """Return the clusters of the graceful eviction tasks of a workload, with their ends; None where the deletion is suppressed."""
    key = binding_key(template.key)
    record = next((body for each, body in outcome.records if each == key), None) or state.find_record(template)
    tasks = read_previous(record).eviction_tasks
    timeout = state.settings.graceful_eviction_timeout
    return {str(task.get("fromCluster")): drop_expired_tasks((task,), timeout, EPOCH).wakeup for task in tasks}


def describe_remedy(state: KarmadaState, template: Document, kept: Outcome, rescheduled: Outcome | None, expected: Outcome) -> str:
    """Say what moves a workload to the clusters that its policy alone would choose.

    `kept` is its outcome now, `rescheduled` the outcome of a rebalance, `expected` the outcome without the previous binding.
    """
    clusters, expected_clusters = kept.replicas_by_cluster.keys(), expected.replicas_by_cluster.keys()
    request, record = _describe_request(state, template), state.find_record(template)
    policy, _ = state.find_policy(template, record)
    if rescheduled is not None and rescheduled.replicas_by_cluster.keys() == expected_clusters:
        return f"{request} brings it there{_describe_failback(state, policy, kept, expected)}"
    if policy is not None and is_activation_pending(policy, template, record):
        return "its policy is Lazy: an edit of the workload itself lets the policy act on it"
    evicting = sorted(list_evictions(state, template, kept).keys() & expected_clusters)
    if evicting:
        named = format_names(evicting)
        return f"{request} can bring it there when its eviction from {named} is over"
    if rescheduled is not None and rescheduled.replicas_by_cluster.keys() != clusters:
        return f"{request} brings it to {format_names(sorted(rescheduled.replicas_by_cluster))}"
    chosen = state.policies.match(template)
    if policy is not None and chosen is not None and chosen.key != policy.key:
        by_name = any(one.key == chosen.key for one in state.policies.list_policies_by_name(template))
        takeover = describe_takeover(chosen, policy, by_name=by_name, enabled=state.settings.preemption)
        return f"{policy.key.title} claimed it earlier, before {chosen.key.title}: {takeover}"
    taints = name_ignored_taints(state, policy, clusters - expected_clusters) if policy is not None else ""
    if taints:
        return f"{taints} moves no running workload, and new ones avoid it; gitsched drain moves those that run there"
    if rescheduled is not None and rescheduled.replicas_by_cluster != kept.replicas_by_cluster:
        counts = (f"{name} {count}" for name, count in sorted(rescheduled.replicas_by_cluster.items()))
        return f"{request} would leave it on these clusters, and divide its replicas as {', '.join(counts)}"
    return f"{request} {LEFT_IN_PLACE}"


def _describe_request(state: KarmadaState, template: Document) -> str:
    """Name what has to be committed to reschedule a workload; a rebalancer that exists has been handled and has no further effect."""
    existing = sorted(rebalancer.title for rebalancer in state.reschedule_triggers.list_naming(binding_key(template.key)))
    if not existing:
        return "a WorkloadRebalancer that names it"
    handled = f"{format_names(existing)} {'has' if len(existing) == 1 else 'have'} been handled and will not act again"
    namespace = f" -n {template.key.namespace}" if template.key.namespace else ""
    command = f"gitsched rebalance{namespace} {template.key.kind}/{template.key.name}"
    return f"{handled}: a new WorkloadRebalancer, under another name or from `{command}`,"


_AFTER_STABILIZATION = "; so does spec.karmada.failback: {AfterStabilization: 10m} in gitsched.yaml"


def _describe_failback(state: KarmadaState, policy: PropagationPolicy | None, kept: Outcome, expected: Outcome) -> str:
    """Say when a workload returns to an earlier group by itself; "" for a later group: failback leads to earlier ones alone."""
    groups = policy.placement.groups[: policy.placement.find_group_index(kept.group)] if policy is not None else ()
    if not any(group.name == expected.group for group in groups):
        return ""
    if state.settings.failback.mode == "AfterStabilization":
        return "; by itself it returns when the time of karmada.failback is over"
    if state.settings.failback.mode == "WhenUnschedulable":
        return f"; by itself it returns when neither group {kept.group} nor a later one can run it"
    return f"{_AFTER_STABILIZATION}, when the earlier group could run it for that time"
