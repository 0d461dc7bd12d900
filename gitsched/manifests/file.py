"""What reading a file gives: its documents and problems, fit to be kept as JSON."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

from gitsched.manifests.limits import LIMITS, Limits
from gitsched.model.document import Body, Text
from gitsched.model.finding import Severity

NO_YAML = "no YAML, and nothing in it looks like a manifest"
"""The reason of a file that may have been one before somebody's slip."""

Status = Literal["resources", "empty", "not-a-resource", "invalid"]
Resource = tuple[str, str, str]


class Problem(NamedTuple):
    """A finding before anyone knows the file's path. `resource` is (kind, namespace as written or "", name)."""

    severity: Severity
    code: str
    message: str
    line: int
    column: int
    resource: Resource | None = None


class Parsed(NamedTuple):
    """A document with a name. `broken`: it has an error, so it is quarantined. The rest is as in `Origin`."""

    body: Body
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody calls on a document
    item: int
    line: int
    column: int
    text: Text
    broken: bool


class File(NamedTuple):
    """What a file holds.

    `unreadable`: an error hid documents whose identity nobody knows. `reason` says why a file that is not-a-resource is none.
    `patches` are the paths, relative as written, that a kustomization lists and that are no documents of their own.
    """

    status: Status
    documents: tuple[Parsed, ...] = ()
    problems: tuple[Problem, ...] = ()
    unreadable: bool = False
    reason: str = ""
    patches: tuple[str, ...] = ()

    def to_json(self) -> list[Any]:
        """The file as plain JSON; `from_json` gives the same File back, also after a trip through a JSON text."""
        return list(self)

    @classmethod
    def from_json(cls, value: list[Any]) -> Self:
        """The File that `to_json` described."""
        status, documents, problems, unreadable, reason, patches = value
        return cls(
            status,
            tuple([_restore(*document) for document in documents]),
            tuple(
                [
                    Problem(s, code, message, line, column, tuple(resource) if resource else None)
                    for s, code, message, line, column, resource in problems
                ]
            ),
            unreadable,
            reason,
            tuple(patches),
        )


def _restore(body: Body, index: int, item: int, line: int, column: int, text: list[Any], broken: bool) -> Parsed:
    whole, start, end, cuts, marks = text
    if cuts is not None:
        cuts = tuple([(a, b) for a, b in cuts])
    return Parsed(body, index, item, line, column, Text(whole, start, end, cuts, tuple([(p, a, b) for p, a, b in marks])), broken)


def too_large(size: int, path: str, limits: Limits = LIMITS) -> File:
    """The reading of a file too large (`size` in bytes) to be read. A large .json is rarely a manifest: only a warning."""
    data = path.endswith(".json")
    message = f"the file has {size} bytes; files over {limits.size} bytes are not read"
    return File(
        "not-a-resource" if data else "invalid",
        (),
        (Problem("warning" if data else "error", "file-too-large", message, 1, 1),),
        not data,
        message if data else "",
    )
