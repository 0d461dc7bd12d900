"""The source commit that a delivery tool builds each bundle from: the first one that had what the build reads."""

from __future__ import annotations

from gitsched.apis.gitsched.bundle import parse_bundle
from gitsched.apis.gitsched.config import FILE
from gitsched.decide.plan import SourceTree
from gitsched.model.document import Key
from gitsched.model.finding import Finding
from gitsched.model.urls import strip_credentials
from gitsched.model.variants import BUNDLE, BUNDLE_GROUP, WorkloadVariants
from gitsched.reconcile.run import Fetched, RunContext

NO_COMMIT = "0" * 40
"""The commit of the files of a worktree, which have none yet; such a plan is never published."""


def add_source_commits(source: SourceTree, fetched: Fetched, context: RunContext) -> SourceTree:
    """Return the source with the commit of each variant that a delivery tool builds, the record of these commits, and the URL that delivery
    tools fetch it from.

    A commit stays as long as its digest does: the last run recorded both. It does not stay if it is no longer in the history of the
    source, because nothing can fetch it then. In a shallow clone that is not known, and the commit stays.
    """
    built = {
        Key(BUNDLE_GROUP, BUNDLE, document.namespace or "default", document.name)
        for document in source.documents
        if (document.group, document.kind) == (BUNDLE_GROUP, BUNDLE) and parse_bundle(document.body).delivery != "manifests"
    }
    if not built:
        return source
    record, head, repository = fetched.record, fetched.source.oid, context.source.repository
    heads = (head, *fetched.source.parents)  # both sides of a merge that is only planned
    known = {
        digest: commit
        for digest, commit in (record.builds.commits if record is not None else {}).items()
        if not head or repository.is_shallow or any(repository.has_ancestor(oid, commit) for oid in heads)
    }
    commits: dict[str, str] = {}

    def add_commits(entry: WorkloadVariants) -> WorkloadVariants:
        found = [variant._replace(commit=known.get(variant.digest) or head or NO_COMMIT) for variant in entry.variants]
        commits.update((variant.digest, variant.commit) for variant in found)
        return entry._replace(variants=tuple(found))

    variants = {key: add_commits(entry) if key in built else entry for key, entry in source.variants.items()}
    source = source._replace(variants=variants, builds=source.builds._replace(commits=dict(sorted(commits.items()))))
    return _add_url(source, context)


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
