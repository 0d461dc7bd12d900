"""The source commit that a delivery tool builds each bundle from: the first one that had what the build reads."""

from __future__ import annotations

from gitsched.apis.gitsched.bundle import parse_bundle
from gitsched.decide.plan import SourceTree
from gitsched.git import Repository
from gitsched.model.document import Key
from gitsched.model.variants import BUNDLE, BUNDLE_GROUP, WorkloadVariants
from gitsched.reconcile.run import Fetched

NO_COMMIT = "0" * 40
"""The commit of the files of a worktree, which have none yet; such a plan is never published."""


def add_source_commits(source: SourceTree, fetched: Fetched, repository: Repository) -> SourceTree:
    """Return the source with the commit of each variant that a delivery tool builds, and the record of these commits.

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
    record, head = fetched.record, fetched.source.oid
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
    return source._replace(variants=variants, builds=source.builds._replace(commits=dict(sorted(commits.items()))))
