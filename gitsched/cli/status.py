"""gitsched status: which output commit each cluster has applied, whether it is healthy, and what is where."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "status",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Each cluster, and totals", "status"),
        ("Where each workload is", "status --workloads"),
        ("What no policy selects", "status --unclaimed"),
    ),
)
@click.option("--workloads", is_flag=True, help="Show where each workload is.")
@click.option("--unclaimed", is_flag=True, help="List the objects that no policy selects.")
@click.option(
    "--detailed-exitcode",
    "detailed",
    is_flag=True,
    help="Exit with 2 if a cluster is not ready, not healthy or behind, or a rollout has stopped.",
)
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.RECORDED_METRICS
@options.NOW
@options.FORMAT
@options.LOG
def command() -> None:
    """Show each cluster: ready, workloads, the output commit that it has applied, healthy, and how many changes it is behind.

    Reports come from the facts branches, and from the commit statuses that the last run recorded; --observations live reads these from the
    forge.
    """
