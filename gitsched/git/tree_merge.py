"""Merge two trees where both sides changed no file differently, by comparing tree objects: what one side alone changed is not read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gitsched.git.trees import MAX_DEPTH, TREE, TREE_MODE, RawEntry, RawObject, hash_object, is_tree, sort_rows, write_rows

Trees = tuple[str | None, str | None, str | None]
EMPTY: Final = hash_object(TREE, b"").hex()
"""The tree without entries: a directory that is one does not exist."""


class NotDisjointError(Exception):
    """Both sides changed a file, or a tree is not one that git writes."""


class TreeMerge:
    """Merges trees; `objects` are the tree objects to write for the results. `read` returns the entries of a tree."""

    def __init__(self, read: Callable[[str], list[RawEntry]]) -> None:
        self._read = read
        self._known: dict[Trees, str] = {}
        self.objects: list[RawObject] = []

    def merge(self, base: str | None, ours: str | None, theirs: str | None, depth: int = 0) -> str:
        """Return the id of the tree that has the changes of both sides. Raise NotDisjointError where both changed a file, unless both have
        the same one now: a file that both remove may have got a new name in one of them."""
        trees = base, ours, theirs
        if trees not in self._known:
            self._known[trees] = self._merge(trees, depth)
        return self._known[trees]

    def _merge(self, trees: Trees, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise NotDisjointError
        sides = [self._read_rows(tree) for tree in trees]
        rows = []
        for name in sorted(set().union(*sides)):
            known, here, there = (side.get(name) for side in sides)
            found = here if there == known else there if here == known else self._merge_both(known, here, there, depth)
            if found is not None:
                rows.append(found)
        data = write_rows(sort_rows(rows))
        oid = hash_object(TREE, data)
        self.objects.append((oid, TREE, data))
        return oid.hex()

    def _merge_both(self, known: RawEntry | None, here: RawEntry | None, there: RawEntry | None, depth: int) -> RawEntry | None:
        kinds = {is_tree(row) for row in (known, here, there) if row is not None}
        if here is not None and here == there and kinds == {False}:
            return here
        if here is None or there is None or kinds != {True}:
            raise NotDisjointError
        tree = self.merge(known[2].hex() if known is not None else None, here[2].hex(), there[2].hex(), depth + 1)
        return (b"%o" % TREE_MODE, here[1], bytes.fromhex(tree)) if tree != EMPTY else None

    def _read_rows(self, tree: str | None) -> dict[bytes, RawEntry]:
        rows = self._read(tree) if tree is not None else []
        found = {row[1]: row for row in rows}
        if len(found) < len(rows):
            raise NotDisjointError
        return found
