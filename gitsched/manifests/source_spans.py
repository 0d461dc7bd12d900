"""Find the spans of a document's source text that rendering removes, replaces or inserts into."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from yaml import MappingNode, ScalarNode, SequenceNode

from gitsched.manifests.yaml_nodes import find_member, find_written_mapping, find_written_member
from gitsched.model.document import (
    Body,
    FieldPath,
    InsertionPoint,
    SourceSpans,
    get_field,
    is_namespaced,
    list_server_owned,
    parse_api_group,
)

if TYPE_CHECKING:
    from gitsched.manifests.yaml_composer import YamlDocument

_REST_OF_LINE = re.compile(r"[ \t]*(#[^\r\n]*)?(\r\n|\r|\n|\Z)")


NAMESPACE = "metadata.namespace"
_ANNOTATIONS = ("metadata.annotations", "metadata.annotations.*")


def list_insertable(body: Body, editable: tuple[str, ...]) -> tuple[str, ...]:
    """Return the `editable` members with those that rendering adds to an object without a namespace: annotations of a Namespace, and the
    namespace of others."""
    kind = str(body.get("kind"))
    if body["metadata"].get("namespace"):
        return editable
    if kind == "Namespace":
        return (*editable, *_ANNOTATIONS)
    return editable if is_namespaced(parse_api_group(str(body.get("apiVersion"))), kind) is False else (*editable, NAMESPACE)


def find_spans(
    text: str, tree: YamlDocument, body: Body, editable: tuple[str, ...], *, start: int, end: int, has_aliases: bool
) -> SourceSpans:
    """Find the spans of a document whose body is `tree`'s value. Offsets count characters of `text`; the caller sets
    `whole_file`."""
    server_owned = list_server_owned(body)
    cuts: tuple[tuple[int, int], ...] | None = ()
    if server_owned:
        cuts = None if has_aliases else _find_server_owned(text, tree, server_owned)
    found = tuple(_find_editable(text, tree, body, editable))
    points = _find_insertion_points(text, tree, body, list_insertable(body, editable))
    return SourceSpans(False, start, end, cuts, found, tuple(points))


def make_item_spans(body: Body) -> SourceSpans:
    """Return the spans of an item of a List: it cannot be edited in place."""
    return SourceSpans(False, 0, 0, None if list_server_owned(body) else (), ())


def _find_editable(text: str, tree: YamlDocument, body: Body, editable: tuple[str, ...]) -> list[tuple[str, int, int]]:
    found = []
    for path in editable:
        steps = path.split(".")
        head = body.get(steps[0])
        if head is None or (len(steps) > 1 and not (isinstance(head, dict) and steps[1] in head)):
            continue
        pair = find_written_member(tree.node, steps)
        if pair is None:
            continue
        node = pair[1]
        start, end = tree.offset + node.start_mark.index, tree.offset + node.end_mark.index
        if node.__class__ is ScalarNode and start < end and text[start] not in "&!*|>":
            found.append((path, start, end))
    return found


_BLOCK_KEY_END = re.compile(r"[ \t]*:[ \t]*(?:#[^\r\n]*)?(\r\n|\r|\n)")
"""What follows the key of a block mapping whose first member is on a later line."""

_FLOW_START = re.compile(r"\{(?:[ \t\r\n]|(?<=[ \t\r\n])#[^\r\n]*(?=[\r\n]))*")
"""What precedes the first key of a flow mapping. Python before 3.11.5 matches a possessive group wrongly."""


def _find_insertion_points(text: str, tree: YamlDocument, body: Body, editable: tuple[str, ...]) -> list[InsertionPoint]:
    """Find where a missing member of `editable` can be inserted: one point for each parent that the document has."""
    members: dict[str, set[str]] = {}
    for path in editable:
        parent, _, name = path.rpartition(".")
        members.setdefault(parent, set()).add(name)
    found = []
    for parent, names in members.items():
        steps = parent.split(".")
        values = get_field(body, *steps) if len(steps) > 1 else body.get(parent)
        if not isinstance(values, dict) or names <= values.keys():
            continue
        pair = find_written_mapping(tree.node, steps)
        point = _find_insertion_point(text, tree.offset, parent, *pair) if pair is not None else None
        found += [point] if point is not None else []
    return found


def _find_insertion_point(text: str, offset: int, parent: str, key: Any, node: Any) -> InsertionPoint | None:
    """Return where a member can be inserted into a mapping, below its key; None if its text does not allow it.

    A mapping with an anchor or a tag is not edited: a new member would also be in its aliases.
    """
    if node.flow_style:
        return _find_flow_insertion_point(text, offset, parent, node)
    first = node.value[0][0]
    start = offset + first.start_mark.index
    indent = text[start - first.start_mark.column : start]
    line_end = _BLOCK_KEY_END.match(text, offset + key.end_mark.index)
    if indent.strip(" ") or line_end is None or line_end.end() > start - len(indent):
        return None
    return InsertionPoint(parent, line_end.end(), indent, ": ", line_end[1])


def _find_flow_insertion_point(text: str, offset: int, parent: str, node: Any) -> InsertionPoint | None:
    start = offset + node.start_mark.index
    if text[start] != "{" or not node.value:
        return None
    first = node.value[0][0]
    position = offset + first.start_mark.index
    if _FLOW_START.fullmatch(text, start, position) is None or first.__class__ is not ScalarNode or text[position] in "&!":
        return None
    quote = '"' if first.style == '"' else ""
    line_start = position - first.start_mark.column
    indent = text[line_start:position]
    if indent.strip(" \t") or line_start <= start:
        return InsertionPoint(parent, position, quote, f"{quote}: ", ", ")
    line_end = "\r\n" if text.startswith("\r\n", line_start - 2) else text[line_start - 1]
    return InsertionPoint(parent, line_start, f"{indent}{quote}", f"{quote}: ", f",{line_end}")


def _find_server_owned(text: str, tree: YamlDocument, server_owned: list[FieldPath]) -> tuple[tuple[int, int], ...] | None:
    spans = []
    for path in server_owned:
        node: Any = tree.node
        pair = None
        for step in path:
            pair = None if isinstance(step, int) or node.flow_style else find_member(node, step)
            if pair is None:
                return None
            node = pair[1]
        span = _find_member_lines(text, tree.offset, pair[0], node) if pair else None
        if span is None:
            return None
        spans.append(span)
    return tuple(sorted(spans))


def _find_member_lines(text: str, offset: int, key: Any, value: Any) -> tuple[int, int] | None:
    """Return the extent of the complete lines of a block member; None when the lines contain anything else."""
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
    """Return the node whose text ends last: libyaml ends a block collection only at the next token."""
    while not (node.__class__ is ScalarNode or node.flow_style):
        if node.__class__ is MappingNode:
            key, node = node.value[-1]
        elif node.__class__ is SequenceNode:
            node = node.value[-1]
    empty = node.__class__ is ScalarNode and node.start_mark.index == node.end_mark.index
    return key if empty and key is not None else node
