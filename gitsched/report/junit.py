"""Findings and workloads as JUnit XML, which every CI system shows as tests."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from gitsched.model.finding import Finding
from gitsched.model.outcome import Outcome


def write_junit(findings: Iterable[Finding], outcomes: Iterable[Outcome]) -> str:
    """Two suites: a case for each finding, and one for each workload.

    Errors fail, and so does a workload without a place; warnings and notes pass with their text, a workload whose decision is stale is
    skipped.
    """
    suites = [
        _suite("findings", [_finding_case(finding) for finding in findings]),
        _suite("workloads", [_workload_case(outcome) for outcome in outcomes]),
    ]
    return "".join(['<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="gitsched">\n', *suites, "</testsuites>\n"])


def _suite(name: str, cases: list[str]) -> str:
    failures = sum("<failure" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    head = f'  <testsuite name="{name}" tests="{len(cases)}" failures="{failures}" errors="0" skipped="{skipped}"'
    return f"{head}>\n{''.join(cases)}  </testsuite>\n" if cases else f"{head}/>\n"


def _finding_case(finding: Finding) -> str:
    place = finding.location
    subject = "/".join(filter(None, finding.resource)) if finding.resource else ""
    name = ": ".join(filter(None, (str(place) if place else subject, finding.code)))
    where = f" file={_quote(place.path)} line={_quote(str(place.line))}" if place else ""
    if finding.severity == "error":
        said = f"<failure type={_quote(finding.code)} message={_quote(finding.message)}>{_text(str(finding))}</failure>"
    else:
        said = f"<system-out>{_text(str(finding))}</system-out>"
    return f"    <testcase classname={_quote(place.path if place else 'gitsched')} name={_quote(name)}{where}>{said}</testcase>\n"


def _workload_case(outcome: Outcome) -> str:
    key = outcome.key
    head = f"    <testcase classname={_quote('.'.join(filter(None, (key.namespace, key.kind))))} name={_quote(str(key))}"
    reason = outcome.reason or "no cluster can take it"
    if outcome.state == "pending":
        return f'{head}><failure type="unschedulable" message={_quote(reason)}/></testcase>\n'
    if outcome.state == "stale":
        return f"{head}><skipped message={_quote(outcome.reason or 'kept as decided before')}/></testcase>\n"
    return f"{head}/>\n"


def _quote(text: str) -> str:
    return quoteattr(_allowed(text))


def _text(text: str) -> str:
    return escape(_allowed(text))


def _allowed(text: str) -> str:
    """What XML 1.0 has no way to write becomes U+FFFD."""
    return "".join(
        c if c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff" else "\ufffd" for c in text
    )
