"""List the files of a worktree that differ from the checked-out commit."""

from __future__ import annotations

from pathlib import Path

from gitsched.git.process import run_git
from gitsched.model.errors import Permanent, Temporary
from gitsched.named_tuples import NamedTuple

TIMEOUT = 2.0
"""Seconds; a note is not worth more."""


class UncommittedFiles(NamedTuple):
    """The paths of tracked files that differ from the checked-out commit, and of untracked files that Git does not ignore."""

    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


def list_uncommitted(root: Path) -> UncommittedFiles:
    """Return the files of a worktree that no commit has as they are.

    Other repositories in the worktree are left out. Empty also if git needs more than two seconds: callers only print a note.
    """
    arguments = ["--no-optional-locks", "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all"]
    try:
        done = run_git([*arguments, "--ignore-submodules=all"], cwd=str(root), timeout=TIMEOUT)
    except (Temporary, Permanent):
        return UncommittedFiles()
    entries = [entry for entry in done.stdout.split("\0") if entry and not entry.endswith("/")] if done.exit_code == 0 else []
    untracked = tuple(entry[3:] for entry in entries if entry.startswith("??"))
    return UncommittedFiles(tuple(entry[3:] for entry in entries if not entry.startswith("??")), untracked)
