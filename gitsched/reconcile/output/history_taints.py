"""Find the taints of clusters that commits of the source added or removed, so that the history calls a drain a drain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from gitsched.decide.catalog import make_raw_document, resolve_key
from gitsched.decide.cluster_conditions import index_cluster_kinds, list_cluster_taints
from gitsched.model.document import Document
from gitsched.model.history import TaintChange
from gitsched.reconcile.source.source_locations import RuleLocations
from gitsched.reconcile.source.source_reader import SourceReader, make_origin
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.git import Repository
    from gitsched.reconcile.cache.caches import ParseCache

ReadTaints = Callable[["Repository", str, str, Sequence[str]], tuple[TaintChange, ...]]
"""Returns the taints that changed in some files between two trees of the source."""
MAX_FILES = 100
"""Changed files that are read for one entry."""
_MAX_SIZE = 1 << 20
_MARK = b"taints"


def list_taint_changes(
    cache: ParseCache, repository: Repository, before: str, after: str, paths: Sequence[str]
) -> tuple[TaintChange, ...]:
    """Return the taints of people that some files have in one of two trees of the source only, by cluster."""
    candidates = [path for path in paths[:MAX_FILES] if any(_has_taints(repository, tree, path) for tree in (before, after))]
    if not candidates:
        return ()
    sides = [{}, {}]  # type: list[dict[tuple[str, str], TaintChange]]
    for added, tree in enumerate((before, after)):
        for path in candidates:
            for change in _list_taints(cache, repository, tree, path, added=bool(added)):
                sides[added].setdefault((change.cluster, change.taint), change)
    removed, added_ones = (
        [change for identity, change in sides[index].items() if identity not in sides[1 - index]] for index in (0, 1)
    )
    return tuple(sorted((*removed, *added_ones)))


def _find_blob(repository: Repository, tree: str, path: str) -> str | None:
    entry = repository.find_entry(tree, path)
    if entry is None or entry[1] not in REGULAR_FILE_MODES or repository.blob_size(entry[0]) > _MAX_SIZE:
        return None
    return entry[0]


def _has_taints(repository: Repository, tree: str, path: str) -> bool:
    blob = _find_blob(repository, tree, path) if path.endswith((".yaml", ".yml", ".json")) else None
    return blob is not None and _MARK in repository.blob(blob)


def _list_taints(cache: ParseCache, repository: Repository, tree: str, path: str, *, added: bool) -> Iterator[TaintChange]:
    """Yield the taints of the clusters in a file; nothing if there is no such file."""
    blob = _find_blob(repository, tree, path)
    if blob is None:
        return
    kinds, locations = index_cluster_kinds(), RuleLocations(repository)
    for parsed in SourceReader(repository, cache).read(blob, path).documents:
        raw = make_raw_document(parsed.body, make_origin(parsed, path, blob), parsed.broken)
        key, topology = resolve_key(raw, {}), kinds.get((raw.group, raw.kind))
        if raw.broken or key is None or topology is None:
            continue
        document = Document(key, raw.api_version, raw.body, raw.origin)
        for taint in list_cluster_taints(topology, document):
            location = locations.find(taint.field) if taint.field is not None else None
            where = location.text if location is not None else f"{path}:{parsed.line}"
            name = topology.read_location(document).name
            yield TaintChange(name, str(taint.taint), taint.evicts, added, where)
