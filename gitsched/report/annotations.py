"""Findings as GitHub Actions workflow commands, shown beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gitsched.model.finding import Finding

MAX_ANNOTATIONS = {"error": 10, "warning": 10, "info": 10}
"""What GitHub shows of one step for each level; it drops the rest in silence."""
_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def write_annotations(findings: Sequence[Finding], paths: Collection[str] = ()) -> str:
    """One command a line, the worst findings first; within a level those in `paths`, the files that a change touches, come first, since
    only they show beside a line. What is more than GitHub would show is counted in the last one of its level.
    """
    lines = []
    for level, most in MAX_ANNOTATIONS.items():
        entries = [finding for finding in findings if finding.severity == level]
        entries.sort(key=lambda finding: finding.location is None or finding.location.path not in paths)
        left = len(entries) - most
        lines += [_format_command(finding) for finding in (entries if left <= 0 else entries[: most - 1])]
        if left > 0:
            lines.append(f"::{_COMMANDS[level]} title=gitsched::{left + 1} more findings of this level are not shown here")
    return "".join(f"{line}\n" for line in lines)


def _format_command(finding: Finding) -> str:
    place = finding.location
    where = f"file={_escape_property(place.path)},line={place.line},col={place.column}," if place else ""
    return f"::{_COMMANDS[finding.severity]} {where}title={_escape_property(finding.code)}::{_escape_data(finding.message)}"


def _escape_data(text: str) -> str:
    """A command ends with its line: nothing in a manifest may begin another one."""
    safe = "".join(c if c.isprintable() or c in "\r\n" else "\ufffd" for c in text)
    return safe.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
