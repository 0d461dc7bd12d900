"""gitsched reconcile: plan, and commit to the output branch."""

from __future__ import annotations

from typing import Any

import click

from gitsched.cli import exit_codes, options, output, reports


@click.command("reconcile")
@options.SOURCE
@options.TARGET
@options.COMMIT
@options.METRICS
@options.EXPECT
@options.FAIL_ON
@reports.OPTION
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
    from gitsched.cli.reviewing import judge, review
    from gitsched.reconcile import Settings, reconcile
    from gitsched.report.data import describe_review
    from gitsched.report.text import write_run

    output.start_log(log_format)
    with output.progress("Reconciling"):
        run = reconcile(Settings(location=location, output=output_repository, **chosen))
    found = review(run)
    output.show_as(form, lambda width: write_run(found, width), lambda: describe_review(found))
    reports.write_reports(wanted, reports.list_writers(found.findings, found.outcomes))
    return judge(found, fail_on)
