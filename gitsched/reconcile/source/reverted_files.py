"""Find what a commit of the source changed besides the files that decide something, and how to take back only these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gitsched.model.history import CauseFiles
from gitsched.reconcile.source.source_commits import find_change

if TYPE_CHECKING:
    from collections.abc import Collection

    from gitsched.git import Repository

FILES_NAMED: Final = 3
"""Files of a commit that are taken back one by one; of more, the commit is reverted."""
_TEXTS: Final = (".md", ".adoc", ".rst")
"""How files for readers end, which no plan reads."""


def find_cause_files(source: Repository, oid: str, head: str, deciding: Collection[str]) -> CauseFiles:
    """Return which `deciding` files of a commit can be taken back alone, so that the `head` tree has them as before, and how many other
    files it changed; nothing where it, or the commit before, is not available."""
    change = find_change(source, oid)
    if change is None:
        return CauseFiles()
    others = [path for path in change.paths if path not in deciding and not is_text(path)]
    can_restore = 0 < len(deciding) <= FILES_NAMED and all(
        source.find_entry(change.before, path) is not None
        and source.find_entry(head, path) == source.find_entry(change.after, path)
        for path in deciding
    )
    return CauseFiles(tuple(sorted(deciding)) if can_restore and others else (), len(others), bool(deciding))


def is_text(path: str) -> bool:
    """Return whether a file is a text for readers."""
    return path.lower().endswith(_TEXTS)
