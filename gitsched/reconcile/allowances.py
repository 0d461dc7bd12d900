"""Read which withheld changes are allowed: by options of the run, and by trailers of the source commits since the last run."""

from __future__ import annotations

from gitsched.git import Repository
from gitsched.model.changes import ALLOW_TRAILER
from gitsched.model.commit import Commit
from gitsched.reconcile.run import Fetched, RunContext

MAX_COMMITS = 1000
"""Commits since the last run whose trailers count."""


def list_allowed_changes(context: RunContext, fetched: Fetched) -> frozenset[str]:
    """Return the digests that the options and the source commits since the last run allow.

    In a shallow clone the commits that it has count.
    """
    last = fetched.record.source if fetched.record is not None else ""
    commits = _list_commits(context.source.repository, fetched.source, last)
    trailers = (text.strip() for commit in commits for name, text in commit.trailers if name.lower() == ALLOW_TRAILER.lower())
    return frozenset((*context.settings.allowed, *trailers))


def _list_commits(repository: Repository, head: Commit, last: str) -> list[Commit]:
    """Return the ancestors of a commit, the nearest first, up to the commit of the last run."""
    found, pending = {head.oid: head}, [head]
    for commit in pending:
        for parent in commit.parents:
            if parent != last and parent not in found and len(found) < MAX_COMMITS and repository.has(parent):
                found[parent] = repository.commit(parent)
                pending.append(found[parent])
    return pending
