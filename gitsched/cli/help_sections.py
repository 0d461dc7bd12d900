"""Sections of a --help: the options of the command, then those that many commands have, and the exit codes."""

from __future__ import annotations

from collections.abc import Iterable

import click

_OWN, _SOURCE, _METRICS, _REPORTS = "Options", "Source and output", "Metrics and tokens", "Reports and logs"
_SECTIONS = {
    _SOURCE: (
        *("location", "branch", "paths", "revision", "worktree", "strict", "operator_file", "facts_repository", "cache", "state"),
        *("output_repository", "output_branch", "push", "author", "signing", "require_reviewed", "now"),
    ),
    _METRICS: ("observations", "hosts", "status_hosts", "tokens", "remotes"),
    _REPORTS: ("form", "color", "each", "wanted", "fail_on", "detailed", "log_format"),
}
"""The parameters of the sections that several commands share; all others are the command's own."""
_CODES = {0: "success; there may be warnings", 2: "wrong usage", 3: "a bug in gitsched", 4: "a temporary failure: try again"}
_FINDINGS = "a finding of severity error, withheld changes, or invalid input"
_OTHER_CODES = {
    "plan": {2: "wrong usage; with --detailed-exitcode also: there are changes"},
    "status": {2: "wrong usage; with --detailed-exitcode also: something is wrong"},
    "tidy": {2: "wrong usage; with --detailed-exitcode also: there are expired documents"},
    "simulate": {1: "with --fail-on short: something cannot be placed; or invalid input"},
    "shadow": {1: "decisions differ", 2: "wrong usage, or the dumps cannot be compared"},
    "watch": {0: "ended by SIGTERM", 130: "ended by SIGINT"},
}
_WITHOUT_CODES = ("version", "schemas", "help-code")


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options in sections, the command's own first, and then the exit codes."""
    groups: dict[str, list[tuple[str, str]]] = {_OWN: [], _SOURCE: [], _METRICS: [], _REPORTS: []}
    section_of = {name: section for section, names in _SECTIONS.items() for name in names}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None and record[1]:
            groups[section_of.get(parameter.name or "", _OWN)].append(record)
    for title, records in groups.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
    if command.name not in _WITHOUT_CODES:
        with formatter.section("Exit codes"):
            formatter.write_dl(list(_list_codes(command.name or "")))


def _list_codes(name: str) -> Iterable[tuple[str, str]]:
    codes = {**_CODES, 1: _FINDINGS, **_OTHER_CODES.get(name, {})}
    return ((str(code), codes[code]) for code in sorted(codes))
