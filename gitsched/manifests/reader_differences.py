"""Find YAML that one of Kubernetes' two readers refuses, or that they read differently.

kubectl, Argo CD and the API server read with sigs.k8s.io/yaml, kustomize and Flux with kyaml, which has another parser and writes what it
reads anew. A document of which they disagree has another value in each cluster, or stops the build of all others. This module is for what
the text of a document shows; `Constructor` finds keys and scalars that the readers resolve differently.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from yaml import MappingNode, ScalarNode

from gitsched.manifests.parsed_file import MAX_ISSUES
from gitsched.manifests.plain_scalars import NON_STRING_KEY
from gitsched.manifests.yaml_composer import CONTROL_ESCAPE, HUGE_EXPONENT, MARKER_WITH_CONTENT
from gitsched.manifests.yaml_errors import ParseError
from gitsched.manifests.yaml_nodes import AMBIGUOUS_VALUE, find_written_member
from gitsched.model.document import reject_constant
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.manifests.yaml_composer import YamlDocument

REFUSED: Final = "refused-by-kubernetes"
_AMBIGUOUS_TEXT: Final = "ambiguous-text"

_SUSPICIOUS = re.compile(
    r"""\?|\\/|!(?=[\s,\]}]|\Z)|!\S*\s+<<|>[-+0-9]*[ \t]*(?:\#[^\n]*)?[\r\n\x85\u2028\u2029]|"<<"|'<<'"""
    rf"|\|[0-9]?\+|{CONTROL_ESCAPE.pattern}"
)
_ANCHOR = re.compile(r"&(?<=[\s,\[{]&)[\w-]")  # begins with a literal, which is found faster
_FEW_SEARCHES = 1000
"""Places in a document that are looked up one by one; with more, every node is visited."""
_LINE_START = r"(?:\A|[\n\r\x85\u2028\u2029])"
_DIRECTIVE = re.compile(rf"{_LINE_START}(%)")
_MARKER_AFTER_OTHER_BREAK = re.compile("(?:\r(?!\n)|[\x85\u2028\u2029])(---|\\.\\.\\.)(?=[ \t\r\n\x85\u2028\u2029]|\\Z)")
_MARKER_BEFORE_OTHER_BREAK = re.compile("\n---[ \t]*(?:\r(?!\n)|[\x85\u2028\u2029])")
_SLASH_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*(\\/)")
_BARE_TAG = re.compile(r"(?:&\S+\s+)?!")
_BLOCK_HEAD = re.compile(r"(?:[&!]\S*\s+)*[|>]([-+0-9]*)")
_MARK_AFTER_JSON = re.compile(r"^(?:\.\.\.|%)", re.MULTILINE)
_UNPRINTED = re.compile("[\x7f-\x9f\ufffe\uffff]")
_LAST_COMMENTS = re.compile(r"(?:[ \t]*\r?\n)*([ \t]*)#[^\n]*(?:\n\1#[^\n]*|\n[ \t\r]*(?=\n|\Z))*(?:\n---|\n\.\.\.|\Z)")
"""Comments of one indentation up to the end of a document."""
_NULLS = frozenset(("null", "Null", "NULL", "~"))
_BREAKS = re.compile(r"[^\n](\n+)")


class Differences(NamedTuple):
    """What the readers refuse or read as another value, and texts of which they read other line breaks."""

    errors: list[ParseError]
    warnings: list[ParseError]


def find_differences(text: str, tree: YamlDocument, before: int) -> Differences:
    """Return what the readers of Kubernetes refuse or read differently in a document. The one before ends at the offset `before`."""
    start, end = tree.offset + tree.node.start_mark.index, tree.offset + tree.node.end_mark.index
    found = Differences([], [])
    found.errors.extend(_check_markers(text, tree, before, start))
    found.errors.extend(_find_null_annotations(tree))
    if text.startswith("{", start):
        found.errors.extend(_check_json(text, tree, before))
    for part in _list_suspicious(text, tree, start, end):
        _check_node(text, tree, part, found)
        if len(found.errors) >= MAX_ISSUES or len(found.warnings) >= MAX_ISSUES:
            break
    return found


