"""gitsched reconcile: plan, and commit to the output branch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output, reports
from gitsched.model.errors import Permanent

if TYPE_CHECKING:
    from gitsched.reconcile.reviewed import Reviewed


def _read_reviewed(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> Reviewed | None:
    if value is None:
        return None
    from gitsched.reconcile.reviewed import parse_reviewed

    try:
        return parse_reviewed(value if value.startswith("sha256:") else Path(value).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, Permanent) as error:
        raise click.BadParameter(f"{value}: {error}") from error


@click.command("reconcile")
@options.SOURCE
@options.TARGET
@options.COMMIT
@click.option(
    "--reviewed",
    metavar="DIGEST|FILE",
    callback=_read_reviewed,
    help="The plan that was reviewed: its digest, or what `gitsched plan -o json` wrote. The source commit's trailer by default.",
)
@options.METRICS
@options.EXPECT
@options.FAIL_ON
@reports.report_option("env")
@options.FORMAT
@options.LOG
def command(
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    wanted: tuple[reports.Report, ...],
    **chosen: Any,
) -> int:
    """Decide where everything runs, and commit that to the output branch.

    Commits only if a decision or a manifest changed. Findings do not stop what is valid.
    """
    from gitsched.cli.reviewing import judge
    from gitsched.reconcile import Settings, reconcile
    from gitsched.reconcile.account import review
    from gitsched.report.data import describe_review
    from gitsched.report.text import write_run

    output.start_log(log_format)
    with output.progress("Reconciling"):
        run = reconcile(Settings(location=location, output=output_repository, **chosen))
    found = review(run)
    output.show_as(form, lambda width: write_run(found, width), lambda: describe_review(found))
    writers = reports.list_writers(found.findings, found.outcomes)
    reports.write_reports(wanted, {**writers, "env": lambda: reports.list_outputs(found)})
    return judge(found, fail_on)
