"""Clusters of Krake and facts: the readiness that was observed becomes the state of the cluster."""

from __future__ import annotations

from typing import Any

from gitsched.apis.cluster_format import ClusterFormat, StaleFacts
from gitsched.apis.krake.cluster_states import NOTREADY, OBSERVED_FAILURES, OFFLINE, ONLINE
from gitsched.apis.krake.names import CLUSTER
from gitsched.model.cluster_facts import EVICT, FALSE, NO_NEW_PLACEMENTS, TRUE, UNKNOWN, ClusterFacts, CollectedCluster
from gitsched.model.document import Body, as_object, get_field
from gitsched.model.time import format_time

STALE_FACTS = "gitsched.io/stale-facts"
"""Annotation of a cluster with stale facts that keeps its applications and gets no new ones."""
_STATES = {TRUE: ONLINE, FALSE: NOTREADY, UNKNOWN: OFFLINE}
_REPLACED = frozenset(("", "PENDING", ONLINE, *OBSERVED_FAILURES))
"""States that Krake's observer of clusters sets, and those before it has. A cluster that is being made or deleted keeps its state."""


def apply_facts(body: Body, facts: ClusterFacts, stale: StaleFacts | None) -> Body:
    """Return a Cluster with the state that Krake's observer would set (krake/controller/kubernetes/hooks.py).

    With stale facts and the rule `evict` the state is OFFLINE.
    """
    status = dict(as_object(body.get("status")))
    evicts = stale is not None and stale.rule == EVICT
    state = OFFLINE if evicts else _STATES[facts.readiness.status] if facts.readiness is not None else ""
    if state and str(status.get("state") or "") in _REPLACED:
        status.pop("nodes", None)  # an older observation
        status["state"] = state
    made = {**body, "status": status} if status else body
    if stale is None or stale.rule != NO_NEW_PLACEMENTS:
        return made
    metadata = as_object(body.get("metadata"))
    annotations = {**as_object(metadata.get("annotations")), STALE_FACTS: format_time(stale.since)}
    return {**made, "metadata": {**metadata, "annotations": annotations}}


def has_stale_facts(body: Body) -> bool:
    """Return whether the facts about a Cluster are stale, so that it keeps its applications and gets no new ones."""
    return bool(get_field(body, "metadata", "annotations", STALE_FACTS))


def write_cluster(cluster: CollectedCluster) -> Body:
    """Return a Cluster for the source: what people own, and that it is online, because facts may come later. Its kubeconfig only names the
    cluster: Krake requires one, and gitsched does not read it."""
    group, kind = CLUSTER
    labels = {**({"region": cluster.region} if cluster.region else {}), **cluster.labels}
    metadata: dict[str, Any] = {"name": cluster.facts.cluster, "namespace": "default"}
    if labels:
        metadata["labels"] = dict(sorted(labels.items()))
    name = cluster.facts.cluster
    kubeconfig = {"apiVersion": "v1", "kind": "Config"} | {part: [{"name": name}] for part in ("clusters", "contexts", "users")}
    return {"api": group, "kind": kind, "metadata": metadata, "spec": {"kubeconfig": kubeconfig}, "status": {"state": ONLINE}}


CLUSTER_FORMAT = ClusterFormat(*CLUSTER, apply_facts, write_cluster)
