"""Parse files of the common subset of YAML with yaml-rs, which takes a third of PyYAML's time and gives no positions.

`parse_common_file` returns the same as `parse_file`, or None for a file that PyYAML has to read: one outside of the subset, one with a
finding, which needs its position, and one whose spans simple lines do not show.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterator
from functools import cache
from sys import intern
from typing import Any

from gitsched.manifests.object_meta import RESOURCE, classify_document, has_null_annotation, validate_object_meta
from gitsched.manifests.parsed_file import ParsedDocument, ParsedFile, SharedValues, Validator
from gitsched.manifests.source_spans import NAMESPACE, list_insertable
from gitsched.manifests.yaml_subset import is_common_yaml
from gitsched.model.document import Body, FieldPath, InsertionPoint, SourceSpans, list_server_owned
from gitsched.model.system_errors import is_bug
from gitsched.named_tuples import NamedTuple

_MARKER = re.compile(r"^---[^\n]*\n?", re.MULTILINE)
_FIRST_MEMBER = re.compile(r"(?: *(?:#[^\n]*)?\n)*( *)(?=[^ \n#])")
_KEY_LINE_END = re.compile(r" *(?:#[^\n]*)?\n")
_BLOCK_SCALAR = re.compile(r"[|>][-+]? *(?:#[^\n]*)?$", re.MULTILINE)
_NO_VALUE = re.compile(r"[:-] *(?: #[^\n]*)?\n\Z")
_TRAILING_LINES = re.compile(r"(?<=\n)(?: *(?:#[^\n]*)?\n)+\Z")
_FLOW_START = re.compile(r' *\{ *("?)(?=[^ }"])')
_INTEGER = re.compile(r" +(0|-?[1-9][0-9]*)(?= *(?: #|\n|\Z))")


class _Document(NamedTuple):
    """The extent of a document in its file, and the offset of its first key."""

    start: int
    end: int
    content: int


class _Unclear(Exception):
    """Lines do not show where a member is."""


def parse_common_file(
    text: str, validate: Validator | None, editable: tuple[str, ...], shared: SharedValues | None = None
) -> ParsedFile | None:
    """Parse a file whose documents are all objects without findings; None for any other. `shared` as for `parse_file`."""
    if not is_common_yaml(text):
        return None
    import yaml_rs  # only for what no cache has

    documents: list[ParsedDocument] = []
    line, counted = 1, 0
    texts, collections = SharedValues({}, {}) if shared is None else shared
    try:
        parts = list(_split_documents(text))
        for index, part in enumerate(parts):
            start, end, content = part
            whole = start == 0 and end == len(text)
            body = share_values(yaml_rs.loads(text if whole else text[start:end], parse_datetime=False), texts, collections)
            if classify_document(body) is not RESOURCE or validate_object_meta(body) or has_null_annotation(body):
                return None
            spans = _find_spans(text, part, body, editable, is_only=len(parts) == 1)
            if validate is not None:
                result = validate(body)
                if result.issues:
                    return None
                body = result.body
            line, counted = line + text.count("\n", counted, content), content
            documents.append(ParsedDocument(body, index, -1, line, 1, spans, False))
    except (_Unclear, yaml_rs.YAMLDecodeError):
        return None
    except Exception as error:
        if not is_bug(error):
            raise
        return None  # the other parser reports it
    return ParsedFile("resources", tuple(documents)) if documents else None


def _split_documents(text: str) -> Iterator[_Document]:
    """Yield the documents. Raise _Unclear for an empty one, and for one whose first key is not at the start of its line."""
    markers = [match.span() for match in _MARKER.finditer(text)] if text.startswith("---") or "\n---" in text else []
    starts, ends = [0, *(end for _, end in markers)], [*(start for start, _ in markers), len(text)]
    for start, end in zip(starts, ends, strict=True):
        first = _FIRST_MEMBER.match(text, start, end)
        if first is not None and not first[1]:
            yield _Document(start, end, first.end())
        elif first is not None or start or not markers:
            raise _Unclear


_MAX_SHARED_LENGTH = 64
_MAX_SHARED_SIZE = 256
"""The most characters of a text, and bytes of a serialized collection, that are shared: larger ones are rarely equal."""


def share_values(value: Any, texts: dict[str, str], collections: dict[bytes, Any] | None = None) -> Any:
    """Return the value with one object for equal keys, for equal short texts, and with `collections` for equal small mappings and lists:
    documents stay in memory, and nothing changes them."""
    kind = value.__class__
    if kind is str:
        return texts.setdefault(value, value) if len(value) <= _MAX_SHARED_LENGTH else value
    if kind is not dict and kind is not list:
        return value
    content = b""
    if collections is not None:
        # Unlike ==, this distinguishes 1 from true and 1.0. Later versions of the format depend on who refers to a value.
        content = marshal.dumps(value, 2)
        known = collections.get(content)
        if known is not None:
            return known
    made: Any
    if kind is dict:
        made = {
            intern(name): texts.setdefault(inner, inner)
            if inner.__class__ is str and len(inner) <= _MAX_SHARED_LENGTH
            else share_values(inner, texts, collections)
            for name, inner in value.items()
        }
    else:
        made = [share_values(inner, texts, collections) for inner in value]
    if collections is not None and len(content) <= _MAX_SHARED_SIZE:
        collections[content] = made
    return made


class _Block(NamedTuple):
    """A block mapping: its members, its extent, of which `start` follows the line of its key, and its indentation."""

    members: Body
    start: int
    end: int
    indent: str

    def find_value(self, text: str, name: str) -> int:
        """Return the offset behind `name:`. Block scalars are indented more than their keys, so no line of one looks like a member."""
        line = f"{self.indent}{name}:"
        if text.startswith(line, self.start):
            return self.start + len(line)
        found = text.find(f"\n{line}", max(self.start - 1, 0), self.end)
        if found < 0:
            raise _Unclear
        return found + 1 + len(line)

    def find_block(self, text: str, name: str) -> _Block | None:
        """Return the block mapping of a member; None where it has no such member with a mapping."""
        members = self.members.get(name)
        if not isinstance(members, dict) or not members:
            return None
        head = _KEY_LINE_END.match(text, self.find_value(text, name))
        first = _FIRST_MEMBER.match(text, head.end(), self.end) if head else None
        if head is None or first is None or len(first[1]) <= len(self.indent):
            raise _Unclear
        after = _compile_block_end(len(first[1]) - 1).search(text, head.end() - 1, self.end)
        return _Block(members, head.end(), after.start() + 1 if after else self.end, first[1])

    def find_member_lines(self, text: str, name: str) -> tuple[int, int]:
        """Return the extent of the lines of a member, without blank lines and comments behind it."""
        start = self.find_value(text, name)
        # An entry of a list may have the indentation of its key.
        after = _compile_block_end(len(self.indent), "-").search(text, start, self.end)
        end = after.start() + 1 if after else self.end
        lines = _TRAILING_LINES.sub("", text[start:end], count=1)
        if _BLOCK_SCALAR.search(lines) or _NO_VALUE.search(lines):
            raise _Unclear  # blank lines and comments belong to a block scalar
        return start - len(self.indent) - len(name) - 1, start + len(lines)


@cache
def _compile_block_end(indent: int, inside: str = "") -> re.Pattern[str]:
    """Return the pattern of a line that ends a block: one with at most this indentation, which does not begin with `inside`."""
    return re.compile(rf"\n {{0,{indent}}}[^ \n#{inside}]")


@cache
def _group_paths(paths: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the names of the members by the path of their parent."""
    names: dict[str, list[str]] = {}
    for path in paths:
        parent, _, name = path.rpartition(".")
        names.setdefault(parent, []).append(name)
    return names


