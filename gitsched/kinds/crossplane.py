"""Kinds of Crossplane. CompositeResourceDefinitions of the repository give the scope of claims and composite resources."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, SECRET, Kind, KindTable, Reference, Test, condition, secrets

_FUNCTION = ("pkg.crossplane.io/v1", "Function")
_RUNTIME = ("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig")
_PULL_SECRETS = Reference("spec.packagePullSecrets[]", (SECRET,), "crossplane-system")
_INSTALLED = ((Test(condition="Healthy"), Test(condition="Installed")),)

KINDS: KindTable = {
    ("apiextensions.crossplane.io", "CompositeResourceDefinition"): Kind(
        CLUSTER,
        "crossplane/crossplane/cluster/crds/apiextensions.crossplane.io_compositeresourcedefinitions.yaml",
        references=(Reference("spec.defaultCompositionRef", (("apiextensions.crossplane.io/v1", "Composition"),)),),
        health=condition("Established"),
    ),
    ("apiextensions.crossplane.io", "Composition"): Kind(
        CLUSTER,
        "crossplane/crossplane/cluster/crds/apiextensions.crossplane.io_compositions.yaml",
        references=(Reference("spec.pipeline[].functionRef", (_FUNCTION,)), *secrets("spec.pipeline[].credentials[].secretRef")),
    ),
    ("apiextensions.crossplane.io", "CompositionRevision"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/apiextensions.crossplane.io_compositionrevisions.yaml"
    ),
    ("apiextensions.crossplane.io", "EnvironmentConfig"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/apiextensions.crossplane.io_environmentconfigs.yaml"
    ),
    ("apiextensions.crossplane.io", "ManagedResourceActivationPolicy"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/apiextensions.crossplane.io_managedresourceactivationpolicies.yaml"
    ),
    ("apiextensions.crossplane.io", "ManagedResourceDefinition"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/apiextensions.crossplane.io_managedresourcedefinitions.yaml"
    ),
    ("apiextensions.crossplane.io", "Usage"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/apiextensions.crossplane.io_usages.yaml"
    ),
    ("pkg.crossplane.io", "Configuration"): Kind(
        CLUSTER,
        "crossplane/crossplane/cluster/crds/pkg.crossplane.io_configurations.yaml",
        references=(_PULL_SECRETS,),
        health=_INSTALLED,
    ),
    ("pkg.crossplane.io", "ConfigurationRevision"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/pkg.crossplane.io_configurationrevisions.yaml"
    ),
    ("pkg.crossplane.io", "DeploymentRuntimeConfig"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/pkg.crossplane.io_deploymentruntimeconfigs.yaml"
    ),
    ("pkg.crossplane.io", "Function"): Kind(
        CLUSTER,
        "crossplane/crossplane/cluster/crds/pkg.crossplane.io_functions.yaml",
        references=(Reference("spec.runtimeConfigRef", (_RUNTIME,)), _PULL_SECRETS),
        health=_INSTALLED,
    ),
    ("pkg.crossplane.io", "FunctionRevision"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/pkg.crossplane.io_functionrevisions.yaml"
    ),
    ("pkg.crossplane.io", "ImageConfig"): Kind(CLUSTER, "crossplane/crossplane/cluster/crds/pkg.crossplane.io_imageconfigs.yaml"),
    ("pkg.crossplane.io", "Lock"): Kind(CLUSTER, "crossplane/crossplane/cluster/crds/pkg.crossplane.io_locks.yaml"),
    ("pkg.crossplane.io", "Provider"): Kind(
        CLUSTER,
        "crossplane/crossplane/cluster/crds/pkg.crossplane.io_providers.yaml",
        references=(Reference("spec.runtimeConfigRef", (_RUNTIME,)), _PULL_SECRETS),
        health=_INSTALLED,
    ),
    ("pkg.crossplane.io", "ProviderRevision"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/pkg.crossplane.io_providerrevisions.yaml"
    ),
    ("ops.crossplane.io", "CronOperation"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/ops.crossplane.io_cronoperations.yaml"
    ),
    ("ops.crossplane.io", "Operation"): Kind(CLUSTER, "crossplane/crossplane/cluster/crds/ops.crossplane.io_operations.yaml"),
    ("ops.crossplane.io", "WatchOperation"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/ops.crossplane.io_watchoperations.yaml"
    ),
    ("protection.crossplane.io", "ClusterUsage"): Kind(
        CLUSTER, "crossplane/crossplane/cluster/crds/protection.crossplane.io_clusterusages.yaml"
    ),
    ("protection.crossplane.io", "Usage"): Kind(
        NAMESPACED, "crossplane/crossplane/cluster/crds/protection.crossplane.io_usages.yaml"
    ),
}
