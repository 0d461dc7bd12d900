"""gitsched freeze: freeze placements, and lift the freeze."""

from __future__ import annotations

from typing import Any

import click

from gitsched.cli import exit_codes, options, output


@click.command(
    "freeze",
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
def command(
    reason: str, lift: bool, form: str, log_format: str, location: str, output_repository: str | None, **chosen: Any
) -> int:
    """Freeze placements for a REASON: until the freeze is lifted, no placed workload changes its placement except by failover.

    Commits the file FREEZE with the reason to the output branch, or removes it with --lift; git can do the same.
    """
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.output.freeze import set_freeze
    from gitsched.report.serialization import API_VERSION

    output.configure_logging(log_format)
    if bool(reason.strip()) == lift:
        raise click.UsageError("give either a reason, or --lift")
    with output.show_progress("Writing the output branch"):
        result = set_freeze(RunSettings(location=location, output=output_repository, **chosen), reason.strip())
    state = f"Placements are frozen: {result.frozen}" if result.frozen else "Placements are not frozen by the output branch"
    effect = f"committed {result.commit[:12]} to {result.branch}" if result.commit else f"{result.branch} did not change"
    output.show_as(
        form,
        lambda _: f"{state} ({effect}).\n",
        lambda: {
            "apiVersion": API_VERSION,
            "kind": "Freeze",
            "frozen": result.frozen,
            "branch": result.branch,
            "commit": result.commit,
        },
    )
    return exit_codes.DONE
