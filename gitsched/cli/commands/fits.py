"""gitsched fits: show which branches or pull requests fit together, before any is merged."""

from __future__ import annotations

import time
from typing import Any

from gitsched.cli import exit_codes, output
from gitsched.cli.commands.reconciliation import group_options
from gitsched.cli.result_writer import ResultWriter
from gitsched.reconcile import RunSettings
from gitsched.reconcile.review.merged_changes import find_fits
from gitsched.report.fits import list_fit_blocks, serialize_fits, write_fits


def run(
    refs: tuple[str, ...],
    base: str | None,
    limit: int,
    form: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    output.configure_logging(log_format)
    settings = RunSettings(
        location=location,
        revision=base,
        output=output_repository,
        trusted=False,
        observations="recorded",
        **group_options(chosen),
    )
    end = time.monotonic() + limit
    with output.show_progress("Planning") as progress:
        report = find_fits(settings._replace(progress=progress), base, refs, lambda: time.monotonic() > end)
    writer = ResultWriter(form, "Pull requests together", write_fits, list_fit_blocks, serialize_fits, file_name="fits")
    writer.write(report)
    writer.show()
    return exit_codes.DONE if len(report.found.sequence) == len(report.changes) else exit_codes.FINDINGS
