"""What reports say of commits of the source."""

from __future__ import annotations

from gitsched.git import Repository
from gitsched.model.commit import Commit
from gitsched.model.history import SourceChange

MAX_TEXT = 1_000
"""Characters of a text of a commit: anyone who may push can write a message of many megabytes."""


def describe_source_commit(commit: Commit) -> SourceChange:
    """Return what reports say of a commit of the source."""
    is_merge = len(commit.parents) > 1
    return SourceChange(commit.oid, shorten_text(commit.subject), shorten_text(commit.author_name), commit.time, is_merge)


def find_source_commit(source: Repository, oid: str) -> SourceChange:
    """Return what reports say of a commit of the source; only its id where it is not available."""
    return describe_source_commit(source.commit(oid)) if source.has_commit(oid) else SourceChange(oid)


def shorten_text(text: str) -> str:
    """Return a text of a commit, at most MAX_TEXT characters of it."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}... ({len(text):,} characters)"
