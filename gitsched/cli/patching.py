"""gitsched export knative: decisions that only an API server can take, as patches."""

from __future__ import annotations

from typing import Any

import click

from gitsched.cli import options, output


@click.command("knative")
@click.option("--revision", metavar="REVISION", help="Export what is decided at this branch, tag or commit.")
@click.option("--worktree", is_flag=True, help="Export what is decided for the files as they lie in the worktree.")
@options.SOURCE
@options.TARGET
@options.NOW
@options.FORMAT
@options.LOG
def knative(
    worktree: bool,
    form: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> None:
    """Print what was decided as patches: placements of event sources, marks of pods that are to be emptied, replicas.

    They live in a status, or in objects that somebody else applies, so they cannot come from Git. The text is kubectl commands for a
    shell. What the documents in the source say already is left out.
    """
    if worktree and chosen["revision"] is not None:
        raise click.UsageError("--worktree and --revision exclude each other")
    from gitsched.apis.knative.patches import describe_patches, make_patches, write_commands
    from gitsched.reconcile import Settings, preview

    output.start_log(log_format)
    with output.progress("Planning"):
        settings = Settings(location=location, worktree=worktree, output=output_repository, observations="recorded", **chosen)
        decided = preview(settings, whole=True).plan.decided
    records = (record for session in decided.sessions if session.name == "knative" for record in session.documents())
    patches = make_patches(records, decided.catalog.templates.values())
    output.show_as(form, lambda _: write_commands(patches), lambda: describe_patches(patches))
