"""gitsched drain, cordon and uncordon: edit the taints of clusters in the worktree, and show what that leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.workload_names import parse_clusters
from gitsched.cli.worktree import require_worktree_root
from gitsched.reconcile import RunSettings
from gitsched.reconcile.maintenance import plan_maintenance, write_edits
from gitsched.report.maintenance import serialize_maintenance, write_maintenance

if TYPE_CHECKING:
    from gitsched.model.labels import Selector
    from gitsched.model.maintenance import Action


def run(
    action: Action,
    clusters: tuple[str, ...],
    labels: Selector | None,
    dry_run: bool,
    form: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    if bool(clusters) == (labels is not None):
        raise click.UsageError("name clusters, or choose them with -l SELECTOR")
    output.configure_logging(log_format)
    root = require_worktree_root(location)
    with output.show_progress("Simulating") as progress:
        settings = RunSettings(location=location, output=output_repository, trusted=False, progress=progress, **chosen)
        found = plan_maintenance(settings, action, parse_clusters(clusters), labels)
    is_written = not dry_run and not found.problems
    if is_written:
        write_edits(root, found.files)
    formats.show_as(
        form,
        lambda width: write_maintenance(found, width, written=is_written),
        lambda: serialize_maintenance(found, written=is_written),
    )
    return exit_codes.FINDINGS if found.problems else exit_codes.DONE
