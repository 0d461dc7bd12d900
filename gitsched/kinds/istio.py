"""Kinds of Istio."""

from __future__ import annotations

from gitsched.kinds.kind import NAMESPACED, Kind, KindTable, Reference, secrets

KINDS: KindTable = {
    ("extensions.istio.io", "TrafficExtension"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("extensions.istio.io", "WasmPlugin"): Kind(
        NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml", references=secrets("spec.imagePullSecret")
    ),
    ("install.istio.io", "IstioOperator"): Kind(NAMESPACED, "istio/istio/manifests/charts/istio-operator/crds/crd-operator.yaml"),
    ("networking.istio.io", "DestinationRule"): Kind(
        NAMESPACED,
        "istio/istio/manifests/charts/base/files/crd-all.gen.yaml",
        references=secrets("spec.trafficPolicy.tls.credentialName", "spec.trafficPolicy.portLevelSettings[].tls.credentialName"),
    ),
    ("networking.istio.io", "EnvoyFilter"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("networking.istio.io", "Gateway"): Kind(
        NAMESPACED,
        "istio/istio/manifests/charts/base/files/crd-all.gen.yaml",
        references=secrets("spec.servers[].tls.credentialName"),
    ),
    ("networking.istio.io", "ProxyConfig"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("networking.istio.io", "ServiceEntry"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("networking.istio.io", "Sidecar"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("networking.istio.io", "VirtualService"): Kind(
        NAMESPACED,
        "istio/istio/manifests/charts/base/files/crd-all.gen.yaml",
        references=(Reference("spec.gateways[]", (("networking.istio.io/v1", "Gateway"),), ignored=("mesh",)),),
    ),
    ("networking.istio.io", "WorkloadEntry"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("networking.istio.io", "WorkloadGroup"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("security.istio.io", "AuthorizationPolicy"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("security.istio.io", "PeerAuthentication"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("security.istio.io", "RequestAuthentication"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
    ("telemetry.istio.io", "Telemetry"): Kind(NAMESPACED, "istio/istio/manifests/charts/base/files/crd-all.gen.yaml"),
}
