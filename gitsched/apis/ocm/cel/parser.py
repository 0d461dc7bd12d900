"""Tokenizer and parser of CEL expressions; macros are expanded into nodes while parsing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from gitsched.apis.ocm.cel.syntax import (
    Call,
    Comprehension,
    CreateList,
    CreateMap,
    Identifier,
    Index,
    InvalidExpression,
    Literal,
    Node,
    OptionalMap,
    Select,
)
from gitsched.apis.ocm.cel.types import MAX_INT, MAX_UINT, UInt
from gitsched.named_tuples import NamedTuple

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
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop", "package"),
        *("namespace", "null", "return", "true", "var", "void", "while"),
    )
)


class Token(NamedTuple):
    """A token: `kind` is literal, name, quoted (a field name in backquotes), sign or end; `value` is the value of a literal."""

    kind: str
    text: str
    offset: int
    value: Any = None


def tokenize(text: str) -> list[Token]:
    """Split an expression into tokens, with an end token; InvalidExpression if a character or literal is invalid."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidExpression(f"unexpected {text[at]!r} at character {at + 1}")
        kind, word, start, at = str(match.lastgroup), match[0], at, match.end()
        if kind == "float":
            tokens.append(Token("literal", word, start, float(word)))
        elif kind == "int":
            tokens.append(Token("literal", word, start, _read_number(word, start)))
        elif kind == "text":
            value, at = _read_string(text, word, start, at)
            tokens.append(Token("literal", text[start:at], start, value))
        elif kind != "space":
            tokens.append(Token(kind, word, start))
    return [*tokens, Token("end", "", at)]


def _read_number(word: str, offset: int) -> int:
    unsigned = word[-1] in "uU"
    number = int(word.rstrip("uU"), 16 if word.startswith("0x") else 10)
    # The minimum int is a minus followed by the maximum plus one.
    if number > (MAX_UINT if unsigned else MAX_INT + 1):
        raise InvalidExpression(f"the number at character {offset + 1} is too large")
    return UInt(number) if unsigned else number


def _read_string(text: str, opening: str, start: int, at: int) -> tuple[str | bytes, int]:
    quote = opening.lstrip("rRbB")
    raw, binary = "r" in opening.lower(), "b" in opening.lower()
    end = at
    while not text.startswith(quote, end):
        if end >= len(text) or (len(quote) == 1 and text[end] in "\r\n"):
            raise InvalidExpression(f"the string at character {start + 1} is not terminated")
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
        return _SIMPLE_ESCAPES.get(simple, simple)
    if wrong is not None:
        raise InvalidExpression(f"the string at character {start + 1} has an invalid escape sequence: \\{wrong}")
    number = int(octal, 8) if octal else int(two or four or eight, 16)
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise InvalidExpression(f"the string at character {start + 1} has an escape sequence that is not a character")
    return chr(number)


MAX_EXPRESSION_LENGTH = 4096
"""The most characters of an expression."""
MAX_DEPTH = 60
"""The deepest nesting of an expression."""
_RELATIONAL_OPERATORS = ("<", "<=", ">", ">=", "==", "!=", "in")
_KEYWORDS = frozenset({"in", "true", "false", "null"})
"""Words of the grammar, which are field names only in backquotes."""
_MACRO_ARGUMENTS = {"all": 2, "exists": 2, "exists_one": 2, "filter": 2}


def parse(text: str) -> Node:
    """Parse an expression to a syntax tree; InvalidExpression if it is invalid or too large."""
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise InvalidExpression(f"the expression has {len(text)} characters, the limit is {MAX_EXPRESSION_LENGTH}", "cel-cost")
    return _Parser(tokenize(text)).parse()


