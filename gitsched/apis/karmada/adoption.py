"""Adopt a running fleet: read bindings and Works of a hub, and make bindings for workloads from where they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.adoption import HubDelivery, HubObjects
from gitsched.apis.karmada.binding.resource_binding import (
    binding_key,
    make_claim_annotations,
    make_resource_reference,
    read_previous,
)
from gitsched.apis.karmada.names import (
    APPLIED_PLACEMENT_ANNOTATION,
    RECORD_KINDS,
    WORK_GROUP,
    WORK_VERSION,
)
from gitsched.apis.registered import Registered
from gitsched.model.adoption import AdoptedRecord, ClusterReplicas, RunningObjects
from gitsched.model.document import Body, Document, Key, as_object, get_field, list_objects, parse_api_group, read_annotations
from gitsched.model.time import format_time

if TYPE_CHECKING:
    from gitsched.apis.karmada.policy.propagation_policy import PropagationPolicy
    from gitsched.apis.karmada.state import KarmadaState

WORK = "Work"
EXECUTION_PREFIX = "karmada-es-"
"""A Work is in the execution space of its cluster: the namespace with this prefix and the name of the cluster
(karmada-io/karmada/pkg/util/names/names.go)."""
_SPEC_MEMBERS = (
    "resource", "replicas", "clusters", "gracefulEvictionTasks", "requiredBy", "rescheduleTriggeredAt", "suspension",
)  # fmt: skip
_STATUS_MEMBERS = ("schedulerObservingAffinityName", "lastScheduledTime", "conditions")


def reduce_binding(body: Body) -> Body:
    """Return what decisions depend on, of a binding of a hub."""
    metadata, spec, status = (as_object(body.get(name)) for name in ("metadata", "spec", "status"))
    wanted = {name: text for name, text in read_annotations(body).items() if _is_decisive(name)}
    labels = {name: text for name, text in as_object(metadata.get("labels")).items() if _is_decisive(name)}
    kept = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    return {
        "apiVersion": WORK_VERSION,
        "kind": body.get("kind"),
        "metadata": {**kept, "annotations": {**labels, **wanted}},
        "spec": {name: spec[name] for name in _SPEC_MEMBERS if name in spec},
        "status": {name: status[name] for name in _STATUS_MEMBERS if name in status},
    }


def _is_decisive(name: str) -> bool:
    """Return whether an annotation says which policy claimed a workload and for which placement it was scheduled. Hubs before Karmada 1.11
    have the claims as labels."""
    return name == APPLIED_PLACEMENT_ANNOTATION or name.startswith(
        ("propagationpolicy.karmada.io/", "clusterpropagationpolicy.karmada.io/")
    )


def read_work(body: Body) -> HubDelivery | None:
    """Return what a Work applies in its cluster."""
    namespace = str(get_field(body, "metadata", "namespace") or "")
    if not namespace.startswith(EXECUTION_PREFIX):
        return None
    manifests = list_objects(get_field(body, "spec", "workload", "manifests"))
    return HubDelivery(namespace.removeprefix(EXECUTION_PREFIX), tuple(manifests))


def read_placement(binding: Body) -> tuple[Key, ClusterReplicas] | None:
    """Return the workload of a binding and its clusters; None without a cluster."""
    resource, clusters = as_object(get_field(binding, "spec", "resource")), read_previous(binding).clusters
    if not clusters:
        return None
    group, kind = parse_api_group(str(resource.get("apiVersion") or "")), str(resource.get("kind") or "")
    key = Key(group, kind, str(resource.get("namespace") or ""), str(resource.get("name") or ""))
    return key, {assignment.name: assignment.replicas or None for assignment in clusters}


HUB_OBJECTS = HubObjects(
    frozenset(RECORD_KINDS),
    frozenset({(WORK_GROUP, WORK)}),
    reduce_binding,
    read_placement,
    read_work,
    Registered("gitsched.apis.karmada.hub_comparison", "HUB_COMPARISON").load,
)


def adopt_workloads(state: KarmadaState, workloads: Iterable[Document], running: RunningObjects) -> Iterator[AdoptedRecord]:
    """Yield the bindings of workloads that run: that of the hub, completed where it lacks something, else one made from the clusters."""
    for template in workloads:
        key = binding_key(template.key)
        known, observed = running.records.get(key), find_clusters(state, template, running)
        if known is not None and _is_bound(known):
            yield _complete_binding(state, template, key, known)
        elif observed:
            yield _make_binding(state, template, key, observed)


def find_clusters(state: KarmadaState, template: Document, running: RunningObjects) -> ClusterReplicas:
    """Return where a workload runs. A Bundle runs where one of the objects of its variant does, with the replicas of all of them, unless
    it is placed as a whole."""
    variants = state.snapshot.variants.get(template.key) if state.snapshot.variants else None
    if variants is None:
        return running.clusters.get(template.key, {})
    required = state.read_variant_requirements(template)
    found: dict[str, int | None] = {}
    for cluster, index in sorted(variants.by_cluster.items()):
        objects = (running.clusters.get(one.key, {}) for one in variants.variants[index].objects)
        counts = [clusters[cluster] for clusters in objects if cluster in clusters]
        if counts:
            is_set = required is not None and required.places_sets
            found[cluster] = (
                required.requirements.replicas if required is not None and is_set else sum(filter(None, counts)) or None
            )
    return found


def _is_bound(binding: Body) -> bool:
    spec = binding["spec"]
    return bool(spec.get("clusters") or spec.get("requiredBy") or spec.get("gracefulEvictionTasks"))


def _complete_binding(state: KarmadaState, template: Document, key: Key, known: Body) -> AdoptedRecord:
    """Return a binding of a hub with what it lacks."""
    policy, _ = state.find_policy(template, known)
    annotations, status = known["metadata"]["annotations"], dict(known["status"])
    clusters = {assignment.name: assignment.replicas or None for assignment in read_previous(known).clusters}
    for entry in list_objects(known["spec"].get("requiredBy")):
        clusters.update(
            {str(each.get("name")): None for each in list_objects(entry.get("clusters")) if each.get("name") not in clusters}
        )
    missing = []
    if policy is not None and known["spec"].get("clusters"):
        if APPLIED_PLACEMENT_ANNOTATION not in annotations and not known["spec"].get("requiredBy"):
            missing.append(f"its binding has no annotation {APPLIED_PLACEMENT_ANNOTATION}")
        if not status:
            missing.append("its binding has no status")
        annotations = _complete_annotations(policy, annotations)
        status = _complete_status(state, policy, status, clusters)
    body = {**known, "metadata": {**known["metadata"], "annotations": annotations}, "status": status}
    return AdoptedRecord(key, body, template.key, clusters, tuple(missing))


def _make_binding(state: KarmadaState, template: Document, key: Key, observed: ClusterReplicas) -> AdoptedRecord:
    """Return the binding of a workload that the hub has no binding for, or whose binding is not known."""
    policy, _ = state.find_policy(template, None)
    metadata: Body = {"name": key.name, **({"namespace": key.namespace} if key.namespace else {}), "annotations": {}}
    spec: Body = {"resource": make_resource_reference(template)}
    replicas = state.read_requirements(template).replicas
    if replicas is not None:
        spec["replicas"] = replicas
    body: Body = {"apiVersion": WORK_VERSION, "kind": key.kind, "metadata": metadata, "spec": spec, "status": {}}
    clusters = [{"name": name, "replicas": count} if count else {"name": name} for name, count in sorted(observed.items())]
    if policy is None:  # it comes along with workloads that depend on it
        spec["requiredBy"] = [
            {"namespace": key.namespace, "name": key.name, "clusters": [{"name": name} for name in sorted(observed)]}
        ]
    else:
        spec["clusters"] = clusters
        metadata["annotations"] = _complete_annotations(policy, {})
        body["status"] = _complete_status(state, policy, {}, observed)
    return AdoptedRecord(key, body, template.key, observed, ("its binding is not known",) if policy is not None else ())


def _complete_annotations(policy: PropagationPolicy, annotations: dict[str, str]) -> dict[str, str]:
    claims = {} if any(name.endswith("policy.karmada.io/name") for name in annotations) else make_claim_annotations(policy.key)
    applied = policy.applied_placement
    return {APPLIED_PLACEMENT_ANNOTATION: applied, **claims, **annotations}


def _complete_status(state: KarmadaState, policy: PropagationPolicy, status: Body, clusters: ClusterReplicas) -> Body:
    """Return the status with the affinity group that has all clusters, and the time of the source as the time of scheduling."""
    found: Body = {}
    if "schedulerObservingAffinityName" not in status:
        group = _find_group(state, policy, clusters)
        found |= {"schedulerObservingAffinityName": group} if group else {}
    if not status:
        time = format_time(state.snapshot.at)
        condition = {"type": "Scheduled", "status": "True", "reason": "Success", "lastTransitionTime": time}
        found |= {"lastScheduledTime": time, "conditions": [condition]}
    return {**found, **status}


def _find_group(state: KarmadaState, policy: PropagationPolicy, clusters: ClusterReplicas) -> str:
    """Return the first affinity group that has all clusters, else the one with most of them."""
    fleet = state.fleet
    wanted = fleet.mask(name for name in clusters if name in fleet.index)
    groups = [
        (group.name, (wanted if group.affinity is None else fleet.matching(group.affinity) & wanted).bit_count())
        for group in policy.placement.groups
        if group.name
    ]
    found, count = max(groups, key=lambda entry: entry[1], default=("", 0))
    return found if count else ""
