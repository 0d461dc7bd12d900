"""gitsched tree: what is in a cluster, or where a workload is with what belongs to it."""

from __future__ import annotations

from typing import Any

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.workload_names import parse_words
from gitsched.reconcile import RunSettings
from gitsched.reconcile.review.fleet_tree import read_fleet_tree
from gitsched.report.fleet_tree import serialize_fleet_tree, write_fleet_tree


def run(
    words: tuple[str, ...],
    namespace: str | None,
    form: str,
    color: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    kind, space, name = parse_words(words, namespace)
    output.configure_logging(log_format)
    with output.show_progress("Reading") as progress:
        settings = RunSettings(
            location=location, output=output_repository, observations="recorded", trusted=False, progress=progress, **chosen
        )
        found = read_fleet_tree(settings, kind, space, name)
    formats.show_as(form, lambda _: write_fleet_tree(found, output.choose_paint(color)), lambda: serialize_fleet_tree(found))
    return exit_codes.DONE
