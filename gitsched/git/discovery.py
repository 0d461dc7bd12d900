"""Find and open the repository at a path; reject bare repositories embedded in the source, since their configuration could execute
programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gitsched.model.errors import Permanent

if TYPE_CHECKING:
    import pygit2


def reject_embedded_repository(place: Path) -> None:
    """Permanent for a bare repository that is part of the commit that is checked out around it."""
    root = next((parent for parent in place.parents if (parent / ".git").exists()), None)
    if ".git" in place.parts or root is None or place.name == ".git":
        return
    import pygit2

    try:
        around = pygit2.Repository(str(root))
        committed = _has_path(around, (place.relative_to(root) / "HEAD").as_posix())
    except pygit2.GitError:
        return  # no repository after all, or none of this user's, which git would not trust either
    if committed:
        raise Permanent(
            f"{place} is a repository that was committed into the one at {root}, by somebody whose settings would then count: "
            "name the one that is meant with -C"
        )


def _has_path(repository: pygit2.Repository, path: str) -> bool:
    import pygit2

    try:
        return path in repository.revparse_single("HEAD").peel(pygit2.Tree)
    except KeyError:
        return False
