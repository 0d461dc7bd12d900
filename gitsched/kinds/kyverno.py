"""Kinds of Kyverno, and the policy reports that it writes."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, Kind, KindTable, Test

# A policy is ready if status.ready says so, and without that field if its condition does.
_READY = (
    (Test("status.ready", values=(True,)),),
    (Test("status.ready", values=(None,)), Test(condition="Ready", reasons=("Succeeded",))),
)

KINDS: KindTable = {
    ("kyverno.io", "CleanupPolicy"): Kind(NAMESPACED, "kyverno/kyverno/config/crds/kyverno/kyverno.io_cleanuppolicies.yaml"),
    ("kyverno.io", "ClusterCleanupPolicy"): Kind(
        CLUSTER, "kyverno/kyverno/config/crds/kyverno/kyverno.io_clustercleanuppolicies.yaml"
    ),
    ("kyverno.io", "ClusterPolicy"): Kind(
        CLUSTER,
        "kyverno/kyverno/config/crds/kyverno/kyverno.io_clusterpolicies.yaml",
        interpreter="kyverno.io/v1/ClusterPolicy",
        health=_READY,
    ),
    ("kyverno.io", "GlobalContextEntry"): Kind(CLUSTER, "kyverno/kyverno/config/crds/kyverno/kyverno.io_globalcontextentries.yaml"),
    ("kyverno.io", "Policy"): Kind(
        NAMESPACED,
        "kyverno/kyverno/config/crds/kyverno/kyverno.io_policies.yaml",
        interpreter="kyverno.io/v1/Policy",
        health=_READY,
    ),
    ("kyverno.io", "PolicyException"): Kind(NAMESPACED, "kyverno/kyverno/config/crds/kyverno/kyverno.io_policyexceptions.yaml"),
    ("kyverno.io", "UpdateRequest"): Kind(NAMESPACED, "kyverno/kyverno/config/crds/kyverno/kyverno.io_updaterequests.yaml"),
    ("policies.kyverno.io", "DeletingPolicy"): Kind(
        CLUSTER, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_deletingpolicies.yaml"
    ),
    ("policies.kyverno.io", "GeneratingPolicy"): Kind(
        CLUSTER, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_generatingpolicies.yaml"
    ),
    ("policies.kyverno.io", "ImageValidatingPolicy"): Kind(
        CLUSTER, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_imagevalidatingpolicies.yaml"
    ),
    ("policies.kyverno.io", "MutatingPolicy"): Kind(
        CLUSTER, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_mutatingpolicies.yaml"
    ),
    ("policies.kyverno.io", "NamespacedDeletingPolicy"): Kind(
        NAMESPACED, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_namespaceddeletingpolicies.yaml"
    ),
    ("policies.kyverno.io", "NamespacedGeneratingPolicy"): Kind(
        NAMESPACED, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_namespacedgeneratingpolicies.yaml"
    ),
    ("policies.kyverno.io", "NamespacedImageValidatingPolicy"): Kind(
        NAMESPACED, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_namespacedimagevalidatingpolicies.yaml"
    ),
    ("policies.kyverno.io", "NamespacedMutatingPolicy"): Kind(
        NAMESPACED, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_namespacedmutatingpolicies.yaml"
    ),
    ("policies.kyverno.io", "NamespacedValidatingPolicy"): Kind(
        NAMESPACED, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_namespacedvalidatingpolicies.yaml"
    ),
    ("policies.kyverno.io", "PolicyException"): Kind(
        NAMESPACED, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_policyexceptions.yaml"
    ),
    ("policies.kyverno.io", "ValidatingPolicy"): Kind(
        CLUSTER, "kyverno/kyverno/config/crds/policies.kyverno.io/policies.kyverno.io_validatingpolicies.yaml"
    ),
    ("reports.kyverno.io", "ClusterEphemeralReport"): Kind(
        CLUSTER, "kyverno/kyverno/config/crds/reports/reports.kyverno.io_clusterephemeralreports.yaml"
    ),
    ("reports.kyverno.io", "EphemeralReport"): Kind(
        NAMESPACED, "kyverno/kyverno/config/crds/reports/reports.kyverno.io_ephemeralreports.yaml"
    ),
    ("wgpolicyk8s.io", "ClusterPolicyReport"): Kind(
        CLUSTER, "kyverno/kyverno/config/crds/policyreport/wgpolicyk8s.io_clusterpolicyreports.yaml"
    ),
    ("wgpolicyk8s.io", "PolicyReport"): Kind(
        NAMESPACED, "kyverno/kyverno/config/crds/policyreport/wgpolicyk8s.io_policyreports.yaml"
    ),
}
