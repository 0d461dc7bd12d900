"""Kinds of KEDA."""

from __future__ import annotations

from gitsched.kinds.kind import (
    CLUSTER,
    CONFIG_MAP,
    NAMESPACED,
    SECRET,
    SERVICE_ACCOUNT,
    Kind,
    KindTable,
    Reference,
    condition,
    config_maps,
    secrets,
    service_accounts,
)

_AUTHENTICATIONS = (("keda.sh/v1alpha1", "TriggerAuthentication"), ("keda.sh/v1alpha1", "ClusterTriggerAuthentication"))
_TRIGGERS = Reference("spec.triggers[].authenticationRef", _AUTHENTICATIONS)
_READY = condition("Ready")
_SECRETS = ("spec.secretTargetRef[]", "spec.**.secretKeyRef")
_ACCOUNTS = (
    "spec.boundServiceAccountToken[].serviceAccountName",
    "spec.hashiCorpVault.credential.serviceAccount",
    "spec.hashiCorpVault.credential.serviceAccountName",
)

KINDS: KindTable = {
    ("keda.sh", "ClusterTriggerAuthentication"): Kind(
        CLUSTER,
        "kedacore/keda/config/crd/bases/keda.sh_clustertriggerauthentications.yaml",
        references=(
            # KEDA reads these from its own namespace (KEDA_CLUSTER_OBJECT_NAMESPACE), which its chart calls keda.
            *(Reference(path, (SECRET,), "keda") for path in _SECRETS),
            Reference("spec.configMapTargetRef[]", (CONFIG_MAP,), "keda"),
            *(Reference(path, (SERVICE_ACCOUNT,), "keda") for path in _ACCOUNTS),
        ),
    ),
    ("keda.sh", "ScaledJob"): Kind(
        NAMESPACED,
        "kedacore/keda/config/crd/bases/keda.sh_scaledjobs.yaml",
        references=(_TRIGGERS,),
        pod_templates=("spec.jobTargetRef.template",),
        health=_READY,
    ),
    ("keda.sh", "ScaledObject"): Kind(
        NAMESPACED, "kedacore/keda/config/crd/bases/keda.sh_scaledobjects.yaml", references=(_TRIGGERS,), health=_READY
    ),
    ("keda.sh", "TriggerAuthentication"): Kind(
        NAMESPACED,
        "kedacore/keda/config/crd/bases/keda.sh_triggerauthentications.yaml",
        references=(*secrets(*_SECRETS), *config_maps("spec.configMapTargetRef[]"), *service_accounts(*_ACCOUNTS)),
    ),
    ("eventing.keda.sh", "CloudEventSource"): Kind(
        NAMESPACED,
        "kedacore/keda/config/crd/bases/eventing.keda.sh_cloudeventsources.yaml",
        references=(Reference("spec.authenticationRef", _AUTHENTICATIONS),),
    ),
    ("eventing.keda.sh", "ClusterCloudEventSource"): Kind(
        CLUSTER,
        "kedacore/keda/config/crd/bases/eventing.keda.sh_clustercloudeventsources.yaml",
        references=(Reference("spec.authenticationRef", _AUTHENTICATIONS),),
    ),
}
