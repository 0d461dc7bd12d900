"""Variants of clusters that a simulation adds: those of a cluster that the same rules select."""

from __future__ import annotations

from collections.abc import Sequence

from gitsched.apis.gitsched.bundle import ClusterMetadata, ClusterRule, parse_bundle
from gitsched.apis.gitsched.config import Config
from gitsched.decide.catalog import Catalog
from gitsched.decide.cluster_metadata import list_cluster_metadata
from gitsched.decide.variants.lazy_variants import LazyVariants
from gitsched.model.document import Document
from gitsched.model.variants import BUNDLE_KIND, TemplateVariants, WorkloadVariants


def add_variants(variants: TemplateVariants, catalog: Catalog, config: Config) -> TemplateVariants:
    """Return variants that also have the clusters of a changed catalog. A variant that no cluster had before is not built, so a cluster
    that would get it has none."""
    if not variants:
        return variants
    if isinstance(variants, LazyVariants):
        return variants.adapt(lambda built: add_variants(built, catalog, config))
    clusters = list_cluster_metadata(document for documents in catalog.api_documents.values() for document in documents)
    known = {name for entry in variants.values() for name in (*entry.by_cluster, *entry.failed)}
    if all(cluster.name in known for cluster in clusters):
        return variants
    templates = {key: catalog.templates.get(key) for key in variants}
    return {key: _add_clusters(entry, _list_rules(templates[key], config), clusters) for key, entry in variants.items()}


def _list_rules(template: Document | None, config: Config) -> list[ClusterRule]:
    if template is not None and template.key[:2] == BUNDLE_KIND:
        return [rule.clusters for rule in parse_bundle(template.body).variants]
    return [rule.clusters for rule in config.source.variants]


def _add_clusters(entry: WorkloadVariants, rules: Sequence[ClusterRule], clusters: Sequence[ClusterMetadata]) -> WorkloadVariants:
    selected = {cluster.name: tuple(rule.matches(cluster) for rule in rules) for cluster in clusters}
    by_rules = {selected[name]: index for name, index in entry.by_cluster.items() if name in selected}
    added = {
        name: by_rules[matches]
        for name, matches in selected.items()
        if name not in entry.by_cluster and name not in entry.failed and matches in by_rules
    }
    return entry._replace(by_cluster={**entry.by_cluster, **added})
