"""The table of kinds: which data module has a kind, and the scope of each kind.

A data module is imported when the first object of one of its API groups is looked up.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from gitsched.kinds.kind import CLUSTER, Kind, KindTable
from gitsched.kinds.operator_scopes import is_namespaced as is_operator_namespaced
from gitsched.model.document import is_namespaced as is_builtin_namespaced

_MODULES = {
    "argo": ("argoproj.io",),
    "cert_manager": ("cert-manager.io", "acme.cert-manager.io", "trust.cert-manager.io"),
    "crossplane": ("apiextensions.crossplane.io", "pkg.crossplane.io", "ops.crossplane.io", "protection.crossplane.io"),
    "external_secrets": ("external-secrets.io", "generators.external-secrets.io"),
    "flink": ("flink.apache.org",),
    "flux": (
        "helm.toolkit.fluxcd.io",
        "image.toolkit.fluxcd.io",
        "kustomize.toolkit.fluxcd.io",
        "notification.toolkit.fluxcd.io",
        "source.toolkit.fluxcd.io",
    ),
    "gateway_api": ("gateway.networking.k8s.io", "gateway.networking.x-k8s.io"),
    "istio": ("extensions.istio.io", "install.istio.io", "networking.istio.io", "security.istio.io", "telemetry.istio.io"),
    "keda": ("keda.sh", "eventing.keda.sh"),
    "knative": (
        "autoscaling.internal.knative.dev",
        "eventing.knative.dev",
        "flows.knative.dev",
        "messaging.knative.dev",
        "serving.knative.dev",
        "sinks.knative.dev",
    ),
    "kruise": ("apps.kruise.io", "policy.kruise.io"),
    "kubeflow": ("kubeflow.org", "trainer.kubeflow.org"),
    "kyverno": ("kyverno.io", "policies.kyverno.io", "reports.kyverno.io", "wgpolicyk8s.io"),
    "openshift": ("config.openshift.io", "machineconfiguration.openshift.io", "security.openshift.io"),
    "prometheus_operator": ("monitoring.coreos.com",),
    "ray": ("ray.io",),
    "sealed_secrets": ("bitnami.com",),
    "spark": ("sparkoperator.k8s.io",),
    "volcano": (
        "batch.volcano.sh",
        "bus.volcano.sh",
        "config.volcano.sh",
        "flow.volcano.sh",
        "nodeinfo.volcano.sh",
        "scheduling.volcano.sh",
        "shard.volcano.sh",
        "topology.volcano.sh",
    ),
    "volume_snapshots": ("groupsnapshot.storage.k8s.io", "snapshot.storage.k8s.io"),
}
_MODULE_OF_GROUP = {group: module for module, groups in _MODULES.items() for group in groups}


def find_kind(group: str, kind: str) -> Kind | None:
    """Return the row of a kind; None for a kind that the table does not have."""
    module = _MODULE_OF_GROUP.get(group)
    return _load(module).get((group, kind)) if module is not None else None


def is_namespaced(group: str, kind: str) -> bool | None:
    """Return whether a kind of Kubernetes, of a policy API, of the table or of an operator is namespaced; None for any other kind."""
    namespaced = is_builtin_namespaced(group, kind)
    if namespaced is not None:
        return namespaced
    row = find_kind(group, kind)
    return row.scope != CLUSTER if row is not None else is_operator_namespaced(group, kind)


def load_table() -> dict[tuple[str, str], Kind]:
    """Return all rows, sorted by group and kind."""
    return dict(sorted(row for module in _MODULES for row in _load(module).items()))


@cache
def _load(module: str) -> KindTable:
    kinds: KindTable = import_module(f"gitsched.kinds.{module}").KINDS
    return kinds
