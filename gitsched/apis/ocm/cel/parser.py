"""The grammar of expressions. Macros become nodes of their own while they are read."""

from __future__ import annotations

from collections.abc import Callable

from gitsched.apis.ocm.cel.syntax import (
    Bind,
    Call,
    Index,
    Listing,
    Literal,
    Loop,
    Mapping,
    Name,
    Node,
    Refused,
    Select,
    reject_expression,
)
from gitsched.apis.ocm.cel.tokens import RESERVED, Token, tokenise
from gitsched.apis.ocm.cel.values import MAX_INT, UInt

LONGEST = 4096
"""Characters of an expression."""
DEEPEST = 60
"""Parts of an expression inside each other."""
_RELATIONS = ("<", "<=", ">", ">=", "==", "!=", "in")
_SYNTAX = frozenset({"in", "true", "false", "null"})
"""Words that are part of the grammar, so that they cannot be members as they are."""
_LOOPS = {"all": 2, "exists": 2, "exists_one": 2, "filter": 2}


def parse(text: str) -> Node:
    """An expression as a tree; Refused where it has no sense or no bounds."""
    if len(text) > LONGEST:
        raise reject_expression(f"the expression has {len(text)} characters, {LONGEST} are read", "cel-cost")
    return _Parser(tokenise(text)).read()


