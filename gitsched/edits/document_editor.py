"""Edit the text of one YAML document so that it has another value: find what differs, and replace the text of that alone."""

from __future__ import annotations

import re
from typing import Any

from yaml import MappingNode, ScalarNode, SequenceNode

from gitsched.edits.list_alignment import align_entries
from gitsched.edits.text_positions import NotEditable, TextPositions, is_literal
from gitsched.edits.value_text import (
    BlockText,
    TextStyle,
    has_lines,
    write_block,
    write_flow,
    write_lines,
    write_literal,
    write_scalar,
)
from gitsched.manifests.yaml_composer import YamlDocument
from gitsched.manifests.yaml_nodes import Constructor, find_member
from gitsched.model.json_values import is_same_json
from gitsched.model.planned_files import TextEdit
from gitsched.named_tuples import NamedTuple

_SHARED = "an anchor shares the value with other places"
_MERGED = "`<<` merges the value from another mapping"
_PROPERTIES = "the value has an anchor or a tag"
_OTHER_VALUE = "the text has another value than the document"
_OTHER_LINE_BREAK = re.compile("[\x85\u2028\u2029]")
"""Line breaks of YAML 1.1 that YAML 1.2 does not have."""
_BLANKS = ("", " ", "\t", "\r", "\n")


class _Place(NamedTuple):
    """Where a value is: `after` is the offset behind the colon of its key or the dash of its entry, `column` that of the key or dash."""

    after: int
    column: int
    is_entry: bool = False


