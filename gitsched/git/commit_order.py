"""How two commits of a source follow each other, also where a clone lacks the history between them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from gitsched.git.private_clone import PrivateClone
from gitsched.git.remote_refs import fetch
from gitsched.model.errors import GitschedError
from gitsched.temporary_directory import TemporaryDirectory

if TYPE_CHECKING:
    from gitsched.git.repository import Repository
    from gitsched.git.source import SourceRepository

CommitOrder = Literal["later", "earlier", "diverged", "unknown"]
"""Of a commit and another one: it has that in its history, it is in the history of that, neither of them, or it is not known."""
MAX_DEPTH = 1_000
"""The commits of a history that are fetched to compare two commits."""


def compare_commits(source: SourceRepository, commit: str, other: str) -> CommitOrder:
    """Return how a commit and another one of the source follow each other: "diverged" also if that one exists no more.

    Where the clone does not have enough of the history, the remote is asked for the commits alone; the clone stays as it is.
    """
    repository = source.repository
    found = _compare(repository, commit, other)
    # A shallow clone may lack the very commits that connect them.
    if found != "unknown" and not (found == "diverged" and repository.is_shallow):
        return found
    url = source.find_url()
    found = _compare_fetched(source, url, commit, other) if url is not None else "unknown"
    return "diverged" if found == "unknown" and _has_history(repository, commit) else found


def _compare(repository: Repository, commit: str, other: str) -> CommitOrder:
    """Return how two commits follow each other in the available history; "unknown" if one of them is not available."""
    if repository.has_ancestor(commit, other):
        return "later"
    if repository.has_ancestor(other, commit):
        return "earlier"
    return "diverged" if repository.has_commit(commit) and repository.has_commit(other) else "unknown"


def _compare_fetched(source: SourceRepository, url: str, commit: str, other: str) -> CommitOrder:
    """Return what the remote says of two commits: "unknown" if it cannot be asked, or does not have enough of them."""
    with TemporaryDirectory("commits") as directory:
        clone = PrivateClone(url, directory, settings=source.repository if source.url is None else None)
        for oids in ([commit, other], [commit], [other]):
            try:
                clone.refresh(partial(fetch, url=url, refspecs=oids, depth=MAX_DEPTH, only_commits=True))
                break
            except GitschedError:  # the remote lacks one of them, or does not send objects by id
                continue
        history = clone.repository
        found = _compare(history, commit, other)
        if found in ("later", "earlier") or history.find_merge_base(commit, other) is not None:
            return found
        return "diverged" if _has_history(history, commit) else "unknown"


def _has_history(repository: Repository, commit: str) -> bool:
    """Return whether the whole history of a commit is available."""
    return not repository.is_shallow and repository.has_commit(commit)
