"""Planned files of the output branch. The core never touches a blob: it names one, or an edit of one."""

from __future__ import annotations

from typing import NamedTuple


class Keep(NamedTuple):
    """The very bytes of an existing blob (`blob`: object id, hex)."""

    blob: str


END = 1 << 62
"""As the end of a Span: the end of the text, however long it is."""


class Span(NamedTuple):
    """Replace characters [start, end) of the decoded source text by `text`; `end` may be END."""

    start: int
    end: int
    text: str


class Edit(NamedTuple):
    """An existing blob with some spans replaced; spans are sorted and do not overlap."""

    blob: str
    spans: tuple[Span, ...]


class Bytes(NamedTuple):
    """New content."""

    data: bytes


PlannedFile = Keep | Edit | Bytes
