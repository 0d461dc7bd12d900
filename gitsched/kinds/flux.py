"""Kinds of Flux."""

from __future__ import annotations

from gitsched.kinds.kind import (
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

_GIT = ("source.toolkit.fluxcd.io/v1", "GitRepository")
_OCI = ("source.toolkit.fluxcd.io/v1", "OCIRepository")
_BUCKET = ("source.toolkit.fluxcd.io/v1", "Bucket")
_HELM_REPOSITORY = ("source.toolkit.fluxcd.io/v1", "HelmRepository")
_HELM_CHART = ("source.toolkit.fluxcd.io/v1", "HelmChart")
_ARTIFACT = ("source.toolkit.fluxcd.io/v1", "ExternalArtifact")
_KUSTOMIZATION = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
_HELM_RELEASE = ("helm.toolkit.fluxcd.io/v2", "HelmRelease")
_PROVIDER = ("notification.toolkit.fluxcd.io/v1beta3", "Provider")
_IMAGE_REPOSITORY = ("image.toolkit.fluxcd.io/v1", "ImageRepository")
_FETCHED = condition("Ready", "Succeeded")
_READY = condition("Ready")
# helm-controller writes ReconciliationSucceeded in v2beta1, and the last Helm action in later versions.
_RELEASED = condition("Ready", "ReconciliationSucceeded", "InstallSucceeded", "UpgradeSucceeded", "TestSucceeded")

KINDS: KindTable = {
    ("helm.toolkit.fluxcd.io", "HelmRelease"): Kind(
        NAMESPACED,
        "fluxcd/helm-controller/config/crd/bases/helm.toolkit.fluxcd.io_helmreleases.yaml",
        interpreter="helm.toolkit.fluxcd.io/v2beta1/HelmRelease",
        references=(
            *secrets("spec.chart.spec.verify.secretRef", "spec.kubeConfig.secretRef"),
            *config_maps("spec.kubeConfig.configMapRef"),
            *service_accounts("spec.serviceAccountName"),
            Reference("spec.valuesFrom[]", (CONFIG_MAP, SECRET), kind_required=True),
            Reference("spec.chart.spec.sourceRef", (_HELM_REPOSITORY, _GIT, _BUCKET)),
            Reference("spec.chartRef", (_OCI, _HELM_CHART, _ARTIFACT)),
            Reference("spec.dependsOn[]", (_HELM_RELEASE,)),
        ),
        health=_RELEASED,
        destination="spec.kubeConfig",
    ),
    ("image.toolkit.fluxcd.io", "ImagePolicy"): Kind(
        NAMESPACED,
        "fluxcd/image-reflector-controller/config/crd/bases/image.toolkit.fluxcd.io_imagepolicies.yaml",
        references=(Reference("spec.imageRepositoryRef", (_IMAGE_REPOSITORY,)),),
        health=_READY,
    ),
    ("image.toolkit.fluxcd.io", "ImageRepository"): Kind(
        NAMESPACED,
        "fluxcd/image-reflector-controller/config/crd/bases/image.toolkit.fluxcd.io_imagerepositories.yaml",
        references=(
            *secrets("spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef"),
            *service_accounts("spec.serviceAccountName"),
        ),
        health=_READY,
    ),
    ("image.toolkit.fluxcd.io", "ImageUpdateAutomation"): Kind(
        NAMESPACED,
        "fluxcd/image-automation-controller/config/crd/bases/image.toolkit.fluxcd.io_imageupdateautomations.yaml",
        references=(Reference("spec.sourceRef", (_GIT,)), *secrets("spec.git.commit.signingKey.secretRef")),
        health=_READY,
    ),
    ("kustomize.toolkit.fluxcd.io", "Kustomization"): Kind(
        NAMESPACED,
        "fluxcd/kustomize-controller/config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml",
        interpreter="kustomize.toolkit.fluxcd.io/v1/Kustomization",
        references=(
            *secrets("spec.decryption.secretRef", "spec.kubeConfig.secretRef"),
            *config_maps("spec.kubeConfig.configMapRef"),
            *service_accounts("spec.serviceAccountName", "spec.decryption.serviceAccountName"),
            Reference("spec.sourceRef", (_GIT, _OCI, _BUCKET, _ARTIFACT)),
            Reference("spec.postBuild.substituteFrom[]", (CONFIG_MAP, SECRET), kind_required=True),
            Reference("spec.dependsOn[]", (_KUSTOMIZATION,)),
        ),
        health=condition("Ready", "ReconciliationSucceeded"),
        destination="spec.kubeConfig",
    ),
    ("notification.toolkit.fluxcd.io", "Alert"): Kind(
        NAMESPACED,
        "fluxcd/notification-controller/config/crd/bases/notification.toolkit.fluxcd.io_alerts.yaml",
        references=(Reference("spec.providerRef", (_PROVIDER,)),),
    ),
    ("notification.toolkit.fluxcd.io", "Provider"): Kind(
        NAMESPACED,
        "fluxcd/notification-controller/config/crd/bases/notification.toolkit.fluxcd.io_providers.yaml",
        references=(
            *secrets("spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef"),
            *service_accounts("spec.serviceAccountName"),
        ),
    ),
    ("notification.toolkit.fluxcd.io", "Receiver"): Kind(
        NAMESPACED,
        "fluxcd/notification-controller/config/crd/bases/notification.toolkit.fluxcd.io_receivers.yaml",
        references=secrets("spec.secretRef"),
        health=_READY,
    ),
    ("source.toolkit.fluxcd.io", "Bucket"): Kind(
        NAMESPACED,
        "fluxcd/source-controller/config/crd/bases/source.toolkit.fluxcd.io_buckets.yaml",
        interpreter="source.toolkit.fluxcd.io/v1beta2/Bucket",
        references=(
            *secrets("spec.secretRef", "spec.certSecretRef", "spec.proxySecretRef", "spec.sts.secretRef", "spec.sts.certSecretRef"),
            *service_accounts("spec.serviceAccountName"),
        ),
        health=_FETCHED,
    ),
    ("source.toolkit.fluxcd.io", "ExternalArtifact"): Kind(
        NAMESPACED, "fluxcd/source-controller/config/crd/bases/source.toolkit.fluxcd.io_externalartifacts.yaml", health=_FETCHED
    ),
    ("source.toolkit.fluxcd.io", "GitRepository"): Kind(
        NAMESPACED,
        "fluxcd/source-controller/config/crd/bases/source.toolkit.fluxcd.io_gitrepositories.yaml",
        interpreter="source.toolkit.fluxcd.io/v1/GitRepository",
        references=(
            *secrets("spec.secretRef", "spec.verify.secretRef", "spec.proxySecretRef"),
            *service_accounts("spec.serviceAccountName"),
            Reference("spec.include[].repository", (_GIT,)),
        ),
        health=_FETCHED,
    ),
    ("source.toolkit.fluxcd.io", "HelmChart"): Kind(
        NAMESPACED,
        "fluxcd/source-controller/config/crd/bases/source.toolkit.fluxcd.io_helmcharts.yaml",
        interpreter="source.toolkit.fluxcd.io/v1beta2/HelmChart",
        references=(
            *secrets("spec.verify.secretRef"),
            Reference("spec.sourceRef", (_HELM_REPOSITORY, _GIT, _BUCKET)),
        ),
        health=condition("Ready", "Succeeded", "ChartPullSucceeded"),
    ),
    ("source.toolkit.fluxcd.io", "HelmRepository"): Kind(
        NAMESPACED,
        "fluxcd/source-controller/config/crd/bases/source.toolkit.fluxcd.io_helmrepositories.yaml",
        interpreter="source.toolkit.fluxcd.io/v1beta2/HelmRepository",
        references=secrets("spec.secretRef", "spec.certSecretRef"),
        health=_FETCHED,
    ),
    ("source.toolkit.fluxcd.io", "OCIRepository"): Kind(
        NAMESPACED,
        "fluxcd/source-controller/config/crd/bases/source.toolkit.fluxcd.io_ocirepositories.yaml",
        interpreter="source.toolkit.fluxcd.io/v1beta2/OCIRepository",
        references=(
            *secrets(
                "spec.secretRef",
                "spec.verify.secretRef",
                "spec.verify.trustedRootSecretRef",
                "spec.certSecretRef",
                "spec.proxySecretRef",
            ),
            *service_accounts("spec.serviceAccountName"),
        ),
        health=_FETCHED,
    ),
}
