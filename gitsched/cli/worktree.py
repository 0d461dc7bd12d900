"""Find the worktree of a location, and note on stderr that it has files that are not committed."""

from __future__ import annotations

from pathlib import Path

import click

from gitsched.cli import output
from gitsched.git.uncommitted import list_uncommitted
from gitsched.model.errors import Permanent

NOT_PLANNED = "are|is not in this plan; --worktree includes them|it"


def note_uncommitted(location: str, log_format: str, text: str) -> None:
    """Write a note if the worktree at a location has files that are not committed. `text` says what follows, after `N uncommitted files`;
    its words in the form `are|is` are for several files and for one.

    Untracked files count if they can be manifests: the reports of a pipeline do not.
    """
    root = find_worktree_root(location)
    if root is None:
        return
    found = list_uncommitted(root)
    count = len(found.changed)
    if found.untracked:
        from gitsched.reconcile.source.source_reader import is_manifest_path

        count += sum(map(is_manifest_path, found.untracked))
    if not count:
        return
    words = [word.split("|")[-1 if count == 1 else 0] for word in f"uncommitted files|file {text}".split(" ")]
    message = f"{count} {' '.join(words)}"
    if log_format == "json":
        output.LOGGER.info("%s", message, extra={"fields": {"event": "uncommitted", "files": count}})
    else:
        click.echo(f"note: {message}", err=True)


def require_worktree_root(location: str) -> Path:
    """Return the root of the worktree that contains a path. Raise Permanent if there is none."""
    root = find_worktree_root(location)
    if root is None:
        raise Permanent(f"{location} is not a worktree, so its files cannot be changed; select one with -C")
    return root


def find_worktree_root(location: str) -> Path | None:
    """Return the root of the worktree that contains a path; None for bare repositories and URLs."""
    path = Path(location).resolve()
    return next((parent for parent in (path, *path.parents) if (parent / ".git").exists()), None) if path.is_dir() else None
