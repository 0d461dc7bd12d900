"""Kinds of cert-manager and trust-manager."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, SECRET, Kind, KindTable, Reference, condition, secrets, service_accounts

_ISSUERS = (("cert-manager.io/v1", "Issuer"), ("cert-manager.io/v1", "ClusterIssuer"))
_READY = condition("Ready")
_ISSUER_SECRETS = ("spec.ca.secretName", "spec.**.*secretRef", "spec.**.*SecretRef")

KINDS: KindTable = {
    ("cert-manager.io", "Certificate"): Kind(
        NAMESPACED,
        "cert-manager/cert-manager/deploy/charts/cert-manager/templates/crd-cert-manager.io_certificates.yaml",
        references=(Reference("spec.issuerRef", _ISSUERS), *secrets("spec.keystores.*.passwordSecretRef")),
        secrets=("spec.secretName",),
        health=_READY,
    ),
    ("cert-manager.io", "CertificateRequest"): Kind(
        NAMESPACED,
        "cert-manager/cert-manager/deploy/charts/cert-manager/templates/crd-cert-manager.io_certificaterequests.yaml",
        references=(Reference("spec.issuerRef", _ISSUERS),),
        health=_READY,
    ),
    ("cert-manager.io", "ClusterIssuer"): Kind(
        CLUSTER,
        "cert-manager/cert-manager/deploy/charts/cert-manager/templates/crd-cert-manager.io_clusterissuers.yaml",
        references=tuple(Reference(path, (SECRET,), "cert-manager") for path in _ISSUER_SECRETS),
        health=_READY,
    ),
    ("cert-manager.io", "Issuer"): Kind(
        NAMESPACED,
        "cert-manager/cert-manager/deploy/charts/cert-manager/templates/crd-cert-manager.io_issuers.yaml",
        references=(*secrets(*_ISSUER_SECRETS), *service_accounts("spec.**.serviceAccountRef")),
        health=_READY,
    ),
    ("acme.cert-manager.io", "Challenge"): Kind(
        NAMESPACED, "cert-manager/cert-manager/deploy/charts/cert-manager/templates/crd-acme.cert-manager.io_challenges.yaml"
    ),
    ("acme.cert-manager.io", "Order"): Kind(
        NAMESPACED, "cert-manager/cert-manager/deploy/charts/cert-manager/templates/crd-acme.cert-manager.io_orders.yaml"
    ),
    ("trust.cert-manager.io", "Bundle"): Kind(
        CLUSTER, "cert-manager/trust-manager/deploy/charts/trust-manager/templates/crd-trust.cert-manager.io_bundles.yaml"
    ),
}
