"""Findings as SARIF, JUnit and annotations of GitHub Actions, for --report."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gitsched import __version__
from gitsched.cli.documentation import read_documentation
from gitsched.model.finding import Finding
from gitsched.model.scheduling import Outcome
from gitsched.report.annotations import write_annotations
from gitsched.report.finding_codes import read_codes
from gitsched.report.junit import write_junit
from gitsched.report.sarif import write_sarif


def write_findings(form: str, findings: Sequence[Finding], outcomes: Iterable[Outcome], paths: Collection[str]) -> str:
    """Return findings in a format of --report that all commands support; see `write_annotations` for `paths`."""
    if form == "sarif":
        return write_sarif(findings, read_codes(read_documentation("findings.md")), __version__)
    if form == "junit":
        return write_junit(findings, outcomes)
    return write_annotations(findings, paths)
