"""API groups, kinds, versions, labels and annotations of Open Cluster Management."""

from __future__ import annotations

from gitsched.model.document import Key

GROUP = "cluster.open-cluster-management.io"
WORK_GROUP = "work.open-cluster-management.io"
ADDON_GROUP = "addon.open-cluster-management.io"
GROUPS = frozenset({GROUP, WORK_GROUP, ADDON_GROUP})
GITSCHED_GROUP = "gitsched.io"
CLUSTER_SCORES, DECISION_BASIS, ROLLOUT_REPORT = "ClusterScores", "DecisionBasis", "RolloutReport"
"""Kinds of gitsched itself: the input of `gitsched scores`, the digest of what decisions were made from, and reports of clusters."""

MANAGED_CLUSTER, CLUSTER_SET, CLUSTER_SET_BINDING = "ManagedCluster", "ManagedClusterSet", "ManagedClusterSetBinding"
PLACEMENT, PLACEMENT_DECISION, ADDON_SCORE = "Placement", "PlacementDecision", "AddOnPlacementScore"
MANIFEST_WORK_REPLICA_SET = "ManifestWorkReplicaSet"
CLUSTER_CLAIM = "ClusterClaim"
OTHER_KINDS = (CLUSTER_CLAIM, "BackupSchedule", "ClusterCurator", "Restore")
"""Kinds of the group that scheduling does not read: a ClusterClaim is an object of a managed cluster, and the others belong to Red Hat
Advanced Cluster Management (stolostron/cluster-backup-operator, stolostron/cluster-curator-controller)."""
ADDON_KINDS = ("AddOnDeploymentConfig", "AddOnTemplate", "ClusterManagementAddOn", "ManagedClusterAddOn")
"""Objects of a hub, which policies can deliver to the cluster with the hub."""
VERSIONS = {
    (GROUP, MANAGED_CLUSTER): "v1",
    (GROUP, CLUSTER_SET): "v1beta2",
    (GROUP, CLUSTER_SET_BINDING): "v1beta2",
    (GROUP, PLACEMENT): "v1beta1",
    (GROUP, PLACEMENT_DECISION): "v1beta1",
    (GROUP, ADDON_SCORE): "v1alpha1",
    (WORK_GROUP, MANIFEST_WORK_REPLICA_SET): "v1alpha1",
}
"""The version of each kind that is read."""
OLD_VERSIONS = {
    (GROUP, PLACEMENT): ("v1alpha1",),
    (GROUP, CLUSTER_SET): ("v1alpha1", "v1beta1"),
    (GROUP, CLUSTER_SET_BINDING): ("v1alpha1", "v1beta1"),
}
"""Earlier versions, whose documents are converted to the version that is read."""

SET_LABEL = f"{GROUP}/clusterset"
PLACEMENT_LABEL = f"{GROUP}/placement"
"""As a label of a PlacementDecision: its Placement. As an annotation of any other object: the Placement to follow."""
GROUP_NAME_LABEL = f"{GROUP}/decision-group-name"
GROUP_INDEX_LABEL = f"{GROUP}/decision-group-index"
SCHEDULING_DISABLED_ANNOTATION = f"{GROUP}/experimental-scheduling-disable"
SPREAD_POLICY_ANNOTATION = "gitsched.io/spread-policy"
"""An annotation of a Placement: with the value "true", its spreadPolicy is applied."""

MAX_PLACEMENT_NAME = 63
"""Characters in the name of a Placement: PlacementDecisions have the name as a label value, which is limited to 63."""


def placement_key(namespace: str, name: str) -> Key:
    return Key(GROUP, PLACEMENT, namespace, name)


def decision_key(namespace: str, name: str) -> Key:
    return Key(GROUP, PLACEMENT_DECISION, namespace, name)
