"""Find the worktree of a location and its files that are not committed, and note on stderr that there are some."""

from __future__ import annotations

from pathlib import Path

import click

from gitsched.cli import output
from gitsched.git.process import run_git
from gitsched.model.errors import Permanent, Temporary

NOT_PLANNED = "are|is not in this plan; --worktree includes them|it"
_TIMEOUT = 2.0
"""Seconds for listing these files; a note is not worth more."""


def note_uncommitted(location: str, log_format: str, text: str) -> None:
    """Write a note if the worktree at a location has files that are not committed. `text` says what follows, after `N uncommitted files`;
    its words in the form `are|is` are for several files and for one.

    Untracked files count if they can be manifests: the reports of a pipeline do not.
    """
    root = find_worktree_root(location)
    if root is None:
        return
    changed, untracked = _list_uncommitted(root)
    count = len(changed)
    if untracked:
        from gitsched.reconcile.source.source_reader import is_manifest_path

        count += sum(map(is_manifest_path, untracked))
    if not count:
        return
    words = [word.split("|")[-1 if count == 1 else 0] for word in f"uncommitted files|file {text}".split(" ")]
    message = f"{count} {' '.join(words)}"
    if log_format == "json":
        output.LOGGER.info("%s", message, extra={"fields": {"event": "uncommitted", "files": count}})
    else:
        click.echo(f"note: {message}", err=True)


def _list_uncommitted(root: Path) -> tuple[list[str], list[str]]:
    """Return the paths of the tracked files of a worktree that differ from the checked-out commit, and of untracked files that Git does not
    ignore. Other repositories in the worktree are left out. Both are empty if git needs more than two seconds."""
    arguments = ["--no-optional-locks", "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"]
    try:
        done = run_git([*arguments, "--ignore-submodules=all"], cwd=str(root), timeout=_TIMEOUT)
    except (Temporary, Permanent):
        return [], []
    entries = [entry for entry in done.stdout.split("\0") if entry and not entry.endswith("/")] if done.exit_code == 0 else []
    return (
        [entry[3:] for entry in entries if not entry.startswith("??")],
        [entry[3:] for entry in entries if entry.startswith("??")],
    )


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
