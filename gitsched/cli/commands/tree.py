"""gitsched tree: what is in a cluster, or where a workload is with what belongs to it."""

from __future__ import annotations

from typing import Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.workload_names import parse_kind
from gitsched.reconcile import RunSettings
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.report.fleet_tree import serialize_fleet_tree, write_fleet_tree


def run(
    name: str, namespace: str, form: str, color: str, log_format: str, location: str, output_repository: str | None, **chosen: Any
) -> int:
    """Carry out the command, and return its exit code."""
    parts = name.split("/")
    if len(parts) > 3 or not all(parts):
        raise click.UsageError(f"invalid name {name!r}: expected CLUSTER, NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME")
    if len(parts) == 3 and namespace not in ("", parts[1]):
        raise click.UsageError(f"-n {namespace} and {name!r} name different namespaces")
    output.configure_logging(log_format)
    kind = parse_kind(parts[0]) if len(parts) > 1 else ""
    with output.show_progress("Reading") as progress:
        settings = RunSettings(
            location=location, output=output_repository, observations="recorded", trusted=False, progress=progress, **chosen
        )
        found = read_fleet_tree(settings, parts, kind, namespace)
    formats.show_as(form, lambda _: write_fleet_tree(found, output.choose_paint(color)), lambda: serialize_fleet_tree(found))
    return exit_codes.DONE
