"""gitsched validate: check all documents and report findings with file, line and column."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import click

from gitsched.cli import exit_codes, options, output
from gitsched.cli.worktree import find_worktree_root, note_uncommitted
from gitsched.model.finding import Finding


@click.command(
    "validate",
    epilog=options.show_examples(
        ("The worktree", "validate"),
        ("One file", "validate policies/web.yaml"),
        (
            "A branch, with warnings as failures and a report for the forge",
            "validate main --fail-on warning --report sarif=out.sarif",
        ),
    ),
)
@click.argument("target", metavar="[PATH|REVISION]", required=False, shell_complete=options.complete_with("targets"))
@options.SOURCE
@options.NOW
@options.FAIL_ON
@output.REPORT_OPTION
@options.FORMAT
@options.COLOR
@options.LOG
def command(
    target: str | None,
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    wanted: tuple[output.ReportRequest, ...],
    color: str,
    **chosen: Any,
) -> int:
    """Check manifests, clusters and policies against their schemas and against each other.

    Checks the worktree if there is one, or the commit of REVISION. With PATH, all documents are checked, because policies and the
    documents that they select are checked together, but only findings below PATH are shown.
    """
    from gitsched.reconcile import RunSettings, validate_source
    from gitsched.report.serialization import serialize_findings
    from gitsched.report.text import write_findings

    output.configure_logging(log_format)
    root = find_worktree_root(location)
    # As in git commands, an argument that exists as a file is a path, and a revision otherwise.
    path = Path(location, target) if target is not None and Path(location, target).exists() else None
    if path is not None and root is None:
        raise click.UsageError(f"{target} is a path, but {location} is not a worktree; use a revision")
    if path is None and target is not None and target.endswith((".yaml", ".yml", ".json")):
        raise click.UsageError(f"there is no file {target}")
    settings = RunSettings(
        location=location,
        revision=target if path is None else None,
        worktree=root is not None and (path is not None or target is None),
        **chosen,
    )
    if settings.worktree:
        note_uncommitted(location, log_format, "are|is validated, too; plan and reconcile read commits")
    with output.show_progress("Validating") as progress:
        validated = validate_source(settings._replace(progress=progress))
    findings = list(validated.findings)
    if path is not None and root is not None:
        findings = filter_below(findings, path.resolve(), root)
    unclaimed = validated.unclaimed if path is None else 0
    output.show_as(
        form,
        lambda width: write_findings(findings, width, output.choose_paint(color), unclaimed),
        lambda: serialize_findings(findings),
    )
    output.write_reports(wanted, output.list_report_writers(findings))
    pending = sum(finding.code == "unschedulable" for finding in findings)
    return exit_codes.get_run_code(findings, fail_on, pending=pending)


def filter_below(findings: Iterable[Finding], path: Path, root: Path) -> list[Finding]:
    """Return the findings in a file or directory of the worktree."""
    if not path.is_relative_to(root):
        raise click.UsageError(f"{path} is outside the worktree {root}")
    top = PurePosixPath(path.relative_to(root).as_posix())
    return [finding for finding in findings if finding.location and PurePosixPath(finding.location.path).is_relative_to(top)]
