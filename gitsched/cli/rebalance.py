"""gitsched rebalance: write a request to schedule workloads again, or to bring them back, and show what it would move."""

from __future__ import annotations

from datetime import timedelta

import click

from gitsched.cli import LazyCommand, options
from gitsched.model.time import parse_duration


def _read_ttl(_ctx: click.Context, _parameter: click.Parameter, value: str) -> timedelta | None:
    if value == "none":
        return None
    duration = timedelta() if value == "0" else parse_duration(value)
    if duration is None or duration.total_seconds() >= 2**31:
        raise click.BadParameter(f"{value!r} is neither a duration such as 24h nor `none`")
    return duration


@click.command(
    "rebalance",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Schedule one workload again", "rebalance web -n shop"),
        ("Write a request for all displaced workloads to a file", "rebalance --all-displaced --write"),
        ("Bring all workloads back to where they were at a commit", "rebalance --to HEAD --write"),
    ),
)
@click.argument("workloads", metavar="[[KIND/]NAME]...", nargs=-1, shell_complete=options.complete_with("workloads"))
@options.choose_namespace("Namespace of the workloads; with -l `default`, else any.", default=None)
@options.choose_labels("All workloads with these labels.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="With -l, in all namespaces.")
@click.option("--all-displaced", "displaced", is_flag=True, help="All workloads that would run on other clusters if scheduled now.")
@click.option(
    "--to",
    "revision",
    metavar="COMMIT",
    help="Bring the workloads, or all that are elsewhere now, back to their clusters at this commit of the source or the output branch.",
)
@click.option(
    "--only-unavailable",
    is_flag=True,
    help="Keep the replicas that clusters report as available, and move only the others.",
)
@click.option(
    "--no-companions", is_flag=True, help="Leave out Services, ConfigMaps and other objects that belong to the workloads."
)
@click.option(
    "--ttl",
    metavar="DURATION",
    default="24h",
    show_default=True,
    callback=_read_ttl,
    help="ttlSecondsAfterFinished of the request, such as 24h; `none` for a request that does not expire.",
)
@click.option("--write", is_flag=True, help="Write the request to a file of the worktree, by default rebalance/NAME.yaml.")
@click.option("--file", "path", metavar="PATH", help="With --write, the file, relative to the top of the worktree.")
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.NOW
@options.FORMAT
@options.LOG
def command() -> None:
    """Write a WorkloadRebalancer for the named workloads, for those with labels, or for all displaced ones, and show what it would move.

    With --to COMMIT, also annotate the workloads with the clusters that they had then (gitsched.io/preferred-clusters): the patch goes to
    stdout, or with --write to the files of the worktree.

    The document goes to stdout and the moves to stderr; with --write the document goes to a file. Commit it to carry the request out.
    KIND is written as for kubectl; KIND/NAMESPACE/NAME replaces -n. A NAME alone, also as NAMESPACE/NAME, is the workload of this name.
    Uncommitted changes of the worktree are taken into account. The same request has the same name; after it has been handled, the next
    one has another.
    """