class _Part(NamedTuple):
    """A node, and whether it is a part of a flow collection, and a key."""

    node: Any
    in_flow: bool = False
    is_key: bool = False


def _list_suspicious(text: str, tree: YamlDocument, start: int, end: int) -> Iterable[_Part]:
    """Return the nodes that may have a difference, each once. Few texts have more than some, so that the others are not visited."""
    offsets = [found.start() for found in islice(_SUSPICIOUS.finditer(text, start, end), _FEW_SEARCHES + 1)]
    if end >= len(text) and not text.endswith("\n"):
        offsets.append(len(text.rstrip(" \t")) - 1)
    if len(offsets) > _FEW_SEARCHES or (
        "&" in text and "*" in text and _ANCHOR.search(text)
    ):  # an alias has the place of its anchor
        return _walk(tree.node)
    return _locate(text, tree, offsets)


def _locate(text: str, tree: YamlDocument, offsets: list[int]) -> Iterator[_Part]:
    """Yield the scalars, and the collections with a tag, at offsets of a text without aliases."""
    last = 0
    for offset in offsets:
        position = offset - tree.offset
        if position < last:
            continue
        part = _Part(tree.node)
        while part.node.__class__ is not ScalarNode and not (part.node.start_mark.index == position and text[offset] == "!"):
            children = part.node.value
            if part.node.__class__ is MappingNode:
                index = bisect_right(children, position, key=_get_start_of_pair) - 1
                is_key = index >= 0 and children[index][1].start_mark.index > position
                child = children[index][0 if is_key else 1] if index >= 0 else None
            else:
                index, is_key = bisect_right(children, position, key=_get_start) - 1, False
                child = children[index] if index >= 0 else None
            if child is None:
                break
            part = _Part(child, part.node.flow_style, is_key)
        last = part.node.end_mark.index if part.node.__class__ is ScalarNode else position + 1
        yield part


def _get_start(node: Any) -> int:
    return int(node.start_mark.index)


def _get_start_of_pair(pair: tuple[Any, Any]) -> int:
    return int(pair[0].start_mark.index)


def _walk(root: Any) -> Iterator[_Part]:
    """Yield each node once, in the order of the text."""
    seen: set[int] = set()
    pending = [_Part(root)]
    while pending:
        part = pending.pop()
        node = part.node
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield part
        if node.__class__ is MappingNode:
            for key, value in reversed(node.value):
                pending += (_Part(value, node.flow_style), _Part(key, node.flow_style, is_key=True))
        elif node.__class__ is not ScalarNode:
            pending += [_Part(child, node.flow_style) for child in reversed(node.value)]


def _check_node(text: str, tree: YamlDocument, part: _Part, found: Differences) -> None:
    node = part.node
    first, end = tree.offset + node.start_mark.index, tree.offset + node.end_mark.index
    is_scalar = node.__class__ is ScalarNode
    if not node.tag and not (is_scalar and node.style) and _BARE_TAG.match(text, first):
        message = "kubectl reads a value with the tag ! as a text, and kustomize ignores the tag: remove it, and quote a text"
        found.errors.append(_make_error(AMBIGUOUS_VALUE, message, tree, node))
    if not is_scalar:
        return
    if part.is_key and node.value == "<<" and (node.style or node.tag):
        message = "kustomize drops a key << in quotes, and kubectl keeps it: choose another key"
        found.errors.append(_make_error(NON_STRING_KEY, message, tree, node))
    if not node.style and part.in_flow and "?" in node.value:
        message = "kubectl and kustomize do not read a '?' in a text without quotes inside of braces or brackets: quote the text"
        found.errors.append(_make_error(REFUSED, message, tree, node, max(text.find("?", first, end) - first, 0)))
    elif node.style == '"':
        _check_escapes(text, tree, node, found)
    elif node.style and node.style in "|>":
        change = _describe_line_breaks(text, node.value, first, end)
        if change:
            found.warnings.append(_make_error(_AMBIGUOUS_TEXT, change, tree, node))


