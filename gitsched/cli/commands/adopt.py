"""gitsched adopt: take over a running fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gitsched.cli import exit_codes, formats, output
from gitsched.kubectl.client import KubectlOptions
from gitsched.reconcile import RunSettings
from gitsched.reconcile.adoption.running_fleet import AdoptionInputs, adopt
from gitsched.reconcile.adoption.running_objects import ClusterInput
from gitsched.report.adoption import AdoptionReport, serialize_adoption, write_adoption


def run(
    dumps: tuple[str, ...],
    directories: tuple[Path, ...],
    clusters: tuple[tuple[str, str], ...],
    contexts: tuple[tuple[str, str], ...],
    kubeconfig: str,
    executable: str,
    timeout: float,
    not_running: tuple[str, ...],
    dry_run: bool,
    form: str,
    fail_on: exit_codes.FailOn,
    log_format: str,
    location: str,
    output_repository: str | None,
    **chosen: Any,
) -> int:
    """Carry out the command, and return its exit code."""
    if not (dumps or directories or clusters or contexts):
        raise click.UsageError("say what runs: a DUMP, --directories, --cluster or --context")

    output.configure_logging(log_format)
    inputs = AdoptionInputs(
        dumps,
        directories,
        tuple(ClusterInput(name, Path(path)) for name, path in clusters),
        contexts,
        KubectlOptions("", kubeconfig, timeout, executable),
        not_running,
    )
    settings = RunSettings(location=location, output=output_repository, observations="recorded", trusted=False, **chosen)
    with output.show_progress("Reading what runs"):
        result = adopt(settings, inputs, dry_run=dry_run)
    report = AdoptionReport(
        result.adoption,
        result.findings,
        result.source,
        result.branch,
        result.before or "",
        result.commit or "",
        result.changed,
        dry_run,
        result.objects,
    )
    formats.show_as(form, lambda width: write_adoption(report, width), lambda: serialize_adoption(report))
    return exit_codes.get_run_code(result.findings, fail_on)
