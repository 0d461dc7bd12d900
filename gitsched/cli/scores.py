"""gitsched scores: compute AddOnPlacementScores from metrics, and commit them to the facts branch or write them as files."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "scores",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Scores from the metrics providers", "scores"),
        ("From one provider host only", "scores --metrics-host prometheus.example.com"),
    ),
)
@options.LOCATION
@options.OPERATOR_FILE
@options.FACTS_COMMIT
@options.CACHE
@options.ALLOW_LIST
@options.NOW
@click.option("--dry-run", is_flag=True, help="Print the documents to stdout instead of writing them.")
@options.LOG
def command() -> None:
    """Compute AddOnPlacementScores from metrics.

    Each ClusterScores document of the source specifies Prometheus queries or constant values, and how to convert them into scores
    from -100 to 100. The scores are committed to the branch that `source.facts.branch` in gitsched.yaml names; without this setting they
    are written as files of the worktree. Unchanged scores are written again only when less than half of their time remains.

    A series without a valid value affects the score of its cluster only. If a query fails, its file is not changed and its scores expire.
    """
