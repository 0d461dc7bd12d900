"""Read what rollouts need of the previous output: their records, the contents of files, and the commits that clusters may report on."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from gitsched.git import Repository
from gitsched.git.trees import apply_edits, hash_file
from gitsched.model.planned_files import ExistingBlob, NewBlob, PatchedBlob, PlannedFile, WritableFile
from gitsched.model.rollouts import RolloutInput
from gitsched.reconcile.output.patched_manifests import write_patch
from gitsched.reconcile.run import Fetched, RunContext

MAX_COMMITS: Final = 1000
"""The latest output commits that reports of clusters may be about."""


def read_rollout_input(context: RunContext, fetched: Fetched) -> RolloutInput:
    """Return what rollouts read; the commits are listed on demand."""
    records = fetched.record.rollouts if fetched.record is not None else ()
    output = fetched.output.repository
    list_commits = lru_cache(maxsize=1)(partial(list_output_commits, output, fetched.output_head))
    return RolloutInput(records, partial(_hash_file, context), list_commits, partial(_read_text, context, output))


def _hash_file(context: RunContext, file: PlannedFile) -> str:
    if isinstance(file, PatchedBlob):
        return hash_file(context.source.repository.blob, write_patch(context, file))
    return hash_file(context.source.repository.blob, file)


def _read_text(context: RunContext, output: Repository, file: WritableFile) -> str:
    """Return the text of a file, which may be one of the source or of the previous output."""
    if isinstance(file, NewBlob):
        return file.data.decode("utf-8", "replace")
    data = (output if output.has(file.blob) else context.source.repository).blob(file.blob)
    return (data if isinstance(file, ExistingBlob) else apply_edits(data, file.edits)).decode("utf-8", "replace")


def list_output_commits(repository: Repository, head: str | None) -> tuple[str, ...]:
    """Return the latest commits of the output branch, the newest first, as far as the repository has them."""
    return tuple(commit.oid for commit in repository.list_first_parents(head, MAX_COMMITS))
