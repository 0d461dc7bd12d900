"""gitsched status: which output commit each cluster has applied, whether it is healthy, and what is where."""

from __future__ import annotations

from typing import Any

import click

from gitsched.cli import exit_codes, options, output


@click.command(
    "status",
    epilog=options.show_examples(
        ("Each cluster, and totals", "status"),
        ("Where each workload is", "status --workloads"),
        ("What no policy selects", "status --unclaimed"),
    ),
)
@click.option("--workloads", is_flag=True, help="Show where each workload is.")
@click.option("--unclaimed", is_flag=True, help="List the objects that no policy selects.")
@click.option(
    "--detailed-exitcode",
    "detailed",
    is_flag=True,
    help="Exit with 2 if a cluster is not ready, not healthy or behind, or a rollout has stopped.",
)
@options.SOURCE
@options.TARGET
@options.STATE
@options.FETCH
@options.RECORDED_METRICS
@options.NOW
@options.FORMAT
@options.LOG
def command(
    workloads: bool,
    unclaimed: bool,
    detailed: bool,
    form: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Show each cluster: ready, workloads, the output commit that it has applied, healthy, and how many changes it is behind.

    Reports come from the facts branches, and from the commit statuses that the last run recorded; --observations live reads these from the
    forge.
    """
    from gitsched.reconcile import RunSettings
    from gitsched.reconcile.review.fleet_status import read_fleet_status
    from gitsched.report.fleet_status import serialize_fleet_status, write_fleet_status

    output.configure_logging(log_format)
    if workloads and unclaimed:
        raise click.UsageError("give either --workloads or --unclaimed")
    with output.show_progress("Reading") as progress:
        is_live = chosen["observations"] == "live"
        found = read_fleet_status(
            RunSettings(location=location, output=output_repository, trusted=is_live, progress=progress, **chosen)
        )
    output.show_as(
        form,
        lambda _: write_fleet_status(found, workloads=workloads, unclaimed=unclaimed),
        lambda: serialize_fleet_status(found),
    )
    return exit_codes.CHANGES if detailed and found.needs_attention else exit_codes.DONE
