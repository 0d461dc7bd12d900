"""Edit the source text of a manifest so that it has the value that a cluster gets; write new YAML where the text cannot be edited.

The positions come from libyaml, and only the text of what differs is replaced. A round trip through a library such as ruamel.yaml keeps
comments, but writes every line anew (indentation, line breaks, blanks before comments) and takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from yaml import ScalarNode

from gitsched.edits.document_editor import DocumentEditor
from gitsched.edits.scalar_search import list_scalar_edits
from gitsched.edits.text_positions import NotEditable
from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.yaml_composer import YamlDocument, check_aliases, compose_documents
from gitsched.manifests.yaml_nodes import Constructor
from gitsched.model.document import Body, Origin, SourceSpans
from gitsched.model.json_values import is_same_json
from gitsched.model.planned_files import NewBlob, PatchedBlob, TextEdit, apply_text_edits
from gitsched.named_tuples import NamedTuple
from gitsched.render.yaml import dump


class ManifestText(NamedTuple):
    """The content of a manifest. `refusal` says why its source text was not edited, "" if it was."""

    file: NewBlob
    refusal: str = ""


def edit_manifest(text: str, file: PatchedBlob) -> ManifestText:
    """Return the content of a manifest, given the text of its source file."""
    try:
        return ManifestText(NewBlob(_edit_text(text, file).encode()))
    except NotEditable as error:
        return ManifestText(NewBlob(dump(file.after).encode()), str(error))


def edit_file(text: str, before: Body, after: Body) -> NewBlob:
    """Return the text of a file that holds one document, edited so that its value is `after`."""
    spans = SourceSpans(whole_file=True, start=0, end=len(text), server_owned=(), editable=())
    return edit_manifest(text, PatchedBlob(Origin("", "", 0, -1, 1, 1, spans), before, after)).file


def set_namespace(text: bytes, body: Body, namespace: str) -> bytes:
    """Return the text of a file with one object, edited so that the object is in a namespace.

    `body` is the object. It is written anew where the text has another value, such as a List, and where it cannot be edited.
    """
    decoded = text.decode("utf-8", "replace")
    found = read_manifest(decoded)
    before = found if found is not None and isinstance(found.get("metadata"), dict) and found.get("kind") == body["kind"] else body
    after = {**before, "metadata": {**before["metadata"], "namespace": namespace}}
    return edit_file(decoded, before, after).data


def edit_document(text: str, spans: SourceSpans, item: int, before: Body, after: Body) -> str:
    """Return the text of a file, edited so that the value of one of its documents is `after`. Raise NotEditable."""
    edited = _edit_text(text, PatchedBlob(Origin("", "", 0, item, 1, 1, spans), before, after))
    return edited if spans.whole_file else f"{text[: spans.start]}{edited}{text[spans.end :]}"


def read_manifest(text: str) -> Body | None:
    """Return the object of a file that holds one document; None if it is malformed."""
    tree = _compose(text)
    if tree is None or ("&" in text and "*" in text and check_aliases(tree, DEFAULT_LIMITS)):
        return None
    found = Constructor(0)
    value: Any = found.construct(tree.node)
    return value if isinstance(value, dict) and not found.errors else None


def _edit_text(text: str, file: PatchedBlob) -> str:
    spans = file.origin.spans
    if file.origin.item >= 0:
        raise NotEditable("the object is an item of a List")
    if spans is None or not spans.end:
        raise NotEditable("the text of the file has escapes that YAML and JSON read differently")
    document = text[spans.start : spans.end]
    edits = list_scalar_edits(document, file.before, file.after)
    edited = _edit_by_nodes(document, file) if edits is None else _apply(document, edits)
    return f"{text[: spans.start]}{edited}{text[spans.end :]}" if spans.whole_file else edited


def _edit_by_nodes(text: str, file: PatchedBlob) -> str:
    """Return the edited text of a document; the parser's nodes say where its values are."""
    tree = _compose(text)
    if tree is None:
        raise NotEditable("the document cannot be separated from the rest of its file")
    editor = DocumentEditor(text, tree)
    edited = _apply(text, editor.edit(file.before, file.after))
    if not editor.certain and not _has_value(edited, file.after):
        raise NotEditable("the edited text would have another value")
    return edited


def _apply(text: str, edits: Iterable[TextEdit]) -> str:
    try:
        return apply_text_edits(text, edits)
    except ValueError:
        raise NotEditable("two changes are in the same place") from None


def _compose(text: str) -> YamlDocument | None:
    """Return the only document of a text, beside empty ones; None if there is none, or if it is malformed."""
    pieces = compose_documents(text, DEFAULT_LIMITS)
    trees = [piece for piece in pieces if not isinstance(piece, YamlDocument) or piece.node.__class__ is not ScalarNode]
    return trees[0] if len(trees) == 1 and isinstance(trees[0], YamlDocument) else None


def _has_value(text: str, value: Body) -> bool:
    """Return whether a text is one document with this value."""
    parsed = read_manifest(text)
    return parsed is not None and is_same_json(parsed, value)
