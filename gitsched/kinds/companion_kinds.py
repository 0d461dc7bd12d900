"""Kinds of companions: objects that are useful only where their targets are, such as a Service and the pods that it selects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.kinds.kind import ObjectKind

FOLLOW_ANNOTATION: Final = "gitsched.io/follow-targets"
"""Annotation of a policy or a companion: `true` delivers companions to the clusters of their targets. On a companion, `false` says that it
is where it should be."""


class CompanionKind(NamedTuple):
    """Where a kind has its targets.

    `pods` and `services` are the paths of selectors of pods or Services, `namespaces` that of a selector of namespaces (matchNames, any)
    for these. `backends` are fields that name a Service, `hosts` those with host names of Services, `any_kind` is one that names
    any kind. `plain` selectors are labels instead of a LabelSelector. A `vital` companion is one without which its targets
    do not work as intended: a cluster with a target and without the companion is a warning.
    """

    pods: str = ""
    services: str = ""
    namespaces: str = ""
    backends: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    any_kind: str = ""
    default_kind: ObjectKind = ("", "")
    plain: bool = False
    vital: bool = True


_DEPLOYMENT: ObjectKind = ("apps/v1", "Deployment")
_ROUTE = CompanionKind(backends=("spec.rules[].backendRefs[]",), vital=False)
_INGRESS = CompanionKind(
    backends=(
        "spec.defaultBackend.service",
        "spec.rules[].http.paths[].backend.service",
        "spec.backend.serviceName",
        "spec.rules[].http.paths[].backend.serviceName",
    ),
    vital=False,
)
_TRAEFIK_ROUTE = CompanionKind(backends=("spec.routes[].services[]",), vital=False)
_ISTIO_SECURITY = CompanionKind(pods="spec.selector")

COMPANION_KINDS: Mapping[tuple[str, str], CompanionKind] = {
    ("", "Service"): CompanionKind(pods="spec.selector", plain=True),
    ("autoscaling", "HorizontalPodAutoscaler"): CompanionKind(any_kind="spec.scaleTargetRef", default_kind=("apps/v1", "")),
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): CompanionKind(any_kind="spec.targetRef", default_kind=("apps/v1", "")),
    ("extensions", "Ingress"): _INGRESS,
    ("gateway.networking.k8s.io", "GRPCRoute"): _ROUTE,
    ("gateway.networking.k8s.io", "HTTPRoute"): _ROUTE,
    ("gateway.networking.k8s.io", "TCPRoute"): _ROUTE,
    ("gateway.networking.k8s.io", "TLSRoute"): _ROUTE,
    ("gateway.networking.k8s.io", "UDPRoute"): _ROUTE,
    ("keda.sh", "ScaledObject"): CompanionKind(any_kind="spec.scaleTargetRef", default_kind=_DEPLOYMENT),
    ("monitoring.coreos.com", "PodMonitor"): CompanionKind(pods="spec.selector", namespaces="spec.namespaceSelector", vital=False),
    ("monitoring.coreos.com", "ServiceMonitor"): CompanionKind(
        services="spec.selector", namespaces="spec.namespaceSelector", vital=False
    ),
    ("networking.istio.io", "DestinationRule"): CompanionKind(hosts=("spec.host",), vital=False),
    ("networking.istio.io", "VirtualService"): CompanionKind(
        hosts=tuple(f"spec.{protocol}[].route[].destination.host" for protocol in ("http", "tls", "tcp")), vital=False
    ),
    ("networking.k8s.io", "Ingress"): _INGRESS,
    ("networking.k8s.io", "NetworkPolicy"): CompanionKind(pods="spec.podSelector"),
    ("policy", "PodDisruptionBudget"): CompanionKind(pods="spec.selector"),
    ("projectcontour.io", "HTTPProxy"): _TRAEFIK_ROUTE,
    ("route.openshift.io", "Route"): CompanionKind(backends=("spec.to", "spec.alternateBackends[]"), vital=False),
    ("security.istio.io", "AuthorizationPolicy"): _ISTIO_SECURITY,
    ("security.istio.io", "PeerAuthentication"): _ISTIO_SECURITY,
    ("security.istio.io", "RequestAuthentication"): _ISTIO_SECURITY,
    ("traefik.containo.us", "IngressRoute"): _TRAEFIK_ROUTE,
    ("traefik.io", "IngressRoute"): _TRAEFIK_ROUTE,
}
"""The kinds of companions by group and kind."""

SHARED_SERVICE_KINDS: Final = frozenset(
    {
        ("multicluster.x-k8s.io", "ServiceExport"),
        ("multicluster.x-k8s.io", "ServiceImport"),
        ("net.gke.io", "ServiceExport"),
        ("net.gke.io", "ServiceImport"),
        ("networking.karmada.io", "MultiClusterService"),
    }
)
"""Objects with the name of a Service that is reached from other clusters: it may be where no pod of it is."""
SHARED_SERVICE_ANNOTATIONS: Final = (
    "io.cilium/global-service",
    "mirror.linkerd.io/exported",
    "service.cilium.io/global",
    "skupper.io/proxy",
)
"""Annotations and labels of such Services."""
