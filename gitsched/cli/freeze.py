"""gitsched freeze: freeze placements, and lift the freeze."""

from __future__ import annotations

import click

from gitsched.cli import LazyCommand, options


@click.command(
    "freeze",
    cls=LazyCommand,
    epilog=options.show_examples(
        ("Withhold changes of placed workloads", "freeze 'maintenance until 18:00'"),
        ("Lift the freeze", "freeze --lift"),
    ),
)
@click.argument("reason", default="")
@click.option("--lift", is_flag=True, help="Lift the freeze.")
@options.SOURCE
@options.TARGET
@options.OUTPUT_COMMIT
@options.NOW
@options.FORMAT
@options.LOG
def command() -> None:
    """Freeze placements for a REASON: until the freeze is lifted, no placed workload changes its placement except by failover.

    Commits the file FREEZE with the reason to the output branch, or removes it with --lift, as the author whom git knows. git can do the
    same.
    """
