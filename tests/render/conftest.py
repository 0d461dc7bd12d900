"""Fixtures of rendering tests: the text of planned files, and documents with their source text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from gitsched.edits.manifest_edits import edit_manifest
from gitsched.git.trees import apply_edits
from gitsched.model.document import Document, Key, Origin, SourceSpans, parse_api_group
from gitsched.model.planned_files import EditedBlob, NewBlob, PatchedBlob, PlannedFile

BLOB = "b" * 40
Resolve = Callable[[PlannedFile, str], str]
Place = Callable[..., Document]


@pytest.fixture(scope="session")
def resolve() -> Resolve:
    """Return the text of a planned file, given the text of its blob."""

    def text_of(file: PlannedFile, source: str) -> str:
        if isinstance(file, NewBlob):
            return file.data.decode()
        if isinstance(file, EditedBlob):
            assert file.blob == BLOB
            return apply_edits(source.encode(), file.edits).decode()
        if isinstance(file, PatchedBlob):
            return edit_manifest(source, file).file.data.decode()
        return source

    return text_of


@pytest.fixture(scope="session")
def place() -> Place:
    """Return a document with its position in a source file: `place(source, document=..., cuts=(...), marks={path: line})`.

    `cuts` are removable pieces of the text; `marks` are the lines of scalars by path.
    """

    def read(
        source: str,
        *,
        document: str | None = None,
        cuts: tuple[str, ...] | None = (),
        marks: dict[str, str] | None = None,
        item: int = -1,
    ) -> Document:
        part = source if document is None else document
        start = source.index(part)
        body = yaml.safe_load(part)
        body = body["items"][item] if item >= 0 else body
        metadata = body["metadata"]
        extents = None if cuts is None else tuple((at := source.index(cut, start), at + len(cut)) for cut in cuts)
        found = []
        for path, line in (marks or {}).items():
            end = source.index(line, start) + len(line)
            found.append((path, end - len(line.split(": ")[1]), end))
        text = SourceSpans(document is None and item < 0, start, start + len(part), extents, tuple(found))
        key = Key(parse_api_group(body["apiVersion"]), body["kind"], metadata.get("namespace", ""), metadata["name"])
        return Document(key, body["apiVersion"], body, Origin("web.yaml", BLOB, 0, item, 1, 1, text))

    return read
