"""Kinds of Gateway API."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, CONFIG_MAP, NAMESPACED, SECRET, SERVICE, Kind, KindTable, Reference, condition, secrets

_GATEWAY = ("gateway.networking.k8s.io/v1", "Gateway")
_GATEWAY_CLASS = ("gateway.networking.k8s.io/v1", "GatewayClass")
_LISTENER_SET = ("gateway.networking.k8s.io/v1", "ListenerSet")
_PARENTS = (_GATEWAY, _LISTENER_SET, SERVICE)
_ROUTE = (Reference("spec.parentRefs[]", _PARENTS), Reference("spec.rules[].backendRefs[]", (SERVICE,)))
_ROUTE_WITH_FILTERS = (*_ROUTE, Reference("spec.rules[].filters[].requestMirror.backendRef", (SERVICE,)))

KINDS: KindTable = {
    ("gateway.networking.k8s.io", "BackendTLSPolicy"): Kind(
        NAMESPACED,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_backendtlspolicies.yaml",
        references=(
            Reference("spec.targetRefs[]", (SERVICE,)),
            Reference("spec.validation.caCertificateRefs[]", (CONFIG_MAP, SECRET)),
        ),
    ),
    ("gateway.networking.k8s.io", "GRPCRoute"): Kind(
        NAMESPACED,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_grpcroutes.yaml",
        references=_ROUTE_WITH_FILTERS,
    ),
    ("gateway.networking.k8s.io", "Gateway"): Kind(
        NAMESPACED,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_gateways.yaml",
        references=(
            Reference("spec.gatewayClassName", (_GATEWAY_CLASS,)),
            Reference("spec.infrastructure.parametersRef", (CONFIG_MAP,), kind_required=True),
            *secrets("spec.listeners[].tls.certificateRefs[]", "spec.tls.backend.clientCertificateRef"),
            Reference("spec.tls.frontend.**.caCertificateRefs[]", (CONFIG_MAP, SECRET)),
        ),
        health=condition("Programmed"),
    ),
    ("gateway.networking.k8s.io", "GatewayClass"): Kind(
        CLUSTER,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_gatewayclasses.yaml",
        references=(Reference("spec.parametersRef", (CONFIG_MAP,), kind_required=True),),
        health=condition("Accepted"),
    ),
    ("gateway.networking.k8s.io", "HTTPRoute"): Kind(
        NAMESPACED,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_httproutes.yaml",
        references=_ROUTE_WITH_FILTERS,
    ),
    ("gateway.networking.k8s.io", "ListenerSet"): Kind(
        NAMESPACED,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_listenersets.yaml",
        references=(Reference("spec.parentRef", (_GATEWAY,)), *secrets("spec.listeners[].tls.certificateRefs[]")),
    ),
    ("gateway.networking.k8s.io", "ReferenceGrant"): Kind(
        NAMESPACED, "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_referencegrants.yaml"
    ),
    ("gateway.networking.k8s.io", "TCPRoute"): Kind(
        NAMESPACED,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_tcproutes.yaml",
        references=_ROUTE,
    ),
    ("gateway.networking.k8s.io", "TLSRoute"): Kind(
        NAMESPACED,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_tlsroutes.yaml",
        references=_ROUTE,
    ),
    ("gateway.networking.k8s.io", "UDPRoute"): Kind(
        NAMESPACED,
        "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.k8s.io_udproutes.yaml",
        references=_ROUTE,
    ),
    ("gateway.networking.x-k8s.io", "XBackend"): Kind(
        NAMESPACED, "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.x-k8s.io_xbackends.yaml"
    ),
    ("gateway.networking.x-k8s.io", "XBackendTrafficPolicy"): Kind(
        NAMESPACED, "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.x-k8s.io_xbackendtrafficpolicies.yaml"
    ),
    ("gateway.networking.x-k8s.io", "XListenerSet"): Kind(
        NAMESPACED, "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.x-k8s.io_xlistenersets.yaml"
    ),
    ("gateway.networking.x-k8s.io", "XMesh"): Kind(
        CLUSTER, "kubernetes-sigs/gateway-api/config/crd/experimental/gateway.networking.x-k8s.io_xmeshes.yaml"
    ),
}
