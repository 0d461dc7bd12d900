"""Planned files of the output branch (an existing blob, an edited blob or new content), and the content of cluster.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class ExistingBlob(NamedTuple):
    """An existing blob, unchanged (`blob`: object id, hex)."""

    blob: str


END_OF_TEXT = 1 << 62
"""The `end` of a TextEdit at the end of a text of any length."""


class TextEdit(NamedTuple):
    """Replace characters [start, end) of the decoded source text by `text`; `end` may be END_OF_TEXT."""

    start: int
    end: int
    text: str


class EditedBlob(NamedTuple):
    """An existing blob with some spans replaced; edits are sorted and do not overlap."""

    blob: str
    edits: tuple[TextEdit, ...]


class NewBlob(NamedTuple):
    """New content."""

    data: bytes


PlannedFile = ExistingBlob | EditedBlob | NewBlob


class ClusterInfo(NamedTuple):
    """The data about a cluster for downstream generators; `replicas` and `workloads` count what is placed there."""

    name: str
    labels: Mapping[str, str]
    region: str = ""
    provider: str = ""
    replicas: int = 0
    workloads: int = 0
