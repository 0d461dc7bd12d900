"""gitsched scores: compute AddOnPlacementScores from metrics, and commit them to the facts branch or write them as files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.worktree import find_worktree_root
from gitsched.model.errors import Permanent
from gitsched.model.finding import format_count
from gitsched.model.system_errors import make_write_error
from gitsched.reconcile import RunSettings
from gitsched.reconcile.facts.scores import check_replaceable, produce_scores
from gitsched.reconcile.worktree_file import create_file, replace_file, resolve_worktree_file
from gitsched.report.lines import abbreviate_oid

if TYPE_CHECKING:
    from gitsched.reconcile.facts.scores import ScoreFile, ScoreRun


def run(location: str, dry_run: bool, log_format: str, **chosen: Any) -> int:
    """Carry out the command, and return its exit code."""
    output.configure_logging(log_format)
    root = find_worktree_root(location)
    with output.show_progress("Observing"):
        run = produce_scores(RunSettings(location=location, worktree=root is not None, **chosen), write=not dry_run)
    for finding in run.findings:
        output.LOGGER.warning("%s", finding.without_severity, extra={"fields": {"event": "finding", "code": finding.code}})
    for one in run.files:
        if one.failure:
            click.echo(f"gitsched: {one.path} not changed: {one.failure}", err=True)
        elif dry_run:
            output.show(one.text)
        else:
            if not run.branch and one.changed:
                write_scores(root, location, one)
            formats.show_text(
                f"{one.path}: scores of {format_count(one.clusters, 'cluster')}{'' if one.changed else ', unchanged'}\n"
            )
    if run.branch and not dry_run:
        formats.show_text(f"{describe_commit(run)}\n")
    return exit_codes.TEMPORARY if any(one.failure for one in run.files) else exit_codes.DONE


def write_scores(root: Path | None, location: str, scored: ScoreFile) -> None:
    """Write the file. Raises Permanent without a worktree, for a path outside of it, in .git or of a symlink, and for a file of others."""
    if root is None:
        raise Permanent(
            f"{location} is not a worktree, so the scores cannot be written: set spec.source.facts.branch to commit them"
        )
    path = resolve_worktree_file(root, scored.path)
    try:
        if not path.exists():
            create_file(path, scored.text)
            return
        before = path.read_bytes()
        check_replaceable(scored.path, before)
        replace_file(path, before, scored.text.encode())
    except OSError as error:
        raise make_write_error(scored.path, error) from error


def describe_commit(run: ScoreRun) -> str:
    """Return a line about the commit on the facts branch."""
    return f"Committed {abbreviate_oid(run.commit)} to {run.branch}." if run.commit else f"Nothing to commit to {run.branch}."
