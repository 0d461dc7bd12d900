"""Restore an output branch whose newest commits have lost objects, such as by a crash of the machine or a garbage collection."""

from __future__ import annotations

from gitsched.git.lost_objects import describe_loss, restore_branch
from gitsched.git.repository import LostObject, Repository
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

    def is_own(repository: Repository, commit: str) -> bool:
        return read_run_record(repository, repository.commit(commit).tree, f"{path}/" if path else "") is not None

    moved = None if settings.push or settings.output else restore_branch(error, branch, is_own)
    if moved is None:
        raise describe_loss(error) from error
    lost, complete = map(abbreviate_oid, moved)
    message = (
        f"the output branch {branch} has lost objects at commit {lost}: it continues from {complete}, its newest complete commit, and what "
        "came after that is planned anew; check the disk, and that nothing but git removes files of the repository"
    )
    return Finding("warning", "output-restored", message)
