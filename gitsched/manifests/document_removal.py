"""Remove documents from the text of a file and keep everything else byte for byte."""

from __future__ import annotations

import re
from collections.abc import Collection

from gitsched.manifests.parsed_file import Identity, ParsedDocument, read_identity
from gitsched.manifests.parser import DOCUMENT_MARKER, parse_file

_LEADING_COMMENTS = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*")


class NotRemovable(ValueError):
    """A document cannot be removed without a change of another one; the text says why."""


def remove_documents(data: bytes, path: str, identities: Collection[Identity]) -> bytes | None:
    """Return a file without the documents of these identities; None if nothing else is left but comments.

    Comments at the top of the file that a blank line separates from the first document are kept, and comments in the first column below
    a document. Raise NotRemovable for a document that the file does not hold, or that is an item of a List.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotRemovable("the file is not UTF-8") from error
    before = parse_file(data, path=path, validate=None)
    chosen = [document for document in before.documents if read_identity(document.body) in identities]
    if len(chosen) < len(set(identities)):
        raise NotRemovable("the file of the worktree has no such document")
    if any(document.item >= 0 for document in chosen):
        raise NotRemovable("it is an item of a List")
    rest = [document.body for document in before.documents if document not in chosen]
    for document in reversed(chosen):
        start, end = _find_removed_extent(text, document)
        text = text[:start] + text[end:]
    after = parse_file(text.encode("utf-8"), path=path, validate=None)
    if [document.body for document in after.documents] != rest or after.unreadable != before.unreadable:
        raise NotRemovable("its text cannot be separated from that of other documents")
    return None if after.status == "empty" else text.encode("utf-8")


def _find_removed_extent(text: str, document: ParsedDocument) -> tuple[int, int]:
    """Return the extent of a document with the `---` line before it, without the comments that are kept."""
    start, end = document.spans.start, document.spans.end
    own = text[start:end]
    end -= len(_find_kept_comments(own))
    markers = [match for match in DOCUMENT_MARKER.finditer(text) if match.start() <= start <= match.end()]
    if markers and markers[-1][0].startswith("---"):
        return markers[-1].start(), end
    header = _LEADING_COMMENTS.match(own)
    lines = header[0].splitlines(keepends=True) if header else []
    while lines and lines[-1].strip():  # a comment directly above the document belongs to it
        lines.pop()
    return start + sum(map(len, lines)), end


def _find_kept_comments(text: str) -> str:
    """Return the comments in the first column at the end of a document."""
    lines = text.splitlines(keepends=True)
    first = len(lines)
    for number in range(len(lines) - 1, -1, -1):
        if lines[number].startswith("#"):
            first = number
        elif lines[number].strip():
            break
    return "".join(lines[first:])
