"""Which built-in kinds live outside of namespaces."""

from __future__ import annotations

_CLUSTER_SCOPED = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "apps.karmada.io": "WorkloadRebalancer",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "cluster.karmada.io": "Cluster",
    "cluster.open-cluster-management.io": "ManagedCluster ManagedClusterSet",
    "core": "GlobalMetric GlobalMetricsProvider",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "gitsched.io": "ClusterScores Config DecisionBasis RolloutReport",
    "infrastructure": "GlobalCloud GlobalInfrastructureProvider",
    "networking.k8s.io": "IngressClass IPAddress ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodSecurityPolicy",
    "policy.karmada.io": "ClusterOverridePolicy ClusterPropagationPolicy ClusterTaintPolicy",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "work.karmada.io": "ClusterResourceBinding",
}
_OUTSIDE = frozenset((group, kind) for group, kinds in _CLUSTER_SCOPED.items() for kind in kinds.split())
_KNOWN_GROUPS = frozenset(_CLUSTER_SCOPED) | {
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "kubernetes",
    "openstack",
    "sources.knative.dev",
    "work.open-cluster-management.io",
}


def is_built_in(group: str) -> bool:
    """Whether an API group is one of Kubernetes or of those that are read here."""
    return group in _KNOWN_GROUPS


def is_namespaced(group: str, kind: str) -> bool | None:
    """Whether a built-in kind is in a namespace; None for a kind that is not built in."""
    return (group, kind) not in _OUTSIDE if is_built_in(group) else None
