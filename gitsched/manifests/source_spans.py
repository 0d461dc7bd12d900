"""Locate fields in source text: line and column of a field, and the spans that rendering removes or edits."""

from __future__ import annotations

import re
from typing import Any, Final

from yaml import MappingNode, ScalarNode, SequenceNode

from gitsched.manifests.parsed_file import DEFAULT_LIMITS
from gitsched.manifests.yaml_composer import YamlDocument, compose_documents, join_surrogates
from gitsched.manifests.yaml_constructor import Constructor, is_merge_key
from gitsched.model.document import Body, SourceSpans

Pointer = tuple[str | int, ...]


def find_member(node: Any, name: str) -> tuple[Any, Any] | None:
    """The key and value nodes of a member written in this mapping; merged members are not looked for."""
    if node.__class__ is not MappingNode:
        return None
    for key, value in node.value:
        if key.__class__ is ScalarNode and not is_merge_key(key):
            if key.value == name:
                return key, value
            if (
                (key.tag or not key.style)
                and Constructor(0).construct(key) is not None
                and Constructor(0).construct_key(key) == name
            ):
                return key, value
    return None


def locate_node(tree: YamlDocument, node: Any, pointer: Pointer) -> tuple[int, int]:
    """Line and column, from 1, of a pointer below `node`; of the nearest ancestor that exists where it does not.

    A member of a mapping is where its value is, if the value is a scalar on the key's own line, else where its key is.
    """
    place = node
    for step in pointer:
        if isinstance(step, int) and node.__class__ is SequenceNode and 0 <= step < len(node.value):
            node = place = node.value[step]
            continue
        pair = find_member(node, step) if isinstance(step, str) else None
        if pair is None:
            break
        key, node = pair
        here, there = key.start_mark, node.start_mark
        place = node if node.__class__ is ScalarNode and here.line == there.line and there.index >= here.index else key
    return tree.line + place.start_mark.line + 1, place.start_mark.column + 1


def locate_field(data: bytes, index: int, item: int, pointer: Pointer) -> tuple[int, int] | None:
    """Line and column, from 1, of a place in document `index` (entry `item` of a List, or -1) of a file that was read before.

    None when the file has no such document; the nearest existing ancestor when the document has no such place.
    """
    text = data.decode("utf-8-sig", "replace")
    found = -1
    for tree in compose_documents(join_surrogates(text), DEFAULT_LIMITS):
        if isinstance(tree, YamlDocument):
            found += 1
            if found == index:
                return locate_node(tree, tree.node, (*(("items", item) if item >= 0 else ()), *pointer))
    return None


SERVER_OWNED: Final = frozenset(
    {
        "managedFields",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    }
)
"""Members of metadata that only an API server writes; the top-level status is the other one."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_REST_OF_LINE = re.compile(r"[ \t]*(#[^\r\n]*)?(\r\n|\r|\n|\Z)")


def remove_server_owned(body: Body) -> Body:
    """The body without what a server owns; the same object when there is nothing of it. An annotation map left empty goes, too."""
    names = _list_server_owned(body)
    if not names:
        return body
    metadata = {k: v for k, v in body["metadata"].items() if k not in SERVER_OWNED}
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        metadata["annotations"] = {k: v for k, v in annotations.items() if k != LAST_APPLIED}
        if not metadata["annotations"]:
            del metadata["annotations"]
    return {k: metadata if k == "metadata" else v for k, v in body.items() if k != "status"}


def _list_server_owned(body: Body) -> list[tuple[str, ...]]:
    metadata = body["metadata"]
    found: list[tuple[str, ...]] = [("metadata", name) for name in metadata if name in SERVER_OWNED]
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        found.append(("metadata", "annotations") if len(annotations) == 1 else ("metadata", "annotations", LAST_APPLIED))
    if "status" in body:
        found.append(("status",))
    return found


def find_spans(
    text: str, tree: YamlDocument, body: Body, marks: tuple[str, ...], *, start: int, end: int, aliased: bool
) -> SourceSpans:
    """The facts of a document whose body is `tree`'s value. Offsets are in characters of `text`; `whole` is for the caller."""
    owned = _list_server_owned(body)
    cuts: tuple[tuple[int, int], ...] | None = ()
    if owned:
        cuts = None if aliased else _find_server_owned(text, tree, owned)
    return SourceSpans(False, start, end, cuts, tuple(_find_editable(text, tree, body, marks)))


def make_item_spans(body: Body) -> SourceSpans:
    """The facts of an entry of a List: nothing of it can be edited in place."""
    return SourceSpans(False, 0, 0, None if _list_server_owned(body) else (), ())


def _find_editable(text: str, tree: YamlDocument, body: Body, marks: tuple[str, ...]) -> list[tuple[str, int, int]]:
    found = []
    for path in marks:
        steps = path.split(".")
        head = body.get(steps[0])
        if head is None or (len(steps) > 1 and not (isinstance(head, dict) and steps[1] in head)):
            continue
        node: Any = tree.node
        after = 0
        for step in steps:
            pair = find_member(node, step)
            if pair is None or pair[1].start_mark.index < pair[0].end_mark.index or pair[0].start_mark.index < after:
                break  # missing, merged, or an alias to text that others share
            after = pair[0].end_mark.index
            node = pair[1]
        else:
            start, end = tree.offset + node.start_mark.index, tree.offset + node.end_mark.index
            if node.__class__ is ScalarNode and start < end and text[start] not in "&!*|>":
                found.append((path, start, end))
    return found


def _find_server_owned(text: str, tree: YamlDocument, owned: list[tuple[str, ...]]) -> tuple[tuple[int, int], ...] | None:
    extents = []
    for path in owned:
        node: Any = tree.node
        pair = None
        for step in path:
            pair = None if node.flow_style else find_member(node, step)
            if pair is None:
                return None
            node = pair[1]
        extent = _find_member_lines(text, tree.offset, pair[0], node) if pair else None
        if extent is None:
            return None
        extents.append(extent)
    return tuple(sorted(extents))


def _find_member_lines(text: str, offset: int, key: Any, value: Any) -> tuple[int, int] | None:
    """The whole lines of a block member, or None where something else stands on them."""
    start = offset + key.start_mark.index - key.start_mark.column
    if text[start : offset + key.start_mark.index].strip(" "):
        return None
    last = _find_last_leaf(value, key)
    mark = last.end_mark
    if last.__class__ is ScalarNode and last.style in ("|", ">"):
        end = offset + mark.index - (mark.column if offset + mark.index < len(text) else 0)
        return (start, end) if end > start else None
    rest = _REST_OF_LINE.match(text, text.find(":", offset + mark.index) + 1 if last is key else offset + mark.index)
    return (start, rest.end()) if rest else None


def _find_last_leaf(node: Any, key: Any) -> Any:
    """The node whose text ends last: libyaml ends a block collection only where the next token begins."""
    while not (node.__class__ is ScalarNode or node.flow_style):
        if node.__class__ is MappingNode:
            key, node = node.value[-1]
        elif node.__class__ is SequenceNode:
            node = node.value[-1]
    empty = node.__class__ is ScalarNode and node.start_mark.index == node.end_mark.index
    return key if empty and key is not None else node
