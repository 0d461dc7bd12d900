"""gitsched history: which workload moved when, from where to where and why, from the commits of the output branch."""

from __future__ import annotations

from datetime import datetime

import click

from gitsched.cli import LazyCommand, options
from gitsched.model.time import parse_time


def _read_time(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    time = parse_time(value) or parse_time(f"{value}T00:00:00Z")
    if value is not None and time is None:
        raise click.BadParameter(f"{value!r} is neither a day such as 2026-01-12 nor an RFC 3339 time such as 2026-01-12T09:00:00Z")
    return time


@click.command(
    "history",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("The last commits of the output branch", "history"),
        ("One workload since a day", "history shop/web --since 2026-01-12"),
        ("What arrived in a cluster or left it, as a page", "history --cluster cloud-1 -o html"),
    ),
)
@click.argument("workload", default="", metavar="[[KIND/][NAMESPACE/]NAME]", shell_complete=options.complete_with("names"))
@click.option(
    "--namespace",
    default="",
    metavar="NAME",
    shell_complete=options.complete_with("namespaces"),
    help="Only workloads of this namespace.",
)
@click.option(
    "--cluster",
    default="",
    metavar="NAME",
    shell_complete=options.complete_with("clusters"),
    help="Only workloads that arrive in this cluster, leave it, or are scaled there.",
)
@click.option("--since", metavar="TIME", callback=_read_time, help="Only commits since this day (UTC) or time (RFC 3339).")
@click.option("--until", metavar="TIME", callback=_read_time, help="Only commits until then.")
@click.option(
    "-n",
    "--max-count",
    "limit",
    type=click.IntRange(min=1, max=10_000),
    default=20,
    show_default=True,
    metavar="NUMBER",
    help="The number of commits.",
)
@click.option(
    "--from", "start", default="", metavar="COMMIT", help="Start at this commit of the output branch; its head by default."
)
@options.SOURCE
@options.TARGET
@options.FETCH
@options.NOW
@options.choose_format("text", "json", "yaml", "html")
@options.LOG
def command() -> None:
    """Show which workload moved when, from where to where, and why: the commits of the output branch, the newest first.

    Everything comes from the records of the branch and from the commits of the source; no plan is made. WORKLOAD and names may contain *
    and ?.
    """