class _Parser:
    __slots__ = ("_at", "_depth", "_tokens")

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def read(self) -> Node:
        node = self._expression()
        if self._token.kind != "end":
            raise self._unexpected()
        return node

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _unexpected(self) -> Refused:
        token = self._token
        return Refused(
            f"unexpected {token.text!r} at character {token.at + 1}" if token.kind != "end" else "the expression ends too early"
        )

    def _take(self, *signs: str) -> Token | None:
        """The next token, if it is one of these signs."""
        token = self._token
        if token.text in signs and token.kind in ("sign", "name"):
            self._at += 1
            return token
        return None

    def _need(self, sign: str) -> Token:
        token = self._take(sign)
        if token is None:
            raise self._unexpected()
        return token

    def _need_name(self) -> str:
        token = self._token
        if token.kind != "name":
            raise self._unexpected()
        self._at += 1
        return token.text

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise reject_expression("the expression is nested too deeply", "cel-cost")
        node = self._chain(("||",), lambda: self._chain(("&&",), self._relation))
        mark = self._take("?")
        if mark:
            then = self._chain(("||",), lambda: self._chain(("&&",), self._relation))
            self._need(":")
            node = Call("?:", None, (node, then, self._expression()), mark.at)
        self._depth -= 1
        return node

    def _chain(self, signs: tuple[str, ...], read: Callable[[], Node]) -> Node:
        """Operators of one rank, from left to right."""
        node = read()
        length = 0
        while (sign := self._take(*signs)) is not None:
            length += 1
            if length > 100:
                raise reject_expression("the expression has too many parts", "cel-cost")
            node = Call(sign.text, None, (node, read()), sign.at)
        return node

    def _relation(self) -> Node:
        return self._chain(_RELATIONS, lambda: self._chain(("+", "-"), lambda: self._chain(("*", "/", "%"), self._unary)))

    def _unary(self) -> Node:
        signs: list[Token] = []
        while (sign := self._take("!", "-")) is not None and (not signs or signs[0].text == sign.text):
            signs.append(sign)
        if sign is not None and signs[-1] is not sign:
            raise Refused(f"unexpected {sign.text!r} at character {sign.at + 1}")
        if len(signs) > DEEPEST:
            raise reject_expression("the expression is nested too deeply", "cel-cost")
        negative = bool(signs) and signs[0].text == "-"
        token = self._token
        if negative and token.kind == "literal" and isinstance(token.value, (int, float)) and not isinstance(token.value, UInt):
            # So that the least integer can be said.
            self._tokens[self._at] = token._replace(value=-token.value)
            signs.pop()
        elif token.kind == "literal" and type(token.value) is int and token.value > MAX_INT:
            raise Refused(f"the number at character {token.at + 1} is too large")
        node = self._member()
        for sign in reversed(signs):
            node = Call("-_" if negative else "!", None, (node,), sign.at)
        return node

    def _member(self) -> Node:
        node = self._primary()
        length = 0
        while True:
            length += 1
            if length > 2 * DEEPEST:
                raise reject_expression("the expression has too many parts", "cel-cost")
            if dot := self._take("."):
                optional = bool(self._take("?"))
                quoted = self._token.kind == "quoted"
                name = self._need_member()
                called = not optional and not quoted and self._take("(")
                node = self._call(node, name, dot.at) if called else Select(node, name, dot.at, optional=optional)
            elif bracket := self._take("["):
                optional = bool(self._take("?"))
                node = Index(node, self._expression(), bracket.at, optional)
                self._need("]")
            else:
                return node

    def _primary(self) -> Node:
        token = self._token
        if token.kind == "literal":
            self._at += 1
            return Literal(token.value, token.at)
        if self._take("("):
            node = self._expression()
            self._need(")")
            return node
        if self._take("["):
            return Listing(self._entries(), token.at)
        if self._take("{"):
            return Mapping(self._pairs(), token.at)
        self._take(".")
        name = self._need_name()
        if name in ("true", "false", "null"):
            return Literal({"true": True, "false": False, "null": None}[name], token.at)
        if name in RESERVED:
            raise Refused(f"{name!r} at character {token.at + 1} is a reserved word")
        if self._take("("):
            return self._global(name, self._arguments(), token.at)
        return Name(name, token.at)

    def _need_member(self) -> str:
        token = self._token
        if token.kind == "quoted":
            self._at += 1
            return token.text.strip("`")
        if token.text in _SYNTAX:
            raise Refused(f"{token.text!r} at character {token.at + 1} is no member; write it between back quotes")
        return self._need_name()

    def _arguments(self) -> tuple[Node, ...]:
        arguments: list[Node] = []
        while not self._take(")"):
            if arguments:
                self._need(",")
            arguments.append(self._expression())
        return tuple(arguments)

    def _entries(self) -> tuple[tuple[Node, bool], ...]:
        entries: list[tuple[Node, bool]] = []
        while not self._take("]"):
            if entries:
                self._need(",")
                if self._take("]"):
                    break
            optional = bool(self._take("?"))
            entries.append((self._expression(), optional))
        return tuple(entries)

    def _pairs(self) -> tuple[tuple[Node, Node, bool], ...]:
        pairs: list[tuple[Node, Node, bool]] = []
        while not self._take("}"):
            if pairs:
                self._need(",")
                if self._take("}"):
                    break
            optional = bool(self._take("?"))
            key = self._expression()
            self._need(":")
            pairs.append((key, self._expression(), optional))
        return tuple(pairs)

    def _global(self, name: str, arguments: tuple[Node, ...], at: int) -> Node:
        if name == "has":
            if len(arguments) != 1 or not isinstance(arguments[0], Select) or arguments[0].test:
                raise Refused(f"has() at character {at + 1} takes one member, such as has(a.b)")
            return arguments[0]._replace(test=True, optional=False)
        return Call(name, None, arguments, at)

    def _call(self, target: Node, name: str, at: int) -> Node:
        arguments = self._arguments()
        if name in _LOOPS and len(arguments) == _LOOPS[name]:
            return Loop(name, target, _variable(arguments[0]), arguments[1], at)
        if name == "map" and len(arguments) in (2, 3):
            only = arguments[1] if len(arguments) == 3 else None
            return Loop(name, target, _variable(arguments[0]), arguments[-1], at, only)
        if name in ("optMap", "optFlatMap") and len(arguments) == 2:
            return Bind(name, target, _variable(arguments[0]), arguments[1], at)
        return Call(name, target, arguments, at)


def _variable(node: Node) -> str:
    if not isinstance(node, Name):
        raise Refused(f"the variable of a macro at character {node.at + 1} must be a plain name")
    return node.name
