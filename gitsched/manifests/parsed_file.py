"""The result of parsing a file: its documents and issues, serializable as JSON for the parse cache; and the limits on input
size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from gitsched.manifests.kustomize import Kustomization
from gitsched.model.document import Body, InsertionPoint, SourceSpans, parse_api_group
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.finding import Severity, ValidationResult


class Limits(NamedTuple):
    """`size` in bytes; `depth` in nested collections; `nodes` and %TAG `directives` of a file.

    `aliases` limits the uses of anchors in one document; `expansion` limits what these uses add to it: one for each node and one
    for every 32 characters of its text.
    """

    size: int = 4 * 1024 * 1024
    depth: int = 200
    nodes: int = 1_000_000
    documents: int = 5_000
    directives: int = 100
    aliases: int = 1_000
    expansion: int = 100_000


DEFAULT_LIMITS = Limits()

MANY_FILES = 200
"""Files that no cache has, from which on a faster parser pays, which takes 50 ms to load."""
MAX_ISSUES = 20
"""Maximum number of issues of one kind that are reported for a document."""


NOT_YAML = "not YAML, and nothing in it looks like a manifest"
"""The reason for a file that could be a manifest with a syntax error."""

IDENTITY_ERRORS = frozenset(
    ("invalid-metadata", "invalid-name", "invalid-namespace", "invalid-type-meta", "removed-version", "unknown-kind")
)
"""Codes of errors about what identifies an object."""
FileStatus = Literal["resources", "empty", "not-a-resource", "invalid"]
ResourceName = tuple[str, str, str]
Identity = tuple[str, str, str, str]
"""Group, kind, namespace as written or "", and name."""
Validator = Callable[[Body], "ValidationResult"]


class SharedValues(NamedTuple):
    """The short texts of many files, and their small collections by what they contain, so that equal ones are one object."""

    texts: dict[str, str]
    collections: dict[bytes, Any]


class FileIssue(NamedTuple):
    """A finding without the path of its file. `resource` is (kind, namespace as written or "", name)."""

    severity: Severity
    code: str
    message: str
    line: int
    column: int
    resource: ResourceName | None = None


ABSENT: Final = FileIssue("info", "", "", 0, 0)
"""In place of an issue: a document that an attempt does not have."""


class ParsedDocument(NamedTuple):
    """A document with a name. `broken`: it has an error, so it is quarantined. The other fields are as in `Origin`."""

    body: Body
    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used for documents
    item: int
    line: int
    column: int
    spans: SourceSpans
    broken: bool


class ParsedFile(NamedTuple):
    """The documents and issues of a file.

    `unreadable`: an error hides documents of unknown identity. `reason` says why a file is not a resource. `kustomization` is
    what a kustomization refers to and changes; None for any other file. `others` are the lines of values that are no objects.
    """

    status: FileStatus
    documents: tuple[ParsedDocument, ...] = ()
    issues: tuple[FileIssue, ...] = ()
    unreadable: bool = False
    reason: str = ""
    kustomization: Kustomization | None = None
    others: tuple[int, ...] = ()

    def list_unidentified(self) -> set[ResourceName]:
        """Return the documents with an error in what identifies them, so that other objects may be meant."""
        errors = (issue for issue in self.issues if issue.severity == "error" and issue.code in IDENTITY_ERRORS)
        return {issue.resource for issue in errors if issue.resource is not None}

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        """Restore a file from its JSON, which is that of a tuple."""
        status, documents, issues, unreadable, reason, kustomization, others = value
        return cls(
            status,
            tuple([_parse_document(*document) for document in documents]),
            tuple(
                [
                    FileIssue(s, code, message, line, column, tuple(resource) if resource else None)
                    for s, code, message, line, column, resource in issues
                ]
            ),
            unreadable,
            reason,
            Kustomization.from_json(kustomization) if kustomization else None,
            tuple(others),
        )


def _parse_document(body: Body, index: int, item: int, line: int, column: int, text: list[Any], broken: bool) -> ParsedDocument:
    whole_file, start, end, server_owned, editable, insertions = text
    if server_owned is not None:
        server_owned = tuple([(a, b) for a, b in server_owned])
    scalars, points = tuple([(path, a, b) for path, a, b in editable]), tuple([InsertionPoint(*point) for point in insertions])
    spans = SourceSpans(whole_file, start, end, server_owned, scalars, points)
    return ParsedDocument(body, index, item, line, column, spans, broken)


def reject_large_file(size: int, path: str, limits: Limits = DEFAULT_LIMITS) -> ParsedFile:
    """Return the result for a file that is too large (`size` in bytes) to be read. A large .json is rarely a manifest: only a warning."""
    data = path.endswith(".json")
    message = f"the file has {size} bytes; files over {limits.size} bytes are not read"
    return ParsedFile(
        "not-a-resource" if data else "invalid",
        (),
        (FileIssue("warning" if data else "error", "file-too-large", message, 1, 1),),
        not data,
        message if data else "",
    )


def read_identity(body: Body) -> Identity:
    """Return the identity of a document as written."""
    metadata = body.get("metadata") or {}
    group = parse_api_group(str(body.get("apiVersion") or body.get("api") or ""))
    return group, str(body.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name"))
