"""Find the commit of the source that removed a document, such as that of a policy or a cluster."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from gitsched.decide.cluster_conditions import index_cluster_kinds
from gitsched.model.explanation import CLAIM_OF, POLICY_DELETED
from gitsched.model.finding import format_names
from gitsched.model.mistakes import CLUSTER_UNKNOWN
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.output.history_records import identify_recorded
from gitsched.reconcile.output.history_taints import contains, list_latest_changes, read_documents
from gitsched.reconcile.source.reverted_files import find_cause_files
from gitsched.reconcile.source.source_commits import describe_source_commit
from gitsched.render.output_files import CLUSTERS, escape_segment
from gitsched.report.history import describe_source
from gitsched.report.recent_runs import describe_undo

if TYPE_CHECKING:
    from gitsched.model.document import Document, Key
    from gitsched.model.explanation import Explanation
    from gitsched.model.finding import Finding
    from gitsched.model.history import SourceChange
    from gitsched.reconcile.run import Fetched, RunContext

_UNKNOWN_NAMES: Final = re.compile(r"(?<=without a Cluster document: )([^;]+?)( and \d+ more)?; (?:did you mean|the fleet has) .*")
MAX_COMMITS: Final = 200
"""Commits of the source that are searched."""
MAX_FILES: Final = 1_000
"""Changed files that are searched, of all commits together."""
CLUSTERS_SEARCHED: Final = 20
"""Removed clusters of which the commit is searched that removed their document."""


class Removal(NamedTuple):
    """The commit of the source that removed a document from a file."""

    source: SourceChange
    path: str


def find_removal(context: RunContext, fetched: Fetched, name: str, is_meant: Callable[[Document], bool]) -> Removal | None:
    """Return the latest commit of the source that removed such a document with this name from a file; None if none of the recent ones
    did."""
    source, cache = context.source.repository, context.caches.files
    head = fetched.source.oid or source.resolve("HEAD")
    mark = name.encode()
    for commit, trees in list_latest_changes(source, head, MAX_COMMITS, MAX_FILES):
        for path in (path for path in trees.paths if contains(trees, trees.before, path, mark)):
            had, has = (any(map(is_meant, read_documents(cache, trees, tree, path))) for tree in (trees.before, trees.after))
            if had and not has:
                return Removal(describe_source_commit(commit), path)
    return None


def find_removed_workload(context: RunContext, fetched: Fetched, key: Key) -> Removal | None:
    """Return the commit of the source that removed the document of a workload, whose key may be as a path of the output has it."""
    wanted = identify_recorded(key)
    return find_removal(context, fetched, key.name, lambda one: identify_recorded(one.key) == wanted)


def describe_cure(context: RunContext, fetched: Fetched, change: SourceChange, paths: Collection[str]) -> str:
    """Return the command that brings back the documents that a commit of the source removed from some files."""
    return describe_undo(change, find_cause_files(context.source.repository, change.commit, fetched.source.tree, paths))


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
    return next(describe_removed_clusters(context, fetched, [name]), "")


def describe_removed_clusters(context: RunContext, fetched: Fetched, names: Iterable[str]) -> Iterator[str]:
    """Yield for each commit of the source which clusters it removed that the output still has, and how to get them back."""
    directories = list_cluster_directories(fetched)
    found: dict[SourceChange | None, list[tuple[str, str]]] = {}
    for name in [name for name in names if escape_segment(name) in directories][:CLUSTERS_SEARCHED]:
        removal = find_removed_cluster(context, fetched, name)
        change, path = removal if removal is not None else (None, "")
        found.setdefault(change, []).append((name, path))
    for change, removed in found.items():
        is_one, clusters = len(removed) == 1, [name for name, _ in removed]
        what = f"cluster {clusters[0]} has" if is_one else f"clusters {format_names(clusters)} have"
        shown = f"`gitsched tree {clusters[0] if is_one else 'NAME'}` shows what {'it' if is_one else 'each'} still has"
        if change is None:
            yield f"{what} no document any more; {shown}"
            continue
        them, cure = "it" if is_one else "them", describe_cure(context, fetched, change, {path for _, path in removed})
        yield f"{what} no document any more: {describe_source(change)} removed {them}; to get {them} back: {cure}; {shown}"


def list_cluster_directories(fetched: Fetched) -> Collection[str]:
    """Return the names of the directories of clusters that the output has."""
    tree, repository = fetched.output_tree, fetched.output.repository
    return repository.list_directory(tree, f"{fetched.prefix}{CLUSTERS}").keys() if tree else ()


def name_former_clusters(fetched: Fetched, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings that propose no similar name for a cluster that had a document before: the output still has it."""
    directories = list_cluster_directories(fetched)

    def explain(match: re.Match[str]) -> str:
        names = match[1].split(", ")
        if not all(escape_segment(name) in directories for name in names):
            return match[0]
        return f"{match[1]}{match[2] or ''}, which had one: gitsched explain cluster/{names[0]} says which commit removed it"

    return tuple(
        one._replace(message=_UNKNOWN_NAMES.sub(explain, one.message)) if one.code == CLUSTER_UNKNOWN else one for one in findings
    )


def name_removal(context: RunContext, fetched: Fetched, found: Explanation) -> Explanation:
    """Return the explanation of a workload with the commit that removed its former policy, if it is known."""
    if not found.claim.endswith(POLICY_DELETED):
        return found
    title = found.claim.removeprefix(CLAIM_OF).split(" ")[0]
    removal = find_removed_document(context, fetched, title)
    if removal is None:
        return found
    cure = describe_cure(context, fetched, removal.source, {removal.path})
    return found._replace(claim=f"{found.claim} by {describe_source(removal.source)}; to get it back: {cure}")
