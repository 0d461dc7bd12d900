"""gitsched simulate: show the effect of losing, draining or adding clusters, zones, regions or providers, or of scaling workloads."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options, scenario_options


@click.command(
    "simulate",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("The loss of a cluster", "simulate --lose cloud-1"),
        ("The loss of each region, one at a time", "simulate --sweep regions"),
        ("Twice the replicas in a namespace, with a new cluster", "simulate --scale 'shop/*=2' --add-like cloud-1=cloud-2"),
    ),
)
@click.argument("merged", nargs=-1, metavar="[merge FILE...]")
@click.option(
    "--lose",
    metavar="WHAT",
    multiple=True,
    shell_complete=options.complete_with("scopes"),
    help="Lose a CLUSTER, node/NAME, zone/NAME, region/NAME or provider/NAME.",
)
@click.option(
    "--drain",
    metavar="WHAT",
    multiple=True,
    shell_complete=options.complete_with("scopes"),
    help="As --lose, but workloads that tolerate all taints stay.",
)
@click.option("--add", metavar="FILE", multiple=True, help="Add the clusters of FILE; `-` is stdin.")
@click.option("--add-like", metavar="CLUSTER=NEW", multiple=True, help="Add an empty cluster NEW that is otherwise like CLUSTER.")
@click.option(
    "--scale",
    metavar="WORKLOADS=FACTOR",
    multiple=True,
    help="Multiply replicas, rounded up. WORKLOADS is [KIND/][NAMESPACE/]NAME with * and ?, or labels as KEY=VALUE,...",
)
@click.option("--fresh", is_flag=True, help="Ignore previous placements: schedule all workloads as if for the first time.")
@click.option(
    "--sweep",
    type=click.Choice([*scenario_options.FAILURE_DOMAINS, *scenario_options.MANY_LOSSES]),
    help="Lose each of them, one at a time, to show the resilience of the fleet; each pair of clusters, or random ones.",
)
@click.option(
    "--samples", type=click.IntRange(1, 1_000_000), metavar="N", help="With --sweep random: how many losses are drawn at random."
)
@click.option(
    "--rates",
    metavar="FILE",
    help="With --sweep random: failure rates of clusters, zones and others, for the availability of each workload.",
)
@click.option(
    "--size",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="With --sweep random and without --rates: how many clusters a loss has; 3 by default.",
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="With --sweep random: other losses than those of 0, the default.")
@click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="With --sweep: number of processes; that of the cores by default."
)
@click.option("--shard", metavar="I/N", help="With --sweep and --out: only the I-th of N parts of the losses.")
@click.option("--out", metavar="FILE", help="With --shard: write the results to FILE, for `gitsched simulate merge`.")
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="With --sweep: simulate on the workers of a Dask cluster, tls://HOST:PORT or localhost:PORT; needs gitsched[dask].",
)
@click.option(
    "--lost",
    type=click.Choice(["gone", "silent"]),
    default="gone",
    show_default=True,
    help="Meaning of --lose and --sweep: the cluster is removed (gone), or unreachable, so that only policies react (silent).",
)
@click.option(
    "--against",
    metavar="REVISION",
    shell_complete=options.complete_with("revisions"),
    help="With --sweep: compare with this revision.",
)
@click.option(
    "--revision", metavar="REVISION", shell_complete=options.complete_with("revisions"), help="Simulate this branch, tag or commit."
)
@click.option("--worktree", is_flag=True, help="Simulate the files of the worktree.")
@click.option(
    "--fail-on",
    type=click.Choice(["short", "none"]),
    default="none",
    show_default=True,
    help="Exit with 1 if replicas or workloads cannot be placed, with --against if more than before, or never.",
)
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.NOW
@options.choose_format("text", "markdown", "json", "yaml", "html")
@options.LOG
def command() -> None:
    """Show which workloads would move, which would not fit, and how many replicas would be missing. Writes nothing, contacts no cluster.

    All events of the options happen at the same time. With --sweep, each loss is simulated on its own; `gitsched simulate merge FILE...`
    shows the result of all shards.
    """
