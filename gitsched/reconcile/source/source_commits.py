"""What reports say of commits of the source."""

from __future__ import annotations

from gitsched.git import Repository
from gitsched.model.commit import Commit
from gitsched.model.history import SourceChange
from gitsched.named_tuples import NamedTuple

MAX_TEXT = 1_000
"""Characters of a text of a commit: anyone who may push can write a message of many megabytes."""


def describe_source_commit(commit: Commit) -> SourceChange:
    """Return what reports say of a commit of the source."""
    is_merge = len(commit.parents) > 1
    return SourceChange(commit.oid, shorten_text(commit.subject), shorten_text(commit.author_name), commit.time, is_merge)


def find_source_commit(source: Repository, oid: str) -> SourceChange:
    """Return what reports say of a commit of the source; only its id where it is not available."""
    return describe_source_commit(source.commit(oid)) if source.has_commit(oid) else SourceChange(oid)


class CommitChange(NamedTuple):
    """The trees before and after a commit, and the paths that differ."""

    before: str
    after: str
    paths: list[str]


def find_change(source: Repository, oid: str) -> CommitChange | None:
    """Return what a commit changed; None where it, or the commit before, is not available."""
    commit = source.commit(oid) if source.has_commit(oid) else None
    if commit is None or not commit.parents or not source.has_commit(commit.parents[0]):
        return None
    before = source.commit(commit.parents[0]).tree
    return CommitChange(before, commit.tree, source.changed_paths(before, commit.tree))


def shorten_text(text: str) -> str:
    """Return a text of a commit, at most MAX_TEXT characters of it."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text):,} characters)"
