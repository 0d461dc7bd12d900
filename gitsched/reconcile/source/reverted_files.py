"""Find what a commit of the source changed besides the files that decide something, and how to take back only these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gitsched.model.history import CauseFiles

if TYPE_CHECKING:
    from collections.abc import Collection

    from gitsched.git import Repository

FILES_NAMED: Final = 3
"""Files of a commit that are taken back one by one; of more, the commit is reverted."""
TEXTS: Final = (".md", ".adoc", ".rst")
"""How files for readers end, which no plan reads."""


def find_cause_files(source: Repository, oid: str, head: str, deciding: Collection[str]) -> CauseFiles:
    """Return which `deciding` files of a commit can be taken back alone, so that the `head` tree has them as before, and how many other
    files it changed; nothing where it, or the commit before, is not available."""
    commit = source.commit(oid) if source.has_commit(oid) else None
    if commit is None or not commit.parents or not source.has_commit(commit.parents[0]):
        return CauseFiles()
    before = source.commit(commit.parents[0]).tree
    paths = source.changed_paths(before, commit.tree)
    others = [path for path in paths if path not in deciding and not path.lower().endswith(TEXTS)]
    can_restore = 0 < len(deciding) <= FILES_NAMED and all(
        source.find_entry(before, path) is not None and source.find_entry(head, path) == source.find_entry(commit.tree, path)
        for path in deciding
    )
    return CauseFiles(tuple(sorted(deciding)) if can_restore and others else (), len(others), bool(deciding))
