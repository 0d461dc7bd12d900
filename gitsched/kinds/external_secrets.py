"""Kinds of External Secrets Operator."""

from __future__ import annotations

from gitsched.kinds.kind import (
    CLUSTER,
    CONFIG_MAP,
    NAMESPACED,
    SECRET,
    Kind,
    KindTable,
    Reference,
    condition,
    config_maps,
    secrets,
    service_accounts,
)

_STORES = (("external-secrets.io/v1", "SecretStore"), ("external-secrets.io/v1", "ClusterSecretStore"))
_GENERATORS = tuple(
    ("generators.external-secrets.io/v1alpha1", kind)
    for kind in [
        "Password",
        "ACRAccessToken",
        "CloudsmithAccessToken",
        "ClusterGenerator",
        "ECRAuthorizationToken",
        "Fake",
        "GCRAccessToken",
        "GithubAccessToken",
        "GitlabDeployToken",
        "Grafana",
        "MFA",
        "QuayAccessToken",
        "SSHKey",
        "STSSessionToken",
        "UUID",
        "VaultDynamicSecret",
        "Webhook",
    ]
)
_PROVIDER_REFERENCES = (
    *secrets("spec.provider.**.*secretRef", "spec.provider.**.*SecretRef"),
    *service_accounts("spec.provider.**.serviceAccountRef"),
    Reference("spec.provider.**.caProvider", (SECRET, CONFIG_MAP), kind_required=True),
)
_READY = condition("Ready")
_GENERATOR_REFERENCES = (
    *secrets("spec.**.*secretRef", "spec.**.*SecretRef"),
    *service_accounts("spec.**.serviceAccountRef"),
)

KINDS: KindTable = {
    ("external-secrets.io", "ClusterExternalSecret"): Kind(
        CLUSTER,
        "external-secrets/external-secrets/config/crds/bases/external-secrets.io_clusterexternalsecrets.yaml",
        references=(Reference("spec.externalSecretSpec.secretStoreRef", _STORES),),
        health=_READY,
    ),
    ("external-secrets.io", "ClusterPushSecret"): Kind(
        CLUSTER, "external-secrets/external-secrets/config/crds/bases/external-secrets.io_clusterpushsecrets.yaml"
    ),
    ("external-secrets.io", "ClusterSecretStore"): Kind(
        CLUSTER,
        "external-secrets/external-secrets/config/crds/bases/external-secrets.io_clustersecretstores.yaml",
        references=_PROVIDER_REFERENCES,
        health=_READY,
    ),
    ("external-secrets.io", "ExternalSecret"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/external-secrets.io_externalsecrets.yaml",
        references=(
            Reference("spec.secretStoreRef", _STORES),
            Reference("spec.data[].sourceRef.storeRef", _STORES),
            Reference("spec.dataFrom[].sourceRef.storeRef", _STORES),
            Reference("spec.data[].sourceRef.generatorRef", _GENERATORS, kind_required=True),
            Reference("spec.dataFrom[].sourceRef.generatorRef", _GENERATORS, kind_required=True),
            *config_maps("spec.target.template.templateFrom[].configMap"),
            *secrets("spec.target.template.templateFrom[].secret"),
        ),
        secrets=("spec.target.name", "metadata.name"),
        health=_READY,
    ),
    ("external-secrets.io", "PushSecret"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/external-secrets.io_pushsecrets.yaml",
        references=(
            Reference("spec.secretStoreRefs[]", _STORES),
            Reference("spec.selector.generatorRef", _GENERATORS, kind_required=True),
            *secrets("spec.selector.secret", "spec.template.templateFrom[].secret"),
            *config_maps("spec.template.templateFrom[].configMap"),
        ),
        health=_READY,
    ),
    ("external-secrets.io", "SecretStore"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/external-secrets.io_secretstores.yaml",
        references=_PROVIDER_REFERENCES,
        health=_READY,
    ),
    ("generators.external-secrets.io", "ACRAccessToken"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_acraccesstokens.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "BeyondtrustWorkloadCredentialsDynamicSecret"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_beyondtrustworkloadcredentialsdynamicsecrets.yaml",
    ),
    ("generators.external-secrets.io", "CloudsmithAccessToken"): Kind(
        NAMESPACED, "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_cloudsmithaccesstokens.yaml"
    ),
    ("generators.external-secrets.io", "ClusterGenerator"): Kind(
        CLUSTER, "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_clustergenerators.yaml"
    ),
    ("generators.external-secrets.io", "ECRAuthorizationToken"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_ecrauthorizationtokens.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "Fake"): Kind(
        NAMESPACED, "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_fakes.yaml"
    ),
    ("generators.external-secrets.io", "GCRAccessToken"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_gcraccesstokens.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "GeneratorState"): Kind(
        NAMESPACED, "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_generatorstates.yaml"
    ),
    ("generators.external-secrets.io", "GithubAccessToken"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_githubaccesstokens.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "GitlabDeployToken"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_gitlabdeploytokens.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "Grafana"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_grafanas.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "MFA"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_mfas.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "Password"): Kind(
        NAMESPACED, "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_passwords.yaml"
    ),
    ("generators.external-secrets.io", "QuayAccessToken"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_quayaccesstokens.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "SSHKey"): Kind(
        NAMESPACED, "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_sshkeys.yaml"
    ),
    ("generators.external-secrets.io", "STSSessionToken"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_stssessiontokens.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "UUID"): Kind(
        NAMESPACED, "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_uuids.yaml"
    ),
    ("generators.external-secrets.io", "VaultDynamicSecret"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_vaultdynamicsecrets.yaml",
        references=_GENERATOR_REFERENCES,
    ),
    ("generators.external-secrets.io", "Webhook"): Kind(
        NAMESPACED,
        "external-secrets/external-secrets/config/crds/bases/generators.external-secrets.io_webhooks.yaml",
        references=_GENERATOR_REFERENCES,
    ),
}
