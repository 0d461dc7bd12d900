"""Whose reports a run waits for, and of which output commits they may be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from gitsched.apis.ocm.names import CLUSTER, GROUP, REPLICA_SET
from gitsched.apis.ocm.rollout import follows_reports
from gitsched.git import Repository
from gitsched.reconcile.snapshot import Snapshot

LOOKED_BACK = 5
"""Output commits that are asked for what clusters reported of them."""


def list_reporters(snapshot: Snapshot) -> set[str]:
    """The clusters that may report; none where no rollout follows what they say."""
    if not any(follows_reports(loose.body) for loose in snapshot.documents if loose.kind == REPLICA_SET):
        return set()
    return {loose.name for loose in snapshot.documents if (loose.group, loose.kind) == (GROUP, CLUSTER)}


def list_recent(repository: Repository, head: str | None) -> Iterator[tuple[str, datetime]]:
    """The latest commits of the output with their dates, the newest first: clusters that are slow still speak of the one before."""
    for _ in range(LOOKED_BACK):
        if not head or not repository.has(head):
            break
        commit = repository.commit(head)
        yield head, commit.time
        head = commit.parents[0] if commit.parents else None
