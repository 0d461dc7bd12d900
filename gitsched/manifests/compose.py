"""Text → YAML nodes with marks, by libyaml. Bounds are checked on libyaml's events, before its composer may recurse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from yaml import MarkedYAMLError, Node, YAMLError
from yaml._yaml import CParser
from yaml.events import DocumentStartEvent, MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from gitsched.manifests.limits import Limits


class Fault(NamedTuple):
    """What is wrong at a place of the text; line and column count from 1."""

    code: str
    message: str
    line: int
    column: int


class Tree(NamedTuple):
    """One YAML document. Marks inside `node` are relative to `line` lines and `offset` characters before it."""

    node: Node
    line: int
    offset: int


class _Composer(CParser):
    """libyaml's composer without tag resolution: an implicit tag is "", so plain is told from quoted by the node's style alone.

    `"".format` takes any arguments and returns "" without a Python frame; the composer calls it once a node.
    """

    resolve = "".format
    descend_resolver = "".format
    ascend_resolver = "".format


SYNTAX: Final = "yaml-syntax"

_MOST_FAULTS = 20
_TAME_LENGTH = 128 * 1024
_TAME_BRACKETS = 100
_RUN = 48  # block collections nest by indentation or by `- - -`, at most two a column
_INDICATORS = bytes(32 if byte in b" -?:\t" else byte for byte in range(256))
_MARKER = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)


def is_tame(text: str) -> bool:
    """Whether a text is so small and flat that it cannot break a bound of depth or nodes."""
    brackets = text.count("[") + text.count("{")
    return len(text) <= _TAME_LENGTH and brackets <= _TAME_BRACKETS and b" " * _RUN not in text.encode().translate(_INDICATORS)


def _audit(text: str, line: int, limits: Limits) -> Fault | None:
    """The first bound of depth, nodes or documents that the text breaks, up to its first syntax error."""
    depth = nodes = documents = 0
    parser = CParser(text)
    try:
        while parser.check_event():
            event = parser.get_event()
            kind = event.__class__
            if kind is ScalarEvent:
                nodes += 1
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                nodes += 1
                depth += 1
                if depth > limits.depth:
                    return _at(event, line, "too-deep", f"collections are nested more than {limits.depth} deep")
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                depth -= 1
            elif kind is DocumentStartEvent:
                documents += 1
                if documents > limits.documents:
                    return _at(event, line, "too-many-documents", f"the file holds more than {limits.documents} documents")
            if nodes > limits.nodes:
                return _at(event, line, "too-many-nodes", f"the file holds more than {limits.nodes} values")
    except YAMLError:
        return None  # the composer meets the same error and reports it
    finally:
        parser.dispose()
    return None


def _at(event: Any, line: int, code: str, message: str) -> Fault:
    return Fault(code, message, line + event.start_mark.line + 1, event.start_mark.column + 1)


def compose(text: str, limits: Limits) -> Iterator[Tree | Fault]:
    """The documents of a text. After a syntax error reading goes on at the next `---` line; after a broken bound it ends."""
    line = offset = 0
    tame = is_tame(text)
    faults: set[Fault] = set()
    while len(faults) < _MOST_FAULTS:
        rest = text[offset:] if offset else text
        fault = None if tame else _audit(rest, line, limits)
        if fault:
            yield fault
            return
        parser = _Composer(rest)
        try:
            while parser.check_node():
                node = parser.get_node()
                if node is not None:
                    yield Tree(node, line, offset)
            return
        except YAMLError as error:
            fault, place = _explain(error, line)
        finally:
            parser.dispose()
        if fault not in faults:
            yield fault
        faults.add(fault)
        marker = _MARKER.search(text, offset + max(rest.rfind("\n", 0, place) + 1, 3))
        if marker is None:
            return
        line += text.count("\n", offset, marker.start())
        offset = marker.start()


_PLAIN_WORDS = {
    "mapping values are not allowed in this context": "a ':' is not allowed here: check the indentation, quote values with ': '",
    "did not find expected key": "a key is expected here: check the indentation of this line and of the one before it",
    "could not find expected ':'": "this line is neither a 'key: value' nor part of a value: a ':' is missing",
    "did not find expected '-' indicator": "a list entry '- ' is expected here: check the indentation",
    "found character that cannot start any token": "no value begins like this: indent with spaces, not tabs; quote @, ` and %",
    "found unexpected end of stream": "the file ends inside a quoted text: its closing quote is missing",
    "found unexpected document indicator": "a document ends inside a quoted text: its closing quote is missing",
    "found undefined alias": "the alias refers to an anchor that is not defined before it",
    "second occurrence": "the anchor is defined twice",
    "did not find expected ',' or ']'": "a list in brackets lacks a ',' or its closing ']'",
    "did not find expected ',' or '}'": "a mapping in braces lacks a ',' or its closing '}'",
    "did not find expected <document start>": "a new document must begin with a line '---'",
    "did not find expected node content": "a value is expected here",
    "block sequence entries are not allowed in this context": "a list entry '- ' is not allowed here: put it on a line of its own",
    "block mapping keys are not allowed in this context": "a key is not allowed here: check the indentation",
    "found a tab character where an indentation space is expected": "a tab is used for indentation: use spaces",
    "found a tab character that violates indentation": "a tab is used for indentation: use spaces",
    "found unknown escape character": "unknown escape in a quoted text: write \\\\ for a backslash, or use single quotes",
    "found undefined tag handle": "the tag uses a handle that is not defined",
}


def _explain(error: YAMLError, line: int) -> tuple[Fault, int]:
    """The error in plain words, and its place in characters from the start of the composed text."""
    if not isinstance(error, MarkedYAMLError):
        return Fault(SYNTAX, f"the YAML cannot be read: {error}", line + 1, 1), 0
    problem = str(error.problem or error.context or "it is malformed")
    message = _PLAIN_WORDS.get(problem, problem)
    mark = error.problem_mark or error.context_mark
    if error.context_mark and error.problem_mark and error.context_mark.line != error.problem_mark.line:
        message += f" ({error.context} that begins in line {line + error.context_mark.line + 1})"
    if mark is None:
        return Fault(SYNTAX, f"the YAML cannot be read: {message}", line + 1, 1), 0
    place = Fault(SYNTAX, f"the YAML cannot be read: {message}", line + mark.line + 1, mark.column + 1)
    return place, mark.index
