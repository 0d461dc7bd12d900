"""gitsched explain: why a workload is placed on its clusters and not on others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.cli.workload_names import parse_clusters, parse_words
from gitsched.cli.worktree import NOT_PLANNED, note_uncommitted
from gitsched.model.explanation import ClusterExplanation, Explanation
from gitsched.model.finding import list_faults
from gitsched.reconcile import RunSettings
from gitsched.reconcile.review.explanation import explain_resource
from gitsched.report.blocks import blocks_to_markdown
from gitsched.report.cluster_explanation import (
    list_cluster_explanation_blocks,
    serialize_cluster_explanation,
    write_cluster_explanation,
)
from gitsched.report.explanation import list_explanation_blocks, serialize_explanation, write_explanation

if TYPE_CHECKING:
    from gitsched.report.paint import Paint


def run(
    words: tuple[str, ...],
    namespace: str | None,
    why_not: tuple[str, ...],
    worktree: bool,
    form: str,
    shape: str,
    color: str,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    kind, space, name = parse_words(words, namespace)
    if worktree and chosen["revision"] is not None:
        raise click.UsageError("--worktree and --revision exclude each other")
    if shape != "gitsched" and form in ("text", "markdown"):
        raise click.UsageError(f"--format {shape} needs -o json or -o yaml")

    output.configure_logging(log_format)
    settings = RunSettings(location=location, worktree=worktree, output=output_repository, trusted=False, **chosen)
    if not worktree and chosen["revision"] is None and chosen["branch"] is None:
        note_uncommitted(location, log_format, NOT_PLANNED)
    with output.show_progress("Planning") as progress:
        found = explain_resource(settings._replace(progress=progress), kind, space, name, parse_clusters(why_not))
    if isinstance(found, ClusterExplanation):
        _show_cluster(found, form, output.choose_paint(color))
    else:
        _show_workload(found, form, shape, output.choose_paint(color))
    return exit_codes.FINDINGS if isinstance(found, Explanation) and list_faults(found.findings) else exit_codes.DONE


def _show_cluster(found: ClusterExplanation, form: str, paint: Paint | None) -> None:
    if form == "markdown":
        formats.show_text(blocks_to_markdown(list_cluster_explanation_blocks(found)))
    else:
        formats.show_as(
            form, lambda width: write_cluster_explanation(found, width, paint), lambda: serialize_cluster_explanation(found)
        )


def _show_workload(found: Explanation, form: str, shape: str, paint: Paint | None) -> None:
    native = found.native
    if shape != "gitsched" and native is None:
        raise click.UsageError(
            f"{found.workload} has no explanation with --format {shape}: the policy API {shape!r} does not decide it"
        )
    if form == "markdown":
        formats.show_text(blocks_to_markdown(list_explanation_blocks(found)))
        return
    formats.show_as(
        form,
        lambda width: write_explanation(found, width, paint),
        lambda: serialize_explanation(found) if shape == "gitsched" or native is None else dict(native),
    )
