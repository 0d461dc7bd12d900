"""Documents that kustomizations and charts build and change: they are not placed, and a policy that selects one is a finding."""

from __future__ import annotations

from collections.abc import Iterable

from gitsched.decide.catalog import Catalog, KustomizedDocument, resolve_key
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, locate_document
from gitsched.model.mistakes import KUSTOMIZE_UNBUILT

PART_CODES = frozenset(("kustomized", "chart-template", "reconciled-path", KUSTOMIZE_UNBUILT))
"""Codes of the findings about such documents: that a policy selects one, or that nothing builds it."""


def resolve_parts(kustomized: Iterable[KustomizedDocument], catalog: Catalog) -> list[tuple[Document, KustomizedDocument]]:
    """Return the parts of kustomizations with their identities, without those that are objects elsewhere in the commit."""
    found = []
    for part in kustomized:
        raw = part.document
        key = resolve_key(raw, catalog.kind_scopes) or Key(raw.group, raw.kind, raw.namespace, raw.name)
        if key not in catalog.templates and key not in catalog.duplicate_templates and key not in catalog.broken:
            found.append((Document(key, raw.api_version, raw.body, raw.origin), part))
    return found


def describe_part(part: KustomizedDocument) -> str:
    """Say why a part is not placed as its file has it."""
    if not part.is_reported:
        return part.describe()
    if part.chart:
        return f"it is a template of the Helm chart {part.chart}"
    return (
        "a kustomization builds it and changes it"
        if part.code == "kustomized"
        else "it cannot be built as its delivery tool does it"
    )


def explain_part(part: KustomizedDocument) -> str:
    """Say what changes a part, so that it is not placed, and what to do. The subject of the sentence is the object."""
    if part.chart:
        return (
            f"is a template of the Helm chart {part.chart}, so it is not placed as this file has it: place the chart with a "
            f"Bundle (spec.path: {part.chart}), or move the file out of the chart"
        )
    if part.code != "kustomized":
        return f"is not placed: {part.describe()}"
    return (
        f"is not placed as this file has it, because kustomize changes it: {part.describe()}. Place the "
        "overlay with a Bundle (spec.path), name it in source.kustomize.build to place its objects one by one, or name this path in "
        "source.kustomize.ignore"
    )


def make_part_finding(document: Document, part: KustomizedDocument) -> Finding:
    """Return the error that a policy selects a part of a kustomization or chart, with the cure."""
    code, message = "chart-template" if part.chart else part.code, f"{document.key} {explain_part(part)}"
    return Finding("error", code, message, locate_document(document), document.key.resource)
