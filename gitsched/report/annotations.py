"""Findings as GitHub Actions workflow commands, shown beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gitsched.model.finding import Finding

MAX_ANNOTATIONS = {"error": 10, "warning": 10, "info": 10}
"""The number of annotations that GitHub shows for each level of one step; it drops the others without a message."""
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def write_annotations(findings: Sequence[Finding], paths: Collection[str] = ()) -> str:
    """Return one workflow command per line, the most severe findings first.

    Within a level, findings in `paths` (the files that a change touches) come first, because GitHub shows only these beside a line.
    If a level has more findings than GitHub shows, its last command counts the others.
    """
    lines = []
    for level, most in MAX_ANNOTATIONS.items():
        entries = [finding for finding in findings if finding.severity == level]
        entries.sort(key=lambda finding: finding.location is None or finding.location.path not in paths)
        omitted = len(entries) - most
        lines += [_format_command(finding) for finding in (entries if omitted <= 0 else entries[: most - 1])]
        if omitted > 0:
            lines.append(f"::{_COMMANDS[level]} title=gitsched::{omitted + 1} more findings of this level are not shown here")
    return "".join(f"{line}\n" for line in lines)


def _format_command(finding: Finding) -> str:
    location = finding.location
    position = f"file={_escape_property(location.path)},line={location.line},col={location.column}," if location else ""
    return f"::{_COMMANDS[finding.severity]} {position}title={_escape_property(finding.code)}::{_escape_data(finding.text)}"


def _escape_data(text: str) -> str:
    """Escape the message so that text from a manifest cannot start a second command on a new line."""
    printable = "".join(c if c.isprintable() or c in "\r\n" else "\ufffd" for c in text)
    return printable.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
