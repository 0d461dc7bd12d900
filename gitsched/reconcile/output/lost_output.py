"""Restore a local output branch that a crash of the machine or a garbage collection has damaged."""

from __future__ import annotations

from gitsched.git import is_url
from gitsched.git.lost_objects import Restored, describe_loss, restore_branch
from gitsched.git.notes import NOTES_REF
from gitsched.git.objects import LostObject
from gitsched.git.output import list_state_refs
from gitsched.git.repository import Repository
from gitsched.git.torn_files import TORN
from gitsched.model.errors import Permanent
from gitsched.model.finding import Finding
from gitsched.reconcile.fetch import read_run_record, read_source_config
from gitsched.reconcile.run import RunContext
from gitsched.report.lines import abbreviate_oid


def restore_output(context: RunContext, error: LostObject) -> Finding:
    """Move the local output branch back to its newest complete commit, and return the warning about that.

    The next run plans on top of it what the lost commits had. Raise Permanent with the commands that repair the repository if something
    else is lost, or no commit of a run is complete.
    """
    settings = context.settings
    config = read_source_config(context).output
    branch = (settings.output_branch or config.branch).removeprefix("refs/heads/")
    path = config.path if settings.output_path is None else settings.output_path
    prefix = f"{path}/" if path else ""

    def is_own(repository: Repository, commit: str) -> bool:
        try:
            return read_run_record(repository, repository.commit(commit).tree, prefix) is not None
        except Permanent:
            return False

    restored = None
    if not settings.push and _is_output(settings.output, error.path):
        restored = restore_branch(error, branch, {NOTES_REF, *list_state_refs(branch, prefix)}, is_own)
    if restored is None:
        raise describe_loss(error) from error
    return Finding("warning", "output-restored", _describe(restored, branch))


def _is_output(location: str | None, path: str) -> bool:
    """Return whether the output is in the local repository with this Git directory."""
    return location is None or (not is_url(location) and Repository(location).path == path)


def _describe(restored: Restored, branch: str) -> str:
    lost, complete = abbreviate_oid(restored.lost), abbreviate_oid(restored.complete)
    if not restored.lost:
        what = f"the output branch {branch} had a damaged file that names no commit"
    elif restored.torn:
        what = f"the output branch {branch} has damaged objects at commit {lost}"
    else:
        what = f"the output branch {branch} has lost objects at commit {lost}"
    if not restored.complete:
        then = "it begins anew, because no complete commit of it is known, and all workloads are placed for the first time"
    elif restored.complete == restored.lost:
        then = "what is damaged is written again"
    else:
        then = f"it continues from {complete}, its newest complete commit, and what came after that is planned anew"
    kept = f"; damaged files are kept in {TORN} of the Git directory" if restored.torn or not restored.lost else ""
    return f"{what}: {then}{kept}; check the disk, and that nothing but git removes files of the repository"
