"""gitsched shadow: compare gitsched's decisions with those of a running hub."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from gitsched import validate
from gitsched.apis.gitsched.config import KIND, parse_config
from gitsched.cli import exit_codes, formats, output
from gitsched.cli.commands.schedule import read_documents
from gitsched.model.finding import Finding
from gitsched.model.hub_comparison import HubComparisonResult
from gitsched.reconcile.shadow.shadow_run import shadow_hub
from gitsched.report.hub_comparison import serialize_hub_comparison, write_hub_comparison
from gitsched.report.page.hub_comparison import write_hub_comparison_page


def run(first: Path, second: Path, settings: Path | None, now: datetime | None, form: str, log_format: str) -> int:
    """Carry out the command, and return its exit code."""
    output.configure_logging(log_format)
    for path in (first, second):
        if not path.exists():
            raise click.UsageError(f"there is no file or directory {path}")
    spec = _read_settings(settings) if settings is not None else {}
    with output.show_progress("Comparing the dumps"):
        result = shadow_hub(first, second, spec, now)
    if form == "html":
        output.show(write_hub_comparison_page(result))
    else:
        formats.show_as(form, lambda width: write_hub_comparison(result, width), lambda: serialize_hub_comparison(result))
    return _get_code(result)


def _read_settings(path: Path) -> Mapping[str, Any]:
    """Return the spec of a gitsched.yaml. What is wrong with it is a usage error: nothing is compared with other settings."""
    bodies, findings = read_documents([str(path)])
    configs = [body for body in bodies if body.get("kind") == KIND]
    findings += validate(configs)
    error: Finding | None = next((finding for finding in findings if finding.severity == "error"), None)
    if error is not None:
        raise click.UsageError(f"{path}: {error.without_severity}")
    if len(configs) != 1:
        raise click.UsageError(f"{path} has {len(configs)} documents of kind {KIND}; a gitsched.yaml has one")
    spec = configs[0].get("spec")
    settings = spec if isinstance(spec, dict) else {}
    try:
        parse_config(settings, upstream=True)
    except ValueError as invalid:
        raise click.UsageError(f"{path}: {invalid}") from invalid
    return settings


def _get_code(result: HubComparisonResult) -> int:
    errors = [finding for finding in result.findings if finding.severity == "error"]
    if any(finding.code.startswith("shadow-") for finding in errors):
        return exit_codes.USAGE
    return exit_codes.FINDINGS if errors or result.counts["different"] else exit_codes.DONE
