"""Decode UTF-8 text and compose it into YAML nodes with libyaml, after limits are checked on its events: composing recurses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from yaml import MappingNode, Node, ScalarNode, YAMLError
from yaml._yaml import CParser
from yaml.composer import Composer
from yaml.events import CollectionStartEvent, ScalarEvent

from gitsched.manifests.yaml_errors import ParseError, describe_error, find_first_error, has_key_without_text
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.manifests.parsed_file import Limits


class YamlDocument(NamedTuple):
    """One YAML document. Marks inside `node` are relative to `line` lines and `offset` characters before it."""

    node: Node
    line: int
    offset: int


class _Composer(CParser):
    """libyaml's composer without tag resolution: an implicit tag is "", and only the node's style distinguishes plain from quoted
    scalars.

    `"".format` accepts any arguments and returns "" without a Python frame; the composer calls it once per node.
    """

    resolve = "".format
    descend_resolver = "".format
    ascend_resolver = "".format


class _AnchorRedefinitionComposer(Composer):
    """A composer of libyaml's events in which an anchor may be defined again, as YAML and Kubernetes allow.

    It is slower than libyaml's composer, so it reads only documents that define an anchor twice.
    """

    resolve = descend_resolver = ascend_resolver = "".format

    def __init__(self, text: str) -> None:
        super().__init__()
        self._parser = parser = CParser(text)
        self.check_event, self.peek_event, self.get_event = parser.check_event, parser.peek_event, parser.get_event
        self.dispose = parser.dispose

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event = self.peek_event()
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.anchor is not None:
            self.anchors.pop(event.anchor, None)
        return super().compose_node(parent, index)


_REDEFINED_ANCHOR = "second occurrence"

_MAX_ERRORS = 20
_SMALL_LENGTH = 128 * 1024
_SMALL_BRACKETS = 100
_DEEP_INDENT = 48  # block collections nest by indentation or by `- - -`, at most two levels per column
_INDICATORS = bytes(32 if byte in b" -?:\t" else byte for byte in range(256))
_TAG_DIRECTIVE = re.compile("(?:\\A|[\n\r\x85\u2028\u2029])%TAG")
_DOCUMENT_START = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)


def is_small(text: str) -> bool:
    """Return whether a text is so small and flat that it cannot exceed the limits of depth and nodes."""
    brackets = text.count("[") + text.count("{")
    return (
        len(text) <= _SMALL_LENGTH
        and brackets <= _SMALL_BRACKETS
        and b" " * _DEEP_INDENT not in text.encode().translate(_INDICATORS)
    )


_EMPTY_TAG = re.compile(r"!(?=[\s,\]}]|\Z)")
_TAGGED_MERGE = re.compile(r"!\S*\s+<<")
_FOLDED = re.compile(r">[-+0-9]*[ \t]*(?:#[^\n]*)?[\r\n\x85\u2028\u2029]")
CONTROL_ESCAPE = re.compile(r"\\(?:N|x[7-9][0-9a-fA-F]|(?:u|U0000)(?:00[7-9][0-9a-fA-F]|[fF]{3}[efEF]))")
"""An escape in double quotes for a character that kyaml does not print: a control character beyond ASCII, or no character."""
MARKER_WITH_CONTENT = re.compile(r"\n---(?!(?:[ \t]+#.*|[ \t]*)\r?(?:\n|\Z))")
_CARRIAGE_RETURN = re.compile(r"\r(?!\n)")


_NULL = re.compile(r"(?:null|Null|NULL|~)[ \t]*(?:[,}#\r\n]|\Z)")


def _may_differ(text: str) -> bool:
    """Return whether Kubernetes' readers may read a text differently: a small part of the time of parsing, mostly without regular
    expressions."""
    return (
        ("?" in text and ("{" in text or "[" in text))
        or "\\/" in text
        or ("!" in text and (_EMPTY_TAG.search(text) or _TAGGED_MERGE.search(text)) is not None)
        or (">" in text and _FOLDED.search(text) is not None)
        or ("\\" in text and CONTROL_ESCAPE.search(text) is not None)
        or ("{" in text and _may_be_other_json(text))
        or ("annotations" in text and ("ull" in text or "NULL" in text or "~" in text) and _NULL.search(text) is not None)
        or "'<<'" in text
        or '"<<"' in text
        or "|+" in text
        or "\n%" in text
        or not text.endswith("\n")
        or text.startswith("%")
        or (text.startswith("---") and MARKER_WITH_CONTENT.match(f"\n{text[:200]}") is not None)
        or ("\n---" in text and MARKER_WITH_CONTENT.search(text) is not None)
        or ("\r" in text and _CARRIAGE_RETURN.search(text) is not None)
        or not (text.isascii() or ("\x85" not in text and "\u2028" not in text and "\u2029" not in text))
    )


def _may_be_other_json(text: str) -> bool:
    """Return whether a document in braces may have what kubectl refuses, because it reads such a document as JSON first."""
    if text.lstrip()[:1] == "{":
        return text.rstrip(" \t\r\n")[-1] != "}" or "\n---" in text or HUGE_EXPONENT.search(text) is not None
    return "\n---" in text and _BRACE_AFTER_MARKER.search(text) is not None


HUGE_EXPONENT = re.compile(r"[0-9.][eE]\+?[0-9]{3}")
_BRACE_AFTER_MARKER = re.compile(r"\n---[^\n]*\n\s*\{")


def _check_directives(text: str, limits: Limits) -> ParseError | None:
    """Return the error if a text has too many %TAG directives: libyaml compares each one with all before it, and each tag with all."""
    excess = next(islice(_TAG_DIRECTIVE.finditer(text), limits.directives, None), None)
    if excess is None:
        return None
    return _error_after(
        text[: excess.end() - len("%TAG")], "too-many-directives", f"the file has more than {limits.directives} %TAG directives"
    )


def compose_documents(text: str, limits: Limits) -> Iterator[YamlDocument | ParseError]:
    """Compose the documents of a text. After a syntax error composing continues at the next `---` line; after an exceeded limit
    it ends."""
    line = offset = 0
    is_simple = is_small(text) and not ("?" in text and has_key_without_text(text))
    errors: set[ParseError] = set()
    composer: type[_Composer | _AnchorRedefinitionComposer] = _Composer
    directives = _check_directives(text, limits) if "%TAG" in text else None
    if directives:
        yield directives
        return
    composed = 0
    while len(errors) < _MAX_ERRORS:
        rest = text[offset:] if offset else text
        first = None if is_simple else find_first_error(rest, line, limits)
        if first is not None and first.position is None:
            yield first.error
            return
        parser = composer(rest)
        number = 0
        try:
            while (first is None or number < first.documents) and parser.check_node():
                node = parser.get_node()
                number += 1
                if node is not None and number > composed:
                    yield YamlDocument(node, line, offset)
            if first is None:
                return
            error, position = first.error, first.position or 0
        except YAMLError as caught:
            if composer is _Composer and getattr(caught, "problem", None) == _REDEFINED_ANCHOR:
                composer, composed = _AnchorRedefinitionComposer, number
                continue
            error, position = describe_error(caught, line)
        finally:
            parser.dispose()
        if error not in errors:
            yield error
        errors.add(error)
        composed = 0
        marker = _DOCUMENT_START.search(text, offset + max(rest.rfind("\n", 0, position) + 1, 3))
        if marker is None:
            return
        line += text.count("\n", offset, marker.start())
        offset = marker.start()
    message = f"the file has more than {_MAX_ERRORS} syntax errors: from here on it is not read; correct the others first"
    yield ParseError("too-many-problems", message, line + 2, 1)


def check_aliases(tree: YamlDocument, limits: Limits) -> ParseError | None:
    """Return the first limit on anchors and aliases that a document exceeds: recursion, their number, or the size of their expansion.

    Only for documents that may contain aliases. Each node is visited once: an alias comes after the node that it refers to.
    """
    sizes: dict[int, tuple[int, int]] = {}
    open_nodes: set[int] = set()
    uses = added = 0

    def visit(node: Node, depth: int, position: Node) -> tuple[int, int] | ParseError:
        nonlocal uses, added
        node_id = id(node)
        mark = position.start_mark
        line, column = tree.line + mark.line + 1, mark.column + 1
        if node_id in sizes:
            size, height = sizes[node_id]
            uses += 1
            added += size
            if uses > limits.aliases:
                return ParseError("too-many-aliases", f"the document uses aliases more than {limits.aliases} times", line, column)
            if added > limits.expansion:
                return ParseError("too-many-aliases", f"aliases expand to more than {limits.expansion} values", line, column)
            if depth + height > limits.depth:
                return ParseError("too-deep", f"aliases nest collections more than {limits.depth} deep", line, column)
            return size, height
        if node_id in open_nodes:
            return ParseError("recursive-alias", "the alias refers to a collection that contains it", line, column)
        if isinstance(node, ScalarNode):
            sizes[node_id] = 1 + len(node.value) // 32, 0
            return sizes[node_id]
        open_nodes.add(node_id)
        size, height = 1, 0
        pairs = (
            ((child, key) for key, value in node.value for child in (key, value))
            if isinstance(node, MappingNode)
            else ((c, c) for c in node.value)
        )
        for child, sibling in pairs:
            inner = visit(child, depth + 1, sibling)
            if isinstance(inner, ParseError):
                return inner
            size += inner[0]
            height = max(height, inner[1] + 1)
        open_nodes.discard(node_id)
        sizes[node_id] = size, height
        return size, height

    outcome = visit(tree.node, 0, tree.node)
    return outcome if isinstance(outcome, ParseError) else None


_ALLOWED = bytes(byte for byte in range(256) if byte >= 0x20 or byte in b"\t\n\r").replace(b"\x7f", b"")
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")
_SURROGATE_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def has_byte_order_mark(data: bytes) -> bool:
    """Return whether the bytes begin with UTF-8's byte order mark."""
    return data.startswith(_BYTE_ORDER_MARK)


