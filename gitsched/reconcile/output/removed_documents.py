"""Find the commit of the source that removed a document, such as that of a policy or a cluster."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from gitsched.decide.cluster_conditions import index_cluster_kinds
from gitsched.model.explanation import CLAIM_OF, POLICY_DELETED
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.output.history_taints import ComparedTrees, contains, read_documents
from gitsched.reconcile.source.reverted_files import find_cause_files
from gitsched.reconcile.source.source_commits import describe_source_commit
from gitsched.render.output_files import CLUSTERS, escape_segment
from gitsched.report.history import describe_source
from gitsched.report.recent_runs import describe_undo

if TYPE_CHECKING:
    from gitsched.model.document import Document
    from gitsched.model.explanation import Explanation
    from gitsched.model.history import SourceChange
    from gitsched.reconcile.run import Fetched, RunContext

MAX_COMMITS: Final = 200
"""Commits of the source that are searched."""
MAX_FILES: Final = 1_000
"""Changed files that are searched, of all commits together."""


class Removal(NamedTuple):
    """The commit of the source that removed a document, and the command that brings this back."""

    source: SourceChange
    cure: str


def find_removal(context: RunContext, fetched: Fetched, name: str, is_meant: Callable[[Document], bool]) -> Removal | None:
    """Return the latest commit of the source that removed such a document with this name from a file; None if none of the recent ones
    did."""
    source, cache = context.source.repository, context.caches.files
    head = fetched.source.oid or source.resolve("HEAD")
    mark, left = name.encode(), MAX_FILES
    for commit, parent in pairwise(source.list_first_parents(head, MAX_COMMITS + 1)):
        paths = source.changed_paths(parent.tree, commit.tree)[:left]
        left -= len(paths)
        trees = ComparedTrees(source, parent.tree, commit.tree, paths)
        for path in (path for path in paths if contains(trees, parent.tree, path, mark)):
            had, has = (any(map(is_meant, read_documents(cache, trees, tree, path))) for tree in (parent.tree, commit.tree))
            if had and not has:
                change = describe_source_commit(commit)
                return Removal(change, describe_undo(change, find_cause_files(source, commit.oid, fetched.source.tree, {path})))
        if not left:
            return None
    return None


def find_removed_document(context: RunContext, fetched: Fetched, title: str) -> Removal | None:
    """Return the commit of the source that removed a document with this kind, namespace and name, if it is known."""
    return find_removal(context, fetched, title.rpartition("/")[2], lambda one: one.key.title == title)


def find_removed_cluster(context: RunContext, fetched: Fetched, name: str) -> Removal | None:
    """Return the commit of the source that removed the document of a cluster, if it is known."""
    kinds = index_cluster_kinds()

    def is_meant(document: Document) -> bool:
        topology = kinds.get(document.key[:2])
        return topology is not None and topology.read_location(document).name == name

    return find_removal(context, fetched, name, is_meant)


def describe_removed_cluster(context: RunContext, fetched: Fetched, name: str) -> str:
    """Return that a cluster has lost its document, in which commit, and how to get it back; "" if the output has no such cluster."""
    if fetched.output_head is None:
        return ""
    repository = fetched.output.repository
    directories = repository.list_directory(repository.commit(fetched.output_head).tree, f"{fetched.prefix}{CLUSTERS}")
    if escape_segment(name) not in directories:
        return ""
    removal = find_removed_cluster(context, fetched, name)
    shown = f"`gitsched tree {name}` shows what it still has"
    if removal is None:
        return f"cluster {name} has no document any more; {shown}"
    removed = f"{describe_source(removal.source)} removed it; to get it back: {removal.cure}"
    return f"cluster {name} has no document any more: {removed}; {shown}"


def name_removal(context: RunContext, fetched: Fetched, found: Explanation) -> Explanation:
    """Return the explanation of a workload with the commit that removed its former policy, if it is known."""
    if not found.claim.endswith(POLICY_DELETED):
        return found
    title = found.claim.removeprefix(CLAIM_OF).split(" ")[0]
    removal = find_removed_document(context, fetched, title)
    if removal is None:
        return found
    return found._replace(claim=f"{found.claim} by {describe_source(removal.source)}; to get it back: {removal.cure}")
