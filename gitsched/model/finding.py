"""Findings about the input with their locations, and issues: what validation of one document reports before its file is known."""

from __future__ import annotations

from typing import Literal, NamedTuple

from gitsched.model.document import Body, Document, Origin

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Location(NamedTuple):
    """A place in a source file; line and column count from 1, column in characters."""

    path: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


def locate_origin(origin: Origin) -> Location:
    """Where what was read there begins."""
    return Location(origin.path, origin.line, origin.column)


def locate_document(document: Document) -> Location | None:
    """Where a document begins; None for one that was in no file."""
    return locate_origin(document.origin) if document.origin else None


Pointer = tuple[str | int, ...]
"""A place inside a document: object members and list indices from the root."""


class FieldOrigin(NamedTuple):
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
    field: FieldOrigin | None = None

    def __str__(self) -> str:
        return self._format(f"{self.severity}: ")

    @property
    def without_severity(self) -> str:
        """The finding without its severity, for a log whose lines have a level."""
        return self._format("")

    def _format(self, level: str) -> str:
        where = f"{self.location}: " if self.location else ""
        return f"{where}{level}{self.message} [{self.code}]"


def finding_sort_key(finding: Finding) -> tuple[int, str, int, int, str, str, tuple[str, ...]]:
    """The order in which findings are shown: worst first, then by place."""
    place = finding.location or Location("", 0, 0)
    resource = finding.resource or ()
    return (SEVERITIES.index(finding.severity), place.path, place.line, place.column, finding.code, finding.message, resource)


class Issue(NamedTuple):
    """`pointer` is the place inside the body, as object members and list indices from the root."""

    severity: Severity
    code: str
    message: str
    pointer: Pointer = ()


class ValidationResult(NamedTuple):
    """`body` is the document without the fields its schema does not know; the same object when nothing was pruned."""

    body: Body
    issues: tuple[Issue, ...] = ()