class SourceText(NamedTuple):
    """The text of a file without its byte order mark; `normalized` has YAML's escapes in place of JSON's surrogate pairs.

    `may_differ`: Kubernetes' readers may read it differently, which `find_differences` finds out.
    """

    text: str
    normalized: str
    byte_order_mark: bool
    may_differ: bool


_GIT_LFS, _GIT_CRYPT = b"version https://git-lfs.github.com/spec/", b"\0GITCRYPT\0"
_CONFLICT_PARTS = b"<<<<<<<", b">>>>>>>"
_CONFLICT_LINE = re.compile(rb"^(?:<<<<<<<|>>>>>>>)(?: |\r?$)", re.MULTILINE)
GIT_CRYPT: Final = "git-crypt"
CONFLICT_MARKERS: Final = "conflict-markers"


def is_lfs_pointer(data: bytes) -> bool:
    """Return whether the bytes of a file are a pointer of Git LFS to its content."""
    return data.startswith(_GIT_LFS)


def find_stored_form(data: bytes) -> ParseError | None:
    """Return why the bytes of a file are not its content: Git has a pointer or an encrypted form."""
    if is_lfs_pointer(data):
        message = "this is a pointer of Git LFS, whose content the commit does not have: commit the file itself, without LFS"
        return ParseError("git-lfs-pointer", message, 1, 1)
    if data.startswith(_GIT_CRYPT):
        return ParseError(
            GIT_CRYPT, "git-crypt has encrypted this file, so that it is not read; SOPS leaves manifests readable", 1, 1
        )
    return None


