"""The text of an expression as tokens."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from gitsched.apis.ocm.cel.syntax import Refused
from gitsched.apis.ocm.cel.values import MAX_INT, MAX_UINT, UInt

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n\f]+|//[^\n]*)"
    r"|(?P<float>(?:[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?))"
    r"|(?P<int>0x[0-9a-fA-F]+[uU]?|[0-9]+[uU]?)"
    r"""|(?P<text>(?:[rR][bB]?|[bB][rR]?)?(?:\"\"\"|'''|"|'))"""
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<quoted>`[A-Za-z0-9_./ -]+`)"
    r"|(?P<sign>\|\||&&|==|!=|<=|>=|[-+*/%<>!?:.,()\[\]{}])"
)
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.|\Z))", re.DOTALL
)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "package"),
        *("namespace", "null", "return", "true", "var", "void", "while"),
    )
)


class Token(NamedTuple):
    """`kind` is literal, name, quoted (a member between back quotes), sign or end.

    `text` is the sign or name as written, `value` that of a literal.
    """

    kind: str
    text: str
    at: int
    value: Any = None


def tokenise(text: str) -> list[Token]:
    """All tokens of an expression and an end; Refused where there is none."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Refused(f"unexpected {text[at]!r} at character {at + 1}")
        kind, word, start, at = str(match.lastgroup), match[0], at, match.end()
        if kind == "float":
            tokens.append(Token("literal", word, start, float(word)))
        elif kind == "int":
            tokens.append(Token("literal", word, start, _read_number(word, start)))
        elif kind == "text":
            value, at = _read_text(text, word, start, at)
            tokens.append(Token("literal", text[start:at], start, value))
        elif kind != "space":
            tokens.append(Token(kind, word, start))
    return [*tokens, Token("end", "", at)]


def _read_number(word: str, at: int) -> int:
    unsigned = word[-1] in "uU"
    number = int(word.rstrip("uU"), 16 if word.startswith("0x") else 10)
    # The least integer is written as a minus and a number that is one too large.
    if number > (MAX_UINT if unsigned else MAX_INT + 1):
        raise Refused(f"the number at character {at + 1} is too large")
    return UInt(number) if unsigned else number


def _read_text(text: str, opening: str, start: int, at: int) -> tuple[str | bytes, int]:
    quote = opening.lstrip("rRbB")
    raw, binary = "r" in opening.lower(), "b" in opening.lower()
    end = at
    while not text.startswith(quote, end):
        if end >= len(text) or (len(quote) == 1 and text[end] in "\r\n"):
            raise Refused(f"the text at character {start + 1} has no end")
        end += 2 if text[end] == "\\" and not raw else 1
    inside = text[at:end]
    value = inside if raw else _ESCAPE.sub(lambda match: _unescape(match, start), inside)
    if not binary:
        return value, end + len(quote)
    data = value.encode("latin-1") if not raw and all(ord(c) < 256 for c in value) and "\\" in inside else value.encode()
    return data, end + len(quote)


def _unescape(match: re.Match[str], start: int) -> str:
    simple, two, four, eight, octal, wrong = match.groups()
    if simple:
        return _SIMPLE.get(simple, simple)
    if wrong is not None:
        raise Refused(f"the text at character {start + 1} has an escape that means nothing: \\{wrong}")
    number = int(octal, 8) if octal else int(two or four or eight, 16)
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise Refused(f"the text at character {start + 1} has an escape that is no character")
    return chr(number)
