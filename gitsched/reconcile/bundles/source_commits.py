"""The source commit that each variant of a Bundle comes from, and the URL from which delivery tools fetch it."""

from __future__ import annotations

from collections.abc import Mapping

from gitsched.apis.gitsched.bundle import parse_bundle
from gitsched.apis.gitsched.config import FILE
from gitsched.decide.cluster_metadata import read_cluster_metadata
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.variants.variant_outcomes import read_commits
from gitsched.model.commit import NO_COMMIT
from gitsched.model.document import Body, Key
from gitsched.model.finding import Finding
from gitsched.model.urls import strip_credentials
from gitsched.model.variants import ARGOCD_DESTINATION, BUNDLE_KIND, MANIFESTS, TemplateVariants, WorkloadVariants
from gitsched.reconcile.bundles.bundle_parts import list_bundles
from gitsched.reconcile.run import Fetched, RunContext


def add_source_commits(source: SourceTree, fetched: Fetched, records: Mapping[Key, Body], context: RunContext) -> SourceTree:
    """Return the source with the commit of each variant of a Bundle, and with what else delivery tools need to build it.

    The commit is the one in the record of the Bundle (`records`: previous output) as long as the digest is: it changes only with what the
    build reads. A commit that is no longer in the history of the source is replaced, because nothing can fetch it. In a shallow clone that
    is not known, and the commit stays.
    """
    head, repository = fetched.source.oid, context.source.repository
    heads = (head, *fetched.source.parents)  # both sides of a merge that is only planned
    reachable: dict[str, bool] = {}

    def is_reachable(commit: str) -> bool:
        if commit not in reachable:
            ancestor = not head or repository.is_shallow or any(repository.has_ancestor(oid, commit) for oid in heads)
            reachable[commit] = ancestor
        return reachable[commit]

    def add_commits(key: Key, entry: WorkloadVariants) -> WorkloadVariants:
        known = {**fetched.source_commits, **read_commits(records.get(key))}
        commits = [known.get((variant.path, variant.digest), "") for variant in entry.variants]
        return entry._replace(
            variants=tuple(
                variant._replace(commit=commit if commit and is_reachable(commit) else head or NO_COMMIT)
                for variant, commit in zip(entry.variants, commits, strict=True)
            )
        )

    variants = {key: add_commits(key, entry) if key[:2] == BUNDLE_KIND else entry for key, entry in source.variants.items()}
    source = source._replace(variants=variants)
    if all(parse_bundle(raw.body).delivery == MANIFESTS for raw in list_bundles(source.documents)):
        return source
    return _add_url(_add_destinations(source), context)


def list_source_commits(variants: TemplateVariants) -> dict[tuple[str, str], str]:
    """Return the commits of all variants of Bundles by path and digest."""
    entries = (entry for key, entry in variants.items() if key[:2] == BUNDLE_KIND)
    return {(variant.path, variant.digest): variant.commit for entry in entries for variant in entry.variants}


def _add_destinations(source: SourceTree) -> SourceTree:
    """Return the source with the name or URL that clusters have in Argo CD by their annotations."""
    annotated = {
        cluster.name: cluster.annotations.get(ARGOCD_DESTINATION, "") for cluster in read_cluster_metadata(source.documents)
    }
    destinations = {name: destination for name, destination in annotated.items() if destination}
    variants = {key: entry._replace(destinations=destinations) for key, entry in source.variants.items()}
    return source._replace(variants=variants) if destinations else source


def _add_url(source: SourceTree, context: RunContext) -> SourceTree:
    """Return the source with the URL of its remote in the settings, unless they have one. Clones may have different URLs, so a finding says
    which one is used."""
    delivery = source.config.delivery
    url = delivery.source.url or strip_credentials(context.source.url or context.source.repository.read_config("remote.origin.url"))
    if delivery.source.url or not url:
        return source
    settings = delivery._replace(source=delivery.source._replace(url=url))
    message = (
        f"delivery.source.url is not set: Flux and Argo CD get {url}, the URL of the remote; set it in {FILE}, because other clones may "
        "have another URL"
    )
    return source._replace(
        config=source.config._replace(delivery=settings),
        other_findings=(*source.other_findings, Finding("info", "delivery-source-url", message)),
    )
