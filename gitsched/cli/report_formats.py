"""Findings as SARIF, JUnit and annotations of GitHub Actions, for --report. `FINDING_FORMATS` in cli/output.py names the functions."""

from __future__ import annotations

from gitsched import __version__
from gitsched.cli.documentation import read_documentation
from gitsched.report.annotations import write_annotations
from gitsched.report.finding_codes import read_codes
from gitsched.report.finding_report import FindingReport
from gitsched.report.junit import write_junit
from gitsched.report.sarif import write_sarif


def write_sarif_report(report: FindingReport) -> str:
    return write_sarif(report.findings, read_codes(read_documentation("findings.md")), __version__)


def write_junit_report(report: FindingReport) -> str:
    return write_junit(report.findings, report.outcomes)


def write_annotation_report(report: FindingReport) -> str:
    return write_annotations(report.findings, report.changed_paths)
