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
@click.option("--dry-run", is_flag=True, help="Print the documents to stdout instead of writing files.")
@options.LOG
def command(location: str, dry_run: bool, log_format: str, **chosen: Any) -> int:
    """Write AddOnPlacementScores computed from metrics as files of the worktree.

    Each ClusterScores document of the worktree specifies Prometheus queries or constant values, and how to convert them into scores
    from -100 to 100. Commit the files like any other. If a query fails, the file is not changed and its scores expire.
    """
    from gitsched.cli.validate import find_worktree_root
    from gitsched.model.errors import Permanent
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.scores import produce_scores

    output.configure_logging(log_format)
    root = find_worktree_root(location)
    if root is None:
        raise Permanent(f"{location} is not a worktree, so the scores cannot be written")
    with output.show_progress("Observing"):
        scored = produce_scores(RunSettings(location=location, worktree=True, **chosen))
    for one in scored:
        if one.failure:
            click.echo(f"gitsched: {one.path} not changed: {one.failure}", err=True)
        elif dry_run:
            click.echo(one.text, nl=False)
        else:
            write_scores(root, one)
            click.echo(describe_scores(one))
    return exit_codes.TEMPORARY if any(one.failure for one in scored) else exit_codes.DONE


def write_scores(root: Path, scored: ScoreFile) -> None:
    """Write the file. Raises Permanent for a path outside of the worktree."""
    from gitsched.model.errors import Permanent

    path = root / PurePosixPath(scored.path)
    if not path.resolve().is_relative_to(root.resolve()) or ".git" in path.relative_to(root).parts:
        raise Permanent(f"{scored.path} is not a path inside the worktree")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(scored.text, "utf-8")


def describe_scores(scored: ScoreFile) -> str:
    """Return a line about a file that was written."""
    shown = ", ".join(scored.left_out[:5]) + (", ..." if len(scored.left_out) > 5 else "")
    missing = f"; clusters without score, which counts as 0: {shown}" if scored.left_out else ""
    return f"{scored.path}: scores of {scored.clusters} clusters{missing}"
