"""Which values the fields of Kubernetes' own kinds may have, beside their types, as the validation of an API server checks them without a
cluster.

A row names fields of a definition of the OpenAPI document and a part of a JSON Schema, which is added to theirs. Its place is the function
in kubernetes/pkg/apis/GROUP/validation that refuses other values. Null is the absence of a value everywhere, and "" is where the API server
sets a default for it or ignores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Limit = Mapping[str, Any]
"""A part of a JSON Schema; `x-gitsched-expected` says in messages what a text must be."""


class FieldValues(NamedTuple):
    """The `limit` of some `fields` of a definition. A name that ends with `[]` stands for the entries of a list, with `.*` for the members
    of a mapping; "" for the definition itself. `place` is the function that checks it."""

    definition: str
    fields: str
    limit: Limit
    place: str


def _one_of(*values: str) -> Limit:
    return {"enum": [*values, "", None]}


def _exactly(*values: str) -> Limit:
    """Without a default: the field is required."""
    return {"enum": [*values, None]}


def _between(low: int, high: int) -> Limit:
    return {"minimum": low, "maximum": high}


def _text(pattern: str, description: str, size: int = 0) -> Limit:
    return {"pattern": pattern, "x-gitsched-expected": description, **({"maxLength": size} if size else {})}


_AMOUNT = r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+|Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?\s*$"
_AMOUNT_TEXT = "a quantity such as 500m, 2 or 1Gi"
_QUANTITY = _text(rf"^\s*[+-]?{_AMOUNT}", _AMOUNT_TEXT)
_RESOURCES = {**_text(rf"^\s*\+?{_AMOUNT}", f"{_AMOUNT_TEXT}, and not negative"), "minimum": 0}
AMOUNT: Final = _QUANTITY

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = _text(f"^{_LABEL}$", "lower-case letters, digits and '-', beginning and ending with a letter or digit", 63)
_DNS_LABEL_OR_NONE = {**_DNS_LABEL, "pattern": f"^({_LABEL})?$"}
_SUBDOMAIN = _text(rf"^({_LABEL}(\.{_LABEL})*)?$", "lower-case letters, digits, '-' and '.'", 253)
_HOST = _text(rf"^((\*\.)?{_LABEL}(\.{_LABEL})*)?$", "a host name in lower case, without a scheme, port or path", 253)
_PORT_NAME = "([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*"
_PORT_NAME_TEXT = "a number, or a name of at most 15 lower-case letters, digits and '-', with a letter"
_NAMED_PORT = _text(f"^({_PORT_NAME})?$", _PORT_NAME_TEXT.partition(", or ")[2], 15)
_PORT = _between(1, 65535)
_PORT_OR_NONE = _between(0, 65535)
_PORT_OR_NAME = {**_PORT, **_text(f"^{_PORT_NAME}$", _PORT_NAME_TEXT, 15)}
_TARGET_PORT = {**_PORT_OR_NONE, **_text(f"^({_PORT_NAME})?$", _PORT_NAME_TEXT, 15)}
_NUMBER_OR_PERCENT = {"minimum": 0, **_text("^[0-9]+%$", "a number that is not negative, or a percentage such as 25%")}
_NOT_NEGATIVE = {"minimum": 0}
_POSITIVE = {"minimum": 1}
_NOT_EMPTY = {"minLength": 1}
_ENTRIES = {"minItems": 1}
_MODE = {**_between(0, 0o777), "x-gitsched-expected": "the octal numbers 0 to 0777; write 0644, or 420"}
_KEYS = {"propertyNames": _text("^[-._a-zA-Z0-9]+$", "keys of letters, digits, '-', '_' and '.'", 253)}
_PROTOCOL = _one_of("TCP", "UDP", "SCTP")
_ACCESS_MODE = _exactly("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_SELECTOR_OPERATOR = _exactly("In", "NotIn", "Exists", "DoesNotExist")

_POD = (
    FieldValues("api.resource.Quantity", "", _QUANTITY, "apimachinery/pkg/api/resource: ParseQuantity"),
    FieldValues("core.v1.ResourceRequirements", "limits.* requests.*", _RESOURCES, "core: ValidateResourceQuantityValue"),
    FieldValues("core.v1.PodSpec", "restartPolicy", _one_of("Always", "OnFailure", "Never"), "core: validateRestartPolicy"),
    FieldValues(
        "core.v1.PodSpec",
        "dnsPolicy",
        _one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
        "core: validateDNSPolicy",
    ),
    FieldValues("core.v1.PodSpec", "preemptionPolicy", _one_of("Never", "PreemptLowerPriority"), "core: ValidatePreemptionPolicy"),
    FieldValues("core.v1.PodSpec", "activeDeadlineSeconds", _between(1, (1 << 31) - 1), "core: ValidatePodSpec"),
    FieldValues("core.v1.PodSpec", "hostname subdomain", _DNS_LABEL_OR_NONE, "core: ValidatePodSpec"),
    FieldValues("core.v1.PodSpec", "serviceAccountName priorityClassName", _SUBDOMAIN, "core: ValidatePodSpec"),
    FieldValues("core.v1.Container", "name", _DNS_LABEL, "core: validateContainerCommon"),
    FieldValues(
        "core.v1.Container",
        "image",
        _text(r"^\S(.*\S)?$", "the name of an image, without blanks around it"),
        "core: validateContainerCommon",
    ),
    FieldValues("core.v1.Container", "imagePullPolicy", _one_of("Always", "IfNotPresent", "Never"), "core: validatePullPolicy"),
    FieldValues(
        "core.v1.Container", "terminationMessagePolicy", _one_of("File", "FallbackToLogsOnError"), "core: validateContainerCommon"
    ),
    FieldValues(
        "core.v1.Container", "restartPolicy", _one_of("Always", "OnFailure", "Never"), "core: validateContainerRestartPolicy"
    ),
    FieldValues("core.v1.ContainerPort", "containerPort", _PORT, "core: validateContainerPorts"),
    FieldValues("core.v1.ContainerPort", "hostPort", _PORT_OR_NONE, "core: validateContainerPorts"),
    FieldValues("core.v1.ContainerPort", "name", _NAMED_PORT, "core: validateContainerPorts"),
    FieldValues("core.v1.ContainerPort", "protocol", _PROTOCOL, "core: validateContainerPorts"),
    FieldValues("core.v1.EnvVar", "name", _text("^[ -<>-~]+$", "printable ASCII characters without '='"), "core: ValidateEnv"),
    FieldValues("core.v1.VolumeMount", "mountPath name", _NOT_EMPTY, "core: ValidateVolumeMounts"),
    FieldValues("core.v1.VolumeMount", "subPath", _text("^([^/]|$)", "a relative path"), "core: validateLocalDescendingPath"),
    FieldValues(
        "core.v1.VolumeMount",
        "mountPropagation",
        _one_of("None", "HostToContainer", "Bidirectional"),
        "core: validateMountPropagation",
    ),
    FieldValues(
        "core.v1.Probe",
        "failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds",
        _NOT_NEGATIVE,
        "core: validateProbe",
    ),
    FieldValues("core.v1.Probe", "terminationGracePeriodSeconds", _POSITIVE, "core: validateProbe"),
    FieldValues("core.v1.HTTPGetAction", "scheme", _one_of("HTTP", "HTTPS"), "core: validateHTTPGetAction"),
    FieldValues("core.v1.HTTPGetAction", "port", _PORT_OR_NAME, "core: ValidatePortNumOrName"),
    FieldValues("core.v1.TCPSocketAction", "port", _PORT_OR_NAME, "core: ValidatePortNumOrName"),
    FieldValues("core.v1.GRPCAction", "port", _PORT, "core: validateGRPCAction"),
    FieldValues(
        "core.v1.Toleration", "effect", _one_of("NoSchedule", "PreferNoSchedule", "NoExecute"), "core: validateTaintEffect"
    ),
    FieldValues("core.v1.Toleration", "operator", _one_of("Exists", "Equal", "Lt", "Gt"), "core: ValidateTolerations"),
    FieldValues("core.v1.TopologySpreadConstraint", "maxSkew", _POSITIVE, "core: ValidatePositiveField"),
    FieldValues("core.v1.TopologySpreadConstraint", "topologyKey", _NOT_EMPTY, "core: ValidateTopologyKey"),
    FieldValues(
        "core.v1.TopologySpreadConstraint",
        "whenUnsatisfiable",
        _exactly("DoNotSchedule", "ScheduleAnyway"),
        "core: ValidateWhenUnsatisfiable",
    ),
    FieldValues(
        "core.v1.TopologySpreadConstraint",
        "nodeAffinityPolicy nodeTaintsPolicy",
        _exactly("Honor", "Ignore"),
        "core: validateNodeInclusionPolicy",
    ),
    FieldValues("core.v1.PreferredSchedulingTerm", "weight", _between(1, 100), "core: ValidatePreferredSchedulingTerms"),
    FieldValues("core.v1.WeightedPodAffinityTerm", "weight", _between(1, 100), "core: validateWeightedPodAffinityTerms"),
    FieldValues("core.v1.PodAffinityTerm", "topologyKey", _NOT_EMPTY, "core: validatePodAffinityTerm"),
    FieldValues("core.v1.NodeSelector", "nodeSelectorTerms", _ENTRIES, "core: ValidateNodeSelector"),
    FieldValues(
        "core.v1.NodeSelectorRequirement",
        "operator",
        _exactly("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
        "core: ValidateNodeSelectorRequirement",
    ),
    FieldValues("core.v1.SecurityContext", "runAsGroup runAsUser", _between(0, (1 << 31) - 1), "core: ValidateSecurityContext"),
    FieldValues("core.v1.SecurityContext", "procMount", _one_of("Default", "Unmasked"), "core: ValidateProcMountType"),
    FieldValues(
        "core.v1.PodSecurityContext",
        "fsGroup runAsGroup runAsUser",
        _between(0, (1 << 31) - 1),
        "core: validatePodSpecSecurityContext",
    ),
    FieldValues(
        "core.v1.PodSecurityContext",
        "fsGroupChangePolicy",
        _exactly("OnRootMismatch", "Always"),
        "core: validateFSGroupChangePolicy",
    ),
    FieldValues(
        "core.v1.SeccompProfile", "type", _exactly("RuntimeDefault", "Localhost", "Unconfined"), "core: validateSeccompProfileField"
    ),
    FieldValues("core.v1.Volume", "name", _DNS_LABEL, "core: ValidateVolumes"),
    FieldValues(
        "core.v1.HostPathVolumeSource",
        "type",
        _one_of("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"),
        "core: validateHostPathType",
    ),
    FieldValues("core.v1.HostPathVolumeSource", "path", _NOT_EMPTY, "core: validateHostPathVolumeSource"),
    FieldValues("core.v1.NFSVolumeSource", "path server", _NOT_EMPTY, "core: validateNFSVolumeSource"),
    FieldValues("core.v1.PersistentVolumeClaimVolumeSource", "claimName", _NOT_EMPTY, "core: validatePersistentClaimVolumeSource"),
    *(
        FieldValues(f"core.v1.{kind}VolumeSource", "defaultMode", _MODE, f"core: validate{kind}VolumeSource")
        for kind in ("ConfigMap", "DownwardAPI", "Projected", "Secret")
    ),
    FieldValues("core.v1.KeyToPath", "mode", _MODE, "core: validateKeyToPath"),
    FieldValues(
        "core.v1.EmptyDirVolumeSource",
        "medium",
        _text("^(Memory|HugePages(-.+)?)?$", "Memory or HugePages"),
        "core: validateEmptyDirVolumeSource",
    ),
)
_WORKLOADS = (
    *(
        FieldValues(f"apps.v1.{kind}Spec", fields, _NOT_NEGATIVE, f"apps: Validate{kind}Spec")
        for kind, fields in (
            ("DaemonSet", "minReadySeconds revisionHistoryLimit"),
            ("Deployment", "minReadySeconds progressDeadlineSeconds replicas revisionHistoryLimit"),
            ("ReplicaSet", "minReadySeconds replicas"),
            ("StatefulSet", "minReadySeconds replicas revisionHistoryLimit"),
        )
    ),
    FieldValues(
        "core.v1.ReplicationControllerSpec", "minReadySeconds replicas", _NOT_NEGATIVE, "core: ValidateReplicationControllerSpec"
    ),
    FieldValues("apps.v1.DeploymentStrategy", "type", _one_of("Recreate", "RollingUpdate"), "apps: ValidateDeploymentStrategy"),
    FieldValues(
        "apps.v1.RollingUpdateDeployment", "maxSurge maxUnavailable", _NUMBER_OR_PERCENT, "apps: ValidateRollingUpdateDeployment"
    ),
    FieldValues(
        "apps.v1.DaemonSetUpdateStrategy", "type", _one_of("OnDelete", "RollingUpdate"), "apps: ValidateDaemonSetUpdateStrategy"
    ),
    FieldValues(
        "apps.v1.RollingUpdateDaemonSet", "maxSurge maxUnavailable", _NUMBER_OR_PERCENT, "apps: ValidateRollingUpdateDaemonSet"
    ),
    FieldValues(
        "apps.v1.StatefulSetSpec", "podManagementPolicy", _one_of("OrderedReady", "Parallel"), "apps: ValidateStatefulSetSpec"
    ),
    FieldValues("apps.v1.StatefulSetUpdateStrategy", "type", _one_of("OnDelete", "RollingUpdate"), "apps: ValidateStatefulSetSpec"),
    FieldValues("apps.v1.StatefulSetOrdinals", "start", _NOT_NEGATIVE, "apps: ValidateStatefulSetSpec"),
    FieldValues("apps.v1.RollingUpdateStatefulSetStrategy", "partition", _NOT_NEGATIVE, "apps: ValidateStatefulSetSpec"),
    FieldValues(
        "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        "whenDeleted whenScaled",
        _one_of("Delete", "Retain"),
        "apps: ValidatePersistentVolumeClaimRetentionPolicy",
    ),
    FieldValues(
        "batch.v1.JobSpec",
        "activeDeadlineSeconds backoffLimit backoffLimitPerIndex completions maxFailedIndexes parallelism ttlSecondsAfterFinished",
        _NOT_NEGATIVE,
        "batch: validateJobSpec",
    ),
    FieldValues("batch.v1.JobSpec", "completionMode", _one_of("Indexed", "NonIndexed"), "batch: validateJobSpec"),
    FieldValues("batch.v1.JobSpec", "podReplacementPolicy", _one_of("Failed", "TerminatingOrFailed"), "batch: validateJobSpec"),
    FieldValues("batch.v1.CronJobSpec", "schedule", _NOT_EMPTY, "batch: validateCronJobSpec"),
    FieldValues(
        "batch.v1.CronJobSpec", "concurrencyPolicy", _one_of("Allow", "Forbid", "Replace"), "batch: validateConcurrencyPolicy"
    ),
    FieldValues(
        "batch.v1.CronJobSpec",
        "failedJobsHistoryLimit startingDeadlineSeconds successfulJobsHistoryLimit",
        _NOT_NEGATIVE,
        "batch: validateCronJobSpec",
    ),
    *(
        FieldValues(
            f"autoscaling.{version}.HorizontalPodAutoscalerSpec", fields, limit, "autoscaling: validateHorizontalPodAutoscalerSpec"
        )
        for version, fields, limit in (
            ("v1", "maxReplicas targetCPUUtilizationPercentage", _POSITIVE),
            ("v1", "minReplicas", _NOT_NEGATIVE),
            ("v2", "maxReplicas", _POSITIVE),
            ("v2", "minReplicas", _NOT_NEGATIVE),
        )
    ),
    *(
        FieldValues(
            f"autoscaling.{version}.CrossVersionObjectReference",
            "kind name",
            _NOT_EMPTY,
            "autoscaling: ValidateCrossVersionObjectReference",
        )
        for version in ("v1", "v2")
    ),
    FieldValues(
        "autoscaling.v2.MetricSpec",
        "type",
        _exactly("ContainerResource", "External", "Object", "Pods", "Resource"),
        "autoscaling: validateMetricSpec",
    ),
    FieldValues(
        "autoscaling.v2.MetricTarget", "type", _exactly("AverageValue", "Utilization", "Value"), "autoscaling: validateMetricTarget"
    ),
    FieldValues("autoscaling.v2.MetricTarget", "averageUtilization", _POSITIVE, "autoscaling: validateMetricTarget"),
    FieldValues("autoscaling.v2.HPAScalingPolicy", "type", _exactly("Percent", "Pods"), "autoscaling: validateScalingPolicy"),
    FieldValues("autoscaling.v2.HPAScalingPolicy", "value", _POSITIVE, "autoscaling: validateScalingPolicy"),
    FieldValues("autoscaling.v2.HPAScalingPolicy", "periodSeconds", _between(1, 1800), "autoscaling: validateScalingPolicy"),
    FieldValues(
        "autoscaling.v2.HPAScalingRules", "selectPolicy", _exactly("Disabled", "Max", "Min"), "autoscaling: validateScalingRules"
    ),
    FieldValues(
        "autoscaling.v2.HPAScalingRules", "stabilizationWindowSeconds", _between(0, 3600), "autoscaling: validateScalingRules"
    ),
    FieldValues(
        "policy.v1.PodDisruptionBudgetSpec",
        "maxUnavailable minAvailable",
        _NUMBER_OR_PERCENT,
        "policy: ValidatePodDisruptionBudgetSpec",
    ),
    FieldValues(
        "policy.v1.PodDisruptionBudgetSpec",
        "unhealthyPodEvictionPolicy",
        _exactly("AlwaysAllow", "IfHealthyBudget"),
        "policy: ValidatePodDisruptionBudgetSpec",
    ),
)
_NETWORK = (
    FieldValues(
        "core.v1.ServiceSpec", "type", _one_of("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"), "core: ValidateService"
    ),
    FieldValues("core.v1.ServiceSpec", "sessionAffinity", _one_of("ClientIP", "None"), "core: ValidateService"),
    FieldValues(
        "core.v1.ServiceSpec", "externalTrafficPolicy", _one_of("Cluster", "Local"), "core: validateServiceExternalTrafficPolicy"
    ),
    FieldValues(
        "core.v1.ServiceSpec",
        "internalTrafficPolicy",
        _exactly("Cluster", "Local"),
        "core: validateServiceInternalTrafficFieldsValue",
    ),
    FieldValues(
        "core.v1.ServiceSpec",
        "ipFamilyPolicy",
        _exactly("PreferDualStack", "RequireDualStack", "SingleStack"),
        "core: ValidateServiceClusterIPsRelatedFields",
    ),
    FieldValues("core.v1.ServiceSpec", "ipFamilies[]", _exactly("IPv4", "IPv6"), "core: ValidateServiceClusterIPsRelatedFields"),
    FieldValues("core.v1.ServicePort", "port", _PORT, "core: validateServicePort"),
    FieldValues("core.v1.ServicePort", "nodePort", _PORT_OR_NONE, "core: validateServicePort"),
    FieldValues("core.v1.ServicePort", "protocol", _PROTOCOL, "core: validateServicePort"),
    FieldValues("core.v1.ServicePort", "name", _DNS_LABEL_OR_NONE, "core: validateServicePort"),
    FieldValues("core.v1.ServicePort", "targetPort", _TARGET_PORT, "core: validateServicePort"),
    FieldValues(
        "networking.v1.HTTPIngressPath",
        "pathType",
        _exactly("Exact", "ImplementationSpecific", "Prefix"),
        "networking: validateHTTPIngressPath",
    ),
    FieldValues(
        "networking.v1.HTTPIngressPath", "path", _text("^(/|$)", "an absolute path"), "networking: validateHTTPIngressPath"
    ),
    FieldValues("networking.v1.HTTPIngressRuleValue", "paths", _ENTRIES, "networking: validateHTTPIngressRuleValue"),
    FieldValues("networking.v1.IngressRule", "host", _HOST, "networking: validateIngressRules"),
    FieldValues("networking.v1.IngressServiceBackend", "name", _NOT_EMPTY, "networking: validateIngressBackend"),
    FieldValues("networking.v1.ServiceBackendPort", "name", _NAMED_PORT, "networking: validateIngressBackend"),
    FieldValues("networking.v1.ServiceBackendPort", "number", _PORT_OR_NONE, "networking: validateIngressBackend"),
    FieldValues(
        "networking.v1.NetworkPolicySpec", "policyTypes[]", _exactly("Egress", "Ingress"), "networking: ValidateNetworkPolicySpec"
    ),
    FieldValues("networking.v1.NetworkPolicyPort", "protocol", _PROTOCOL, "networking: ValidateNetworkPolicyPort"),
    FieldValues("networking.v1.NetworkPolicyPort", "port", _PORT_OR_NAME, "networking: ValidateNetworkPolicyPort"),
    FieldValues("networking.v1.NetworkPolicyPort", "endPort", _PORT, "networking: ValidateNetworkPolicyPort"),
    FieldValues(
        "networking.v1.IPBlock",
        "cidr except[]",
        _text("^[0-9a-fA-F.:]+/[0-9]{1,3}$", "a range of addresses such as 10.0.0.0/8"),
        "networking: ValidateIPBlock",
    ),
)
_OTHERS = (
    FieldValues("meta.v1.LabelSelectorRequirement", "operator", _SELECTOR_OPERATOR, "meta: ValidateLabelSelectorRequirement"),
    FieldValues("core.v1.ConfigMap", "binaryData data", _KEYS, "core: ValidateConfigMap"),
    FieldValues("core.v1.Secret", "data stringData", _KEYS, "core: ValidateSecret"),
    FieldValues("core.v1.PersistentVolumeClaimSpec", "accessModes[]", _ACCESS_MODE, "core: ValidatePersistentVolumeClaimSpec"),
    FieldValues("core.v1.PersistentVolumeClaimSpec", "accessModes", _ENTRIES, "core: ValidatePersistentVolumeClaimSpec"),
    FieldValues(
        "core.v1.PersistentVolumeClaimSpec",
        "volumeMode",
        _exactly("Block", "Filesystem"),
        "core: ValidatePersistentVolumeClaimSpec",
    ),
    FieldValues("core.v1.PersistentVolumeClaimSpec", "storageClassName", _SUBDOMAIN, "core: ValidatePersistentVolumeClaimSpec"),
    FieldValues("core.v1.PersistentVolumeSpec", "accessModes[]", _ACCESS_MODE, "core: ValidatePersistentVolumeSpec"),
    FieldValues(
        "core.v1.PersistentVolumeSpec", "volumeMode", _exactly("Block", "Filesystem"), "core: ValidatePersistentVolumeSpec"
    ),
    FieldValues(
        "core.v1.PersistentVolumeSpec",
        "persistentVolumeReclaimPolicy",
        _one_of("Delete", "Recycle", "Retain"),
        "core: ValidatePersistentVolumeSpec",
    ),
    FieldValues("storage.v1.StorageClass", "reclaimPolicy", _exactly("Delete", "Retain"), "storage: validateReclaimPolicy"),
    FieldValues(
        "storage.v1.StorageClass",
        "volumeBindingMode",
        _exactly("Immediate", "WaitForFirstConsumer"),
        "storage: validateVolumeBindingMode",
    ),
    FieldValues("rbac.v1.Subject", "kind", _exactly("Group", "ServiceAccount", "User"), "rbac: ValidateRoleBindingSubject"),
    FieldValues("rbac.v1.RoleRef", "kind", _exactly("ClusterRole", "Role"), "rbac: ValidateRoleBinding"),
    FieldValues("rbac.v1.RoleRef", "apiGroup", _one_of("rbac.authorization.k8s.io"), "rbac: ValidateRoleBinding"),
    FieldValues("rbac.v1.RoleRef", "name", _NOT_EMPTY, "rbac: ValidateRoleBinding"),
    FieldValues("rbac.v1.PolicyRule", "verbs", _ENTRIES, "rbac: ValidatePolicyRule"),
)

FIELD_VALUES: Final = (*_POD, *_WORKLOADS, *_NETWORK, *_OTHERS)
