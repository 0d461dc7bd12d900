"""Read what rollouts need of the previous output: their records, and the commits that clusters may report on."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from gitsched.git import Repository
from gitsched.git.trees import hash_file
from gitsched.model.planned_files import PatchedBlob, PlannedFile
from gitsched.model.rollouts import RolloutInput
from gitsched.reconcile.run import Fetched, RunContext

MAX_COMMITS: Final = 1000
"""The latest output commits that reports of clusters may be about."""


def read_rollout_input(context: RunContext, fetched: Fetched) -> RolloutInput:
    """Return what rollouts read; the commits are listed on demand."""
    records = fetched.record.rollouts if fetched.record is not None else ()
    list_commits = lru_cache(maxsize=1)(partial(list_output_commits, fetched.output.repository, fetched.output_head))
    return RolloutInput(records, partial(_hash_file, context), list_commits)


def _hash_file(context: RunContext, file: PlannedFile) -> str:
    if isinstance(file, PatchedBlob):
        from gitsched.reconcile.output.patched_manifests import write_patch  # most plans patch nothing

        return hash_file(context.source.repository.blob, write_patch(context, file))
    return hash_file(context.source.repository.blob, file)


def list_output_commits(repository: Repository, head: str | None) -> tuple[str, ...]:
    """Return the latest commits of the output branch, the newest first, as far as the repository has them."""
    commits: list[str] = []
    while head and len(commits) < MAX_COMMITS and repository.has(head):
        commits.append(head)
        parents = repository.commit(head).parents
        head = parents[0] if parents else None
    return tuple(commits)
