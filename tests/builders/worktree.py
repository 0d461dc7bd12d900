"""Make commits from a worktree in this process, with libgit2; a process of git takes several milliseconds for each of its commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pygit2


def init(path: Path) -> None:
    """Make an empty repository with a worktree, as `git init -b main`; it exists already where this was done before."""
    if not (path / ".git").exists():
        pygit2.init_repository(str(path), initial_head="main")


def stage(repository: pygit2.Repository) -> None:
    """Write all files of the worktree to the index, as `git add -A`."""
    index = repository.index
    index.add_all()
    index.write()


def record(repository: pygit2.Repository, environment: Mapping[str, str], message: str, seconds: int, offset: int = 0) -> str:
    """Commit the index under the names of the environment, and return the id. The parents are the branch and what is being merged.

    `seconds` is the time since 1970, and `offset` the time zone in minutes.
    """
    author, committer = (
        pygit2.Signature(environment[f"GIT_{role}_NAME"], environment[f"GIT_{role}_EMAIL"], seconds, offset)
        for role in ("AUTHOR", "COMMITTER")
    )
    parents = [] if repository.head_is_unborn else [repository.head.target, *repository.listall_mergeheads()]
    text = message.rstrip("\n") + "\n"
    commit = repository.create_commit("HEAD", author, committer, text, repository.index.write_tree(), parents)
    repository.state_cleanup()
    return str(commit)


def find_last_time(repository: pygit2.Repository) -> int | None:
    """Return the time of the newest commit of all refs, in seconds since 1970; None without a commit."""
    tips = (reference.peel() for reference in repository.references.iterator())
    return max((tip.commit_time for tip in tips if isinstance(tip, pygit2.Commit)), default=None)
