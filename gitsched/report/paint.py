"""Colours of text for a terminal. Colour repeats what signs and words say, so text without it has the same bytes otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

Role = Literal["heading", "added", "removed", "changed", "error", "warning", "note"]
Paint = Callable[[str, Role], str]
"""Return text in the colour of its role; the text has no unprintable characters."""

_SIGN_ROLES: dict[str, Role] = {"+": "added", "-": "removed", "~": "changed"}
_DIFF_ROLES: dict[str, Role] = {"+": "added", "-": "removed", "@": "note"}
_SEVERITY_ROLES: dict[str, Role] = {"error": "error", "warning": "warning", "info": "note"}


def paint_sign(line: str, mark: str, paint: Paint) -> str:
    """Paint the sign with which a line begins, and a mark of fewer replicas in it."""
    head, rest = line[:1], line[1:]
    painted = rest.replace(mark, paint(mark, "removed"), 1) if mark else rest
    return paint(head, _SIGN_ROLES[head]) + painted


def paint_start(lines: list[str], start: str, role: Role, paint: Paint) -> list[str]:
    """Paint `start` where the first line begins with it, or all lines if `start` is ""."""
    if not start:
        return [paint(line, role) for line in lines]
    if not lines or not lines[0].startswith(start):
        return lines
    return [paint(start, role) + lines[0][len(start) :], *lines[1:]]


def paint_severity(lines: list[str], position: int, severity: str, paint: Paint) -> list[str]:
    """Paint the severity of a finding, which begins at a position unless the first line ends before."""
    if not lines or not lines[0].startswith(severity, position):
        return lines
    first, end = lines[0], position + len(severity)
    return [first[:position] + paint(severity, _SEVERITY_ROLES[severity]) + first[end:], *lines[1:]]


def paint_column(lines: Sequence[str], start: int, cells: Sequence[str], roles: Mapping[str, Role], paint: Paint) -> list[str]:
    """Paint a column of a table: the cells that begin at `start`, each in the colour of its text."""
    return [f"{line[:start]}{paint(cell, roles[cell])}{line[start + len(cell) :]}" for line, cell in zip(lines, cells, strict=True)]


def paint_diff(lines: list[str], paint: Paint) -> list[str]:
    """Paint the lines of a unified diff."""
    return [paint(line, _DIFF_ROLES[line[0]]) if line[:1] in _DIFF_ROLES else line for line in lines]
