"""gitsched status: whether anything is wrong, which output commit each cluster has applied, and what is where."""

from __future__ import annotations

from typing import Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.reconcile import RunSettings
from gitsched.reconcile.review.fleet_status import read_fleet_status
from gitsched.report.fleet_status import serialize_fleet_status, write_fleet_status


def run(
    workloads: bool,
    unclaimed: bool,
    namespace: str,
    detailed: bool,
    form: str,
    color: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    output.configure_logging(log_format)
    if workloads and unclaimed:
        raise click.UsageError("give either --workloads or --unclaimed")
    if namespace and not (workloads or unclaimed):
        raise click.UsageError("-n is for --workloads and --unclaimed")
    with output.show_progress("Reading") as progress:
        is_live = chosen["observations"] == "live"
        found = read_fleet_status(
            RunSettings(location=location, output=output_repository, trusted=is_live, progress=progress, **chosen)
        )
    formats.show_as(
        form,
        lambda width: write_fleet_status(
            found, width, workloads=workloads, unclaimed=unclaimed, namespace=namespace, paint=output.choose_paint(color)
        ),
        lambda: serialize_fleet_status(found),
    )
    return exit_codes.CHANGES if detailed and found.needs_attention else exit_codes.DONE
