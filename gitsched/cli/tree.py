"""gitsched tree: what is in a cluster, or where a workload is with what belongs to it."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "tree",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("What is in a cluster", "tree cloud-1"),
        ("Where a workload is", "tree shop/web"),
        ("One of several objects with the same name", "tree deploy web -n shop"),
    ),
)
@click.argument(
    "words",
    metavar="CLUSTER|[KIND] NAME|KIND/NAME",
    nargs=-1,
    required=True,
    shell_complete=options.complete_with("tree roots"),
)
@options.choose_namespace("Namespace of the workload; any by default.", default=None)
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.NOW
@options.FORMAT
@options.COLOR
@options.LOG
def command() -> None:
    """Show a cluster with its workloads by namespace, or a workload with its policy, clusters, replicas, companions and the copies that
    stay for an overlap. Placements are those on the output branch.

    KIND is written as for kubectl; KIND/NAMESPACE/NAME replaces -n. A NAME alone, also as NAMESPACE/NAME, is a cluster, or the workload of
    this name.
    """