def find_unusable_content(data: bytes) -> ParseError | None:
    """Return why the bytes of a file are not the content that people mean: Git has a pointer, an encrypted form, or an unfinished merge."""
    stored = find_stored_form(data)
    if stored is not None or not any(part in data for part in _CONFLICT_PARTS):
        return stored
    found = _CONFLICT_LINE.search(data)
    if found is None:
        return None
    line = data.count(b"\n", 0, found.start()) + 1
    return ParseError(CONFLICT_MARKERS, "the file has markers of a merge conflict: resolve it, and remove them", line, 1)


def read_text(data: bytes) -> SourceText | ParseError:
    """Decode the bytes of a file; a ParseError for what is not the content of a file, not UTF-8, or not allowed in YAML."""
    text = find_unusable_content(data) or decode_text(data)
    if isinstance(text, ParseError):
        return text
    return SourceText(text, join_surrogates(text), has_byte_order_mark(data), _may_differ(text))


def decode_text(data: bytes) -> str | ParseError:
    """Decode UTF-8 without its byte order mark; a ParseError for invalid bytes."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (len(data) > 3 and 0 in data[:4] and data[:4].count(0) >= 2):
        return ParseError("not-utf-8", "the file is UTF-16 or UTF-32: save it as UTF-8", 1, 1)
    content = data[3:] if has_byte_order_mark(data) else data
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        text_before = content[: error.start].decode()
        return _error_after(
            text_before, "not-utf-8", f"the byte 0x{content[error.start]:02x} is not valid UTF-8: save the file as UTF-8"
        )
    if content.translate(None, _ALLOWED) or not content.isascii():
        found = _FORBIDDEN.search(text)
        if found:
            return _error_after(
                text[: found.start()], "control-character", f"the control character U+{ord(found[0]):04X} is not allowed in YAML"
            )
    return text


def join_surrogates(text: str) -> str:
    """Replace JSON's surrogate pair escapes of characters beyond 16 bits by the single escape of YAML."""
    return _SURROGATE_PAIR.sub(_join_pair, text) if "\\ud" in text or "\\uD" in text else text


def _join_pair(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16), int(pair[3], 16)
    return f"{pair[1]}\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def _error_after(text_before: str, code: str, message: str) -> ParseError:
    return ParseError(code, message, text_before.count("\n") + 1, len(text_before) - text_before.rfind("\n"))
