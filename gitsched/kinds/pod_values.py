"""Which values the fields of Pods may have, alone and together, as rows of `field_values` and of `field_relations`."""

from __future__ import annotations

from typing import Final

from gitsched.kinds.value_limits import (
    ADDRESS,
    DESCENDING,
    DNS_LABEL,
    DNS_LABEL_OR_NONE,
    ENTRIES,
    KEY,
    LABEL_VALUE,
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
    QUALIFIED_OR_NONE,
    QUANTITY,
    RESOURCES,
    SUBDOMAIN,
    WITHOUT_UP,
    FieldRelation,
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
    FieldValues("core.v1.PodSpec", "serviceAccount serviceAccountName priorityClassName", SUBDOMAIN, "core: ValidatePodSpec"),
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
    FieldValues("core.v1.Toleration", "key", QUALIFIED_OR_NONE, "core: ValidateTolerations"),
    FieldValues("core.v1.Toleration", "value", LABEL_VALUE, "core: ValidateTolerations"),
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
    FieldValues("core.v1.NFSVolumeSource", "path", text("^/", "an absolute path"), "core: validateNFSVolumeSource"),
    FieldValues("core.v1.NFSVolumeSource", "server", NOT_EMPTY, "core: validateNFSVolumeSource"),
    FieldValues("core.v1.PersistentVolumeClaimVolumeSource", "claimName", NOT_EMPTY, "core: validatePersistentClaimVolumeSource"),
    *(
        FieldValues(f"core.v1.{kind}VolumeSource", "defaultMode", MODE, f"core: validate{kind}VolumeSource")
        for kind in ("ConfigMap", "DownwardAPI", "Projected", "Secret")
    ),
    FieldValues("core.v1.KeyToPath", "mode", MODE, "core: validateKeyToPath"),
)

MOUNTS = ("containers initContainers", "volumeMounts", "name", "volumes", "name")
CONTAINERS = ("containers", "initContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
SOURCES = (
    *(
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
    ),
    *("fc", "flexVolume", "flocker", "gcePersistentDisk", "gitRepo", "glusterfs", "hostPath", "image", "iscsi", "nfs"),
    *("persistentVolumeClaim", "photonPersistentDisk", "portworxVolume", "projected", "quobyte", "rbd", "scaleIO", "secret"),
    *("storageos", "vsphereVolume"),
)

SELECTED = "meta: ValidateLabelSelector"
_POD_TERMS = (
    "requiredDuringSchedulingIgnoredDuringExecution[].labelSelector",
    "preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.labelSelector",
)
_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]"


def make_expressions(path: str, place: str) -> tuple[FieldRelation, ...]:
    """Return the rules of a list of expressions with an operator."""
    return (
        *(FieldRelation(path, "needs", ("values", "operator", operator), place) for operator in ("In", "NotIn")),
        *(FieldRelation(path, "forbidden", ("values", "operator", operator), place) for operator in ("Exists", "DoesNotExist")),
    )


