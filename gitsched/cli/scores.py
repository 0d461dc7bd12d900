"""gitsched scores: compute AddOnPlacementScores from metrics and write them as files."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output

if TYPE_CHECKING:
    from gitsched.reconcile.scores import ScoreFile


@click.command("scores")
@options.LOCATION
@options.CACHE
@options.HOSTS
@options.NOW
@click.option("--dry-run", is_flag=True, help="Print the documents to stdout and write no file.")
@options.LOG
def command(location: str, dry_run: bool, log_format: str, **chosen: Any) -> int:
    """Write AddOnPlacementScores from observations, as files of the worktree.

    Each ClusterScores of the worktree says what to ask Prometheus, or which numbers to take, and how they become scores from -100 to
    100. Commit what is written like any other file. Where an answer is missing the file stays as it is, and its scores end in time.
    """
    from gitsched.cli.validate import find_worktree_root
    from gitsched.model.errors import Permanent
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.scores import produce_scores

    output.configure_logging(log_format)
    root = find_worktree_root(location)
    if root is None:
        raise Permanent(f"{location} is no worktree, so there is no place for the scores")
    with output.show_progress("Observing"):
        scored = produce_scores(RunSettings(location=location, worktree=True, **chosen))
    for one in scored:
        if one.failure:
            click.echo(f"gitsched: {one.path} stays as it is: {one.failure}", err=True)
        elif dry_run:
            click.echo(one.text, nl=False)
        else:
            write_scores(root, one)
            click.echo(describe_scores(one))
    return exit_codes.TEMPORARY if any(one.failure for one in scored) else exit_codes.DONE


def write_scores(root: Path, scored: ScoreFile) -> None:
    """Write the file, unless it says the same already. Raises Permanent for a path that leads out of the worktree."""
    from gitsched.model.errors import Permanent

    path = root / PurePosixPath(scored.path)
    if not path.resolve().is_relative_to(root.resolve()) or ".git" in path.relative_to(root).parts:
        raise Permanent(f"{scored.path} is no path inside of the worktree")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scored.text, "utf-8")


def describe_scores(scored: ScoreFile) -> str:
    """One line about a file that was written."""
    shown = ", ".join(scored.left_out[:5]) + (", ..." if len(scored.left_out) > 5 else "")
    rest = f"; without any score, which counts as 0: {shown}" if scored.left_out else ""
    return f"{scored.path}: scores of {scored.clusters} clusters{rest}"
