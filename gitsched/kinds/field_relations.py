"""What the validation of an API server demands of several fields of Kubernetes' own kinds together.

The place of a row is the function in kubernetes/pkg/apis/GROUP/validation that refuses anything else. `gitsched.manifests.field_relations`
carries the rules out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

Rule = Literal[
    "allowed",
    "at-most",
    "at-most-one",
    "exactly-one",
    "forbidden",
    "labels",
    "length",
    "limited-resources",
    "named-entries",
    "needs",
    "needs-unless",
    "not-all-zero",
    "only-with",
    "refers",
    "schedule",
    "secret-keys",
    "selects",
    "total-size",
    "trimmed",
    "unique",
]


class FieldRelation(NamedTuple):
    """A rule for the object at a path, such as `spec.containers[]`; "" for the object itself.

    `arguments` depend on the rule. `whole` says that it only holds for whole objects, not for a patch of one.
    """

    path: str
    rule: Rule
    arguments: tuple[str, ...]
    place: str
    whole: bool = False


_MOUNTS = ("containers initContainers", "volumeMounts", "name", "volumes", "name")
_CONTAINERS = ("containers", "initContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_SOURCES = (
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

_SELECTED = "meta: ValidateLabelSelector"
_POD_TERMS = (
    "requiredDuringSchedulingIgnoredDuringExecution[].labelSelector",
    "preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm.labelSelector",
)
_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]"


def _make_expressions(path: str, place: str) -> tuple[FieldRelation, ...]:
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
        ("", *_MOUNTS),
        "core: ValidateVolumeMounts",
        whole=True,
    ),
    FieldRelation(
        "", "unique", ("topologySpreadConstraints", "topologyKey", "whenUnsatisfiable"), "core: validateSpreadConstraintNotRepeat"
    ),
    FieldRelation("", "needs", ("dnsConfig", "dnsPolicy", "None"), "core: validatePodDNSConfig"),
    FieldRelation("", "labels", ("nodeSelector",), "core: ValidatePodSpec"),
    FieldRelation("topologySpreadConstraints[].labelSelector", "labels", ("matchLabels",), _SELECTED),
    *(
        FieldRelation(f"affinity.{name}.{term}", "labels", ("matchLabels",), _SELECTED)
        for name in ("podAffinity", "podAntiAffinity")
        for term in _POD_TERMS
    ),
    *_make_expressions(f"affinity.nodeAffinity.{_REQUIRED_TERMS}.matchExpressions[]", "core: ValidateNodeSelectorRequirement"),
    FieldRelation("volumes[]", "at-most-one", _SOURCES, "core: validateVolumeSource"),
    FieldRelation("volumes[].configMap", "needs", ("name",), "core: validateConfigMapVolumeSource", whole=True),
    FieldRelation("volumes[].secret", "needs", ("secretName",), "core: validateSecretVolumeSource", whole=True),
    FieldRelation("tolerations[]", "forbidden", ("value", "operator", "Exists"), "core: ValidateTolerations"),
    FieldRelation("tolerations[]", "needs", ("key", "operator", "Equal"), "core: ValidateTolerations"),
    FieldRelation("tolerations[]", "allowed", ("effect", "NoExecute", "with tolerationSeconds"), "core: ValidateTolerations"),
    *(
        relation
        for containers in _CONTAINERS
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

_TEMPLATE: Final = (
    FieldRelation("metadata", "labels", ("labels",), "apimachinery/pkg/apis/meta/v1/validation: ValidateLabels"),
    *(relation._replace(path=f"spec.{relation.path}".rstrip(".")) for relation in POD_RELATIONS),
)


def _under(path: str, relations: Iterable[FieldRelation]) -> tuple[FieldRelation, ...]:
    return tuple(relation._replace(path=f"{path}.{relation.path}".rstrip(".")) for relation in relations)


def _make_workload(kind: str, *more: FieldRelation) -> tuple[FieldRelation, ...]:
    """Return the rules of a kind with a pod template, where an API server checks its pods. `_CLAIMS` checks the
    volumes of a StatefulSet."""
    template = (relation for relation in _TEMPLATE if kind != "StatefulSet" or relation.rule != "refers")
    return (
        FieldRelation("spec", "selects", ("selector", "template.metadata.labels"), f"apps: Validate{kind}Spec"),
        *_make_expressions("spec.selector.matchExpressions[]", "meta: ValidateLabelSelectorRequirement"),
        FieldRelation("spec.selector", "labels", ("matchLabels",), _SELECTED),
        FieldRelation("spec.template.spec", "allowed", ("restartPolicy", "", "Always"), f"apps: Validate{kind}Spec"),
        *_under("spec.template", template),
        *more,
    )


def _make_claim(path: str) -> tuple[FieldRelation, ...]:
    place = "core: ValidatePersistentVolumeClaimSpec"
    return (
        FieldRelation(path, "needs", ("accessModes",), place, whole=True),
        FieldRelation(path, "needs", ("resources",), place, whole=True),
        FieldRelation(f"{path}.resources", "needs", ("requests",), place, whole=True),
        FieldRelation(f"{path}.resources.requests", "needs", ("storage",), place, whole=True),
    )


_CLAIMS: Final = (
    FieldRelation("spec", "refers", ("template.spec", *_MOUNTS, "volumeClaimTemplates"), "core: ValidateVolumeMounts", whole=True),
    *_make_claim("spec.volumeClaimTemplates[].spec"),
)


def _make_job(path: str) -> tuple[FieldRelation, ...]:
    return (
        FieldRelation(f"{path}.template.spec", "allowed", ("restartPolicy", "Never", "OnFailure"), "batch: validateJobSpec"),
        FieldRelation(f"{path}.template.spec", "needs", ("restartPolicy",), "batch: validateJobSpec", whole=True),
        FieldRelation(path, "needs", ("completions", "completionMode", "Indexed"), "batch: validateJobSpec"),
        FieldRelation(path, "only-with", ("backoffLimitPerIndex", "completionMode=Indexed"), "batch: validateJobSpec", whole=True),
        FieldRelation(path, "only-with", ("maxFailedIndexes", "backoffLimitPerIndex"), "batch: validateJobSpec", whole=True),
        FieldRelation(path, "only-with", ("successPolicy", "completionMode=Indexed"), "batch: validateJobSpec", whole=True),
        *_under(f"{path}.template", _TEMPLATE),
    )


_ROLLING = ("rollingUpdate", "type")
_UNAVAILABLE = ("minAvailable", "maxUnavailable")
_TARGETS = (
    ("containerResource", ("averageUtilization", "averageValue")),
    ("external", ("averageValue", "value")),
    ("pods", ("averageValue",)),
    ("resource", ("averageUtilization", "averageValue")),
)
_AUTOSCALER = (
    FieldRelation("spec", "at-most", ("minReplicas", "maxReplicas"), "autoscaling: validateHorizontalPodAutoscalerSpec"),
    *(
        relation
        for member, values in _TARGETS
        for relation in (
            FieldRelation(
                "spec.metrics[]", "needs", (member, "type", member[0].upper() + member[1:]), "autoscaling: validateMetricSpec"
            ),
            FieldRelation(f"spec.metrics[].{member}.target", "exactly-one", values, "autoscaling: validateMetricTarget"),
        )
    ),
)
_RULES = (
    FieldRelation("rules[]", "exactly-one", ("nonResourceURLs", "resources"), "rbac: validatePolicyRule"),
    FieldRelation("rules[]", "needs", ("apiGroups", "resources"), "rbac: validatePolicyRule"),
)
_SUBJECTS = (
    FieldRelation("subjects[]", "forbidden", ("apiGroup", "kind", "ServiceAccount"), "rbac: validateRoleBindingSubject"),
    FieldRelation("subjects[]", "needs", ("name",), "rbac: validateRoleBindingSubject"),
)

RELATIONS: Final[Mapping[tuple[str, str], tuple[FieldRelation, ...]]] = {
    ("", "Pod"): (
        *_under("spec", POD_RELATIONS),
        *(FieldRelation(f"spec.{name}[]", "trimmed", ("image",), "core: ValidatePodCreate") for name in _CONTAINERS),
    ),
    ("apps", "DaemonSet"): _make_workload("DaemonSet"),
    ("apps", "Deployment"): _make_workload(
        "Deployment",
        FieldRelation("spec.strategy", "forbidden", (*_ROLLING, "Recreate"), "apps: ValidateDeploymentStrategy"),
        FieldRelation(
            "spec.strategy.rollingUpdate", "not-all-zero", ("maxSurge", "maxUnavailable"), "apps: ValidateRollingUpdateDeployment"
        ),
    ),
    ("apps", "ReplicaSet"): _make_workload("ReplicaSet"),
    ("apps", "StatefulSet"): _make_workload(
        "StatefulSet",
        FieldRelation("spec.updateStrategy", "forbidden", (*_ROLLING, "OnDelete"), "apps: ValidateStatefulSetSpec"),
        *_CLAIMS,
    ),
    ("batch", "CronJob"): (
        FieldRelation("metadata", "length", ("name", "52"), "batch: ValidateCronJobCreate"),
        FieldRelation("spec", "schedule", ("schedule",), "batch: validateScheduleFormat"),
        *_make_job("spec.jobTemplate.spec"),
    ),
    ("batch", "Job"): _make_job("spec"),
    ("", "Service"): (
        FieldRelation(
            "spec", "needs-unless", ("ports", "clusterIP=None", "type=ExternalName"), "core: ValidateService", whole=True
        ),
        FieldRelation("spec", "named-entries", ("ports", "name"), "core: ValidateService"),
        FieldRelation("spec", "unique", ("ports", "name"), "core: validateServicePort"),
        FieldRelation("spec", "unique", ("ports", "port", "protocol=TCP"), "core: ValidateService"),
        FieldRelation("spec", "unique", ("ports", "nodePort", "protocol=TCP"), "core: ValidateService"),
        FieldRelation("spec", "needs", ("externalName", "type", "ExternalName"), "core: ValidateService"),
        FieldRelation("spec", "forbidden", ("clusterIP=None", "type", "LoadBalancer"), "core: ValidateService"),
        FieldRelation("spec", "forbidden", ("clusterIP=None", "type", "NodePort"), "core: ValidateService"),
        FieldRelation("spec", "labels", ("selector",), "core: ValidateService"),
        FieldRelation("spec", "forbidden", ("clusterIP", "type", "ExternalName"), "core: ValidateService"),
        *(
            FieldRelation("spec", "only-with", (name, *conditions), "core: ValidateService", whole=True)
            for name, *conditions in (
                ("allocateLoadBalancerNodePorts", "type=LoadBalancer"),
                ("externalTrafficPolicy", "type=LoadBalancer", "type=NodePort", "externalIPs"),
                ("healthCheckNodePort", "externalTrafficPolicy=Local"),
                ("loadBalancerClass", "type=LoadBalancer"),
                ("loadBalancerSourceRanges", "type=LoadBalancer"),
                ("ports[].nodePort", "type=LoadBalancer", "type=NodePort", "type=ExternalName"),
                ("sessionAffinityConfig", "sessionAffinity=ClientIP"),
            )
        ),
    ),
    ("networking.k8s.io", "Ingress"): (
        FieldRelation("spec.defaultBackend", "exactly-one", ("resource", "service"), "networking: validateIngressBackend"),
        FieldRelation(
            "spec.rules[].http.paths[].backend", "exactly-one", ("resource", "service"), "networking: validateIngressBackend"
        ),
        FieldRelation(
            "spec.rules[].http.paths[].backend.service.port",
            "exactly-one",
            ("name", "number"),
            "networking: validateIngressBackend",
        ),
        FieldRelation("spec.defaultBackend.service.port", "exactly-one", ("name", "number"), "networking: validateIngressBackend"),
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        FieldRelation("spec.podSelector", "labels", ("matchLabels",), _SELECTED),
        *(
            relation
            for direction, peers in (("egress", "to"), ("ingress", "from"))
            for relation in (
                FieldRelation(
                    f"spec.{direction}[].ports[]", "at-most", ("port", "endPort"), "networking: ValidateNetworkPolicyPort"
                ),
                *(
                    FieldRelation(
                        f"spec.{direction}[].{peers}[]", "at-most-one", ("ipBlock", other), "networking: ValidateNetworkPolicyPeer"
                    )
                    for other in ("namespaceSelector", "podSelector")
                ),
            )
        ),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): _AUTOSCALER,
    ("policy", "PodDisruptionBudget"): (
        FieldRelation("spec", "at-most-one", _UNAVAILABLE, "policy: ValidatePodDisruptionBudgetSpec"),
        FieldRelation("spec.selector", "labels", ("matchLabels",), _SELECTED),
    ),
    ("", "ConfigMap"): (FieldRelation("", "total-size", ("data", "binaryData"), "core: ValidateConfigMap"),),
    ("", "PersistentVolumeClaim"): _make_claim("spec"),
    ("", "Secret"): (
        FieldRelation("", "secret-keys", (), "core: ValidateSecret"),
        FieldRelation("", "total-size", ("stringData", "data"), "core: ValidateSecret"),
    ),
    ("rbac.authorization.k8s.io", "ClusterRole"): _RULES,
    ("rbac.authorization.k8s.io", "Role"): _RULES,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (
        *_SUBJECTS,
        FieldRelation("subjects[]", "needs", ("namespace", "kind", "ServiceAccount"), "rbac: validateRoleBindingSubject"),
        FieldRelation("roleRef", "allowed", ("kind", "ClusterRole"), "rbac: ValidateClusterRoleBinding"),
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): _SUBJECTS,
}
"""By group and kind."""

ACCEPTED_DATA_SIZE: Final = 1 << 20
"""The bytes that the values of a ConfigMap or of a Secret have at most. Source: core: MaxSecretSize."""
SECRET_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
"""The keys that a Secret of a type must have. Source: core: ValidateSecret."""
STANDARD_RESOURCES: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
"""Resources of containers without a prefix, beside `hugepages-SIZE`. Source: core/helper: IsStandardContainerResourceName."""
