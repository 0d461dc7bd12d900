"""Find the taints of clusters that commits of the source added or removed, and the lines of the conditions that add others, so that the
history calls a drain a drain."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from gitsched.decide.catalog import make_raw_documents, resolve_key
from gitsched.decide.cluster_conditions import index_cluster_kinds, list_cluster_taints
from gitsched.model.cluster_facts import FACTS_KIND, TRUE
from gitsched.model.document import Document, get_field
from gitsched.model.finding import FieldOrigin, locate_document
from gitsched.model.history import TaintChange
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.source.source_locations import RuleLocations
from gitsched.reconcile.source.source_reader import SourceReader, is_manifest_path
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.git import Repository
    from gitsched.model.commit import Commit
    from gitsched.reconcile.cache.caches import ParseCache
    from gitsched.render.run_metadata import RunMetadata

MAX_FILES = 100
"""Changed files that are read for one entry."""
_MAX_SIZE = 1 << 20
_TAINTS, _STATUS = b"taints", b"status"


class ComparedTrees(NamedTuple):
    """Two trees of the source, or of the facts branch `name`, and the files that differ."""

    repository: Repository
    before: str
    after: str
    paths: Sequence[str]
    name: str = ""


def list_latest_changes(source: Repository, head: str | None, commits: int, files: int) -> Iterator[tuple[Commit, ComparedTrees]]:
    """Yield the latest commits of the source by first parents, the newest first, with what each changed: at most so many commits, and so
    many files of all together."""
    for commit, parent in pairwise(source.list_first_parents(head, commits + 1)):
        paths = source.changed_paths(parent.tree, commit.tree)[:files]
        files -= len(paths)
        yield commit, ComparedTrees(source, parent.tree, commit.tree, paths)
        if not files:
            return


def compare_inputs(
    source: Repository, facts: Repository, before: RunMetadata | None, after: RunMetadata | None
) -> Iterator[ComparedTrees]:
    """Yield what changed between two runs: facts branches, and the source."""
    if before is None or after is None:
        return
    pairs = [(facts, name, before.facts.get(name, ""), oid) for name, oid in after.facts.items()]
    for repository, name, old, new in (*pairs, (source, "", before.source, after.source)):
        if old != new and repository.has_commit(old) and repository.has_commit(new):
            trees = repository.commit(old).tree, repository.commit(new).tree
            yield ComparedTrees(repository, *trees, repository.changed_paths(*trees), name)


def list_taint_changes(cache: ParseCache, trees: ComparedTrees) -> tuple[TaintChange, ...]:
    """Return the taints of people that some files of the source have in one of two trees only, by cluster."""
    candidates = [
        path
        for path in trees.paths[:MAX_FILES]
        if any(contains(trees, tree, path, _TAINTS) for tree in (trees.before, trees.after))
    ]
    if not candidates:
        return ()
    sides = [{}, {}]  # type: list[dict[tuple[str, str], TaintChange]]
    for added, tree in enumerate((trees.before, trees.after)):
        for path in candidates:
            for change in _list_taints(cache, trees, tree, path, added=bool(added)):
                sides[added].setdefault((change.cluster, change.taint), change)
    removed, added_ones = (
        [change for identity, change in sides[index].items() if identity not in sides[1 - index]] for index in (0, 1)
    )
    return tuple(sorted((*removed, *added_ones)))


def list_failures(cache: ParseCache, trees: ComparedTrees) -> Iterator[TaintChange]:
    """Yield the clusters of which some files say since the later of two trees that they are not ready, where the API has no taint for
    that: its workloads leave such a cluster all the same."""
    paths = [path for path in trees.paths[:MAX_FILES] if contains(trees, trees.after, path, _STATUS)]
    failed, ready = (
        {name: found for path in paths for name, found in _list_unready(cache, trees, tree, path)}
        for tree in (trees.after, trees.before)
    )
    for name, (why, location) in failed.items():
        if why and not ready.get(name, ("", ""))[0]:
            yield TaintChange(name, "", True, True, location, f"its state is {why}", bool(trees.name))


def _list_unready(cache: ParseCache, trees: ComparedTrees, tree: str, path: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the clusters in a file whose API has no taints, with the reason why each is not ready, "" if it is, and with its location."""
    kinds, locations = index_cluster_kinds(), RuleLocations(trees.repository)
    for document in read_documents(cache, trees, tree, path):
        topology = kinds.get(document.key[:2])
        if topology is None or topology.taints is not None:
            continue
        found = topology.read_readiness(document.body)
        why = found.reason or found.status if found is not None and found.status != TRUE else ""
        where = FieldOrigin(document.origin, ("status",)) if document.origin is not None else None
        yield topology.read_location(document).name, (why, _locate(locations, document, where))


