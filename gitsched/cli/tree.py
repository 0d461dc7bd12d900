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
        ("One of several objects with the same name", "tree deploy/shop/web -o json"),
    ),
)
@click.argument("name", metavar="CLUSTER|[KIND/][NAMESPACE/]NAME", shell_complete=options.complete_with("tree roots"))
@options.choose_namespace("Namespace of the workload.")
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

    KIND is written as for kubectl. With two words, the first one is a namespace or a kind.
    """
