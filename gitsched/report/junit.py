"""Findings and workloads as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from gitsched.model.finding import Finding
from gitsched.model.scheduling import Outcome
from gitsched.report.lines import escape_unprintable


def write_junit(findings: Iterable[Finding], outcomes: Iterable[Outcome]) -> str:
    """Return two test suites: one case for each finding, and one case for each workload.

    Errors and unplaced workloads fail. Warnings and notes pass, with their text as output. Stale workloads are skipped.
    """
    suites = [
        _write_suite("findings", [_write_finding_case(finding) for finding in findings]),
        _write_suite("workloads", [_write_workload_case(outcome) for outcome in outcomes]),
    ]
    return "".join(['<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="gitsched">\n', *suites, "</testsuites>\n"])


def _write_suite(name: str, cases: list[str]) -> str:
    failures = sum("<failure" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    head = f'  <testsuite name="{name}" tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}"'
    return f"{head}>\n{''.join(cases)}  </testsuite>\n" if cases else f"{head}/>\n"


def _write_finding_case(finding: Finding) -> str:
    location = finding.location
    resource = "/".join(filter(None, finding.resource)) if finding.resource else ""
    name = ": ".join(filter(None, (str(location) if location else resource, finding.code)))
    position = f" file={_quote_attribute(location.path)} line={_quote_attribute(str(location.line))}" if location else ""
    if finding.severity == "error":
        attributes = f"type={_quote_attribute(finding.code)} message={_quote_attribute(finding.text)}"
        content = f"<failure {attributes}>{_escape_text(str(finding))}</failure>"
    else:
        content = f"<system-out>{_escape_text(str(finding))}</system-out>"
    attributes = f"classname={_quote_attribute(location.path if location else 'gitsched')} name={_quote_attribute(name)}{position}"
    return f"    <testcase {attributes}>{content}</testcase>\n"


def _write_workload_case(outcome: Outcome) -> str:
    key = outcome.key
    class_name = ".".join(filter(None, (key.namespace, key.kind)))
    head = f"    <testcase classname={_quote_attribute(class_name)} name={_quote_attribute(str(key))}"
    reason = outcome.reason or "no cluster fits"
    if outcome.state == "pending":
        return f'{head}><failure type="unschedulable" message={_quote_attribute(reason)}/></testcase>\n'
    if outcome.state == "stale":
        return (
            f"{head}><skipped message={_quote_attribute(outcome.reason or 'stale: the previous placement is kept')}/></testcase>\n"
        )
    return f"{head}/>\n"


def _quote_attribute(text: str) -> str:
    return quoteattr(_escape_unprintable_lines(text))


def _escape_text(text: str) -> str:
    return escape(_escape_unprintable_lines(text))


def _escape_unprintable_lines(text: str) -> str:
    """Escape characters that XML 1.0 cannot represent, or that change what a terminal shows."""
    return "\n".join(map(escape_unprintable, text.split("\n")))