def locate_conditions(cache: ParseCache, compared: Iterable[ComparedTrees], clusters: Collection[str]) -> dict[str, str]:
    """Return FILE:LINE of the condition of clusters that changed: in the facts about them, or in their documents in the source."""
    found: dict[str, str] = {}
    for trees in compared:
        named = [path for path in trees.paths if PurePosixPath(path).stem in clusters] or trees.paths
        for path in named[:MAX_FILES]:
            if contains(trees, trees.after, path, _STATUS):
                found |= {name: where for name, where in _list_conditions(cache, trees, path) if name in clusters}
    return found


def _find_blob(repository: Repository, tree: str, path: str) -> str | None:
    entry = repository.find_entry(tree, path)
    if entry is None or entry[1] not in REGULAR_FILE_MODES or repository.blob_size(entry[0]) > _MAX_SIZE:
        return None
    return entry[0]


def contains(trees: ComparedTrees, tree: str, path: str, *marks: bytes) -> bool:
    """Return whether a manifest of one of two trees has one of some texts."""
    blob = _find_blob(trees.repository, tree, path) if is_manifest_path(path) else None
    if blob is None:
        return False
    data = trees.repository.blob(blob)
    return any(mark in data for mark in marks)


def read_documents(cache: ParseCache, trees: ComparedTrees, tree: str, path: str) -> Iterator[Document]:
    """Yield the valid documents of a file; nothing if there is no such file."""
    blob = _find_blob(trees.repository, tree, path)
    if blob is None:
        return
    shown = f"{trees.name}:{path}" if trees.name else path
    for raw in make_raw_documents(SourceReader(trees.repository, cache).read(blob, shown), shown, blob):
        key = resolve_key(raw, {})
        if key is not None and not raw.broken:
            yield Document(key, raw.api_version, raw.body, raw.origin)


def _list_taints(cache: ParseCache, trees: ComparedTrees, tree: str, path: str, *, added: bool) -> Iterator[TaintChange]:
    """Yield the taints of the clusters in a file."""
    kinds, locations = index_cluster_kinds(), RuleLocations(trees.repository)
    for document in read_documents(cache, trees, tree, path):
        topology = kinds.get((document.key.group, document.key.kind))
        if topology is None:
            continue
        for taint in list_cluster_taints(topology, document):
            name = topology.read_location(document).name
            yield TaintChange(name, str(taint.taint), taint.evicts, added, _locate(locations, document, taint.field))


def _list_conditions(cache: ParseCache, trees: ComparedTrees, path: str) -> Iterator[tuple[str, str]]:
    """Yield clusters with the location of their condition in a file."""
    kinds, locations = index_cluster_kinds(), RuleLocations(trees.repository)
    for document in read_documents(cache, trees, trees.after, path):
        kind = document.key[:2]
        pointer = ("status", "ready") if kind == FACTS_KIND else ("status", "conditions")
        if (kind == FACTS_KIND or kind in kinds) and document.origin is not None and get_field(document.body, *pointer):
            name = document.key.name if kind == FACTS_KIND else kinds[kind].read_location(document).name
            yield name, _locate(locations, document, FieldOrigin(document.origin, pointer))


def _locate(locations: RuleLocations, document: Document, field: FieldOrigin | None) -> str:
    """Return FILE:LINE of a field, else of its document."""
    location = (locations.find(field) if field is not None else None) or locate_document(document)
    return location.text if location is not None else ""
