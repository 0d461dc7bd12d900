"""Find where nodes of a YAML document begin and end in its text, and what the lines around them hold."""

from __future__ import annotations

import re
from typing import Any

from yaml import MappingNode, ScalarNode, SequenceNode

from gitsched.edits.value_text import TextStyle
from gitsched.manifests.yaml_composer import YamlDocument

_REST_OF_LINE = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_COMMENT_LINES = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n))*")
_COMMENT_LINE = re.compile(r"( *)#[^\r\n]*(?:\r\n|\r|\n|\Z)")
_COLON = re.compile(r"[ \t]*:")
_ALIAS = re.compile(r"[ \t]*\*[^\s,\[\]{}]+")
_LITERAL_HEAD = re.compile(r"[|>][0-9+-]*")


class NotEditable(ValueError):
    """The text of a document cannot be edited so that it has the new value; the message says why."""


class TextPositions:
    """Positions in a text of the nodes of one document. `shared` are the ids of nodes that several places refer to."""

    def __init__(self, text: str, tree: YamlDocument) -> None:
        self.text = text
        self.root: Any = tree.node
        self.shared = _find_shared(tree.node) if "&" in text and "*" in text else frozenset()
        self._offset = tree.offset

    def start(self, node: Any) -> int:
        """Return where a node begins; an alias begins where its anchor is."""
        return int(self._offset + node.start_mark.index)

    def end(self, node: Any) -> int:
        """Return where the parser ends a node: a block collection ends at the next token."""
        return int(self._offset + node.end_mark.index)

    def find_line_start(self, offset: int) -> int:
        """Return where the line of an offset begins."""
        return max(self.text.rfind("\n", 0, offset), self.text.rfind("\r", 0, offset)) + 1

    def _find_line_above(self, line: int) -> int:
        """Return where the line above the beginning of a line begins."""
        return self.find_line_start(line - (2 if line > 1 and self.text.startswith("\r\n", line - 2) else 1))

    def find_line_end(self, offset: int) -> int:
        """Return the offset behind a line of which nothing but a comment follows."""
        rest = _REST_OF_LINE.match(self.text, offset)
        if rest is None:
            raise NotEditable("another value follows on the same line")
        return rest.end()

    def is_indentation(self, offset: int) -> bool:
        """Return whether only blanks precede an offset on its line."""
        return not self.text[self.find_line_start(offset) : offset].strip(" ")

    def find_colon(self, key: Any) -> int:
        """Return the offset behind the colon of a key."""
        if id(key) in self.shared:
            raise NotEditable("an alias is a key")
        colon = _COLON.match(self.text, self.end(key))
        if colon is None:
            raise NotEditable("a key is written with `?`, or without a value")
        return colon.end()

    def find_dash(self, sequence: Any, index: int) -> int:
        """Return where the dash of an entry of a block sequence is."""
        first = index
        while first and self._find_near_dash(sequence, first) is None:
            first -= 1
        dash = self._find_near_dash(sequence, first) if first else self.start(sequence)
        for number in range(first, index):  # entries that begin on a later line than their dash
            end = self.find_block_end(sequence.value[number], (dash or 0) + 1)
            below = _COMMENT_LINES.match(self.text, end)
            dash = (below.end() if below else end) + int(sequence.start_mark.column)
            if not self.text.startswith("-", dash) or not self.is_indentation(dash):
                raise NotEditable("an entry of a list is not below the one before")
        return dash or 0

    def _find_near_dash(self, sequence: Any, index: int) -> int | None:
        """Return where the dash of an entry is that begins on the line of its dash; None for any other."""
        node = sequence.value[index]
        start = self.start(node)
        dash = self.find_line_start(start) + int(sequence.start_mark.column)
        near = dash < start and self.text[dash] == "-" and self.is_indentation(dash) and id(node) not in self.shared
        return dash if near else None

    def find_block_end(self, node: Any, after: int) -> int:
        """Return the offset behind the last line of a value in block style; `after` is the offset behind the colon or dash before it."""
        while not (node.__class__ is ScalarNode or node.flow_style or self.start(node) < after):
            if node.__class__ is MappingNode:
                key, node = node.value[-1]
                after = self.find_colon(key)
            else:
                after = self.start(node)
                node = node.value[-1]
                if self.start(node) < after:
                    raise NotEditable("the last entry of a list is an alias")
                after = self.start(node)
        start, end = self.start(node), self.end(node)
        if start < after:
            alias = _ALIAS.match(self.text, after)
            if alias is None:
                raise NotEditable("an alias is not on the line of its key")
            return self.find_line_end(alias.end())
        if is_literal(node):
            return self.find_literal_end(node)
        return self.find_line_end(after if start == end else end)

    def find_literal_end(self, node: Any) -> int:
        """Return the offset behind the last line of a literal or folded block, without blank lines that do not count."""
        mark, end = node.end_mark, self.end(node)
        end -= mark.column if end < len(self.text) else 0
        head = self.find_literal_head(node)
        if "+" not in self.text[self.start(node) : head]:
            while end > head and not self.text[self._find_line_above(end) : end].strip():
                end = self._find_line_above(end)
        return end

    def find_literal_head(self, node: Any) -> int:
        """Return the offset behind the indicators of a literal or folded block."""
        head = _LITERAL_HEAD.match(self.text, self.start(node))
        if head is None:
            raise NotEditable("the value has an anchor or a tag")
        return head.end()

    def find_flow_end(self, node: Any, after: int) -> int:
        """Return the offset behind a value in a flow collection; `after` is the offset behind what precedes it."""
        start, end = self.start(node), self.end(node)
        if start < after:
            alias = _ALIAS.match(self.text, after)
            if alias is not None:
                return alias.end()
        if start >= end or start < after:
            raise NotEditable("a value in braces or brackets has no text of its own")
        return end

    def find_comment_start(self, line: int, column: int) -> int:
        """Return where the comment lines in a column begin that are directly above a line."""
        while line:
            above = self._find_line_above(line)
            if not self.text.startswith(" " * column + "#", above):
                break
            line = above
        return line

    def find_comment_end(self, line: int, column: int) -> int:
        """Return the offset behind the comment lines that begin at a line and are indented to a column or further."""
        while (comment := _COMMENT_LINE.match(self.text, line)) is not None and len(comment[1]) >= column:
            line = comment.end()
        return line

    def detect_style(self) -> TextStyle:
        """Return how the document is written, by its first nested mapping and list."""
        members, entries = 0, -1
        pending: list[Any] = [self.root]
        while pending and (not members or entries < 0):
            node = pending.pop()
            if node.__class__ is ScalarNode or node.flow_style:
                continue
            if node.__class__ is SequenceNode:
                pending += reversed(node.value)
                continue
            for key, value in node.value:
                if value.__class__ is ScalarNode or value.flow_style or id(value) in self.shared:
                    continue
                column = value.start_mark.column - key.start_mark.column
                if value.__class__ is MappingNode:
                    members = members or column
                else:
                    entries = column if entries < 0 else entries
            pending += [value for _, value in reversed(node.value)]
        first = self.text.find("\n")
        line_end = "\r" if first < 0 and "\r" in self.text else "\r\n" if first > 0 and self.text[first - 1] == "\r" else "\n"
        return TextStyle(max(members, 1) if members else 2, max(entries, 0), line_end)


def is_literal(node: Any) -> bool:
    """Return whether a node is a literal or folded block."""
    return node.__class__ is ScalarNode and node.style in ("|", ">")


def _find_shared(root: Any) -> frozenset[int]:
    """Return the ids of the nodes that more than one place refers to."""
    seen: set[int] = set()
    shared: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            shared.add(id(node))
            continue
        seen.add(id(node))
        if node.__class__ is MappingNode:
            pending += [part for pair in node.value for part in pair]
        elif node.__class__ is SequenceNode:
            pending += node.value
    return frozenset(shared)
