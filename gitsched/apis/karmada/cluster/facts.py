"""Clusters of Karmada and facts: collected facts as their status, and the Clusters of a hub."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from gitsched.apis.cluster_format import (
    ClusterFormat,
    HubClusters,
    StaleFacts,
    read_condition,
    replace_condition,
    translate_taints,
)
from gitsched.apis.karmada.cluster.candidates import OBSERVED_AT
from gitsched.apis.karmada.cluster.taints import NOT_READY_TAINT, READY_CONDITION, UNREACHABLE_TAINT
from gitsched.apis.karmada.names import CLUSTER, CLUSTER_GROUP
from gitsched.apis.topology import add_taint
from gitsched.model.cluster_facts import EVICT, NO_NEW_PLACEMENTS, ClusterFacts, CollectedCluster, NodeCount
from gitsched.model.document import Body, as_object, as_string_map, list_objects
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE
from gitsched.model.time import format_time

_VERSION = f"{CLUSTER_GROUP}/v1alpha1"
_EFFECTS = {"NoSelectIfNew": NO_SCHEDULE, "NoSelect": NO_EXECUTE, "PreferNoSelect": "PreferNoSchedule"}
"""Effects of taints by those of OCM."""


def apply_facts(body: Body, facts: ClusterFacts, stale: StaleFacts | None) -> Body:
    """Return a Cluster with the facts as its status.

    Stale facts add the taint that Karmada adds when a cluster does not respond (pkg/controllers/cluster/cluster_controller.go): it gets
    no new workloads, and with the rule `evict` workloads that do not tolerate the taint leave.
    """
    status = dict(as_object(body.get("status")))
    if facts.version:
        status["kubernetesVersion"] = facts.version
    if facts.apis:
        status["apiEnablements"] = [
            {"groupVersion": version, "resources": [{"kind": kind} for kind in kinds]} for version, kinds in facts.apis.items()
        ]
    if facts.readiness is not None:
        status["conditions"] = replace_condition(status, READY_CONDITION, facts.readiness)
    if facts.nodes is not None:
        status["nodeSummary"] = {"totalNum": facts.nodes.total, "readyNum": facts.nodes.ready}
    if facts.allocatable:
        status["resourceSummary"] = {"allocatable": dict(facts.allocatable), "allocated": dict(facts.allocated or {})}
    if facts.grades:
        modelings = [{"grade": grade, "count": count} for grade, count in facts.grades.items()]
        status["resourceSummary"] = {**as_object(status.get("resourceSummary")), "allocatableModelings": modelings}
    made = {**body, "status": status}
    if facts.allocatable:
        metadata = as_object(body.get("metadata"))
        annotations = {**as_object(metadata.get("annotations")), OBSERVED_AT: format_time(facts.observed)}
        made["metadata"] = {**metadata, "annotations": annotations}
    if stale is not None and stale.rule in (NO_NEW_PLACEMENTS, EVICT):
        since = format_time(stale.since)
        made = add_taint(made, UNREACHABLE_TAINT.key, NO_SCHEDULE, since)
        made = add_taint(made, UNREACHABLE_TAINT.key, NO_EXECUTE, since) if stale.rule == EVICT else made
    return made


def write_cluster(cluster: CollectedCluster) -> Body:
    """Return a Cluster for the source: what people own, without status."""
    spec: dict[str, Any] = {"syncMode": "Pull"}
    spec |= {name: text for name, text in (("provider", cluster.provider), ("region", cluster.region)) if text}
    if cluster.zones:
        spec["zones"] = list(cluster.zones)
    if cluster.taints:
        spec["taints"] = translate_taints(cluster.taints, _EFFECTS)
    metadata: dict[str, Any] = {"name": cluster.facts.cluster}
    if cluster.labels:
        metadata["labels"] = dict(sorted(cluster.labels.items()))
    return {"apiVersion": _VERSION, "kind": CLUSTER, "metadata": metadata, "spec": spec}


def read_cluster(body: Body, observed: datetime) -> CollectedCluster:
    """Read a Cluster of a hub. The taints that Karmada adds by itself are not those of people."""
    metadata, spec, status = (as_object(body.get(name)) for name in ("metadata", "spec", "status"))
    summary, nodes = as_object(status.get("resourceSummary")), as_object(status.get("nodeSummary"))
    automatic = {NOT_READY_TAINT.key, UNREACHABLE_TAINT.key}
    facts = ClusterFacts(
        str(metadata.get("name") or ""),
        observed,
        read_condition(body, READY_CONDITION),
        str(status.get("kubernetesVersion") or ""),
        {
            str(entry.get("groupVersion")): tuple(str(kind.get("kind")) for kind in list_objects(entry.get("resources")))
            for entry in list_objects(status.get("apiEnablements"))
        },
        allocatable=as_object(summary.get("allocatable")),
        allocated=as_object(summary.get("allocated")) if summary else None,
        nodes=NodeCount(nodes.get("totalNum") or 0, nodes.get("readyNum") or 0) if nodes else None,
        grades=dict(map(_read_grade, list_objects(summary.get("allocatableModelings")))),
    )
    zones = spec.get("zones") or [spec.get("zone")]
    return CollectedCluster(
        facts,
        as_string_map(metadata.get("labels")),
        str(spec.get("region") or ""),
        str(spec.get("provider") or ""),
        tuple(zone for zone in zones if isinstance(zone, str)) if isinstance(zones, list) else (),
        tuple(taint for taint in list_objects(spec.get("taints")) if str(taint.get("key")) not in automatic),
    )


def _read_grade(entry: Body) -> tuple[int, Any]:
    """Return the grade and the number of its nodes; a grade that is no number is -1, which the validation of facts refuses."""
    grade = entry.get("grade")
    return (grade if type(grade) is int else -1), entry.get("count")


CLUSTER_FORMAT = ClusterFormat(
    CLUSTER_GROUP,
    CLUSTER,
    apply_facts,
    write_cluster,
    HubClusters(f"/apis/{_VERSION}/clusters", read_cluster),
)
