"""API groups of the documents that say what Flux, Argo CD and other tools build from a repository, and apply."""

from __future__ import annotations

from typing import Final

KUSTOMIZE_GROUP: Final = "kustomize.toolkit.fluxcd.io"
RELEASE_GROUP: Final = "helm.toolkit.fluxcd.io"
SOURCE_GROUP: Final = "source.toolkit.fluxcd.io"
ARTIFACT_GROUP: Final = "source.extensions.fluxcd.io"
ARGO_GROUP: Final = "argoproj.io"
INSTANCE_GROUP: Final = "fluxcd.controlplane.io"
TOOL_GROUPS: Final = (KUSTOMIZE_GROUP, SOURCE_GROUP, ARTIFACT_GROUP, ARGO_GROUP, INSTANCE_GROUP)
PATH_KINDS: Final = frozenset(
    (
        (KUSTOMIZE_GROUP, "Kustomization"),
        (ARGO_GROUP, "Application"),
        (ARGO_GROUP, "ApplicationSet"),
        (INSTANCE_GROUP, "FluxInstance"),
    )
)
"""Kinds whose objects name directories to build."""
OTHER_DELIVERY_GROUPS: Final = frozenset(
    (
        "addons.cluster.x-k8s.io",  # ClusterResourceSet and HelmChartProxy of Cluster API
        "app.k8s.io",
        "apps.clusternet.io",
        "apps.open-cluster-management.io",
        "config.projectsveltos.io",
        "core.oam.dev",
        "fleet.cattle.io",
        "helm.cattle.io",  # HelmChart of k3s
        "helm.crossplane.io",
        "helm.m.crossplane.io",
        "hive.openshift.io",  # SyncSet
        "kappctrl.k14s.io",
        "kro.run",
        "kubernetes.crossplane.io",
        "kubernetes.m.crossplane.io",
        "operators.coreos.com",  # Subscription of OLM
        "packaging.carvel.dev",
        "policy.open-cluster-management.io",
        "template.openshift.io",
    )
)
"""Groups of other operators that apply what their objects contain or name, with rights of their own."""