POD_RELATIONS: Final = (
    FieldRelation("", "unique", ("containers initContainers ephemeralContainers", "name"), "core: validateContainers"),
    FieldRelation("", "unique", ("volumes", "name"), "core: ValidateVolumes"),
    FieldRelation(
        "",
        "refers",
        ("", *MOUNTS),
        "core: ValidateVolumeMounts",
        whole=True,
    ),
    FieldRelation(
        "", "unique", ("topologySpreadConstraints", "topologyKey", "whenUnsatisfiable"), "core: validateSpreadConstraintNotRepeat"
    ),
    FieldRelation("", "needs", ("dnsConfig", "dnsPolicy", "None"), "core: validatePodDNSConfig"),
    FieldRelation("", "host-ports", ("hostNetwork",), "core: validateHostNetwork"),
    FieldRelation("", "labels", ("nodeSelector",), "core: ValidatePodSpec"),
    FieldRelation("topologySpreadConstraints[].labelSelector", "labels", ("matchLabels",), SELECTED),
    *(
        FieldRelation(f"affinity.{name}.{term}", "labels", ("matchLabels",), SELECTED)
        for name in ("podAffinity", "podAntiAffinity")
        for term in _POD_TERMS
    ),
    *make_expressions(f"affinity.nodeAffinity.{_REQUIRED_TERMS}.matchExpressions[]", "core: ValidateNodeSelectorRequirement"),
    FieldRelation("volumes[]", "at-most-one", SOURCES, "core: validateVolumeSource"),
    FieldRelation("volumes[].configMap", "needs", ("name",), "core: validateConfigMapVolumeSource", whole=True),
    FieldRelation("volumes[].secret", "needs", ("secretName",), "core: validateSecretVolumeSource", whole=True),
    FieldRelation("tolerations[]", "forbidden", ("value", "operator", "Exists"), "core: ValidateTolerations"),
    FieldRelation("tolerations[]", "needs-unless", ("key", "operator=Exists"), "core: ValidateTolerations"),
    FieldRelation("tolerations[]", "allowed", ("effect", "NoExecute", "with tolerationSeconds"), "core: ValidateTolerations"),
    *(
        relation
        for containers in CONTAINERS
        for relation in (
            FieldRelation(f"{containers}[]", "needs", ("image",), "core: validateContainerCommon", whole=True),
            FieldRelation(f"{containers}[]", "limited-resources", ("resources",), "core: ValidateContainerResourceRequirements"),
            FieldRelation(f"{containers}[]", "unique", ("ports", "name"), "core: validateContainerPorts"),
            FieldRelation(f"{containers}[]", "unique", ("volumeMounts", "mountPath"), "core: ValidateVolumeMounts"),
            FieldRelation(f"{containers}[].env[]", "at-most-one", ("value", "valueFrom"), "core: validateEnvVarValueFrom"),
            FieldRelation(
                f"{containers}[].env[].valueFrom",
                "exactly-one",
                ("configMapKeyRef", "fieldRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
                "core: validateEnvVarValueFrom",
            ),
            FieldRelation(
                f"{containers}[].securityContext",
                "forbidden",
                ("allowPrivilegeEscalation=false", "privileged", "true"),
                "core: ValidateSecurityContext",
            ),
            FieldRelation(f"{containers}[].envFrom[].configMapRef", "needs", ("name",), "core: validateConfigMapEnvSource"),
            FieldRelation(f"{containers}[].envFrom[].secretRef", "needs", ("name",), "core: validateSecretEnvSource"),
            *(
                FieldRelation(f"{containers}[].{handler}.exec", "needs", ("command",), "core: validateExecAction", whole=True)
                for handler in (*_PROBES, "lifecycle.postStart", "lifecycle.preStop")
            ),
            FieldRelation(f"{containers}[].envFrom[]", "exactly-one", ("configMapRef", "secretRef"), "core: ValidateEnvFrom"),
            FieldRelation(
                f"{containers}[].volumeMounts[]", "at-most-one", ("subPath", "subPathExpr"), "core: ValidateVolumeMounts"
            ),
            *(
                FieldRelation(
                    f"{containers}[].lifecycle.{hook}",
                    "exactly-one",
                    ("exec", "httpGet", "sleep", "tcpSocket"),
                    "core: validateHandler",
                )
                for hook in ("postStart", "preStop")
            ),
            *(
                FieldRelation(f"{containers}[].{probe}", "exactly-one", _HANDLERS, "core: validateHandler", whole=True)
                for probe in _PROBES
            ),
            *(
                FieldRelation(f"{containers}[].{probe}", "allowed", ("successThreshold", "0", "1"), "core: validateLivenessProbe")
                for probe in ("livenessProbe", "startupProbe")
            ),
        )
    ),
)
"""About the spec of a Pod."""
