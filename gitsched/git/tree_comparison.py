"""Compare two trees: which paths differ."""

from __future__ import annotations

from collections.abc import Callable

from gitsched.git.trees import MAX_DEPTH, EntryLimit, RawEntry, decode_names, is_tree

ReadTree = Callable[[str], list[RawEntry]]
"""The entries of a tree by its id."""


def list_changed_paths(read_tree: ReadTree, old: str | None, new: str | None) -> list[str]:
    """Return the sorted paths that differ between two trees in existence, content or mode."""
    paths: set[str] = set()
    _compare(read_tree, old, new, "", 0, paths, EntryLimit())
    return sorted(paths)


def _compare(
    read_tree: ReadTree, old: str | None, new: str | None, prefix: str, depth: int, paths: set[str], budget: EntryLimit
) -> None:
    before = set(read_tree(old)) if old else set()
    after = set(read_tree(new)) if new else set()
    sides: dict[str, list[str | None]] = {}
    for side, rows in enumerate((before - after, after - before)):
        budget.count(len(rows))
        for row, name, _ in decode_names(rows):
            if not is_tree(row) or depth >= MAX_DEPTH:
                paths.add(prefix + name)
            else:
                sides.setdefault(name, [None, None])[side] = row[2].hex()
    for name, (old_tree, new_tree) in sides.items():
        _compare(read_tree, old_tree, new_tree, f"{prefix}{name}/", depth + 1, paths, budget)
