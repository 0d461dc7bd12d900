"""gitsched schedule: schedule the documents of files and print the result, without a Git repository."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched import schedule
from gitsched.cli import exit_codes, output
from gitsched.manifests.parser import parse_file
from gitsched.model.finding import Finding, Location, sort_findings
from gitsched.render.yaml import dump

if TYPE_CHECKING:
    from gitsched.manifests.parsed_file import ParsedFile
    from gitsched.model.document import Body


def run(
    names: tuple[str, ...],
    more: tuple[str, ...],
    previous: tuple[str, ...],
    now: datetime | None,
    strict: bool,
    fail_on: exit_codes.FailOn,
    form: str,
    log_format: str,
) -> int:
    """Carry out the command, and return its exit code."""
    if not names:
        raise click.UsageError("no documents: use at least one -f FILE, or -f - for stdin")

    output.configure_logging(log_format)
    bodies, unread = read_documents([*names, *more])
    before, unread_before = read_documents(previous)
    decided = schedule(bodies, previous=before, now=now, upstream_defaults=False, strictness="strict" if strict else "protective")
    findings = sort_findings([*unread, *unread_before, *decided.findings])
    output.log_findings(findings)
    output.show(format_documents(decided.documents, form))
    pending = sum(outcome.state == "pending" for outcome in decided.decisions.outcomes.values())
    return exit_codes.get_run_code(findings, fail_on, pending=pending)


def read_documents(names: Iterable[str]) -> tuple[list[Body], list[Finding]]:
    """Return the documents of files in order, and findings for those that cannot be read."""
    bodies: list[Body] = []
    findings: list[Finding] = []
    for name in names:
        try:
            data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        except OSError as error:
            raise click.UsageError(f"cannot read {name}: {error.strerror}") from error
        path = "stdin" if name == "-" else name
        file = parse_file(data, path=path, validate=None)
        if not file.documents and not file.issues:
            findings.append(_make_empty_finding(path, file))
        bodies += [document.body for document in file.documents if not document.broken]
        findings += [
            Finding(problem.severity, problem.code, problem.message, Location(path, problem.line, problem.column), problem.resource)
            for problem in file.issues
        ]
    return bodies, findings


def _make_empty_finding(path: str, file: ParsedFile) -> Finding:
    """Return a finding for a file without documents: unlike files of a repository, a file on the command line must be a manifest."""
    if file.status == "empty":
        return Finding("warning", "no-documents", "the file is empty", Location(path, 1, 1))
    return Finding("error", "no-documents", f"the file contains no document: {file.reason}", Location(path, 1, 1))


def format_documents(documents: list[dict[str, Any]], form: str) -> str:
    """Return a YAML stream, or a JSON `kind: List`."""
    if form == "json":
        return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}, indent=2) + "\n"

    return "---\n".join(map(dump, documents))
