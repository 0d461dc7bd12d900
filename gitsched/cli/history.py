"""gitsched history: which workload moved when, from where to where and why, from the commits of the output branch."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import click

from gitsched.cli import LazyCommand, options
from gitsched.model.time import add_duration, parse_duration, parse_time

_AGE = re.compile(r"(\d{1,5})([dw])", re.ASCII)
_DAYS = {"d": 1, "w": 7}


def _read_time(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> datetime | None:
    """Return a day, a time, or what is so long before --now, which is read first."""
    if value is None:
        return None
    now: datetime = ctx.params["now"]
    day = {"today": now, "yesterday": add_duration(now, -timedelta(days=1))}.get(value.lower())
    if day is not None:
        return day.replace(hour=0, minute=0, second=0, microsecond=0)
    match = _AGE.fullmatch(value)
    age = timedelta(days=int(match[1]) * _DAYS[match[2]]) if match else parse_duration(value)
    time = parse_time(value) or parse_time(f"{value}T00:00:00Z") or (add_duration(now, -age) if age is not None else None)
    if time is None:
        raise click.BadParameter(
            f"{value!r} is neither a day such as 2026-01-12, yesterday or today, a time such as 2026-01-12T09:00:00Z, nor an age such as "
            "90m, 1h, 2d or 1w"
        )
    return time


@click.command(
    "history",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("One workload since yesterday", "history shop/web --since yesterday"),
        ("What moved in a namespace in the last hour", "history -n shop --since 1h"),
        ("What arrived in a cluster or left it, as a page", "history --cluster cloud-1 -o html"),
    ),
)
@click.argument("words", metavar="[[KIND/][NAMESPACE/]NAME]", nargs=-1, shell_complete=options.complete_with("names"))
@options.choose_namespace("Only workloads of this namespace.")
@click.option(
    "--cluster",
    default="",
    metavar="NAME",
    shell_complete=options.complete_with("clusters"),
    help="Only workloads that arrive in this cluster, leave it, or are scaled there.",
)
@click.option(
    "--since", metavar="TIME", callback=_read_time, help="Only commits since a day (UTC), a time (RFC 3339), or 1h, 2d, yesterday."
)
@click.option("--until", metavar="TIME", callback=_read_time, help="Only commits until then.")
@click.option(
    "-m",
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
@options.COLOR
@options.LOG
def command() -> None:
    """Show which workload moved when, from where to where, and why: the commits of the output branch, the newest first.

    Everything comes from the records of the branch and from the commits of the source; no plan is made. WORKLOAD and names may contain *
    and ?.
    """
