"""Find the changed files of the source that decide what a run moved: those of policies, clusters and workloads that changed in them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from gitsched.decide.cluster_conditions import index_cluster_kinds
from gitsched.model.scheduling import total_replicas
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.output.history_taints import ComparedTrees, contains, read_documents
from gitsched.reconcile.source.source_reader import is_manifest_path

if TYPE_CHECKING:
    from gitsched.model.document import Body
    from gitsched.model.history import PlacementMove
    from gitsched.reconcile.cache.caches import ParseCache

MAX_FILES: Final = 100
"""Changed files of the source that are read to find those that decide what moved."""
WORKLOADS_SEARCHED: Final = 20
"""Workloads of which the own documents are searched; of more, policies and clusters alone are known."""


class DecidingFile(NamedTuple):
    """A changed file of the source with the policy, cluster or workload in it that decides a move, and whether it is removed."""

    path: str
    title: str
    removed: bool = False


class DecidingFiles:
    """The changed documents between two trees of the source that can decide moves: policies, clusters, and some workloads by name."""

    def __init__(
        self, cache: ParseCache, trees: ComparedTrees, moves: Iterable[PlacementMove], workloads: Iterable[PlacementMove]
    ) -> None:
        marks = _list_marks(moves, workloads)
        self._by_title: dict[str, DecidingFile] = {}
        self._by_cluster: dict[str, DecidingFile] = {}
        sides: list[dict[str, tuple[Body, DecidingFile, str]]] = [{}, {}]
        kinds = index_cluster_kinds()
        for path in list(filter(is_manifest_path, trees.paths))[:MAX_FILES]:
            if not any(contains(trees, tree, path, *marks) for tree in (trees.before, trees.after)):
                continue
            for side, tree in zip(sides, (trees.before, trees.after), strict=True):
                for document in read_documents(cache, trees, tree, path):
                    topology = kinds.get(document.key[:2])
                    cluster = topology.read_location(document).name if topology is not None else ""
                    title = document.key.title
                    side[title.lower()] = document.body, DecidingFile(path, title), cluster
        before, after = sides
        for title, (body, found, cluster) in {**before, **after}.items():
            if title in before and title in after and before[title][0] == body:
                continue
            changed = found._replace(removed=title not in after)
            self._by_title[title] = changed
            if cluster:
                self._by_cluster[cluster] = changed

    def find(self, found: PlacementMove) -> tuple[DecidingFile, ...]:
        """Return what decides a move: the workload if it is removed, else its policies, else clusters that it left or joined, else its own
        document, which also scales it; () if none of these changed."""
        move = found.move
        own = self._by_title.get(move.key.title.lower())
        if own is not None and own.removed:
            return (own,)
        titles = (reason.partition(" ")[0].rstrip(",;:").lower() for reason in (found.reason_before, move.reason))
        policies = [self._by_title[title] for title in titles if title in self._by_title]
        clusters = [self._by_cluster[name] for name in sorted(move.before.keys() ^ move.after.keys()) if name in self._by_cluster]
        chosen = policies or clusters
        is_scaled = total_replicas(move.before.values()) != total_replicas(move.after.values())
        if own is not None and (not chosen or (is_scaled and move.after)):
            chosen = [*chosen, own]
        return tuple(dict.fromkeys(chosen))

    def sort(self, paths: Iterable[str], moves: Iterable[PlacementMove]) -> list[str]:
        """Return paths with those first that decide moves."""
        deciding = {one.path for found in moves for one in self.find(found)}
        return sorted(paths, key=lambda path: path not in deciding)

    def add_removal(self, found: PlacementMove) -> PlacementMove:
        """Return a move, if the workload has no placement any more with why: its document or its policy is gone, or its policy changed."""
        one = next(iter(self.find(found)), None)
        if not found.removed or one is None:
            return found
        if one.title.lower() == found.move.key.title.lower():
            text = (
                f"its document is gone: {one.path} had it" if one.removed else f"no policy selects it any more: {one.path} changed"
            )
        else:
            text = f"no policy selects it any more: {one.title} {'is gone' if one.removed else 'has changed'} ({one.path})"
        return found._replace(removal=text)


def _list_marks(moves: Iterable[PlacementMove], workloads: Iterable[PlacementMove]) -> list[bytes]:
    """Return texts of which a file has one that may decide moves: kinds of policies and of clusters, and names of workloads."""
    found, moves = dict[str, None](), tuple(moves)
    for one in moves:
        found |= dict.fromkeys(
            kind for reason in (one.reason_before, one.move.reason) if (kind := reason.partition("/")[0]).isalnum()
        )
    if any(one.move.before.keys() != one.move.after.keys() for one in moves):
        found |= dict.fromkeys(kind for _, kind in index_cluster_kinds())
    found |= dict.fromkeys(one.move.key.name for one in islice(workloads, WORKLOADS_SEARCHED))
    return [text.encode() for text in found]
