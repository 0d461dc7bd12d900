"""Which values the fields of Kubernetes' own kinds may have, beside their types, as the validation of an API server checks them without a
cluster.

A row names fields of a definition of the OpenAPI document and a part of a JSON Schema, which is added to theirs. Its place is the function
in kubernetes/pkg/apis/GROUP/validation that refuses other values. Null is the absence of a value everywhere, and "" is where the API server
sets a default for it or ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gitsched.kinds.pod_values import POD_VALUES
from gitsched.kinds.value_limits import (
    ACCESS_MODE,
    ADDRESS,
    ADDRESS_OR_NONE,
    DNS_LABEL,
    DNS_LABEL_OR_NONE,
    ENTRIES,
    HOST,
    KEYS,
    NAMED_PORT,
    NOT_EMPTY,
    NOT_NEGATIVE,
    NUMBER_OR_PART,
    NUMBER_OR_PERCENT,
    PATH_SEGMENT,
    PORT,
    PORT_OR_NAME,
    PORT_OR_NONE,
    POSITIVE,
    POSITIVE_AMOUNT,
    PROTOCOL,
    PROVISIONER,
    QUALIFIED,
    RANGE,
    SELECTOR_OPERATOR,
    SUBDOMAIN,
    TARGET_PORT,
    TIME,
    TIME_ZONE,
    FieldValues,
    between,
    exactly,
    one_of,
    text,
)

_WORKLOADS = (
    *(
        FieldValues(f"apps.v1.{kind}Spec", fields, NOT_NEGATIVE, f"apps: Validate{kind}Spec")
        for kind, fields in (
            ("DaemonSet", "minReadySeconds revisionHistoryLimit"),
            ("Deployment", "minReadySeconds progressDeadlineSeconds replicas revisionHistoryLimit"),
            ("ReplicaSet", "minReadySeconds replicas"),
            ("StatefulSet", "minReadySeconds replicas revisionHistoryLimit"),
        )
    ),
    FieldValues(
        "core.v1.ReplicationControllerSpec", "minReadySeconds replicas", NOT_NEGATIVE, "core: ValidateReplicationControllerSpec"
    ),
    FieldValues("apps.v1.DeploymentStrategy", "type", one_of("Recreate", "RollingUpdate"), "apps: ValidateDeploymentStrategy"),
    FieldValues("apps.v1.RollingUpdateDeployment", "maxSurge", NUMBER_OR_PERCENT, "apps: ValidateRollingUpdateDeployment"),
    FieldValues("apps.v1.RollingUpdateDeployment", "maxUnavailable", NUMBER_OR_PART, "apps: ValidateRollingUpdateDeployment"),
    FieldValues("apps.v1.RollingUpdateStatefulSetStrategy", "maxUnavailable", NUMBER_OR_PART, "apps: ValidateStatefulSetSpec"),
    FieldValues(
        "apps.v1.DaemonSetUpdateStrategy", "type", one_of("OnDelete", "RollingUpdate"), "apps: ValidateDaemonSetUpdateStrategy"
    ),
    FieldValues(
        "apps.v1.RollingUpdateDaemonSet", "maxSurge maxUnavailable", NUMBER_OR_PART, "apps: ValidateRollingUpdateDaemonSet"
    ),
    FieldValues(
        "apps.v1.StatefulSetSpec", "podManagementPolicy", one_of("OrderedReady", "Parallel"), "apps: ValidateStatefulSetSpec"
    ),
    FieldValues("apps.v1.StatefulSetUpdateStrategy", "type", one_of("OnDelete", "RollingUpdate"), "apps: ValidateStatefulSetSpec"),
    FieldValues("apps.v1.StatefulSetOrdinals", "start", NOT_NEGATIVE, "apps: ValidateStatefulSetSpec"),
    FieldValues("apps.v1.RollingUpdateStatefulSetStrategy", "partition", NOT_NEGATIVE, "apps: ValidateStatefulSetSpec"),
    FieldValues(
        "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        "whenDeleted whenScaled",
        one_of("Delete", "Retain"),
        "apps: ValidatePersistentVolumeClaimRetentionPolicy",
    ),
    FieldValues(
        "batch.v1.JobSpec",
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completions maxFailedIndexes parallelism ttlSecondsAfterFinished",
        NOT_NEGATIVE,
        "batch: validateJobSpec",
    ),
    FieldValues("batch.v1.JobSpec", "completionMode", one_of("Indexed", "NonIndexed"), "batch: validateJobSpec"),
    FieldValues("batch.v1.JobSpec", "podReplacementPolicy", one_of("Failed", "TerminatingOrFailed"), "batch: validateJobSpec"),
    FieldValues(
        "batch.v1.PodFailurePolicyRule",
        "action",
        exactly("FailJob", "FailIndex", "Ignore", "Count"),
        "batch: validatePodFailurePolicyRule",
    ),
    FieldValues(
        "batch.v1.PodFailurePolicyOnExitCodesRequirement",
        "operator",
        exactly("In", "NotIn"),
        "batch: validatePodFailurePolicyRuleOnExitCodes",
    ),
    FieldValues(
        "batch.v1.PodFailurePolicyOnExitCodesRequirement", "values", ENTRIES, "batch: validatePodFailurePolicyRuleOnExitCodes"
    ),
    FieldValues(
        "batch.v1.PodFailurePolicyOnPodConditionsPattern",
        "status",
        one_of("True", "False", "Unknown"),
        "batch: validatePodFailurePolicyRuleOnPodConditions",
    ),
    FieldValues("batch.v1.SuccessPolicy", "rules", ENTRIES, "batch: validateSuccessPolicy"),
    FieldValues("batch.v1.SuccessPolicyRule", "succeededCount", NOT_NEGATIVE, "batch: validateSuccessPolicyRule"),
    FieldValues(
        "batch.v1.CronJobSpec",
        "timeZone",
        TIME_ZONE,
        "batch: validateTimeZone",
    ),
    FieldValues("batch.v1.CronJobSpec", "schedule", NOT_EMPTY, "batch: validateCronJobSpec"),
    FieldValues(
        "batch.v1.CronJobSpec", "concurrencyPolicy", one_of("Allow", "Forbid", "Replace"), "batch: validateConcurrencyPolicy"
    ),
    FieldValues(
        "batch.v1.CronJobSpec",
        "failedJobsHistoryLimit startingDeadlineSeconds successfulJobsHistoryLimit",
        NOT_NEGATIVE,
        "batch: validateCronJobSpec",
    ),
    *(
        FieldValues(
            f"autoscaling.{version}.HorizontalPodAutoscalerSpec", fields, limit, "autoscaling: validateHorizontalPodAutoscalerSpec"
        )
        for version, fields, limit in (
            ("v1", "maxReplicas targetCPUUtilizationPercentage", POSITIVE),
            ("v1", "minReplicas", NOT_NEGATIVE),
            ("v2", "maxReplicas", POSITIVE),
            ("v2", "minReplicas", NOT_NEGATIVE),
        )
    ),
    *(
        FieldValues(
            f"autoscaling.{version}.CrossVersionObjectReference",
            "kind name",
            PATH_SEGMENT,
            "autoscaling: ValidateCrossVersionObjectReference",
        )
        for version in ("v1", "v2")
    ),
    FieldValues(
        "autoscaling.v2.MetricSpec",
        "type",
        exactly("ContainerResource", "External", "Object", "Pods", "Resource"),
        "autoscaling: validateMetricSpec",
    ),
    FieldValues(
        "autoscaling.v2.MetricTarget", "type", exactly("AverageValue", "Utilization", "Value"), "autoscaling: validateMetricTarget"
    ),
    FieldValues("autoscaling.v2.MetricTarget", "averageUtilization", POSITIVE, "autoscaling: validateMetricTarget"),
    FieldValues("autoscaling.v2.MetricTarget", "averageValue value", POSITIVE_AMOUNT, "autoscaling: validateMetricTarget"),
    FieldValues("autoscaling.v2.MetricIdentifier", "name", NOT_EMPTY, "autoscaling: validateMetricIdentifier"),
    FieldValues("autoscaling.v2.ResourceMetricSource", "name", NOT_EMPTY, "autoscaling: validateResourceSource"),
    FieldValues(
        "autoscaling.v2.ContainerResourceMetricSource", "container name", NOT_EMPTY, "autoscaling: validateContainerResourceSource"
    ),
    FieldValues("autoscaling.v2.HPAScalingPolicy", "type", exactly("Percent", "Pods"), "autoscaling: validateScalingPolicy"),
    FieldValues("autoscaling.v2.HPAScalingPolicy", "value", POSITIVE, "autoscaling: validateScalingPolicy"),
    FieldValues("autoscaling.v2.HPAScalingPolicy", "periodSeconds", between(1, 1800), "autoscaling: validateScalingPolicy"),
    FieldValues(
        "autoscaling.v2.HPAScalingRules", "selectPolicy", exactly("Disabled", "Max", "Min"), "autoscaling: validateScalingRules"
    ),
    FieldValues(
        "autoscaling.v2.HPAScalingRules", "stabilizationWindowSeconds", between(0, 3600), "autoscaling: validateScalingRules"
    ),
    FieldValues(
        "policy.v1.PodDisruptionBudgetSpec",
        "maxUnavailable minAvailable",
        NUMBER_OR_PART,
        "policy: ValidatePodDisruptionBudgetSpec",
    ),
    FieldValues(
        "policy.v1.PodDisruptionBudgetSpec",
        "unhealthyPodEvictionPolicy",
        exactly("AlwaysAllow", "IfHealthyBudget"),
        "policy: ValidatePodDisruptionBudgetSpec",
    ),
)
_NETWORK = (
    FieldValues(
        "core.v1.ServiceSpec", "type", one_of("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"), "core: ValidateService"
    ),
    FieldValues("core.v1.ServiceSpec", "sessionAffinity", one_of("ClientIP", "None"), "core: ValidateService"),
    FieldValues(
        "core.v1.ServiceSpec", "externalTrafficPolicy", one_of("Cluster", "Local"), "core: validateServiceExternalTrafficPolicy"
    ),
    FieldValues(
        "core.v1.ServiceSpec",
        "internalTrafficPolicy",
        exactly("Cluster", "Local"),
        "core: validateServiceInternalTrafficFieldsValue",
    ),
    FieldValues(
        "core.v1.ServiceSpec",
        "ipFamilyPolicy",
        exactly("PreferDualStack", "RequireDualStack", "SingleStack"),
        "core: ValidateServiceClusterIPsRelatedFields",
    ),
    FieldValues("core.v1.ServiceSpec", "ipFamilies[]", exactly("IPv4", "IPv6"), "core: ValidateServiceClusterIPsRelatedFields"),
    FieldValues("core.v1.ServiceSpec", "clusterIP clusterIPs[]", ADDRESS_OR_NONE, "core: ValidateServiceClusterIPsRelatedFields"),
    FieldValues("core.v1.ServiceSpec", "externalIPs[]", ADDRESS, "core: ValidateService"),
    FieldValues("core.v1.ServiceSpec", "externalName", SUBDOMAIN, "core: ValidateService"),
    FieldValues("core.v1.ServiceSpec", "healthCheckNodePort", NOT_NEGATIVE, "core: validateServiceExternalTrafficFieldsValue"),
    FieldValues("core.v1.ServiceSpec", "loadBalancerSourceRanges[]", RANGE, "core: ValidateService"),
    FieldValues(
        "core.v1.ServiceSpec",
        "trafficDistribution",
        exactly("PreferClose", "PreferSameNode", "PreferSameZone"),
        "core: validateServiceTrafficDistribution",
    ),
    FieldValues("core.v1.ClientIPConfig", "timeoutSeconds", between(1, 86_400), "core: validateClientIPAffinityConfig"),
    FieldValues("core.v1.ServicePort", "port", PORT, "core: validateServicePort"),
    FieldValues("core.v1.ServicePort", "nodePort", PORT_OR_NONE, "core: validateServicePort"),
    FieldValues("core.v1.ServicePort", "protocol", PROTOCOL, "core: validateServicePort"),
    FieldValues("core.v1.ServicePort", "name", DNS_LABEL_OR_NONE, "core: validateServicePort"),
    FieldValues("core.v1.ServicePort", "targetPort", TARGET_PORT, "core: validateServicePort"),
    FieldValues(
        "networking.v1.HTTPIngressPath",
        "pathType",
        exactly("Exact", "ImplementationSpecific", "Prefix"),
        "networking: validateHTTPIngressPath",
    ),
    FieldValues("networking.v1.HTTPIngressPath", "path", text("^(/|$)", "an absolute path"), "networking: validateHTTPIngressPath"),
    FieldValues("networking.v1.HTTPIngressRuleValue", "paths", ENTRIES, "networking: validateHTTPIngressRuleValue"),
    FieldValues("networking.v1.IngressRule", "host", HOST, "networking: validateIngressRules"),
    FieldValues("networking.v1.IngressServiceBackend", "name", DNS_LABEL, "networking: validateIngressBackend"),
    FieldValues("networking.v1.IngressTLS", "hosts[]", HOST, "networking: validateIngressTLS"),
    FieldValues("networking.v1.IngressTLS", "secretName", SUBDOMAIN, "networking: validateTLSSecretName"),
    FieldValues("networking.v1.IngressSpec", "ingressClassName", SUBDOMAIN, "networking: ValidateIngressSpec"),
    FieldValues("networking.v1.ServiceBackendPort", "name", NAMED_PORT, "networking: validateIngressBackend"),
    FieldValues("networking.v1.ServiceBackendPort", "number", PORT_OR_NONE, "networking: validateIngressBackend"),
    FieldValues("networking.v1.NetworkPolicySpec", "policyTypes", {"maxItems": 2}, "networking: ValidateNetworkPolicySpec"),
    FieldValues(
        "networking.v1.NetworkPolicySpec", "policyTypes[]", exactly("Egress", "Ingress"), "networking: ValidateNetworkPolicySpec"
    ),
    FieldValues(
        "networking.v1.NetworkPolicyPort", "protocol", exactly("TCP", "UDP", "SCTP"), "networking: ValidateNetworkPolicyPort"
    ),
    FieldValues("networking.v1.NetworkPolicyPort", "port", PORT_OR_NAME, "networking: ValidateNetworkPolicyPort"),
    FieldValues("networking.v1.NetworkPolicyPort", "endPort", PORT, "networking: ValidateNetworkPolicyPort"),
    FieldValues(
        "networking.v1.IPBlock",
        "cidr except[]",
        RANGE,
        "networking: ValidateIPBlock",
    ),
)
_OTHERS = (
    FieldValues("meta.v1.Time", "", TIME, "meta: Time.UnmarshalJSON"),
    FieldValues("meta.v1.LabelSelectorRequirement", "key", QUALIFIED, "meta: ValidateLabelSelectorRequirement"),
    FieldValues("meta.v1.LabelSelectorRequirement", "operator", SELECTOR_OPERATOR, "meta: ValidateLabelSelectorRequirement"),
    FieldValues("core.v1.ConfigMap", "binaryData data", KEYS, "core: ValidateConfigMap"),
    FieldValues("core.v1.Secret", "data stringData", KEYS, "core: ValidateSecret"),
    FieldValues("core.v1.PersistentVolumeClaimSpec", "accessModes[]", ACCESS_MODE, "core: ValidatePersistentVolumeClaimSpec"),
    FieldValues("core.v1.PersistentVolumeClaimSpec", "accessModes", ENTRIES, "core: ValidatePersistentVolumeClaimSpec"),
    FieldValues(
        "core.v1.PersistentVolumeClaimSpec",
        "volumeMode",
        exactly("Block", "Filesystem"),
        "core: ValidatePersistentVolumeClaimSpec",
    ),
    FieldValues("core.v1.PersistentVolumeClaimSpec", "storageClassName", SUBDOMAIN, "core: ValidatePersistentVolumeClaimSpec"),
    FieldValues(
        "core.v1.VolumeResourceRequirements", "limits.* requests.*", POSITIVE_AMOUNT, "core: ValidatePersistentVolumeClaimSpec"
    ),
    FieldValues("core.v1.TypedLocalObjectReference", "kind name", NOT_EMPTY, "core: validateDataSource"),
    FieldValues("core.v1.PersistentVolumeSpec", "accessModes[]", ACCESS_MODE, "core: ValidatePersistentVolumeSpec"),
    FieldValues("core.v1.PersistentVolumeSpec", "volumeMode", exactly("Block", "Filesystem"), "core: ValidatePersistentVolumeSpec"),
    FieldValues(
        "core.v1.PersistentVolumeSpec",
        "persistentVolumeReclaimPolicy",
        one_of("Delete", "Recycle", "Retain"),
        "core: ValidatePersistentVolumeSpec",
    ),
    FieldValues("core.v1.PersistentVolumeSpec", "capacity.*", POSITIVE_AMOUNT, "core: ValidatePersistentVolumeSpec"),
    FieldValues("core.v1.PersistentVolumeSpec", "storageClassName", SUBDOMAIN, "core: ValidatePersistentVolumeSpec"),
    FieldValues("core.v1.EndpointAddress", "ip", ADDRESS, "core: validateEndpointAddress"),
    FieldValues("core.v1.EndpointPort", "name", DNS_LABEL_OR_NONE, "core: validateEndpointPort"),
    FieldValues("core.v1.EndpointPort", "port", PORT, "core: validateEndpointPort"),
    FieldValues("core.v1.EndpointPort", "protocol", PROTOCOL, "core: validateEndpointPort"),
    FieldValues("storage.v1.StorageClass", "provisioner", PROVISIONER, "storage: validateProvisioner"),
    FieldValues("storage.v1.StorageClass", "reclaimPolicy", exactly("Delete", "Retain"), "storage: validateReclaimPolicy"),
    FieldValues(
        "storage.v1.StorageClass",
        "volumeBindingMode",
        exactly("Immediate", "WaitForFirstConsumer"),
        "storage: validateVolumeBindingMode",
    ),
    FieldValues("rbac.v1.Subject", "kind", exactly("Group", "ServiceAccount", "User"), "rbac: ValidateRoleBindingSubject"),
    FieldValues("rbac.v1.Subject", "apiGroup", one_of("rbac.authorization.k8s.io"), "rbac: ValidateRoleBindingSubject"),
    FieldValues("rbac.v1.RoleRef", "kind", exactly("ClusterRole", "Role"), "rbac: ValidateRoleBinding"),
    FieldValues("rbac.v1.RoleRef", "apiGroup", one_of("rbac.authorization.k8s.io"), "rbac: ValidateRoleBinding"),
    FieldValues("rbac.v1.RoleRef", "name", PATH_SEGMENT, "rbac: ValidateRoleBinding"),
    FieldValues("rbac.v1.PolicyRule", "verbs", ENTRIES, "rbac: ValidatePolicyRule"),
)

FIELD_VALUES: Final = (*POD_VALUES, *_WORKLOADS, *_NETWORK, *_OTHERS)

OPTIONAL_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "apps.v1.ControllerRevision": ("revision",),
    "batch.v1.PodFailurePolicy": ("rules",),
    "core.v1.HTTPHeader": ("value",),
    "core.v1.ISCSIPersistentVolumeSource": ("lun",),
    "core.v1.ISCSIVolumeSource": ("lun",),
    "core.v1.LimitRangeSpec": ("limits",),
    "core.v1.PreferredSchedulingTerm": ("preference",),
    "core.v1.SleepAction": ("seconds",),
    "core.v1.Sysctl": ("value",),
}
"""Fields that the OpenAPI document lists as required, and that no validation demands: absent, they are empty or 0."""
