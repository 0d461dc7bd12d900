"""The files of a work tree as a tree of its repository, for looking at what is not committed yet."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gitsched.git import Repository
from gitsched.git.process import run_git
from gitsched.model.errors import Permanent


def write_worktree(repository: Repository) -> str:
    """The tree of the files as they lie in the work tree, ignored ones left out; the index is not touched."""
    with tempfile.TemporaryDirectory() as directory:
        index = {"GIT_INDEX_FILE": str(Path(directory) / "index")}
        for arguments in (["add", "--all", "--", "."], ["write-tree"]):
            done = run_git(arguments, at=repository.place, more=index)
            if done.code != 0:
                raise Permanent(f"the files of {repository.place} cannot be read: {done.err.strip()}")
        return done.out.strip()
