"""The table of variants that `explain` shows for a workload."""

from __future__ import annotations

from collections import Counter

from gitsched.model.document import Document
from gitsched.model.explanation import Explanation, ExplanationTable
from gitsched.model.finding import format_names
from gitsched.model.scheduling import Outcome
from gitsched.model.variants import BUNDLE_KIND, WorkloadVariants

MAX_NAMED = 10
"""Clusters that one row names."""


def add_variants(found: Explanation, document: Document, variants: WorkloadVariants, outcome: Outcome | None) -> Explanation:
    """Return an explanation with the variants, and without clusters in its result that get nothing because they have no variant. Shares of
    the division that differ from what clusters get are left out: a variant that goes to a cluster as a whole counts as one replica."""
    if outcome is not None:
        placed = {target.cluster: target.replicas for target in outcome.targets}
        findings = (*found.findings, *(finding for finding in outcome.findings if finding not in found.findings))
        result = tuple(share for share in found.result if share.cluster in placed)
        division = tuple(share for share in found.division if placed.get(share.cluster, share.replicas) == share.replicas)
        found = found._replace(result=result, findings=findings, division=division)
    return found._replace(tables=(*found.tables, make_variant_table(document, variants, outcome)))


def make_variant_table(document: Document, variants: WorkloadVariants, outcome: Outcome | None) -> ExplanationTable:
    """Return a row for each variant: its directory, the clusters that get it if they are chosen, and those that have it. Variants of one
    directory differ in how it is built."""
    placed = {target.cluster for target in outcome.targets} if outcome is not None else set()
    rows = []
    paths = Counter(variant.path for variant in variants.variants)
    for index, variant in enumerate(variants.variants):
        clusters = sorted(name for name, found in variants.by_cluster.items() if found == index)
        values = ", ".join(f"{name}={value}" for name, value in variant.values)
        content = (
            f"{len(variant.objects)} object{'' if len(variant.objects) == 1 else 's'}"
            if document.key[:2] == BUNDLE_KIND
            else _locate(variant.objects[0])
        )
        rows.append(
            (
                f"{variant.path} ({variant.details})" if variant.details and paths[variant.path] > 1 else variant.path,
                content,
                values or "-",
                _list_names(clusters),
                _list_names([name for name in clusters if name in placed]),
            )
        )
    by_reason: dict[str, list[str]] = {}
    for name, reason in sorted(variants.failed.items()):
        by_reason.setdefault(reason, []).append(name)
    rows += [
        (reason, "-", "-", _list_names(names), _list_names([name for name in names if name in placed]))
        for reason, names in by_reason.items()
    ]
    return ExplanationTable("Variants", ("variant", "content", "values", "for clusters", "placed on"), tuple(rows))


def _locate(document: Document) -> str:
    return f"{document.origin.path}:{document.origin.line}" if document.origin is not None else str(document.key)


def _list_names(names: list[str]) -> str:
    return format_names(names, MAX_NAMED) or "-"