def _check_escapes(text: str, tree: YamlDocument, node: Any, found: Differences) -> None:
    """Add what kustomize cannot read or print of a text in double quotes."""
    first, end = tree.offset + node.start_mark.index, tree.offset + node.end_mark.index
    escape = _SLASH_ESCAPE.search(text, first, end)
    if escape is not None:
        message = "kustomize refuses the escape \\/, and so does kubectl unless the file is JSON: write / alone"
        found.errors.append(_make_error(REFUSED, message, tree, node, escape.start(1) - first))
    unprinted = _UNPRINTED.search(node.value)
    if unprinted is None:
        return
    name = f"U+{ord(unprinted[0]):04X}"
    if unprinted[0] == "\x85":
        message = f"kustomize prints the character {name} of this text as a blank: remove it"
        found.errors.append(_make_error(AMBIGUOUS_VALUE, message, tree, node))
    else:
        message = f"kustomize cannot print the character {name} of this text: remove it, or encode the text"
        found.errors.append(_make_error(REFUSED, message, tree, node))


def _check_json(text: str, tree: YamlDocument, before: int) -> Iterator[ParseError]:
    """Yield what kubectl refuses in a document in braces and behind it, because it reads the document as JSON if it is."""
    start, end = tree.offset + tree.node.start_mark.index, tree.offset + tree.node.end_mark.index
    marker = text.rfind("\n---", before, start)
    following = text.find("\n---", end)
    rest = text[end : following + 1 if following >= 0 else len(text)]
    is_first = not ((marker >= 0 and text[text.find("\n", marker + 1) : start]) or text[before:start]).strip()
    if not (is_first and (rest.strip(" \t\r\n") or HUGE_EXPONENT.search(text, start, end))):
        return
    numbers: list[str] = []
    try:
        json.loads(text[start:end], parse_constant=reject_constant, parse_float=numbers.append)
    except (ValueError, RecursionError):
        return
    huge = next((number for number in numbers if not isfinite(float(number))), None)
    if huge is not None:
        message = "kubectl refuses this number of JSON, because it is too large: quote it if it is a text"
        yield _error_at(REFUSED, message, text, text.index(huge, start))
    elif rest.strip(" \t\r\n") and _stops_kubectl(rest):
        message = "kubectl reads the object before as JSON, and refuses what follows it: remove it"
        yield _error_at(REFUSED, message, text, end + len(rest) - len(rest.lstrip(" \t\r\n")))


def _stops_kubectl(rest: str) -> bool:
    """Return whether kubectl refuses what follows JSON: it reads it as YAML, if up to the first line break or text each character is
    followed by others, of four bytes with it."""
    content = 0
    for content, character in enumerate(rest):
        if len(rest[content : content + 4].encode()) < 4:
            return True
        if character == "\n" or not character.isspace():
            break
    return _MARK_AFTER_JSON.search(rest, content) is not None


