"""Open Cluster Management's groups, labels, annotations and the names it derives."""

from __future__ import annotations

from gitsched.model.document import Key

GROUP = "cluster.open-cluster-management.io"
WORK_GROUP = "work.open-cluster-management.io"
GROUPS = frozenset({GROUP, WORK_GROUP})

CLUSTER, SET, BINDING = "ManagedCluster", "ManagedClusterSet", "ManagedClusterSetBinding"
PLACEMENT, DECISION, SCORE = "Placement", "PlacementDecision", "AddOnPlacementScore"
REPLICA_SET = "ManifestWorkReplicaSet"
VERSIONS = {
    (GROUP, CLUSTER): "v1",
    (GROUP, SET): "v1beta2",
    (GROUP, BINDING): "v1beta2",
    (GROUP, PLACEMENT): "v1beta1",
    (GROUP, DECISION): "v1beta1",
    (GROUP, SCORE): "v1alpha1",
    (WORK_GROUP, REPLICA_SET): "v1alpha1",
}
"""The version that each kind is read in; of Placement also v1alpha1, as another way to write the same."""
OLD = "v1alpha1"

SET_LABEL = f"{GROUP}/clusterset"
PLACEMENT_LABEL = f"{GROUP}/placement"
"""On a PlacementDecision: whose it is. As an annotation of any other object: the Placement that says where it goes."""
GROUP_NAME_LABEL = f"{GROUP}/decision-group-name"
GROUP_INDEX_LABEL = f"{GROUP}/decision-group-index"
DISABLED = f"{GROUP}/experimental-scheduling-disable"
SPREAD = "gitsched.io/spread-policy"
"""On a Placement, with the value true: its spreadPolicy counts."""

LONGEST_NAME = 63
"""Of a Placement: its decisions carry the name as a label's value."""


def placement_key(namespace: str, name: str) -> Key:
    return Key(GROUP, PLACEMENT, namespace, name)


def decision_key(namespace: str, name: str) -> Key:
    return Key(GROUP, DECISION, namespace, name)
