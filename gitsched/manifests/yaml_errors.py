"""Find the first error of a YAML text, an exceeded limit or a syntax error: with the same place and words for each version of libyaml.

Versions of libyaml differ in two ways. Since 0.2.6, nesting beyond 1,000 levels is an error, which is raised as far as libyaml reads ahead
of its events: to know whether brackets are a key, it reads up to 1,024 characters. And 0.2.6 accepts `[? ]`, which earlier versions and
the parsers of Kubernetes refuse.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from yaml import MarkedYAMLError, YAMLError
from yaml._yaml import CParser
from yaml.events import (
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml.scanner import ScannerError

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.manifests.parsed_file import Limits


class ParseError(NamedTuple):
    """An error at a position of the text; line and column count from 1."""

    code: str
    message: str
    line: int
    column: int


class FirstError(NamedTuple):
    """The first error of a text, before which `documents` end. Reading continues after its `position`, in characters; after an exceeded
    limit, which has none, it ends."""

    error: ParseError
    documents: int
    position: int | None


SYNTAX_ERROR: Final = "yaml-syntax"
_REFUSED: Final = "yaml-refused"
_UNREADABLE = "the YAML cannot be read: "

_KEY_WITHOUT_TEXT = re.compile("\\?(?:[ \t\r\n\x85\u2028\u2029]++|#[^\r\n\x85\u2028\u2029]*+)*+\\]")


def has_key_without_text(text: str) -> bool:
    """Return whether a text may have an explicit key without text at the end of a list in brackets: `[? ]`."""
    return _KEY_WITHOUT_TEXT.search(text) is not None


def _find_earlier_error(text: str, error: YAMLError, read: int, depth: int, line: int, limits: Limits) -> FirstError | None:
    """Return an error before a token that cannot be read: what the parser read ahead, from the offset `read` on, may be nested too deep."""
    if not isinstance(error, ScannerError):
        return None
    start = _find_token(error)
    if depth + text.count("[", read, start) + text.count("{", read, start) < limits.depth:
        return None
    earlier = find_first_error(text[:start], line, limits)
    return earlier if earlier is not None and (earlier.position is None or earlier.position < start) else None


def find_first_error(text: str, line: int, limits: Limits) -> FirstError | None:
    """Return the first error that the events of a text show: a limit of depth, nodes or documents, or a syntax error.

    Errors of composing, such as an unknown alias, are not among them. `line` is the number of lines before the text.
    """
    depth = nodes = started = ended = 0
    event: Any = None
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
                    return _exceed(event, line, "too-deep", f"collections are nested more than {limits.depth} deep")
                if kind is MappingStartEvent and event.flow_style and _KEY_WITHOUT_TEXT.match(text, event.start_mark.index):
                    error = _make_error(event.start_mark, line, SYNTAX_ERROR, f"{_UNREADABLE}a key is expected after '?'")
                    return FirstError(error, ended, event.start_mark.index)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                depth -= 1
            elif kind is DocumentStartEvent:
                started += 1
                if started > limits.documents:
                    return _exceed(event, line, "too-many-documents", f"the file holds more than {limits.documents} documents")
            elif kind is DocumentEndEvent:
                ended += 1
            if nodes > limits.nodes:
                return _exceed(event, line, "too-many-nodes", f"the file holds more than {limits.nodes} values")
    except YAMLError as caught:
        earlier = _find_earlier_error(text, caught, event.end_mark.index if event is not None else 0, depth, line, limits)
        error, position = describe_error(caught, line)
        return earlier or FirstError(error, ended, position)
    finally:
        parser.dispose()
    return None


def _exceed(event: Any, line: int, code: str, message: str) -> FirstError:
    return FirstError(_make_error(event.start_mark, line, code, message), 0, None)


def _make_error(mark: Any, line: int, code: str, message: str) -> ParseError:
    return ParseError(code, message, line + mark.line + 1, mark.column + 1)


def _find_token(error: Any) -> int:
    """Return the offset of the token that cannot be read."""
    return int(min(mark.index for mark in (error.context_mark, error.problem_mark) if mark is not None))


_NO_COLON = "could not find expected ':'"
_MESSAGES = {
    "mapping values are not allowed in this context": (
        "a ':' is not allowed here: check the indentation, write a space after the ':' of each key above, quote values with ': '"
    ),
    "did not find expected key": (
        "a key is expected here: check the indentation of this line and of the one before it, and the quotes above"
    ),
    _NO_COLON: "this line is neither a 'key: value', nor part of a value, nor the line '---' between documents: a ':' may be missing",
    "did not find expected '-' indicator": "a list entry '- ' is expected here: check the indentation",
    "found character that cannot start any token": "no value begins like this: indent with spaces, not tabs; quote @, ` and %",
    "found unexpected end of stream": "the file ends inside a quoted text: its closing quote is missing",
    "found unexpected document indicator": "a document ends inside a quoted text: its closing quote is missing",
    "found undefined alias": "the alias refers to an anchor that is not defined before it",
    "did not find expected ',' or ']'": "a list in brackets lacks a ',' or its closing ']'",
    "did not find expected ',' or '}'": "a mapping in braces lacks a ',' or its closing '}'",
    "did not find expected <document start>": "a new document must begin with a line '---'",
    "did not find expected node content": "a value is expected here",
    "block sequence entries are not allowed in this context": "a list entry '- ' is not allowed here: put it on a line of its own",
    "mapping keys are not allowed in this context": "a key is not allowed here: check the indentation",
    "found a tab character where an indentation space is expected": "a tab is used for indentation: use spaces",
    "found a tab character that violates indentation": "a tab is used for indentation: use spaces",
    "found unknown escape character": "unknown escape in a quoted text: write \\\\ for a backslash, or use single quotes",
    "did not find expected hexdecimal number": "an escape in a quoted text lacks hexadecimal digits: write \\\\ for a backslash",
    "found invalid Unicode character escape code": "an escape in a quoted text is no Unicode character",
    "found unexpected ':'": "a ':' is not allowed in this text in brackets or braces: quote it",
    "found an indentation indicator equal to 0": "a text after | or > cannot be indented by 0 spaces",
    "did not find expected comment or line break": "only a comment can follow in this line",
    "did not find expected alphabetic or numeric character": "a name is expected after & or *: quote texts that begin with them",
    "found undefined tag handle": "the tag uses a handle that is not defined",
    "did not find expected '!'": "the handle of a tag lacks its closing '!'",
    "did not find the expected '>'": "the tag lacks its closing '>'",
    "did not find expected tag URI": "the tag lacks its name",
    "did not find URI escaped octet": "two hexadecimal digits are expected after '%' in a tag",
    "found an incorrect leading UTF-8 octet": "an escape in a tag is not UTF-8",
    "found an incorrect trailing UTF-8 octet": "an escape in a tag is not UTF-8",
    "did not find expected whitespace or line break": "a space is expected here",
    "did not find expected whitespace": "a space is expected here",
    "could not find expected directive name": "a line that begins with % is a directive, and this one lacks its name",
    "found unexpected non-alphabetical character": "a directive cannot have this character",
    "found unknown directive name": "a line that begins with % is a directive: only %YAML and %TAG exist",
    "did not find expected version number": "the directive %YAML lacks its version",
    "did not find expected digit or '.' character": "the version of the directive %YAML is not two numbers, such as 1.1",
    "found extremely long version number": "the version of the directive %YAML is too long",
    "found incompatible YAML document": "the directive %YAML names another version than 1.1 and 1.2",
    "found duplicate %YAML directive": "the document has the directive %YAML twice",
    "found duplicate %TAG directive": "the document has a directive %TAG twice for the same handle",
}
"""The errors of libyaml 0.2.5, which may be in a file that is not YAML at all. An error that is not listed may be a limit of libyaml."""
_CONTEXTS = frozenset(
    (
        *(f"while parsing a {name}" for name in ("block collection", "block mapping", "flow mapping", "flow sequence")),
        *(f"while scanning a {name}" for name in ("plain scalar", "quoted scalar", "block scalar")),
        *("while parsing a block node", "while parsing a flow node", "while parsing a node"),
    )
)


def describe_error(error: YAMLError, line: int) -> tuple[ParseError, int]:
    """Return the error in plain words, and its position in characters from the start of the text."""
    problem = str(getattr(error, "problem", None) or error)
    known = _MESSAGES.get(problem) or _MESSAGES.get(problem.partition(" '")[0])
    found = ParseError(SYNTAX_ERROR, f"{_UNREADABLE}{known}", line + 1, 1)
    if not known:
        found = ParseError(_REFUSED, f"the YAML parser refuses this: {problem}", line + 1, 1)
    if not isinstance(error, MarkedYAMLError) or error.problem_mark is None:
        return found, 0
    mark, context = error.problem_mark, error.context_mark
    if context is not None and problem == _NO_COLON:
        mark = context
    elif context is not None and context.line != mark.line and error.context in _CONTEXTS:
        found = found._replace(message=f"{found.message} ({error.context} that begins in line {line + context.line + 1})")
    return found._replace(line=line + mark.line + 1, column=mark.column + 1), mark.index
