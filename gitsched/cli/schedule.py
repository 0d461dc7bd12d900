"""gitsched schedule: schedule the documents of files and print the result, without a Git repository."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gitsched.cli import exit_codes, options, output
from gitsched.model.finding import Finding, Location, finding_sort_key

if TYPE_CHECKING:
    from gitsched.manifests.parsed_file import ParsedFile
    from gitsched.model.document import Body


def _read_now(ctx: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    return None if value is None else options.read_now(ctx, parameter, value)


@click.command(
    "schedule",
    epilog=options.show_examples(
        ("Documents of two files", "schedule -f clusters.yaml -f web.yaml"),
        ("From stdin, with the result of an earlier run", "schedule -f - --previous placed.yaml"),
    ),
)
@click.option("-f", "--filename", "names", metavar="FILE", multiple=True, help="File of documents, `-` for stdin; may be repeated.")
@click.argument("more", metavar="[FILE]...", nargs=-1)
@click.option("--previous", metavar="FILE", multiple=True, help="Output of an earlier run to continue from.")
@click.option(
    "--now",
    metavar="TIME",
    callback=_read_now,
    help="Time for deadlines (RFC 3339); the latest time in the documents by default.",
)
@options.STRICT
@options.FAIL_ON
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["yaml", "json"]),
    default="yaml",
    show_default=True,
    help="A YAML stream, or a JSON List.",
)
@options.LOG
def command(
    names: tuple[str, ...],
    more: tuple[str, ...],
    previous: tuple[str, ...],
    now: datetime | None,
    strict: bool,
    fail_on: exit_codes.FailOn,
    form: str,
    log_format: str,
) -> int:
    """Schedule the documents of files and print the scheduled documents.

    The first Config among the documents (apiVersion gitsched.io/v1alpha1) contains the settings. Findings go to stderr.
    """
    if not names:
        raise click.UsageError("no documents: use at least one -f FILE, or -f - for stdin")
    from gitsched import schedule

    output.configure_logging(log_format)
    bodies, unread = read_documents([*names, *more])
    before, unread_before = read_documents(previous)
    decided = schedule(bodies, previous=before, now=now, upstream_defaults=False, strictness="strict" if strict else "protective")
    findings = sorted([*unread, *unread_before, *decided.findings], key=finding_sort_key)
    output.log_findings(findings)
    output.show(format_documents(decided.documents, form))
    pending = sum(outcome.state == "pending" for outcome in decided.decisions.outcomes.values())
    return exit_codes.get_run_code(findings, fail_on, pending=pending)


def read_documents(names: Iterable[str]) -> tuple[list[Body], list[Finding]]:
    """Return the documents of files in order, and findings for those that cannot be read."""
    from gitsched.manifests.parser import parse_file

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
        import json

        return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}, indent=2) + "\n"
    from gitsched.render.yaml import dump

    return "---\n".join(map(dump, documents))
