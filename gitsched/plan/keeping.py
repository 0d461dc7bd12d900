"""Last valid bytes of source files that are broken now, as the output branch may hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.model.document import Body, Key, Text
from gitsched.model.files import Bytes, Edit, Keep, PlannedFile, Span
from gitsched.model.outcome import Outcome
from gitsched.render.yaml import dump


class Kept(NamedTuple):
    """A blob and the documents in it; `text` is None for an item of a List."""

    blob: str
    documents: tuple[tuple[Body, Text | None], ...]


def keep_bytes(kept: Kept, outcomes: Mapping[Key, Outcome]) -> PlannedFile | None:
    """The file under kept/, without the Secrets that are placed nowhere; None when nothing else is in it.

    The Secrets are cut from the text. A List that holds one is taken apart, and its other items are written anew.
    """
    hidden = [(body, text) for body, text in kept.documents if _is_hidden(body, outcomes)]
    if not hidden:
        return Keep(kept.blob)
    if len(hidden) == len(kept.documents):
        return None
    if all(text is not None for _, text in hidden):
        return Edit(kept.blob, tuple(sorted(Span(text.start, text.end, "") for _, text in hidden if text is not None)))
    return Bytes("---\n".join(dump(body) for body, _ in kept.documents if not _is_hidden(body, outcomes)).encode())


def _is_hidden(body: Body, outcomes: Mapping[Key, Outcome]) -> bool:
    if (body.get("apiVersion"), body.get("kind")) != ("v1", "Secret"):
        return False
    metadata = body.get("metadata") or {}
    outcome = outcomes.get(Key("", "Secret", str(metadata.get("namespace") or "default"), str(metadata.get("name"))))
    return outcome is None or not outcome.placed
