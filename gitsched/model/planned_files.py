"""Planned files of the output branch (an existing blob, an edited or patched one, or new content), and the content of cluster.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.model.json_values import is_same_json
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.model.document import Body, Origin


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


def apply_text_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Return the text with the edits, which are sorted. Raise ValueError where they overlap or leave the text."""
    pieces: list[str] = []
    position = 0
    for start, stop, new in edits:
        end = len(text) if stop == END_OF_TEXT else stop
        if not position <= start <= end <= len(text):
            raise ValueError(f"span {start}..{end} overlaps another or leaves the text of {len(text)} characters")
        pieces += (text[position:start], new)
        position = end
    return "".join((*pieces, text[position:]))


class EditedBlob(NamedTuple):
    """An existing blob with some spans replaced; edits are sorted and do not overlap."""

    blob: str
    edits: tuple[TextEdit, ...]


class PatchedBlob(NamedTuple):
    """A document of an existing blob with another value: `before` is the value of its text, `after` the new one.

    The text is edited where that is possible; otherwise the value is written as new YAML.
    """

    origin: Origin
    before: Body
    after: Body

    def __hash__(self) -> int:
        return hash((self.origin.blob, self.origin.index))

    def __eq__(self, other: object) -> bool:
        # Unlike in Python, true is not 1.
        return self is other or (
            isinstance(other, PatchedBlob)
            and self.origin == other.origin
            and is_same_json(self.after, other.after)
            and is_same_json(self.before, other.before)
        )

    def __ne__(self, other: object) -> bool:
        return not self == other


class NewBlob(NamedTuple):
    """New content."""

    data: bytes


WritableFile = ExistingBlob | EditedBlob | NewBlob
"""A file that is written without knowledge of YAML."""
PlannedFile = WritableFile | PatchedBlob


class ClusterInfo(NamedTuple):
    """The data about a cluster for downstream generators; `replicas` and `workloads` count what is placed there. `marked` are the workloads
    whose number of replicas is only a minimum or not known."""

    name: str
    labels: Mapping[str, str]
    region: str = ""
    provider: str = ""
    replicas: int = 0
    workloads: int = 0
    marked: int = 0
