"""Text in sections for a terminal: a headline with remarks, then titles with indented paragraphs or tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gitsched.model.finding import Finding
from gitsched.report.lines import wrap, wrap_finding
from gitsched.report.paint import Paint, Role, paint_column

_INDENT = "  "


class TextSections:
    """Collects the lines of a text. Paragraphs are wrapped at `width` characters, and sections without entries are left out."""

    def __init__(self, width: int, paint: Paint | None) -> None:
        self.width = width
        self._paint = paint
        self._lines: list[str] = []

    def add_head(self, title: str, remarks: Iterable[str]) -> None:
        """Add the headline with indented remarks, without the empty ones."""
        self._lines += self._paint_heading(wrap(title, self.width))
        for remark in filter(None, remarks):
            self._lines += wrap(remark, self.width, _INDENT)

    def add(self, title: str, entries: Iterable[str]) -> None:
        """Add a section with a paragraph for each entry, without the empty ones."""
        self.add_lines(title, [line for entry in filter(None, entries) for line in wrap(entry, self.width, _INDENT)])

    def add_lines(self, title: str, lines: Sequence[str]) -> None:
        """Add a section with lines that are indented and escaped already."""
        if lines:
            self._lines += ["", *self._paint_heading([title]), *lines]

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Add a section with the findings."""
        lines = [line for finding in findings for line in wrap_finding(finding, self.width, self._paint, _INDENT)]
        self.add_lines("Findings", lines)

    def paint_cells(self, lines: Sequence[str], start: int, cells: Sequence[str], roles: Mapping[str, Role]) -> Sequence[str]:
        """Return the lines of a table with one column painted by what its cells say."""
        return lines if self._paint is None else paint_column(lines, start, cells, roles, self._paint)

    def join(self) -> str:
        """Return the text."""
        return "\n".join(self._lines) + "\n"

    def _paint_heading(self, lines: list[str]) -> list[str]:
        paint = self._paint
        return lines if paint is None else [paint(line, "heading") for line in lines]
