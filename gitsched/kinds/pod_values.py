"""Which values the fields of Pods may have, as rows of `field_values`."""

from __future__ import annotations

from typing import Final

from gitsched.kinds.value_limits import (
    ADDRESS,
    DESCENDING,
    DNS_LABEL,
    DNS_LABEL_OR_NONE,
    ENTRIES,
    KEY,
    MODE,
    NAMED_PORT,
    NOT_EMPTY,
    NOT_NEGATIVE,
    PORT,
    PORT_OR_NAME,
    PORT_OR_NONE,
    POSITIVE,
    PROTOCOL,
    QUALIFIED,
    QUANTITY,
    RESOURCES,
    SUBDOMAIN,
    WITHOUT_UP,
    FieldValues,
    between,
    exactly,
    one_of,
    text,
)

POD_VALUES: Final = (
    FieldValues("api.resource.Quantity", "", QUANTITY, "apimachinery/pkg/api/resource: ParseQuantity"),
    FieldValues("core.v1.ResourceRequirements", "limits.* requests.*", RESOURCES, "core: ValidateResourceQuantityValue"),
    FieldValues("core.v1.PodSpec", "restartPolicy", one_of("Always", "OnFailure", "Never"), "core: validateRestartPolicy"),
    FieldValues(
        "core.v1.PodSpec",
        "dnsPolicy",
        one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
        "core: validateDNSPolicy",
    ),
    FieldValues("core.v1.PodSpec", "preemptionPolicy", one_of("Never", "PreemptLowerPriority"), "core: ValidatePreemptionPolicy"),
    FieldValues("core.v1.PodSpec", "activeDeadlineSeconds", between(1, (1 << 31) - 1), "core: ValidatePodSpec"),
    FieldValues("core.v1.PodSpec", "hostname subdomain", DNS_LABEL_OR_NONE, "core: ValidatePodSpec"),
    FieldValues("core.v1.PodSpec", "serviceAccountName priorityClassName", SUBDOMAIN, "core: ValidatePodSpec"),
    FieldValues("core.v1.Container", "name", DNS_LABEL, "core: validateContainerCommon"),
    FieldValues("core.v1.Container", "image", NOT_EMPTY, "core: validateContainerCommon"),
    FieldValues("core.v1.PodSpec", "runtimeClassName", SUBDOMAIN, "core: ValidateRuntimeClassName"),
    FieldValues("core.v1.HostAlias", "ip", ADDRESS, "core: ValidateHostAliases"),
    FieldValues("core.v1.HostAlias", "hostnames[]", SUBDOMAIN, "core: ValidateHostAliases"),
    FieldValues("core.v1.PodDNSConfig", "nameservers[]", ADDRESS, "core: validatePodDNSConfig"),
    FieldValues("core.v1.PodDNSConfig", "nameservers", {"maxItems": 3}, "core: validatePodDNSConfig"),
    FieldValues("core.v1.PodDNSConfigOption", "name", NOT_EMPTY, "core: validatePodDNSConfig"),
    FieldValues(
        "core.v1.Sysctl",
        "name",
        text("^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$", "the name of a sysctl", 253),
        "core: IsValidSysctlName",
    ),
    FieldValues("core.v1.HTTPHeader", "name", text("^[-A-Za-z0-9]+$", "the name of a header"), "core: validateHTTPGetAction"),
    FieldValues(
        "core.v1.ObjectFieldSelector",
        "fieldPath",
        text(
            r"^(metadata\.(name|namespace|uid|(labels|annotations)(\['.+'\])?)|spec\.(nodeName|serviceAccountName)"
            r"|status\.(hostIPs?|podIPs?))$",
            "a field that Pods can read, such as metadata.name, metadata.labels['app'] or status.podIP",
        ),
        "core: validateObjectFieldSelector",
    ),
    FieldValues(
        "core.v1.ResourceFieldSelector",
        "resource",
        text(
            r"^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$",
            "limits or requests of a resource, such as limits.cpu",
        ),
        "core: validateContainerResourceFieldSelector",
    ),
    *(
        FieldValues(f"core.v1.{kind}KeySelector", "key", KEY, f"core: validate{kind}KeySelector")
        for kind in ("ConfigMap", "Secret")
    ),
    FieldValues("core.v1.VolumeDevice", "devicePath name", NOT_EMPTY, "core: ValidateVolumeDevices"),
    FieldValues("core.v1.Container", "imagePullPolicy", one_of("Always", "IfNotPresent", "Never"), "core: validatePullPolicy"),
    FieldValues(
        "core.v1.Container", "terminationMessagePolicy", one_of("File", "FallbackToLogsOnError"), "core: validateContainerCommon"
    ),
    FieldValues(
        "core.v1.Container", "restartPolicy", one_of("Always", "OnFailure", "Never"), "core: validateContainerRestartPolicy"
    ),
    FieldValues("core.v1.ContainerPort", "containerPort", PORT, "core: validateContainerPorts"),
    FieldValues("core.v1.ContainerPort", "hostPort", PORT_OR_NONE, "core: validateContainerPorts"),
    FieldValues("core.v1.ContainerPort", "name", NAMED_PORT, "core: validateContainerPorts"),
    FieldValues("core.v1.ContainerPort", "protocol", PROTOCOL, "core: validateContainerPorts"),
    FieldValues("core.v1.EnvVar", "name", text("^[ -<>-~]+$", "printable ASCII characters without '='"), "core: ValidateEnv"),
    FieldValues("core.v1.VolumeMount", "mountPath name", NOT_EMPTY, "core: ValidateVolumeMounts"),
    *(
        FieldValues(f"core.v1.{kind}", name, DESCENDING, "core: validateLocalDescendingPath")
        for kind, name in (("VolumeMount", "subPath"), ("KeyToPath", "path"), ("DownwardAPIVolumeFile", "path"))
    ),
    FieldValues("core.v1.KeyToPath", "key", NOT_EMPTY, "core: validateKeyToPath"),
    FieldValues("core.v1.ServiceAccountTokenProjection", "path", DESCENDING, "core: validateProjectionSources"),
    FieldValues(
        "core.v1.ServiceAccountTokenProjection", "expirationSeconds", between(600, 1 << 32), "core: validateProjectionSources"
    ),
    FieldValues(
        "core.v1.VolumeMount",
        "mountPropagation",
        one_of("None", "HostToContainer", "Bidirectional"),
        "core: validateMountPropagation",
    ),
    FieldValues(
        "core.v1.Probe",
        "failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds",
        NOT_NEGATIVE,
        "core: validateProbe",
    ),
    FieldValues("core.v1.Probe", "terminationGracePeriodSeconds", POSITIVE, "core: validateProbe"),
    FieldValues("core.v1.HTTPGetAction", "scheme", one_of("HTTP", "HTTPS"), "core: validateHTTPGetAction"),
    FieldValues("core.v1.HTTPGetAction", "port", PORT_OR_NAME, "core: ValidatePortNumOrName"),
    FieldValues("core.v1.TCPSocketAction", "port", PORT_OR_NAME, "core: ValidatePortNumOrName"),
    FieldValues("core.v1.GRPCAction", "port", PORT, "core: validateGRPCAction"),
    FieldValues("core.v1.Toleration", "effect", one_of("NoSchedule", "PreferNoSchedule", "NoExecute"), "core: validateTaintEffect"),
    FieldValues("core.v1.Toleration", "operator", one_of("Exists", "Equal", "Lt", "Gt"), "core: ValidateTolerations"),
    FieldValues("core.v1.TopologySpreadConstraint", "maxSkew minDomains", POSITIVE, "core: ValidatePositiveField"),
    FieldValues("core.v1.TopologySpreadConstraint", "topologyKey", QUALIFIED, "core: ValidateTopologyKey"),
    FieldValues("core.v1.NodeSelectorRequirement", "key", QUALIFIED, "core: ValidateNodeSelectorRequirement"),
    FieldValues(
        "core.v1.TopologySpreadConstraint",
        "whenUnsatisfiable",
        exactly("DoNotSchedule", "ScheduleAnyway"),
        "core: ValidateWhenUnsatisfiable",
    ),
    FieldValues(
        "core.v1.TopologySpreadConstraint",
        "nodeAffinityPolicy nodeTaintsPolicy",
        exactly("Honor", "Ignore"),
        "core: validateNodeInclusionPolicy",
    ),
    FieldValues("core.v1.PreferredSchedulingTerm", "weight", between(1, 100), "core: ValidatePreferredSchedulingTerms"),
    FieldValues("core.v1.WeightedPodAffinityTerm", "weight", between(1, 100), "core: validateWeightedPodAffinityTerms"),
    FieldValues("core.v1.PodAffinityTerm", "topologyKey", QUALIFIED, "core: validatePodAffinityTerm"),
    FieldValues("core.v1.NodeSelector", "nodeSelectorTerms", ENTRIES, "core: ValidateNodeSelector"),
    FieldValues(
        "core.v1.NodeSelectorRequirement",
        "operator",
        exactly("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
        "core: ValidateNodeSelectorRequirement",
    ),
    FieldValues("core.v1.SecurityContext", "runAsGroup runAsUser", between(0, (1 << 31) - 1), "core: ValidateSecurityContext"),
    FieldValues("core.v1.SecurityContext", "procMount", one_of("Default", "Unmasked"), "core: ValidateProcMountType"),
    FieldValues(
        "core.v1.PodSecurityContext",
        "fsGroup runAsGroup runAsUser supplementalGroups[]",
        between(0, (1 << 31) - 1),
        "core: validatePodSpecSecurityContext",
    ),
    FieldValues(
        "core.v1.PodSecurityContext",
        "fsGroupChangePolicy",
        exactly("OnRootMismatch", "Always"),
        "core: validateFSGroupChangePolicy",
    ),
    FieldValues(
        "core.v1.SeccompProfile", "type", exactly("RuntimeDefault", "Localhost", "Unconfined"), "core: validateSeccompProfileField"
    ),
    FieldValues("core.v1.Volume", "name", DNS_LABEL, "core: ValidateVolumes"),
    FieldValues(
        "core.v1.HostPathVolumeSource",
        "type",
        one_of("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"),
        "core: validateHostPathType",
    ),
    FieldValues("core.v1.HostPathVolumeSource", "path", WITHOUT_UP, "core: validateHostPathVolumeSource"),
    FieldValues("core.v1.EmptyDirVolumeSource", "sizeLimit", RESOURCES, "core: validateEmptyDirVolumeSource"),
    FieldValues("core.v1.NFSVolumeSource", "path server", NOT_EMPTY, "core: validateNFSVolumeSource"),
    FieldValues("core.v1.PersistentVolumeClaimVolumeSource", "claimName", NOT_EMPTY, "core: validatePersistentClaimVolumeSource"),
    *(
        FieldValues(f"core.v1.{kind}VolumeSource", "defaultMode", MODE, f"core: validate{kind}VolumeSource")
        for kind in ("ConfigMap", "DownwardAPI", "Projected", "Secret")
    ),
    FieldValues("core.v1.KeyToPath", "mode", MODE, "core: validateKeyToPath"),
    FieldValues(
        "core.v1.EmptyDirVolumeSource",
        "medium",
        text("^(Memory|HugePages(-.+)?)?$", "Memory or HugePages"),
        "core: validateEmptyDirVolumeSource",
    ),
)
