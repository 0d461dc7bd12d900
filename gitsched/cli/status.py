"""gitsched status: whether anything is wrong, which output commit each cluster has applied, and what is where."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "status",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Each cluster, and totals", "status"),
        ("Where each workload of a namespace is", "status --workloads -n shop"),
        ("What no policy selects", "status --unclaimed"),
    ),
)
@click.option("--workloads", is_flag=True, help="Show where each workload is.")
@click.option("--unclaimed", is_flag=True, help="List the objects that no policy selects.")
@options.choose_namespace("With --workloads and --unclaimed: only those of this namespace.")
@click.option(
    "--detailed-exitcode",
    "detailed",
    is_flag=True,
    help="Exit with 2 if the first line says that something needs attention.",
)
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.RECORDED_METRICS
@options.NOW
@options.FORMAT
@options.COLOR
@options.LOG
def command() -> None:
    """Show whether anything is wrong, what the runs of the last three days took from workloads and how to undo that, and each cluster:
    ready, workloads, the output commit that it has applied, healthy, and how many changes it is behind.

    READY is Unknown where the condition of the cluster is that or nobody has observed it, and Gone where it has no document any more.
    Reports come from the facts branches, and from the commit statuses that the last run recorded; --observations live reads these from
    the forge.
    """
