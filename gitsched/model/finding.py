"""Findings: what is wrong, or worth knowing, about the input, as data."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gitsched.model.document import Document, Origin

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Location(NamedTuple):
    """A place in a source file; line and column count from 1, column in characters."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


def begin(origin: Origin) -> Location:
    """Where what was read there begins."""
    return Location(origin.path, origin.line, origin.column)


def locate(document: Document) -> Location | None:
    """Where a document begins; None for one that was in no file."""
    return begin(document.origin) if document.origin else None


Pointer = tuple[str | int, ...]
"""A place inside a document: object members and list indices from the root."""


class Rule(NamedTuple):
    """Where something stands that somebody wrote: a place in a document, whose line only its text can tell."""

    origin: Origin
    pointer: Pointer


class Finding(NamedTuple):
    """One statement about the input.

    `code` is stable and documented in docs/findings.md. `resource` is (kind, namespace, name) whenever the document has a name, with
    namespace "" for what is cluster-scoped. `rule` is what `location` can be told more exactly from, by who has the text.
    """

    severity: Severity
    code: str
    message: str
    location: Location | None = None
    resource: tuple[str, str, str] | None = None
    rule: Rule | None = None

    def __str__(self) -> str:
        return self._say(f"{self.severity}: ")

    @property
    def plain(self) -> str:
        """The finding without its severity, for a log whose lines have a level."""
        return self._say("")

    def _say(self, level: str) -> str:
        where = f"{self.location}: " if self.location else ""
        return f"{where}{level}{self.message} [{self.code}]"


def rank(finding: Finding) -> tuple[int, str, int, int, str, str, tuple[str, ...]]:
    """The order in which findings are shown: worst first, then by place."""
    place = finding.location or Location("", 0, 0)
    resource = finding.resource or ()
    return (SEVERITIES.index(finding.severity), place.path, place.line, place.column, finding.code, finding.message, resource)