def _check_markers(text: str, tree: YamlDocument, before: int, start: int) -> Iterator[ParseError]:
    """Yield what the readers refuse in the lines between a document and the one before it, and markers that not all readers see."""
    directive = _DIRECTIVE.search(text, before, start)
    if directive is not None:
        message = "kubectl and kustomize refuse a directive before a document: remove this line"
        yield _error_at(REFUSED, message, text, directive.start(1))
    line = text.rfind("\n", 0, start) + 1
    if text.startswith("---", line) and line < start:
        message = "kubectl refuses what follows --- on its line: begin the document on the next line"
        yield _error_at(REFUSED, message, text, start)
    finish = min(tree.offset + tree.node.end_mark.index + len("\n---"), len(text))
    is_usual = text.isascii() and "\r" not in text
    marker = None if is_usual else _MARKER_AFTER_OTHER_BREAK.search(text, max(before - 1, 0), finish)
    if marker is not None:
        message = "kubectl and kustomize see this marker of documents only after a newline: use newlines as line breaks"
        yield _error_at(REFUSED, message, text, marker.start(1))
    following = -1 if is_usual else text.find("\n---", max(finish - len("\n---") - 1, 0))
    if following >= 0 and _MARKER_BEFORE_OTHER_BREAK.match(text, following):
        message = "kubectl and kustomize take this line for a part of the document before it: use newlines as line breaks"
        yield _error_at(REFUSED, message, text, following + 1)
    content = MARKER_WITH_CONTENT.search(text, max(before - 1, 0), tree.offset + tree.node.end_mark.index)
    offset = content.start() + 1 if content is not None else 0
    if (content is not None and not (offset == line < start)) or (content is None and start == 0 and text.startswith("---")):
        message = (
            "kubectl takes this line for the beginning of a document, because it begins with ---: indent it, or quote the text"
        )
        yield _error_at(REFUSED, message, text, offset)


def _describe_line_breaks(text: str, value: str, start: int, end: int) -> str:
    """Return how the readers disagree about the line breaks of a literal or folded block; "" if they do not."""
    head = _BLOCK_HEAD.match(text, start)
    if head is None:
        return ""
    keeps_last = (value or "\n" in text[head.end() :]) if "+" in head[1] else value and "-" not in head[1] and value[-1] != "\n"
    if keeps_last and not (text.endswith("\n") or text[end:].strip(" \t")):
        return "kubectl reads a newline at the end of this text, and kustomize does not: end the file with a newline"
    if "+" in head[1] and value.endswith("\n\n") and _LAST_COMMENTS.match(text, end):
        return "kustomize prints a further line break in this text, because only comments follow it: move them to another place"
    if head[0][-len(head[1]) - 1] == ">" and _is_folded_differently(value):
        return "kustomize prints further line breaks in this text, of which some lines are indented more than others: write | in place of >"
    return ""


def _is_folded_differently(value: str) -> bool:
    """Return whether kyaml prints a folded text with another value.

    Where a line break follows a line that is not indented, a folded text has one more, unless an indented line comes next; kyaml's decision
    depends on how the text begins.
    """
    if " \n" in value or value.endswith(" "):
        return False  # printed in double quotes
    adds = value.lstrip("\n")[:1] not in ("", " ", "\t")
    for breaks in _BREAKS.finditer(value):
        line = value.rfind("\n", 0, breaks.start(1)) + 1
        if value[line] in " \t":
            continue
        follows = value[breaks.end() : breaks.end() + 1]
        if (adds and len(breaks[1]) > 1) if not follows else adds == (follows in " \t"):
            return True
    return False


def _find_null_annotations(tree: YamlDocument) -> list[ParseError]:
    """Return errors for annotations of an object with the text null or ~."""
    found = find_written_member(tree.node, ("metadata", "annotations"))
    message = (
        "kubectl reads an annotation without a value as an empty text, and kustomize as this text: quote it, or write two quotes"
    )
    return [
        _make_error(AMBIGUOUS_VALUE, message, tree, value)
        for _, value in (found[1].value if found is not None and found[1].__class__ is MappingNode else ())
        if value.__class__ is ScalarNode and not value.style and value.value in _NULLS
    ]


def _make_error(code: str, message: str, tree: YamlDocument, node: Any, offset: int = 0) -> ParseError:
    mark = node.start_mark
    return ParseError(code, message, tree.line + mark.line + 1, mark.column + 1 + offset)


def _error_at(code: str, message: str, text: str, offset: int) -> ParseError:
    line = text.rfind("\n", 0, offset) + 1
    return ParseError(code, message, text.count("\n", 0, offset) + 1, offset - line + 1)