class _Parser:
    __slots__ = ("_at", "_depth", "_tokens")

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def parse(self) -> Node:
        node = self._expression()
        if self._token.kind != "end":
            raise self._unexpected()
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _unexpected(self) -> InvalidExpression:
        token = self._token
        return InvalidExpression(
            f"unexpected {token.text!r} at character {token.offset + 1}"
            if token.kind != "end"
            else "unexpected end of the expression"
        )

    def _accept(self, *signs: str) -> Token | None:
        """Return the next token and advance if it is one of these signs."""
        token = self._token
        if token.text in signs and token.kind in ("sign", "name"):
            self._at += 1
            return token
        return None

    def _expect(self, sign: str) -> Token:
        token = self._accept(sign)
        if token is None:
            raise self._unexpected()
        return token

    def _expect_identifier(self) -> str:
        token = self._token
        if token.kind != "name":
            raise self._unexpected()
        self._at += 1
        return token.text

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise InvalidExpression("the expression is nested too deeply", "cel-cost")
        node = self._binary(("||",), lambda: self._binary(("&&",), self._relation))
        mark = self._accept("?")
        if mark:
            then = self._binary(("||",), lambda: self._binary(("&&",), self._relation))
            self._expect(":")
            node = Call("?:", None, (node, then, self._expression()), mark.offset)
        self._depth -= 1
        return node

    def _binary(self, signs: tuple[str, ...], read: Callable[[], Node]) -> Node:
        """Parse operators of one precedence, left to right."""
        node = read()
        length = 0
        while (sign := self._accept(*signs)) is not None:
            length += 1
            if length > 100:
                raise InvalidExpression("the expression has too many parts", "cel-cost")
            node = Call(sign.text, None, (node, read()), sign.offset)
        return node

    def _relation(self) -> Node:
        return self._binary(
            _RELATIONAL_OPERATORS, lambda: self._binary(("+", "-"), lambda: self._binary(("*", "/", "%"), self._unary))
        )

    def _unary(self) -> Node:
        signs: list[Token] = []
        while (sign := self._accept("!", "-")) is not None and (not signs or signs[0].text == sign.text):
            signs.append(sign)
        if sign is not None and signs[-1] is not sign:
            raise InvalidExpression(f"unexpected {sign.text!r} at character {sign.offset + 1}")
        if len(signs) > MAX_DEPTH:
            raise InvalidExpression("the expression is nested too deeply", "cel-cost")
        negative = bool(signs) and signs[0].text == "-"
        token = self._token
        if negative and token.kind == "literal" and isinstance(token.value, (int, float)) and not isinstance(token.value, UInt):
            # The minimum int is valid only with its sign.
            self._tokens[self._at] = token._replace(value=-token.value)
            signs.pop()
        elif token.kind == "literal" and type(token.value) is int and token.value > MAX_INT:
            raise InvalidExpression(f"the number at character {token.offset + 1} is too large")
        node = self._member()
        for sign in reversed(signs):
            node = Call("-_" if negative else "!", None, (node,), sign.offset)
        return node

    def _member(self) -> Node:
        node = self._primary()
        length = 0
        while True:
            length += 1
            if length > 2 * MAX_DEPTH:
                raise InvalidExpression("the expression has too many parts", "cel-cost")
            if dot := self._accept("."):
                optional = bool(self._accept("?"))
                quoted = self._token.kind == "quoted"
                name = self._expect_field()
                called = not optional and not quoted and self._accept("(")
                node = self._member_call(node, name, dot.offset) if called else Select(node, name, dot.offset, optional=optional)
            elif bracket := self._accept("["):
                optional = bool(self._accept("?"))
                node = Index(node, self._expression(), bracket.offset, optional)
                self._expect("]")
            else:
                return node

    def _primary(self) -> Node:
        token = self._token
        if token.kind == "literal":
            self._at += 1
            return Literal(token.value, token.offset)
        if self._accept("("):
            node = self._expression()
            self._expect(")")
            return node
        if self._accept("["):
            return CreateList(self._list_elements(), token.offset)
        if self._accept("{"):
            return CreateMap(self._map_entries(), token.offset)
        self._accept(".")
        name = self._expect_identifier()
        if name in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[name], token.offset)
        if name in RESERVED:
            raise InvalidExpression(f"{name!r} at character {token.offset + 1} is a reserved word")
        if self._accept("("):
            return self._global_call(name, self._arguments(), token.offset)
        return Identifier(name, token.offset)

    def _expect_field(self) -> str:
        token = self._token
        if token.kind == "quoted":
            self._at += 1
            return token.text.strip("`")
        if token.text in _KEYWORDS:
            raise InvalidExpression(
                f"{token.text!r} at character {token.offset + 1} is a reserved word; as a field name, write it in backquotes"
            )
        return self._expect_identifier()

    def _arguments(self) -> tuple[Node, ...]:
        arguments: list[Node] = []
        while not self._accept(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._expression())
        return tuple(arguments)

    def _list_elements(self) -> tuple[tuple[Node, bool], ...]:
        entries: list[tuple[Node, bool]] = []
        while not self._accept("]"):
            if entries:
                self._expect(",")
                if self._accept("]"):
                    break
            optional = bool(self._accept("?"))
            entries.append((self._expression(), optional))
        return tuple(entries)

    def _map_entries(self) -> tuple[tuple[Node, Node, bool], ...]:
        pairs: list[tuple[Node, Node, bool]] = []
        while not self._accept("}"):
            if pairs:
                self._expect(",")
                if self._accept("}"):
                    break
            optional = bool(self._accept("?"))
            key = self._expression()
            self._expect(":")
            pairs.append((key, self._expression(), optional))
        return tuple(pairs)

    def _global_call(self, name: str, arguments: tuple[Node, ...], offset: int) -> Node:
        if name == "has":
            if len(arguments) != 1 or not isinstance(arguments[0], Select) or arguments[0].test:
                raise InvalidExpression(f"has() at character {offset + 1} requires one field selection, such as has(a.b)")
            return arguments[0]._replace(test=True, optional=False)
        return Call(name, None, arguments, offset)

    def _member_call(self, target: Node, name: str, offset: int) -> Node:
        arguments = self._arguments()
        if name in _MACRO_ARGUMENTS and len(arguments) == _MACRO_ARGUMENTS[name]:
            return Comprehension(name, target, _read_macro_variable(arguments[0]), arguments[1], offset)
        if name == "map" and len(arguments) in (2, 3):
            only = arguments[1] if len(arguments) == 3 else None
            return Comprehension(name, target, _read_macro_variable(arguments[0]), arguments[-1], offset, only)
        if name in ("optMap", "optFlatMap") and len(arguments) == 2:
            return OptionalMap(name, target, _read_macro_variable(arguments[0]), arguments[1], offset)
        return Call(name, target, arguments, offset)


def _read_macro_variable(node: Node) -> str:
    if not isinstance(node, Identifier):
        raise InvalidExpression(f"the variable of a macro at character {node.offset + 1} must be an identifier")
    return node.name
