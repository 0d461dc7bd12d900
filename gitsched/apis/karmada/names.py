"""API groups, kinds, labels and annotations of Karmada, and the names that Karmada derives from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gitsched.model.fnv import fnv1a_32

if TYPE_CHECKING:
    from gitsched.model.document import Key

API_NAME = "karmada"
"""The name of the API in outcomes and settings."""
CLUSTER_GROUP = "cluster.karmada.io"
POLICY_GROUP = "policy.karmada.io"
WORK_GROUP = "work.karmada.io"
APPS_GROUP = "apps.karmada.io"
CONFIG_GROUP = "config.karmada.io"
REMEDY_GROUP = "remedy.karmada.io"
GROUPS = frozenset(
    {
        *(CLUSTER_GROUP, POLICY_GROUP, WORK_GROUP, APPS_GROUP, CONFIG_GROUP, REMEDY_GROUP),
        *("autoscaling.karmada.io", "networking.karmada.io", "search.karmada.io"),
    }
)
"""The groups of Karmada's control plane, whose objects its policies cannot select."""

CLUSTER, POLICY, CLUSTER_POLICY = "Cluster", "PropagationPolicy", "ClusterPropagationPolicy"
OVERRIDE, CLUSTER_OVERRIDE = "OverridePolicy", "ClusterOverridePolicy"
TAINT_POLICY = "ClusterTaintPolicy"
BINDING, CLUSTER_BINDING = "ResourceBinding", "ClusterResourceBinding"
POLICY_KINDS = ((POLICY_GROUP, POLICY), (POLICY_GROUP, CLUSTER_POLICY))
RECORD_KINDS = ((WORK_GROUP, BINDING), (WORK_GROUP, CLUSTER_BINDING))
"""What records of the previous output have to be for the engine to keep their workloads."""
REBALANCER = "WorkloadRebalancer"
QUOTA = "FederatedResourceQuota"
CUSTOMIZATION, INTERPRETER_WEBHOOK = "ResourceInterpreterCustomization", "ResourceInterpreterWebhookConfiguration"
INTERPRETER_KINDS = ((CONFIG_GROUP, CUSTOMIZATION), (CONFIG_GROUP, INTERPRETER_WEBHOOK))
WORK_VERSION = f"{WORK_GROUP}/v1alpha2"
APPS_VERSION = f"{APPS_GROUP}/v1alpha1"

APPLIED_PLACEMENT_ANNOTATION = "policy.karmada.io/applied-placement"
ONLY_UNAVAILABLE = "gitsched.io/only-unavailable"
"""On a WorkloadRebalancer: "true" keeps the replicas that clusters report as available."""
DEFAULT_SCHEDULER = "default-scheduler"
SPREAD_FIELD = "karmada-spread-field"
"""The code of a warning about spreading by zone or provider, which has an effect with karmada.spread: strict."""
TAINT_POLICY_NO_EXECUTE = "karmada-taint-policy-no-execute"
"""The code of an error that gitsched.yaml can turn off, like the flag of Karmada's webhook."""
DEPENDENCIES_ANNOTATION = "resourcebinding.karmada.io/dependencies"
"""On the binding of a workload with propagateDeps: its dependencies, as JSON."""
_SAFE_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' alphabet for generated names, without vowels."""
MAX_DEADLINES: Final = 64
"""Missed deadlines of a workload that one run processes; the next run processes those after them."""


def depended_by_label(binding: Key) -> str:
    """Return the label by which an attached binding names the binding of a dependent: a hash of its namespace and name."""
    digits = str(fnv1a_32(f"{binding.namespace}/{binding.name}" if binding.namespace else binding.name))
    return "resourcebinding.karmada.io/depended-by-" + "".join(
        _SAFE_CHARACTERS[ord(digit) % len(_SAFE_CHARACTERS)] for digit in digits
    )
