"""API groups of the documents that say what Flux and Argo CD build from a repository."""

from __future__ import annotations

from typing import Final

KUSTOMIZE_GROUP: Final = "kustomize.toolkit.fluxcd.io"
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
