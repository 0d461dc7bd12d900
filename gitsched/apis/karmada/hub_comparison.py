"""Compare decisions with those of a Karmada hub: its bindings, what it has not finished, and what its flags change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gitsched.apis.hub_comparison import PENDING, HubComparison, HubObjectParts, TriedSetting
from gitsched.apis.karmada.adoption import reduce_binding
from gitsched.apis.karmada.binding.resource_binding import read_claim, read_previous
from gitsched.apis.karmada.names import (
    CLUSTER,
    CLUSTER_GROUP,
    DEFAULT_SCHEDULER,
    REBALANCER,
    RECORD_KINDS,
    WORK_GROUP,
)
from gitsched.apis.karmada.policy.propagation_policy import has_placement_changed
from gitsched.apis.karmada.settings import GATES
from gitsched.model.document import (
    Body,
    Key,
    as_object,
    get_field,
    get_text,
    list_objects,
    parse_api_group,
    read_annotations,
    read_labels,
)
from gitsched.model.hub_comparison import DifferenceCause, HubChange, HubDecision, HubProgress

_BINDING_KINDS: Final = frozenset(kind for _, kind in RECORD_KINDS)
_HEALTH: Final = "aggregatedStatus"


def split(body: Body) -> HubObjectParts:
    """Divide an object of a hub. Of bindings, the reported health is what decisions are made from."""
    kind, group = body.get("kind"), parse_api_group(get_text(body, "apiVersion"))
    if group == WORK_GROUP:
        return HubObjectParts(_keep_health(body), body) if kind in _BINDING_KINDS else HubObjectParts(None, None)
    if kind == REBALANCER:
        return HubObjectParts(
            {name: member for name, member in body.items() if name != "status"}, body if body.get("status") else None
        )
    return HubObjectParts(body, None)


def _keep_health(body: Body) -> Body | None:
    """Return a binding with nothing but what clusters report about the workload; None without that."""
    reported = get_field(body, "status", _HEALTH)
    if not reported:
        return None
    metadata = {name: body["metadata"][name] for name in ("name", "namespace") if name in body["metadata"]}
    spec = {"resource": as_object(get_field(body, "spec", "resource"))}
    return {
        **{name: body[name] for name in ("apiVersion", "kind")},
        "metadata": metadata,
        "spec": spec,
        "status": {_HEALTH: reported},
    }


def _reduce_record(body: Body) -> Body:
    return reduce_binding(body) if body.get("kind") in _BINDING_KINDS else body


def read_decisions(records: Mapping[Key, Body]) -> Iterator[HubDecision]:
    """Yield the decisions of bindings. Those of bindings that only dependents need have the clusters of these."""
    for key, body in records.items():
        if (key.group, key.kind) in RECORD_KINDS:
            yield _read_decision(key, body)


def _read_decision(key: Key, body: Body) -> HubDecision:
    previous, status = read_previous(body), as_object(body.get("status"))
    resource = as_object(get_field(body, "spec", "resource"))
    group, kind = parse_api_group(get_text(resource, "apiVersion")), get_text(resource, "kind")
    clusters: dict[str, int | None] = {assignment.name: assignment.replicas or None for assignment in previous.clusters}
    if not clusters:
        required = (list_objects(one.get("clusters")) for one in list_objects(get_field(body, "spec", "requiredBy")))
        clusters = {get_text(one, "name"): None for entry in required for one in entry}
    details = {}
    if previous.observed_group:
        details["affinity group"] = previous.observed_group
    if previous.condition.get("reason"):
        details["condition"] = f"{previous.condition.get('status')} {previous.condition['reason']}"
    if "replicas" in as_object(body.get("spec")):
        details["replicas of the workload"] = str(body["spec"]["replicas"])
    leaving = frozenset(get_text(task, "fromCluster") for task in previous.eviction_tasks)
    subject = Key(group, kind, get_text(resource, "namespace") or key.namespace, get_text(resource, "name"))
    claim = read_claim({**read_labels(body), **read_annotations(body)})
    return HubDecision(subject, key, clusters, leaving, details if status else {}, claim)


def list_templates(records: Mapping[Key, Body]) -> Iterator[Body]:
    """Yield the objects that only come along with others, such as Secrets: where they go depends on nothing that they have."""
    for key, body in records.items():
        spec = as_object(body.get("spec"))
        resource = as_object(spec.get("resource"))
        if key.kind in _BINDING_KINDS and spec.get("requiredBy") and not spec.get("clusters") and not spec.get("replicas"):
            metadata = {name: resource[name] for name in ("name", "namespace") if name in resource}
            yield {"apiVersion": resource.get("apiVersion"), "kind": resource.get("kind"), "metadata": metadata}


def find_progress(change: HubChange, hub: HubDecision | None, own: HubDecision | None) -> HubProgress | None:
    """Return what the hub has not done yet; None if it has decided with what the second dump has."""
    text = _describe_missing_binding(change, own) if hub is None else _describe_pending(change, hub, own)
    return HubProgress("in-progress", text) if text else None


def _describe_missing_binding(change: HubChange, own: HubDecision | None) -> str:
    """Say that the hub has had no time to make a binding: something that it needs is newer than the first dump."""
    if own is None:
        return ""
    new = [key for key in (own.subject, own.policy) if key is not None and key not in change.first.documents]
    return f"{PENDING}: {new[0].title} is newer than the first dump, and it has no binding yet" if new else ""


def _describe_pending(change: HubChange, hub: HubDecision, own: HubDecision | None) -> str:
    body = change.second.records[hub.record]
    template = change.second.documents.get(hub.subject, {})
    if get_field(body, "metadata", "deletionTimestamp") or get_field(template, "metadata", "deletionTimestamp"):
        return "the hub is deleting it"
    steps = (
        _describe_generation(body),
        _describe_placement(change, hub, body),
        _describe_replicas(body, template, own),
        _describe_rebalance(change, hub, body),
        _describe_eviction(change, hub, own),
    )
    return next(filter(None, steps), "")


def _describe_generation(body: Body) -> str:
    generation, observed = get_field(body, "metadata", "generation"), get_field(body, "status", "schedulerObservedGeneration")
    if isinstance(generation, int) and isinstance(observed, int) and observed < generation:
        return f"{PENDING}: its scheduler has seen generation {observed} of the binding, which is at {generation}"
    return ""


def _describe_placement(change: HubChange, hub: HubDecision, body: Body) -> str:
    """Compare the placement of the policy with that of the binding, and this with the one that the scheduler applied last."""
    previous, placement = read_previous(body), as_object(get_field(body, "spec", "placement"))
    policy = change.second.documents.get(hub.policy) if hub.policy is not None else None
    if not previous.condition and not previous.clusters and not previous.required_by and _is_default(body):
        return f"{PENDING}: its binding has no condition Scheduled"
    succeeded = bool(placement) and previous.condition.get("status") == "True"
    if succeeded and has_placement_changed(placement, previous.applied_placement, previous.observed_group):
        return f"{PENDING}: the placement of its binding is not the one that was scheduled last"
    if hub.policy is None or policy is None or not placement or get_field(policy, "spec", "activationPreference") == "Lazy":
        return ""
    first = as_object(get_field(change.first.documents.get(hub.policy, {}), "spec", "placement"))
    is_old = first == placement != as_object(get_field(policy, "spec", "placement"))
    return f"{PENDING}: its binding has an earlier placement of {hub.policy.title}" if is_old else ""


def _describe_replicas(body: Body, template: Body, own: HubDecision | None) -> str:
    """Say that the workload was changed after its binding was written."""
    seen, present = get_text(body["spec"], "resource", "resourceVersion"), get_text(template, "metadata", "resourceVersion")
    wanted = own.details.get("replicas of the workload") if own is not None else None
    if wanted is None or wanted == str(get_field(body, "spec", "replicas")) or not seen or seen == present:
        return ""
    return f"{PENDING}: its binding is of version {seen} of the workload, which is at {present}"


def _describe_rebalance(change: HubChange, hub: HubDecision, body: Body) -> str:
    previous = read_previous(body)
    requested, last = previous.reschedule_triggered, previous.last_scheduled
    if requested is not None and previous.condition.get("status") == "True" and (last is None or requested > last):
        return f"{PENDING}: a rebalance was requested that has not been scheduled"
    for key, rebalancer in change.second.documents.items():
        if key.kind == REBALANCER and _is_waiting(rebalancer, change.second.records.get(key, {}), hub.subject):
            return f"{PENDING}: {key.title} is in progress"
    return ""


def _is_waiting(rebalancer: Body, record: Body, subject: Key) -> bool:
    """Return whether a rebalancer names a workload for which the hub has recorded no result."""

    def names(entry: Body) -> bool:
        return _make_reference(entry) == subject

    done = (one for one in list_objects(get_field(record, "status", "observedWorkloads")) if one.get("result"))
    named = list_objects(get_field(rebalancer, "spec", "workloads"))
    return any(map(names, named)) and not any(names({**one, **as_object(one.get("workload"))}) for one in done)


def _make_reference(entry: Body) -> Key:
    return Key(parse_api_group(get_text(entry, "apiVersion")), *(get_text(entry, name) for name in ("kind", "namespace", "name")))


def _describe_eviction(change: HubChange, hub: HubDecision, own: HubDecision | None) -> str:
    """Say that only the copies of a graceful eviction differ, which end when the hub finds the new ones healthy."""
    if own is None or hub.clusters != own.clusters or hub.leaving == own.leaving:
        return ""
    known = hub.leaving | frozenset(
        get_text(task, "fromCluster") for task in read_previous(change.first.records.get(hub.record)).eviction_tasks
    )
    names = sorted((hub.leaving ^ own.leaving) & known)
    return f"a graceful eviction from {', '.join(names)} is in progress" if names else ""


def describe_history(change: HubChange, hub: HubDecision, own: HubDecision | None) -> str:
    """Say that the hub has scheduled a workload between the dumps for which they show no reason: gitsched keeps its clusters."""
    first = change.first.records.get(hub.record)
    if first is None or own is None:
        return ""
    before, after = read_previous(first), read_previous(change.second.records[hub.record])
    kept = {assignment.name: assignment.replicas or None for assignment in before.clusters} == own.clusters
    if (
        not kept
        or after.last_scheduled is None
        or (before.last_scheduled is not None and after.last_scheduled <= before.last_scheduled)
    ):
        return ""
    time = get_text(change.second.records[hub.record], "status", "lastScheduledTime")
    request = after.reschedule_triggered
    if request is not None and request != before.reschedule_triggered:
        return f"the hub has scheduled it again at {time} on a request of a rebalancer that the second dump does not have"
    return (
        f"the hub has scheduled it again at {time} for a reason that was over before the second dump; gitsched keeps its clusters"
    )


def list_causes(change: HubChange, hub: HubDecision | None, own: HubDecision | None) -> Iterator[DifferenceCause]:
    """Yield what the dumps show as the cause of a difference."""
    if hub is None:
        if own is not None:
            yield _explain_missing_binding(change, own)
        return
    body = change.second.records[hub.record]
    if hub.policy is not None and hub.policy not in change.second.documents:
        yield DifferenceCause("input", f"the second dump does not have {hub.policy.title}, which the hub follows")
    elif own is not None and hub.policy is not None and own.policy is not None and own.policy != hub.policy:
        text = f"the hub follows {hub.policy.title}, gitsched {own.policy.title}, which has precedence"
        yield DifferenceCause("rule", text, "policy preemption")
    scheduler = get_text(body, "spec", "schedulerName")
    if not _is_default(body):
        text = f"scheduler {scheduler} decides on the hub; gitsched leaves workloads of other schedulers as they are"
        yield DifferenceCause("field", text, "spec.schedulerName")
    yield from _explain_division(change, hub, own, body)


def _explain_missing_binding(change: HubChange, own: HubDecision) -> DifferenceCause:
    if not any(key.namespace == own.record.namespace for key in change.second.records if key.kind == own.record.kind):
        where = f"of namespace {own.record.namespace}" if own.record.namespace else "without a namespace"
        return DifferenceCause("input", f"the second dump has no bindings {where}")
    text = "the hub has no binding for it: it may be excluded by --skipped-propagating-namespaces or --skipped-propagating-apis"
    return DifferenceCause("setting", text, "--skipped-propagating-namespaces")


def _explain_division(change: HubChange, hub: HubDecision, own: HubDecision | None, body: Body) -> Iterator[DifferenceCause]:
    """Name free capacity as the cause where the hub has divided replicas by it between the dumps."""
    rule = as_object(get_field(body, "spec", "placement", "replicaScheduling"))
    first = read_previous(change.first.records.get(hub.record)).last_scheduled
    last = read_previous(body).last_scheduled
    scheduled = last is not None and (first is None or last > first)
    if own is None or not scheduled or rule.get("replicaSchedulingType") != "Divided" or not _is_dynamic(rule):
        return
    time = get_text(body, "status", "lastScheduledTime")
    text = (
        f"its replicas are divided by free capacity, as the estimators of the hub reported it at {time}; the dumps do not have that"
    )
    yield DifferenceCause("fact", text, "free capacity")


def _is_dynamic(rule: Body) -> bool:
    return rule.get("replicaDivisionPreference") == "Aggregated" or bool(get_field(rule, "weightPreference", "dynamicWeight"))


def _is_default(body: Body) -> bool:
    return get_text(body, "spec", "schedulerName") in ("", DEFAULT_SCHEDULER)


_DEFAULTS: Final[Mapping[str, Any]] = {
    "taintEviction": False,
    "evictionPurgeMode": "Gracefully",
    "enableEmptyWorkloadPropagation": False,
    "preemption": False,
    "missingFacts": "strict",
}
"""What a hub does without flags; gitsched's own defaults are others."""
_TRIED: Final = (
    ("taintEviction", True, "--enable-no-execute-taint-eviction"),
    ("taintEviction", False, "--enable-no-execute-taint-eviction=false"),
    ("evictionPurgeMode", "Directly", "--no-execute-taint-eviction-purge-mode=Directly"),
    ("evictionPurgeMode", "Gracefully", "--no-execute-taint-eviction-purge-mode=Gracefully"),
    ("enableEmptyWorkloadPropagation", True, "--enable-empty-workload-propagation"),
    ("enableEmptyWorkloadPropagation", False, "--enable-empty-workload-propagation=false"),
    ("preemption", True, "the feature gate PolicyPreemption"),
    ("preemption", False, "the feature gate PolicyPreemption turned off"),
    *(
        (f"featureGates.{name}", value, f"the feature gate {name}={str(value).lower()}")
        for name in GATES
        for value in (True, False)
    ),
    ("missingFacts", "assume", "facts of clusters that the dump does not have"),
)
"""Settings with a value, and the flag of the hub that they stand for."""

HUB_COMPARISON = HubComparison(
    split,
    _reduce_record,
    read_decisions,
    find_progress,
    describe_history,
    list_causes,
    list_templates,
    frozenset({(CLUSTER_GROUP, CLUSTER)}),
    _DEFAULTS,
    tuple(TriedSetting(name, value, f"the hub decides as with {flag}") for name, value, flag in _TRIED),
)
"""Karmada's entry in the registry of policy APIs."""
