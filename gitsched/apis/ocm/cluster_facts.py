"""ManagedClusters and facts: collected facts as their status, and the ManagedClusters of a hub."""

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
from gitsched.apis.ocm.availability import AVAILABLE_CONDITION, NO_SELECT, TAINT_KEYS
from gitsched.apis.ocm.names import GROUP, MANAGED_CLUSTER
from gitsched.apis.topology import add_taint
from gitsched.model.cluster_facts import EVICT, NO_NEW_PLACEMENTS, UNKNOWN, ClusterFacts, CollectedCluster
from gitsched.model.document import Body, as_object, as_string_map, list_objects
from gitsched.model.time import format_time

_VERSION = f"{GROUP}/v1"
_EFFECTS = {"NoSchedule": "NoSelectIfNew", "NoExecute": NO_SELECT, "PreferNoSchedule": "PreferNoSelect"}
"""Effects of taints of clusters by those of Kubernetes and Karmada."""
_REGION_CLAIM = "region.open-cluster-management.io"
_PLATFORM_CLAIM = "platform.open-cluster-management.io"


def apply_facts(body: Body, facts: ClusterFacts, stale: StaleFacts | None) -> Body:
    """Return a ManagedCluster with the facts as its status. Claims stay: claim selectors choose by them, so people own them.

    Stale facts add the taint that the hub adds when a cluster does not respond (pkg/registration/hub/taint/controller.go), with the effect
    NoSelectIfNew, or NoSelect with the rule `evict`.
    """
    status = dict(as_object(body.get("status")))
    if facts.version:
        status["version"] = {**as_object(status.get("version")), "kubernetes": facts.version}
    if facts.readiness is not None:
        status["conditions"] = replace_condition(status, AVAILABLE_CONDITION, facts.readiness)
    if facts.allocatable:
        status["allocatable"] = dict(facts.allocatable)
        status["capacity"] = dict(facts.capacity or facts.allocatable)  # only resources in both are compared
    made = {**body, "status": status}
    if stale is not None and stale.rule in (NO_NEW_PLACEMENTS, EVICT):
        effect = NO_SELECT if stale.rule == EVICT else "NoSelectIfNew"
        made = add_taint(made, TAINT_KEYS[UNKNOWN], effect, format_time(stale.since))
    return made


def write_cluster(cluster: CollectedCluster) -> Body:
    """Return a ManagedCluster for the source: what people own, and the claims, which select clusters."""
    metadata: dict[str, Any] = {"name": cluster.facts.cluster}
    if cluster.labels:
        metadata["labels"] = dict(sorted(cluster.labels.items()))
    spec: dict[str, Any] = {"hubAcceptsClient": True}
    if cluster.taints:
        spec["taints"] = translate_taints(cluster.taints, _EFFECTS)
    body: dict[str, Any] = {"apiVersion": _VERSION, "kind": MANAGED_CLUSTER, "metadata": metadata, "spec": spec}
    named = {_REGION_CLAIM: cluster.region, _PLATFORM_CLAIM: cluster.provider}
    claims = {name: value for name, value in named.items() if value} | dict(cluster.claims)
    if claims:
        body["status"] = {"clusterClaims": [{"name": name, "value": value} for name, value in sorted(claims.items())]}
    return body


def read_cluster(body: Body, observed: datetime) -> CollectedCluster:
    """Read a ManagedCluster of a hub. The taints that the hub adds by itself are not those of people."""
    metadata, spec, status = (as_object(body.get(name)) for name in ("metadata", "spec", "status"))
    claims = {str(claim.get("name")): str(claim.get("value")) for claim in list_objects(status.get("clusterClaims"))}
    facts = ClusterFacts(
        str(metadata.get("name") or ""),
        observed,
        read_condition(body, AVAILABLE_CONDITION),
        str(as_object(status.get("version")).get("kubernetes") or ""),
        capacity=as_object(status.get("capacity")),
        allocatable=as_object(status.get("allocatable")),
    )
    return CollectedCluster(
        facts,
        as_string_map(metadata.get("labels")),
        claims.get(_REGION_CLAIM, ""),
        claims.get(_PLATFORM_CLAIM, ""),
        taints=tuple(taint for taint in list_objects(spec.get("taints")) if taint.get("key") not in TAINT_KEYS.values()),
        claims=claims,
    )


CLUSTER_FORMAT = ClusterFormat(
    GROUP, MANAGED_CLUSTER, apply_facts, write_cluster, HubClusters(f"/apis/{_VERSION}/managedclusters", read_cluster)
)
