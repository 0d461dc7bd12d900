"""gitsched validate: check all documents and report findings with file, line and column."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import click

from gitsched.cli import exit_codes, formats, output, reports
from gitsched.cli.worktree import find_worktree_root, note_uncommitted
from gitsched.model.finding import UNSCHEDULABLE, Location
from gitsched.reconcile import RunSettings, validate_source
from gitsched.report.finding_report import FindingReport
from gitsched.report.serialization import serialize_findings
from gitsched.report.text import write_findings


def run(
    target: str | None,
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    wanted: tuple[output.ReportRequest, ...],
    color: str,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
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
    findings, unselected = list(validated.findings), validated.unselected
    if path is not None and root is not None:
        below = below_path(path.resolve(), root)
        findings = [finding for finding in findings if below(finding.location)]
        unselected = tuple(one for one in unselected if below(one.cause.location))
    unclaimed = validated.unclaimed if path is None else 0
    formats.show_as(
        form,
        lambda width: write_findings(findings, width, output.choose_paint(color), unclaimed, unselected),
        lambda: serialize_findings(findings),
    )
    reports.write_reports(wanted, reports.list_report_writers(FindingReport(findings)))
    pending = sum(finding.code == UNSCHEDULABLE for finding in findings)
    return exit_codes.get_run_code(findings, fail_on, pending=pending)


def below_path(path: Path, root: Path) -> Callable[[Location | None], bool]:
    """Return whether a location is in a file or directory of the worktree, as a function."""
    if not path.is_relative_to(root):
        raise click.UsageError(f"{path} is outside the worktree {root}")
    top = PurePosixPath(path.relative_to(root).as_posix())
    return lambda location: location is not None and PurePosixPath(location.path).is_relative_to(top)
