"""gitsched explain: why a workload is placed on its clusters and not on others."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options
from gitsched.decide.registry import policy_apis

_SHAPES = {api.name: api.commands.native_explanation for api in policy_apis.values() if api.commands.native_explanation}


@click.command(
    "explain",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Why a workload is where it is", "explain deploy web -n shop"),
        ("Why it is not in one cluster, and what would move it there", "explain deploy/shop/web --why-not cloud-1"),
        ("What runs in a cluster, and what does not fit", "explain cluster cloud-1"),
    ),
)
@click.argument(
    "words", metavar="[KIND] NAME|KIND/NAME", nargs=-1, required=True, shell_complete=options.complete_with("explained")
)
@options.choose_namespace("Namespace of the workload; any by default.", default=None)
@click.option(
    "--why-not",
    metavar="CLUSTER",
    multiple=True,
    shell_complete=options.complete_with("clusters"),
    help="Only explain why this cluster is not selected, and what would select it.",
)
@click.option(
    "--revision",
    "--at",
    metavar="REVISION",
    shell_complete=options.complete_with("revisions"),
    help="Explain the result for this branch, tag or commit.",
)
@click.option("--worktree", is_flag=True, help="Explain the result for the files of the worktree.")
@options.RECORDED_METRICS
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.NOW
@options.choose_format("text", "markdown", "json", "yaml")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["gitsched", *_SHAPES]),
    default="gitsched",
    show_default=True,
    help="; ".join(("Schema of -o json and -o yaml", *(f"{name}: {text}" for name, text in _SHAPES.items()))) + ".",
)
@options.COLOR
@options.LOG
def command() -> None:
    """Explain the policy of a workload, the groups that were tried, why clusters are rejected, and how replicas are divided.

    KIND is written as for kubectl (deploy, deployments, Deployment); KIND/NAMESPACE/NAME replaces -n. A NAME alone, also as
    NAMESPACE/NAME, is the workload of this name, or a cluster. For cluster NAME (also a ManagedCluster): the workloads that run there, the
    free capacity, and why other workloads do not run there.
    """