def _find_server_owned(text: str, root: _Block, path: FieldPath) -> tuple[int, int]:
    block: _Block | None = root
    for step in path[:-1]:
        block = block.find_block(text, step) if block is not None and isinstance(step, str) else None
    name = path[-1]
    if block is None or isinstance(name, int) or ("&" in text and "*" in text):  # `find_spans` does not look for anchors any closer
        raise _Unclear
    return block.find_member_lines(text, name)


def _find_spans(text: str, document: _Document, body: Body, editable: tuple[str, ...], *, is_only: bool) -> SourceSpans:
    """Find what `find_spans` of source_spans does from the lines of a document, which may be the only one of its file. Raise _Unclear where
    these do not show it."""
    root = _Block(body, document.content, document.end, "")
    cuts = tuple(sorted(_find_server_owned(text, root, path) for path in list_server_owned(body)))
    found: dict[str, tuple[int, int]] = {}
    points = []
    for parent, members in _group_paths(list_insertable(body, editable)).items():
        if f"{parent}.{members[0]}" == NAMESPACE and (flow := _FLOW_START.match(text, root.find_value(text, parent))) is not None:
            points.append(InsertionPoint(parent, flow.start(1), flow[1], f"{flow[1]}: ", ", "))
            continue
        block: _Block | None = root
        for step in parent.split(".") if parent else ():
            block = block.find_block(text, step) if block is not None else None
        if block is None:
            continue
        present = [name for name in members if name in block.members]
        for name in present:
            path = f"{parent}.{name}" if parent else name
            scalar = _INTEGER.match(text, block.find_value(text, name))
            if scalar is not None and str(block.members[name]) == scalar[1]:  # else the scalar has more lines
                found[path] = scalar.span(1)
            elif path in editable:
                raise _Unclear
        if parent and len(present) < len(members):
            points.append(InsertionPoint(parent, block.start, block.indent, ": ", "\n"))
    scalars = tuple((path, *found[path]) for path in editable if path in found)
    return SourceSpans(is_only, document.start, document.end, cuts, scalars, tuple(points))
