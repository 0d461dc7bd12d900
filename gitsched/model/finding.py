"""Findings about the input with their locations, issues (what validation of one document reports before its file is known), and texts of
numbers and lists in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body, Document, Origin

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Location(NamedTuple):
    """A position in a source file; line and column count from 1, column in characters.

    For an object that kustomize builds, it is that in the base, and `changed_by` is the file and line of the overlay or patch that
    changes the object last; "" if there is none.
    """

    path: str
    line: int
    column: int
    changed_by: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    @property
    def text(self) -> str:
        """The file and line, with the overlay or patch that changes the object last."""
        return f"{self.path}:{self.line}{', last changed by ' if self.changed_by else ''}{self.changed_by}"

    def to_json(self) -> dict[str, str | int]:
        """Return the members; `changedBy` only where there is one."""
        members: dict[str, str | int] = {"path": self.path, "line": self.line, "column": self.column}
        return {**members, "changedBy": self.changed_by} if self.changed_by else members


INTERNAL_ERROR = "internal-error"
"""The code of findings about documents on which a bug shows."""
LAST_VALID_USED = "last-valid-used"
"""The code of notes about documents that count as they were when they were valid for the last time."""
NO_REPLICAS = "no-replicas"
"""Code of the finding about a workload with 0 replicas, which goes to no cluster."""
UNSCHEDULABLE = "unschedulable"
"""Code of the finding that no cluster gets a workload, or some of its replicas."""
OVERCOMMITTED = "cluster-overcommitted"
"""The code of a warning about a cluster that lacks capacity for what its workloads request."""
WITHOUT_EFFECT = "policy-without-effect"
"""The code of the finding that other policies apply to all that a policy selects."""
FAILOVER_OFF = "cluster-failover-off"
"""The code of the warning that workloads stay in a cluster that is not ready, because nothing evicts them."""
FACTS_STALE = "facts-stale"
"""The code of the warning that facts of clusters are too old."""
FROZEN = "placements-frozen"
"""The code of the finding that placements are frozen."""
OUTPUT_NOT_FETCHED = "output-not-fetched"
"""The code of the finding that a clone may lack the output branch of its origin."""


def locate_origin(origin: Origin) -> Location:
    """Return the location of an origin."""
    return Location(origin.path, origin.line, origin.column, origin.changed_by)


def locate_document(document: Document) -> Location | None:
    """Return the location of a document; None if it was not read from a file."""
    return locate_origin(document.origin) if document.origin else None


Pointer = tuple[str | int, ...]
"""The path of a field inside a document: object members and list indices from the root."""


class FieldOrigin(NamedTuple):
    """A field of a document as it was written; its line is found in the text on demand."""

    origin: Origin
    pointer: Pointer


def locate_field(origin: Origin | None, pointer: Pointer) -> FieldOrigin | None:
    """Return a field of a document; None if the document was not read from a file."""
    return FieldOrigin(origin, pointer) if origin is not None else None


class Finding(NamedTuple):
    """A mistake or remark about the input.

    `code` is stable and documented in docs/findings.md. `resource` is (kind, namespace, name) if the document has a name, with
    namespace "" for a cluster-scoped one. `field` gives a more exact `location` to callers that have the text. `is_change`: the message
    says what this run changes, so the next run does not repeat it.
    """

    severity: Severity
    code: str
    message: str
    location: Location | None = None
    resource: tuple[str, str, str] | None = None
    field: FieldOrigin | None = None
    is_change: bool = False

    def __str__(self) -> str:
        return self._format(f"{self.severity}: ")

    @property
    def reason(self) -> str:
        """Why a workload could not be scheduled: the message of such a finding without the part that says so, and of which workload."""
        return self.message.partition(": ")[2] or self.message

    @property
    def text(self) -> str:
        """The message, with the overlay or patch that changes the object last."""
        changed_by = self.location.changed_by if self.location else ""
        return f"{self.message} (last changed by {changed_by})" if changed_by else self.message

    @property
    def without_severity(self) -> str:
        """The finding without its severity, for log lines that have a level."""
        return self._format("")

    def _format(self, level: str) -> str:
        where = f"{self.location}: " if self.location else ""
        return f"{where}{level}{self.text} [{self.code}]"


def list_faults(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings about documents on which a bug shows."""
    return tuple(finding for finding in findings if finding.code == INTERNAL_ERROR)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings by severity, then by location: the order in which reports show them."""
    return tuple(sorted(findings, key=_get_sort_key))


def _get_sort_key(finding: Finding) -> tuple[int, str, int, int, str, str, tuple[str, ...]]:
    location = finding.location or Location("", 0, 0)
    resource = finding.resource or ()
    return (
        SEVERITIES.index(finding.severity),
        location.path,
        location.line,
        location.column,
        finding.code,
        finding.message,
        resource,
    )


class Issue(NamedTuple):
    """A validation error or warning of one document; `pointer` is the path of the field in its body."""

    severity: Severity
    code: str
    message: str
    pointer: Pointer = ()

    def as_error(self) -> Issue:
        """Return a warning as an error, because of which the document is not used; the same issue for any other severity."""
        if self.severity != "warning":
            return self
        return self._replace(severity="error", message=self.message.replace(" is unknown and ignored", " is unknown"))


class ValidationResult(NamedTuple):
    """`body` is the document without fields that its schema does not define; the same object when nothing was pruned."""

    body: Body
    issues: tuple[Issue, ...] = ()


LEAST_OMITTED = 3
"""A list that is too long leaves out at least so many entries: "and 1 more" takes the room of the entry that it hides."""


def count_shown(total: int, limit: int) -> int:
    """Return how many of `total` entries are listed where about `limit` fit: all, or so few that LEAST_OMITTED are left out."""
    return total if total < limit + LEAST_OMITTED else limit


def format_names(names: Sequence[str], limit: int = 3) -> str:
    """List names in a message: the first ones, and how many more."""
    shown = count_shown(len(names), limit)
    more = f" and {len(names) - shown:,} more" if len(names) > shown else ""
    return f"{', '.join(names[:shown])}{more}"


def join_all(texts: Sequence[str]) -> str:
    """Return all texts as a list in a sentence: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def format_count(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the singular for 1. The plural adds an s by default."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {plural or noun + 's'}"


def format_part(part: int, total: int, noun: str, verb: str = "", plural: str = "") -> str:
    """Return how many there are of all, such as "1 of 1 replica" and "1 of 3 replicas", with a verb that agrees with the part."""
    text = f"{part:,} of {format_count(total, noun)}"
    return f"{text} {choose_form(part, verb, plural)}" if verb else text


def choose_form(number: int, singular: str, plural: str) -> str:
    """Return the form of a word, such as a verb, that agrees with a number."""
    return singular if number == 1 else plural