class DocumentEditor:
    """Collects the edits of one document. `certain` is false if the result has to be parsed to know that it has the new value."""

    def __init__(self, text: str, tree: YamlDocument) -> None:
        self._at = TextPositions(text, tree)
        self._edits: list[TextEdit] = []
        self._style: TextStyle | None = None
        self._ended = False
        self.certain = text.isascii() or not _OTHER_LINE_BREAK.search(text)

    def edit(self, before: dict[str, Any], after: dict[str, Any]) -> list[TextEdit]:
        """Return the edits that change the value of the document; `before` is the present one. Raise NotEditable."""
        if self._at.root.__class__ is not MappingNode or not after:
            raise NotEditable(_OTHER_VALUE)
        self._edit_mapping(self._at.root, _Place(0, 0), before, after, flow=False)
        return sorted(self._edits, key=lambda edit: edit[:2])

    def _edit_value(self, node: Any, place: _Place, before: Any, after: Any, *, flow: bool) -> None:
        """Edit a value; `flow` says that it is a part of a flow collection."""
        if id(node) in self._at.shared or self._at.start(node) < place.after:
            if not is_same_json(before, after):
                raise NotEditable(_SHARED)
        elif after and isinstance(before, dict) and isinstance(after, dict) and node.__class__ is MappingNode and node.value:
            self._edit_mapping(node, place, before, after, flow=flow)
        elif after and isinstance(before, list) and isinstance(after, list) and node.__class__ is SequenceNode and node.value:
            self._edit_sequence(node, before, after)
        elif not is_same_json(before, after):
            self._replace(node, place, before, after, flow=flow)

    # Mappings

    def _edit_mapping(self, node: Any, place: _Place, before: dict[str, Any], after: dict[str, Any], *, flow: bool) -> None:
        pairs = _find_changed_members(node, before, after)
        added = {name: value for name, value in after.items() if name not in before}
        removed = [pair for name, pair in pairs.items() if name not in after]
        if len(removed) == len(node.value):
            self._replace(node, place, before, after, flow=flow)
            return
        for name, (key, value) in pairs.items():
            if name in after:
                inner = _Place(self._at.find_colon(key), key.start_mark.column)
                self._edit_value(value, inner, before[name], after[name], flow=node.flow_style)
        if removed:
            keys = {id(key) for key, _ in removed}
            gone = [id(key) in keys for key, _ in node.value]
            if node.flow_style:
                self._remove_flow_parts(self._list_flow_members(node), gone)
            else:
                self._remove_members(node, gone)
        if added and node.flow_style:
            text = write_flow(added, json_style=self._is_json(node))
            self._add_flow_parts(self._list_flow_members(node), text)
        elif added:
            self._add_members(node, added)

    def _add_members(self, node: Any, added: dict[str, Any]) -> None:
        """Append members to a block mapping."""
        first, (key, value) = node.value[0][0], node.value[-1]
        start = self._at.start(first)
        if self._at.text[self._at.find_line_start(start) : start].strip(" -"):
            raise NotEditable("the first key of the mapping is not at the beginning of its line")
        column = int(first.start_mark.column)
        end = self._at.find_comment_end(self._at.find_block_end(value, self._at.find_colon(key)), column)
        self.certain = self.certain and not self._ends_in_literal(value) and not has_lines(added)
        self._insert_lines(end, write_lines(added, column, self._get_style()))

    def _remove_members(self, node: Any, gone: list[bool]) -> None:
        """Remove members of a block mapping with their lines. `gone` says for each member whether it is removed; one stays at least."""
        self.certain = False
        first_kept = gone.index(False)
        start = self._at.start(node.value[0][0])
        begins_line = self._at.is_indentation(start)
        if gone[0] and not begins_line:  # the first member of an entry is on the line of its dash
            self._add(start, self._at.start(node.value[first_kept][0]), "")
        for index, (key, value) in enumerate(node.value):
            if gone[index] and (begins_line or index > first_kept):
                start = self._at.start(key)
                if not self._at.is_indentation(start):
                    raise NotEditable("a key is not at the beginning of its line")
                self._add(self._at.find_line_start(start), self._at.find_block_end(value, self._at.find_colon(key)), "")

    # Lists

    def _edit_sequence(self, node: Any, before: list[Any], after: list[Any]) -> None:
        if len(node.value) != len(before):
            raise NotEditable(_OTHER_VALUE)
        gone = [False] * len(before)
        inserted: dict[int, list[Any]] = {}
        for part in align_entries(before, after):
            if part.end - part.start == part.new_end - part.new_start:
                for index in range(part.start, part.end):
                    self._edit_entry(node, index, before[index], after[part.new_start + index - part.start])
                continue
            gone[part.start : part.end] = [True] * (part.end - part.start)
            inserted.setdefault(part.end, []).extend(after[part.new_start : part.new_end])
        inserted = {index: entries for index, entries in inserted.items() if entries}
        if not inserted and not any(gone):
            return
        self.certain = False
        if not node.flow_style:
            self._change_entries(node, gone, inserted)
        elif self._at.text[self._at.start(node)] != "[":
            raise NotEditable(_PROPERTIES)
        elif all(gone):
            self._add(self._at.start(node), self._at.end(node), write_flow(after, json_style=self._is_json(node)))
        else:
            spans = [(self._at.start(entry), self._at.find_flow_end(entry, self._at.start(node))) for entry in node.value]
            if any(id(entry) in self._at.shared for entry in node.value):
                raise NotEditable(_SHARED)
            for index, entries in inserted.items():
                text = write_flow(entries, json_style=self._is_json(node))
                if index == 0 or all(gone[:index]):
                    self._add(spans[0][0], spans[0][0], f"{text[1:-1]}, ")
                else:
                    self._add_flow_parts(spans[:index], text)
            self._remove_flow_parts(spans, gone)

    def _edit_entry(self, node: Any, index: int, before: Any, after: Any) -> None:
        entry = node.value[index]
        if node.flow_style:
            self._edit_value(entry, _Place(self._at.start(node), 0), before, after, flow=True)
        elif not is_same_json(before, after):
            place = _Place(self._at.find_dash(node, index) + 1, node.start_mark.column, is_entry=True)
            self._edit_value(entry, place, before, after, flow=False)

    def _change_entries(self, node: Any, gone: list[bool], inserted: dict[int, list[Any]]) -> None:
        """Remove entries of a block sequence, and insert others before those with the given indices."""
        column = node.start_mark.column
        if not self._at.is_indentation(self._at.start(node)) and (gone[0] or 0 in inserted):
            raise NotEditable("the first entry of a list is on the line of another dash")
        for index, is_gone in enumerate(gone):
            if is_gone:
                dash = self._at.find_dash(node, index)
                self._add(self._at.find_line_start(dash), self._at.find_block_end(node.value[index], dash + 1), "")
        for index, entries in inserted.items():
            if index:
                at = self._at.find_block_end(node.value[index - 1], self._at.find_dash(node, index - 1) + 1)
                at = self._at.find_comment_end(at, column) if index == len(node.value) else at
            else:
                at = self._at.find_comment_start(self._at.find_line_start(self._at.start(node)), column)
            self._insert_lines(at, write_lines(entries, column, self._get_style()))

    # Flow collections

    def _list_flow_members(self, node: Any) -> list[tuple[int, int]]:
        """Return the spans of the members of a flow mapping."""
        return [(self._at.start(key), self._at.find_flow_end(value, self._at.find_colon(key))) for key, value in node.value]

    def _add_flow_parts(self, spans: list[tuple[int, int]], text: str) -> None:
        """Insert members or entries, given in braces or brackets, behind the last of these spans; on a line of their own if that is."""
        self.certain = False
        start, end = spans[-1]
        line = self._at.find_line_start(start)
        own_line = not self._at.text[line:start].strip(" \t") and line > 0
        separator = f",{self._get_style().line_end}{self._at.text[line:start]}" if own_line else ", "
        self._add(end, end, f"{separator}{text[1:-1]}")

    def _remove_flow_parts(self, spans: list[tuple[int, int]], gone: list[bool]) -> None:
        """Remove members or entries of a flow collection with their commas; one stays at least."""
        self.certain = False
        index = 0
        while index < len(spans):
            if not gone[index]:
                index += 1
                continue
            last = index
            while last + 1 < len(spans) and gone[last + 1]:
                last += 1
            if last + 1 < len(spans):
                self._add(spans[index][0], spans[last + 1][0], "")
            else:
                self._add(spans[index - 1][1], spans[last][1], "")
            index = last + 1

    def _is_json(self, node: Any) -> bool:
        """Return whether strings of a flow collection are in double quotes."""
        while not self._at.root.flow_style and node.__class__ is not ScalarNode:
            if not node.value:
                return False
            node = node.value[0][0] if node.__class__ is MappingNode else node.value[0]
        return node.__class__ is not ScalarNode or node.style == '"'

    # Values

    def _replace(self, node: Any, place: _Place, before: Any, after: Any, *, flow: bool) -> None:
        """Replace the text of a value."""
        start, end = self._at.start(node), self._at.end(node)
        scalar = node.__class__ is ScalarNode
        if scalar and not is_same_json(Constructor(0).construct(node), before):
            raise NotEditable(_OTHER_VALUE)
        if start < end and self._at.text[start] in "&!":
            raise NotEditable(_PROPERTIES)
        is_line = scalar and start < end and not is_literal(node)
        if flow:
            self.certain = False
            if start == end:
                raise NotEditable("a value in braces or brackets has no text of its own")
            quoted = is_line and node.style is not None and isinstance(after, str)
            json_style = self._at.root.flow_style
            self._add(start, end, write_scalar(after, node.style) if quoted else write_flow(after, json_style=json_style))
            return
        if is_line and not isinstance(after, dict | list) and not (isinstance(after, str) and "\n" in after):
            if len(self._at.text[start:end].splitlines()) > 1 or self._at.text[end : end + 1] not in _BLANKS:
                self.certain = False
            self._add(start, end, write_scalar(after, node.style))
            return
        self.certain = False
        style = self._get_style()
        new = write_block(after, place.column, style)
        if place.is_entry and new.lines and not new.head:  # a collection begins on the line of its dash
            column = place.column + 2 if start == end or is_literal(node) else int(node.start_mark.column)
            lines = write_lines(after, column, style)
            new = BlockText(lines[0].lstrip(" "), lines[1:])
        if is_literal(node):
            self._replace_literal(node, new, after)
        elif start == end:
            self._insert_block(place.after, new)
        elif "\n" in self._at.text[place.after : start] or "\r" in self._at.text[place.after : start]:
            block_end = self._at.find_block_end(node, place.after)
            column = int(node.start_mark.column)
            if place.is_entry and new.head and new.lines and isinstance(after, dict | list):
                new = BlockText("", [" " * column + new.head, *new.lines])
            if new.head:
                self._add(place.after, place.after, f" {new.head}")
            self._add(self._at.find_line_end(place.after), block_end, self._join(new.lines))
        elif scalar or node.flow_style:
            self._add(*((start, end, new.head) if new.head else (place.after, end, "")))
            if new.lines:
                self._insert_lines(self._at.find_line_end(end), new.lines)
        else:  # a collection on the line of its dash
            self._add(start, self._at.find_block_end(node, place.after), self._join([new.head, *new.lines]))

    def _replace_literal(self, node: Any, new: BlockText, after: Any) -> None:
        """Replace a literal or folded block. A text of several lines keeps the column of its lines."""
        head = self._at.find_literal_head(node)
        first = self._at.find_line_end(head)
        end = self._at.find_literal_end(node)
        if isinstance(after, str) and "\n" in after:
            line = next((line for line in self._at.text[first:end].splitlines() if line.strip()), "")
            column = len(line) - len(line.lstrip(" "))
            new = write_literal(after, column) if column else new
        self._add(self._at.start(node), head, new.head)
        self._add(first, end, self._join(new.lines))

    def _insert_block(self, after: int, new: BlockText) -> None:
        """Insert a value behind a key or dash that has none."""
        if new.head:
            self._add(after, after, f" {new.head}")
        if new.lines:
            self._insert_lines(self._at.find_line_end(after), new.lines)

    # Text

    def _insert_lines(self, at: int, lines: list[str]) -> None:
        """Insert lines at the beginning of a line, or at the end of a text whose last line has no end."""
        line_end = self._get_style().line_end
        no_line_end = bool(at) and self._at.text[at - 1] not in "\r\n" and not self._ended
        self._ended = self._ended or no_line_end
        self._add(at, at, line_end * no_line_end + self._join(lines))

    def _join(self, lines: list[str]) -> str:
        line_end = self._get_style().line_end
        return "".join(f"{line}{line_end}" for line in lines)

    def _ends_in_literal(self, node: Any) -> bool:
        """Return whether the last line of a value belongs to a literal or folded block."""
        while not (node.__class__ is ScalarNode or node.flow_style):
            node = node.value[-1][1] if node.__class__ is MappingNode else node.value[-1]
        return is_literal(node)

    def _get_style(self) -> TextStyle:
        if self._style is None:
            self._style = self._at.detect_style()
        return self._style

    def _add(self, start: int, end: int, text: str) -> None:
        if start < end or text:
            self._edits.append(TextEdit(start, end, text))


def _find_changed_members(node: Any, before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the key and value nodes of the members that change or go. Raise NotEditable if one of them is merged into the mapping."""
    pairs = {}
    for name in before:
        if name in after and before[name] is after[name]:
            continue
        pair = find_member(node, name)
        if pair is not None:
            pairs[name] = pair
        elif name not in after or not is_same_json(before[name], after[name]):
            raise NotEditable(_MERGED)
    return pairs
