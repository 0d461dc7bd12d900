"""How commits of a repository are related: ancestors, common ancestors and merges."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gitsched.git.loaded_pygit2 import pygit2
from gitsched.git.process import run_git
from gitsched.git.tree_merge import NotDisjointError, TreeMerge
from gitsched.git.trees import MAX_ENTRIES, TreeEntry, TreeReader
from gitsched.model.errors import Temporary
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.git.mirrored_refs import CloneControl
    from gitsched.git.scratch_objects import ScratchObjects
    from gitsched.model.commit import Commit


_SUBMODULE_MODE = 0o160000
_MERGE_TIMEOUT = 30.0
_MERGE_CONFIG = (("merge.renames", "true"), ("merge.directoryRenames", "false"))
MAX_COMPARED = 1000
"""Commits of a branch since its common ancestor with another one that are looked at; git merges branches with more of them."""
MAX_CONFLICTS = 1000
"""Conflicts of one merge that are listed."""
MAX_MERGED_SIZE = 16 << 20
"""Bytes of a file that both sides changed; a larger one is a conflict: to merge it takes twenty times its size in memory."""


class MergedTree(NamedTuple):
    """The tree of a merge, None where it has conflicts, and the files with these."""

    tree: str | None
    conflicts: tuple[str, ...] = ()


class CommitAncestry(ABC):
    """What a repository says about the relations of its commits. In a shallow clone, the history ends early."""

    _repo: pygit2.Repository
    _trees: TreeReader
    promised: Callable[[Sequence[str]], None] | None
    path: str
    private: CloneControl | None

    @property
    @abstractmethod
    def scratch(self) -> ScratchObjects:
        """A directory for objects that only this process reads."""

    @abstractmethod
    def has(self, oid: str) -> bool:
        """Return whether the object is available."""

    @abstractmethod
    def commit(self, oid: str) -> Commit:
        """Return the commit with this id."""

    @abstractmethod
    def entries(self, tree: str, under: str = "", limit: int = MAX_ENTRIES) -> list[TreeEntry]:
        """Return the entries of a tree."""

    @abstractmethod
    def blob_size(self, oid: str) -> int:
        """Return the size of a blob in bytes."""

    @abstractmethod
    def prefetch(self, blobs: Iterable[str]) -> None:
        """Make blobs available that a partial clone lacks."""

    def has_ancestor(self, commit: str, ancestor: str) -> bool:
        """Return whether `ancestor` is the commit or in its available history."""
        try:
            return commit == ancestor or bool(self._repo.descendant_of(commit, ancestor))
        except (KeyError, ValueError, pygit2.GitError):
            return False

    def list_first_parents(self, head: str | None, limit: int) -> Iterator[Commit]:
        """Yield a commit and its first parents, the newest first, as far as they are available; at most `limit` commits."""
        for _ in range(limit):
            if not head or not self.has(head):
                return
            commit = self.commit(head)
            yield commit
            head = commit.parents[0] if commit.parents else None

    def list_ancestors(self, heads: Sequence[str], excluded: str, limit: int) -> list[Commit]:
        """Return at most `limit` commits: the heads and their ancestors, the newest first, without the excluded commit and its ancestors.

        Where the clone is shallow, the commits that it has.
        """
        known = [head for head in heads if self.has(head)]
        if not known:
            return []
        found: list[Commit] = []
        try:
            walker = self._repo.walk(known[0], pygit2.enums.SortMode.TIME)
            for head in known[1:]:
                walker.push(head)
            if excluded and self.has(excluded):
                walker.hide(excluded)
            found += (self.commit(str(entry.id)) for entry in islice(walker, limit))
        except (KeyError, ValueError, pygit2.GitError):
            pass  # a commit is missing
        return found

    def find_merge_base(self, one: str, other: str) -> str | None:
        """Return the best common ancestor of two commits; None when there is none in the available history."""
        try:
            found = self._repo.merge_base(one, other)
        except (KeyError, ValueError, pygit2.GitError):
            return None
        return str(found) if found is not None else None

    def merge_trees(self, ancestor: str, ours: str, theirs: str) -> str | None:
        """Return the tree that has the changes from `ancestor` to both other trees; None when they conflict."""
        self._prefetch_trees(ancestor, ours, theirs)
        try:
            index = self._repo.merge_trees(ancestor, ours, theirs)
            return None if index.conflicts else self.scratch.write_index(index)
        except (KeyError, ValueError, pygit2.GitError):
            return None

    def _prefetch_trees(self, *trees: str) -> None:
        """Make the blobs of trees available, because libgit2 merges and writes only what a partial clone has."""
        if self.promised is not None:
            self.prefetch({entry.blob for tree in trees for entry in self.entries(tree) if entry.mode != _SUBMODULE_MODE})

    def merge_commits(self, ours: str, theirs: str) -> str | None:
        """Return the tree that results from merging two commits; None when they conflict or no common ancestor is available."""
        merged = self.merge(ours, theirs)
        return merged.tree if merged is not None else None

    def merge(self, ours: str, theirs: str) -> MergedTree | None:
        """Merge two commits; return None when no common ancestor is available. Raise Permanent if a tree has too many entries."""
        try:
            base = self._repo.merge_base(ours, theirs)
            if base is None:
                return None
            trees = [self.commit(oid).tree for oid in (str(base), ours, theirs)]
            has_one_base = self._has_one_base(str(base), ours, theirs)
            if has_one_base:
                with contextlib.suppress(NotDisjointError):
                    merged = TreeMerge(self._trees.read_tree)
                    tree = merged.merge(trees[0], trees[1], trees[2])
                    self.scratch.write_objects(merged.objects)
                    return MergedTree(tree)
            for tree in trees:
                self.entries(tree)
            self._prefetch_trees(*trees)
            large = self._list_large_files(trees[0] if has_one_base else None, trees[1], trees[2])
            merged_by_git = MergedTree(None, large) if large else self._merge_with_git(ours, theirs)
            if merged_by_git is not None:
                return merged_by_git
            index = self._repo.merge_commits(ours, theirs)
            if not index.conflicts:
                return MergedTree(self.scratch.write_index(index))
            paths = {entry.path for versions in islice(index.conflicts, MAX_CONFLICTS) for entry in versions if entry is not None}
            return MergedTree(None, tuple(sorted(paths)))
        except (KeyError, ValueError, pygit2.GitError):
            return None  # a shallow history ends before the common ancestor

    def _merge_with_git(self, ours: str, theirs: str) -> MergedTree | None:
        """Merge two commits as git does, which takes other files than libgit2 for renamed ones; None if git cannot."""
        arguments = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs]
        try:
            done = run_git(
                arguments, repository=self, config=_MERGE_CONFIG, timeout=_MERGE_TIMEOUT, extra_environment=self.scratch.environment
            )
        except Temporary:
            return None  # it took too long
        tree, *conflicts = done.stdout.split("\0")
        if done.exit_code not in (0, 1) or not tree:
            return None  # it is older than 2.38, or a shallow history ends before the common ancestor
        if done.exit_code == 0:
            return MergedTree(tree)
        # Where one side has a directory and the other one a file, the name of the file is another one in the index.
        paths = {path.removesuffix(f"~{ours}").removesuffix(f"~{theirs}") for path in conflicts if path}
        return MergedTree(None, tuple(sorted(paths)[:MAX_CONFLICTS]))

    def _list_large_files(self, base: str | None, ours: str, theirs: str) -> tuple[str, ...]:
        """Return the paths of files that both sides changed and that are too large to be merged."""
        known, here, there = ({entry.path: entry for entry in self.entries(tree)} if tree else {} for tree in (base, ours, theirs))
        both = [
            path
            for path, entry in here.items()
            if path in there and entry.blob != there[path].blob and known.get(path) not in (entry, there[path])
        ]
        sides = [(path, side[path]) for path in both for side in (known, here, there) if path in side]
        large = {path for path, entry in sides if entry.mode != _SUBMODULE_MODE and self.blob_size(entry.blob) > MAX_MERGED_SIZE}
        return tuple(sorted(large)[:MAX_CONFLICTS])

    def _has_one_base(self, base: str, ours: str, theirs: str) -> bool:
        """Return whether two commits have no other best common ancestor than this one, if few commits came after it."""
        found = [self.list_ancestors([head], base, MAX_COMPARED) for head in (ours, theirs)]
        return max(map(len, found)) < MAX_COMPARED and {commit.oid for commit in found[0]}.isdisjoint(
            commit.oid for commit in found[1]
        )
