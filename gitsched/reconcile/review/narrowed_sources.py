"""Leave out the commits of the source that cannot have changed a workload, because they only change others."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from gitsched.decide.registry import reserved_groups
from gitsched.manifests.charts import CHART_FILE
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.model.cluster_facts import FACTS_KIND
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.reconcile.output.history_records import identify_recorded
from gitsched.reconcile.output.history_taints import ComparedTrees, read_documents
from gitsched.reconcile.source.reverted_files import is_text
from gitsched.reconcile.source.source_commits import CommitChange, find_change

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gitsched.git import Repository
    from gitsched.model.document import Key
    from gitsched.model.history import SourceChange
    from gitsched.reconcile.cache.caches import ParseCache

MAX_COMPARED: Final = 20
"""Changed files of a commit that are compared; of a commit with more, it is not known whom it concerns."""
_REPORTS: Final = (FACTS_KIND, CLUSTER_REPORT)


class SourceNarrowing:
    """Compares the documents that commits of the source change, each commit once. With `texts`, a file changes all its documents: clusters
    get manifests with their comments."""

    def __init__(self, source: Repository, cache: ParseCache, *, texts: bool = False) -> None:
        self.source, self._cache, self._texts = source, cache, texts
        self._known: dict[str, frozenset[Key] | None] = {}

    def narrow(self, commits: tuple[SourceChange, ...], workloads: Collection[Key]) -> tuple[SourceChange, ...]:
        """Return the commits that may concern some workloads, whose kinds are in lower case; all, if none does."""
        if len(commits) < 2:
            return commits
        return tuple(one for one in commits if self._concerns(one, workloads)) or commits

    def concerns_any(self, commits: Iterable[SourceChange], workloads: Collection[Key]) -> bool:
        """Return whether one of some commits may concern some workloads."""
        return any(self._concerns(one, workloads) for one in commits)

    def changes(self, change: SourceChange, wanted: Collection[str]) -> bool:
        """Return whether a commit changes one of some files."""
        return any(path in wanted for path in self._list_changed(change).paths)

    def _concerns(self, change: SourceChange, workloads: Collection[Key]) -> bool:
        if change.commit not in self._known:
            self._known[change.commit] = self._find_changed_keys(change)
        keys = self._known[change.commit]
        return keys is None or any(key in workloads or key.group in reserved_groups for key in keys)

    def _find_changed_keys(self, change: SourceChange) -> frozenset[Key] | None:
        """Return the objects whose documents a commit changes, without reports of clusters; None if it is not known which it concerns."""
        before, after, paths = self._list_changed(change)
        if not 0 < len(paths) <= MAX_COMPARED:
            return None
        trees = ComparedTrees(self.source, before, after, paths)
        found: set[Key] = set()
        for path in paths:
            if self._is_built(after, path):
                return None
            sides = [{one.key: one.body for one in read_documents(self._cache, trees, tree, path)} for tree in (before, after)]
            if not any(sides):
                return None
            keys = sides[0].keys() | sides[1].keys()
            changed = (key for key in keys if self._texts or sides[0].get(key) != sides[1].get(key))
            found |= {identify_recorded(key) for key in changed if key[:2] not in _REPORTS}
        return frozenset(found)

    def _is_built(self, tree: str, path: str) -> bool:
        """Return whether a kustomization or a chart around a file may make other objects of it."""
        directories = (str(each) for each in PurePosixPath(path).parents)
        names = (*KUSTOMIZATION_NAMES, CHART_FILE)
        paths = (name if each == "." else f"{each}/{name}" for each in directories for name in names)
        return any(self.source.find_entry(tree, each) is not None for each in paths)

    def _list_changed(self, change: SourceChange) -> CommitChange:
        """Return the trees before and after a commit, and the changed files without texts for readers; none where it is not available."""
        found = find_change(self.source, change.commit) or CommitChange("", "", [])
        return found._replace(paths=[path for path in found.paths if not is_text(path)])
