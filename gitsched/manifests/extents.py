"""What rendering must know of a document's text: its extent, what a server owns in it, the scalars that scheduling changes."""

from __future__ import annotations

import re
from typing import Any, Final

from yaml import MappingNode, ScalarNode, SequenceNode

from gitsched.manifests.compose import Tree
from gitsched.manifests.position import find_member
from gitsched.model.document import Body, Text

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


def remove_owned(body: Body) -> Body:
    """The body without what a server owns; the same object when there is nothing of it. An annotation map left empty goes, too."""
    names = _owned_members(body)
    if not names:
        return body
    metadata = {k: v for k, v in body["metadata"].items() if k not in SERVER_OWNED}
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        metadata["annotations"] = {k: v for k, v in annotations.items() if k != LAST_APPLIED}
        if not metadata["annotations"]:
            del metadata["annotations"]
    return {k: metadata if k == "metadata" else v for k, v in body.items() if k != "status"}


def _owned_members(body: Body) -> list[tuple[str, ...]]:
    metadata = body["metadata"]
    found: list[tuple[str, ...]] = [("metadata", name) for name in metadata if name in SERVER_OWNED]
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and LAST_APPLIED in annotations:
        found.append(("metadata", "annotations") if len(annotations) == 1 else ("metadata", "annotations", LAST_APPLIED))
    if "status" in body:
        found.append(("status",))
    return found


def measure(text: str, tree: Tree, body: Body, marks: tuple[str, ...], *, start: int, end: int, aliased: bool) -> Text:
    """The facts of a document whose body is `tree`'s value. Offsets are in characters of `text`; `whole` is for the caller."""
    owned = _owned_members(body)
    cuts: tuple[tuple[int, int], ...] | None = ()
    if owned:
        cuts = None if aliased else _cut(text, tree, owned)
    return Text(False, start, end, cuts, tuple(_mark(text, tree, body, marks)))


def note_item(body: Body) -> Text:
    """The facts of an entry of a List: nothing of it can be edited in place."""
    return Text(False, 0, 0, None if _owned_members(body) else (), ())


def _mark(text: str, tree: Tree, body: Body, marks: tuple[str, ...]) -> list[tuple[str, int, int]]:
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


def _cut(text: str, tree: Tree, owned: list[tuple[str, ...]]) -> tuple[tuple[int, int], ...] | None:
    extents = []
    for path in owned:
        node: Any = tree.node
        pair = None
        for step in path:
            pair = None if node.flow_style else find_member(node, step)
            if pair is None:
                return None
            node = pair[1]
        extent = _member_lines(text, tree.offset, pair[0], node) if pair else None
        if extent is None:
            return None
        extents.append(extent)
    return tuple(sorted(extents))


def _member_lines(text: str, offset: int, key: Any, value: Any) -> tuple[int, int] | None:
    """The whole lines of a block member, or None where something else stands on them."""
    start = offset + key.start_mark.index - key.start_mark.column
    if text[start : offset + key.start_mark.index].strip(" "):
        return None
    last = _last_leaf(value, key)
    mark = last.end_mark
    if last.__class__ is ScalarNode and last.style in ("|", ">"):
        end = offset + mark.index - (mark.column if offset + mark.index < len(text) else 0)
        return (start, end) if end > start else None
    rest = _REST_OF_LINE.match(text, text.find(":", offset + mark.index) + 1 if last is key else offset + mark.index)
    return (start, rest.end()) if rest else None


def _last_leaf(node: Any, key: Any) -> Any:
    """The node whose text ends last: libyaml ends a block collection only where the next token begins."""
    while not (node.__class__ is ScalarNode or node.flow_style):
        if node.__class__ is MappingNode:
            key, node = node.value[-1]
        elif node.__class__ is SequenceNode:
            node = node.value[-1]
    empty = node.__class__ is ScalarNode and node.start_mark.index == node.end_mark.index
    return key if empty and key is not None else node
