"""Kinds of Sealed Secrets."""

from __future__ import annotations

from gitsched.kinds.kind import NAMESPACED, Kind, KindTable, condition

KINDS: KindTable = {
    ("bitnami.com", "SealedSecret"): Kind(
        NAMESPACED,
        "bitnami-labs/sealed-secrets/helm/sealed-secrets/crds/bitnami.com_sealedsecrets.yaml",
        secrets=("metadata.name",),
        health=condition("Synced"),
        sealed=True,
    ),
}
