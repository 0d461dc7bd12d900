"""What the validation of an API server demands of several fields of Kubernetes' own kinds together.

The place of a row is the function in kubernetes/pkg/apis/GROUP/validation that refuses anything else. `gitsched.manifests.field_relations`
carries the rules out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gitsched.kinds.pod_values import CONTAINERS, MOUNTS, POD_RELATIONS, SELECTED, SOURCES, make_expressions
from gitsched.kinds.value_limits import FieldRelation

_TEMPLATE: Final = (
    FieldRelation("metadata", "labels", ("labels",), "apimachinery/pkg/apis/meta/v1/validation: ValidateLabels"),
    *(relation._replace(path=f"spec.{relation.path}".rstrip(".")) for relation in POD_RELATIONS),
)


def _under(path: str, relations: Iterable[FieldRelation]) -> tuple[FieldRelation, ...]:
    return tuple(relation._replace(path=f"{path}.{relation.path}".rstrip(".")) for relation in relations)


def _make_selector(path: str) -> tuple[FieldRelation, ...]:
    """Return the rules of a label selector."""
    return (
        FieldRelation(path, "labels", ("matchLabels",), SELECTED),
        *make_expressions(f"{path}.matchExpressions[]", "meta: ValidateLabelSelectorRequirement"),
    )


def _make_workload(kind: str, *more: FieldRelation) -> tuple[FieldRelation, ...]:
    """Return the rules of a kind with a pod template.

    An API server takes a StatefulSet with a template that it would refuse elsewhere, and then refuses each of its pods, so that nothing
    runs. `_CLAIMS` checks the volumes of a StatefulSet.
    """
    template = (relation for relation in _TEMPLATE if kind != "StatefulSet" or relation.rule != "refers")
    return (
        FieldRelation("spec", "selects", ("selector", "template.metadata.labels", "required"), f"apps: Validate{kind}Spec"),
        *_make_selector("spec.selector"),
        FieldRelation("spec.template.spec", "only-with", ("activeDeadlineSeconds", *_RUNS_ONCE), f"apps: Validate{kind}Spec"),
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
    FieldRelation("spec", "refers", ("template.spec", *MOUNTS, "volumeClaimTemplates"), "core: ValidateVolumeMounts", whole=True),
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
        FieldRelation(
            f"{path}.podFailurePolicy.rules[]",
            "exactly-one",
            ("onExitCodes", "onPodConditions"),
            "batch: validatePodFailurePolicyRule",
        ),
        FieldRelation(
            f"{path}.successPolicy.rules[]", "least-one", ("succeededCount", "succeededIndexes"), "batch: validateSuccessPolicyRule"
        ),
        FieldRelation(path, "at-most", ("maxFailedIndexes", "completions"), "batch: validateJobSpec"),
        *_under(f"{path}.template", _TEMPLATE),
    )


_RUNS_ONCE = ("restartPolicy=Never", "restartPolicy=OnFailure")
_ROLLING = ("rollingUpdate", "type")
_UNAVAILABLE = ("minAvailable", "maxUnavailable")
_TARGETS = (
    ("containerResource", ("averageUtilization", "averageValue")),
    ("external", ("averageValue", "value")),
    ("pods", ("averageValue",)),
    ("resource", ("averageUtilization", "averageValue")),
)
_METRICS = ("containerResource", "external", "object", "pods", "resource")
_AUTOSCALER = (
    FieldRelation("spec", "at-most", ("minReplicas", "maxReplicas"), "autoscaling: validateHorizontalPodAutoscalerSpec"),
    FieldRelation("spec.metrics[]", "at-most-one", _METRICS, "autoscaling: validateMetricSpec"),
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
    FieldRelation("rules[]", "needs", ("verbs",), "rbac: ValidatePolicyRule"),
)
_WEBHOOKS = tuple(
    FieldRelation("webhooks[].clientConfig.service", "needs", (name,), "apiserver/pkg/util/webhook: ValidateWebhookService")
    for name in ("name", "namespace")
)
_SUBJECTS = (
    FieldRelation("subjects[]", "forbidden", ("apiGroup", "kind", "ServiceAccount"), "rbac: validateRoleBindingSubject"),
    FieldRelation("subjects[]", "needs", ("name",), "rbac: validateRoleBindingSubject"),
)

RELATIONS: Final[Mapping[tuple[str, str], tuple[FieldRelation, ...]]] = {
    ("", "Pod"): (
        *_under("spec", POD_RELATIONS),
        *(FieldRelation(f"spec.{name}[]", "trimmed", ("image",), "core: ValidatePodCreate") for name in CONTAINERS),
    ),
    ("apps", "DaemonSet"): _make_workload(
        "DaemonSet",
        FieldRelation(
            "spec.updateStrategy.rollingUpdate",
            "one-not-zero",
            ("maxSurge=0", "maxUnavailable=1"),
            "apps: ValidateRollingUpdateDaemonSet",
            whole=True,
        ),
    ),
    ("apps", "Deployment"): _make_workload(
        "Deployment",
        FieldRelation("spec.strategy", "forbidden", (*_ROLLING, "Recreate"), "apps: ValidateDeploymentStrategy"),
        FieldRelation("spec", "at-most", ("minReadySeconds", "progressDeadlineSeconds"), "apps: ValidateDeploymentSpec"),
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
        FieldRelation("spec", "needs", ("schedule",), "batch: validateCronJobSpec", whole=True),
        FieldRelation("spec", "schedule", ("schedule",), "batch: validateScheduleFormat"),
        FieldRelation("spec.jobTemplate.spec", "allowed", ("manualSelector", "false"), "batch: ValidateJobTemplateSpec"),
        FieldRelation("spec.jobTemplate.spec", "only-with", ("selector", "manualSelector"), "batch: ValidateJobTemplateSpec"),
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
            )
        ),
    ),
    ("networking.k8s.io", "Ingress"): (
        FieldRelation("spec.rules[]", "no-address", ("host",), "networking: validateIngressRules"),
        *(
            FieldRelation("spec.rules[].http.paths[]", "needs", ("path", "pathType", kind), "networking: validateHTTPIngressPath")
            for kind in ("Exact", "Prefix")
        ),
        FieldRelation("spec.defaultBackend", "exactly-one", ("resource", "service"), "networking: validateIngressBackend"),
        FieldRelation(
            "spec.rules[].http.paths[].backend", "exactly-one", ("resource", "service"), "networking: validateIngressBackend"
        ),
        FieldRelation("spec.rules[].http.paths[].backend.service", "needs", ("port",), "networking: validateIngressBackend"),
        FieldRelation("spec.defaultBackend.service", "needs", ("port",), "networking: validateIngressBackend"),
        FieldRelation(
            "spec.rules[].http.paths[].backend.service.port",
            "exactly-one",
            ("name", "number"),
            "networking: validateIngressBackend",
        ),
        FieldRelation("spec.defaultBackend.service.port", "exactly-one", ("name", "number"), "networking: validateIngressBackend"),
    ),
    ("networking.k8s.io", "NetworkPolicy"): (
        *_make_selector("spec.podSelector"),
        *(
            relation
            for direction, peers in (("egress", "to"), ("ingress", "from"))
            for relation in (
                FieldRelation(
                    f"spec.{direction}[].ports[]", "at-most", ("port", "endPort"), "networking: ValidateNetworkPolicyPort"
                ),
                FieldRelation(f"spec.{direction}[].ports[]", "needs", ("port", "endPort"), "networking: ValidateNetworkPolicyPort"),
                FieldRelation(
                    f"spec.{direction}[].{peers}[]",
                    "least-one",
                    ("ipBlock", "namespaceSelector", "podSelector"),
                    "networking: ValidateNetworkPolicyPeer",
                ),
                *_make_selector(f"spec.{direction}[].{peers}[].namespaceSelector"),
                *_make_selector(f"spec.{direction}[].{peers}[].podSelector"),
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
        *_make_selector("spec.selector"),
    ),
    ("", "ConfigMap"): (FieldRelation("", "total-size", ("data", "binaryData"), "core: ValidateConfigMap"),),
    ("", "PersistentVolume"): (
        FieldRelation("spec", "needs", ("accessModes", "capacity"), "core: ValidatePersistentVolumeSpec"),
        FieldRelation("spec", "needs", ("capacity", "accessModes"), "core: ValidatePersistentVolumeSpec"),
        FieldRelation("spec", "at-most-one", SOURCES, "core: ValidatePersistentVolumeSpec"),
        *make_expressions(
            "spec.nodeAffinity.required.nodeSelectorTerms[].matchExpressions[]", "core: ValidateNodeSelectorRequirement"
        ),
    ),
    ("", "PersistentVolumeClaim"): (*_make_claim("spec"), *_make_selector("spec.selector")),
    ("", "ReplicationController"): (
        FieldRelation("spec", "selects", ("selector", "template.metadata.labels"), "core: ValidatePodTemplateSpecForRC"),
        FieldRelation("spec.template.spec", "allowed", ("restartPolicy", "", "Always"), "core: ValidatePodTemplateSpecForRC"),
        *_under("spec.template", _TEMPLATE),
    ),
    ("", "Secret"): (
        FieldRelation("", "secret-keys", (), "core: ValidateSecret"),
        FieldRelation("", "total-size", ("stringData", "data"), "core: ValidateSecret"),
    ),
    ("rbac.authorization.k8s.io", "ClusterRole"): _RULES,
    ("rbac.authorization.k8s.io", "Role"): _RULES,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): (
        *_SUBJECTS,
        FieldRelation("subjects[]", "needs", ("namespace", "kind", "ServiceAccount"), "rbac: validateRoleBindingSubject"),
        FieldRelation("subjects[]", "service-account", (), "rbac: validateRoleBindingSubject"),
        FieldRelation("roleRef", "allowed", ("kind", "ClusterRole"), "rbac: ValidateClusterRoleBinding"),
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): (
        *_SUBJECTS,
        FieldRelation("subjects[]", "service-account", ("optional",), "rbac: validateRoleBindingSubject"),
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
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
