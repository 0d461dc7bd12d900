"""Parse Go templates into actions and text. Source: text/template/parse of Go."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from gitsched.build.go_functions import Integer, NotEvaluatedError, TemplateError
from gitsched.named_tuples import NamedTuple

MAX_DEPTH: Final = 20
"""Nested parentheses, and nested blocks, of one template."""

_COMMENT = re.compile(r"/\*.*?\*/\s*?(?P<trim>\s-)?\}\}", re.DOTALL)
_END = re.compile(r"(?P<trim>(?<=\s)-)?\}\}")
_TOKEN = re.compile(
    r"""(?P<sign>:=|[=|(),])|(?P<text>"(?:[^"\\\n]|\\.)*")|(?P<raw>`[^`]*`)|(?P<variable>\$\w*)|(?P<field>\.[^\W\d]\w*)"""
    r"""|(?P<number>[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?![\w.]))|(?P<dot>\.)|(?P<name>[^\W\d]\w*)"""
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_UNREAD_LITERAL = re.compile(r"'(?:[^'\\\n]|\\.[^'\n]*)'|[+-]?\.?\d\w*(?:\.\w*)?(?![\w.])")
"""Characters, and numbers of other bases and forms."""
_UNREAD_BLOCKS: Final = ("define", "template", "block")
_CONSTANTS: Final = {"true": True, "false": False}


class _Token(NamedTuple):
    """A part of an action; `spaced` says that blanks are before it."""

    kind: str
    text: str
    spaced: bool


class TemplateField(NamedTuple):
    """Fields of a value: of the dot, of a variable if `start` has its name, or of an operand in parentheses."""

    names: tuple[str, ...]
    start: Any = None


class TemplateVariable(NamedTuple):
    name: str


class TemplateCall(NamedTuple):
    """A function with its arguments, of which the last one may come through the pipe."""

    name: str
    arguments: tuple[Any, ...]


class TemplateLiteral(NamedTuple):
    value: Any


class TemplatePipeline(NamedTuple):
    """An expression, and the variables that it declares, or sets if `assigns`."""

    value: Any
    variables: tuple[str, ...] = ()
    assigns: bool = False


class TemplateAction(NamedTuple):
    """A part of a template: `text`, `output`, a block (`if`, `with` or `range`), `break` or `continue`. `source` is its text."""

    kind: str
    source: str
    pipeline: TemplatePipeline = TemplatePipeline(None)
    body: tuple[Any, ...] = ()
    otherwise: tuple[Any, ...] = ()


@lru_cache(maxsize=256)
def parse_template(text: str) -> tuple[TemplateAction, ...]:
    """Return the actions of a template. Raises TemplateError where Go refuses it, and NotEvaluatedError."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._position, self._scopes = text, 0, [{"$"}]
        self._trims = False
        self._loops = 0

    def parse(self) -> tuple[TemplateAction, ...]:
        body, end, _ = self._parse_body(0)
        if end:
            raise TemplateError(f"its template has {{{{ {end} }}}} without a block")
        return body

    def _parse_body(self, depth: int) -> tuple[tuple[TemplateAction, ...], str, list[_Token]]:
        """Return actions up to an `end` or `else`, which word that is ("" for the end of the text), and what follows `else`."""
        if depth > MAX_DEPTH:
            raise NotEvaluatedError("so many nested blocks")
        found: list[TemplateAction] = []
        while True:
            start = self._text.find("{{", self._position)
            literal = self._text[self._position : start if start >= 0 else len(self._text)]
            literal = literal.lstrip() if self._trims else literal
            if start < 0:
                self._position = len(self._text)
                return (*found, TemplateAction("text", literal)), "", []
            content = start + 2
            if self._text[content : content + 1] == "-" and self._text[content + 1 : content + 2].isspace():
                literal, content = literal.rstrip(), content + 1
            if literal:
                found.append(TemplateAction("text", literal))
            tokens = self._read_tokens(content)
            if not tokens:
                continue
            word = tokens[0].text if tokens[0].kind == "name" else ""
            if word in ("end", "else"):
                return tuple(found), word, tokens[1:]
            if word in _UNREAD_BLOCKS:
                raise NotEvaluatedError(f"`{word}`")
            if word in ("if", "with", "range"):
                found.append(self._parse_block(word, tokens[1:], start, depth))
            elif word in ("break", "continue") and len(tokens) == 1:
                if not self._loops:
                    raise TemplateError(f"its template has {{{{ {word} }}}} outside of a range")
                found.append(TemplateAction(word, ""))
            else:
                pipeline = self._parse_pipeline(tokens)
                self._scopes[-1].update(pipeline.variables)
                found.append(TemplateAction("output", self._text[start : self._position], pipeline))

    def _parse_block(self, kind: str, tokens: list[_Token], start: int, depth: int) -> TemplateAction:
        self._scopes.append({*self._scopes[-1]})
        pipeline = self._parse_pipeline(tokens, is_range=kind == "range")
        self._scopes[-1].update(pipeline.variables)
        self._loops += kind == "range"
        body, end, rest = self._parse_body(depth + 1)
        self._loops -= kind == "range"
        otherwise: tuple[TemplateAction, ...] = ()
        if end == "else" and rest:
            inner = rest[0].text if rest[0].kind == "name" else ""
            if inner not in ("if", "with") or kind == "range" or (kind, inner) not in (("if", "if"), ("with", "with")):
                raise TemplateError("its template has an else with something else than `if` or `with` behind it")
            otherwise = (self._parse_block(inner, rest[1:], start, depth + 1),)
            end = "end"
        elif end == "else":
            otherwise, end, _ = self._parse_body(depth + 1)
        if end != "end":
            raise TemplateError(f"its template has `{kind}` without {{{{ end }}}}")
        self._scopes.pop()
        return TemplateAction(kind, self._text[start : self._position], pipeline, body, otherwise)

    def _read_tokens(self, position: int) -> list[_Token]:
        """Return the tokens of an action, up to its end; none for a comment."""
        text = self._text
        comment = _COMMENT.match(text, position) or _COMMENT.match(text, position + 1)
        if comment is not None and text[position : position + 3].lstrip().startswith("/*"):
            self._position, self._trims = comment.end(), bool(comment["trim"])
            return []
        found: list[_Token] = []
        while True:
            after = re.compile(r"\s*").match(text, position)
            spaced, position = bool(after and after.end() > position), after.end() if after else position
            end = _END.match(text, position)
            if end is not None:
                self._position, self._trims = end.end(), bool(end["trim"])
                if not found:
                    raise TemplateError("its template has an empty expression")
                return found
            token = _TOKEN.match(text, position)
            if token is None:
                if position >= len(text):
                    raise TemplateError("its template has {{ without }}")
                shown = text[position : position + 10].split()[0]
                if _UNREAD_LITERAL.match(text, position):
                    raise NotEvaluatedError(f"`{shown}`")
                raise TemplateError(f"its template has {shown}, which Go cannot read there")
            found.append(_Token(str(token.lastgroup), token[0], spaced))
            position = token.end()

    def _parse_pipeline(self, tokens: Sequence[_Token], *, is_range: bool = False) -> TemplatePipeline:
        names, sign, position = list[str](), "", 0
        if len(tokens) > 1 and tokens[0].kind == "variable":
            if tokens[1].text in (":=", "="):
                names, sign, position = [tokens[0].text], tokens[1].text, 2
            elif (
                is_range
                and tokens[1].text == ","
                and len(tokens) > 3
                and tokens[2].kind == "variable"
                and tokens[3].text in (":=", "=")
            ):
                names, sign, position = [tokens[0].text, tokens[2].text], tokens[3].text, 4
        if sign == "=" and not self._scopes[-1].issuperset(names):
            raise TemplateError(f"its template sets {names[0]}, which nothing declares")
        value, end = self._parse_commands(tokens, position, 0)
        if end != len(tokens):
            raise TemplateError(f"its template has an unexpected {tokens[end].text}")
        return TemplatePipeline(value, tuple(names), sign == "=")

    def _parse_commands(self, tokens: Sequence[_Token], position: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise NotEvaluatedError("so many parentheses")
        piped: tuple[Any, ...] = ()
        while True:
            operands: list[Any] = []
            name = ""
            while position < len(tokens) and tokens[position].text not in ("|", ")"):
                token = tokens[position]
                if token.kind == "name" and token.text not in (*_CONSTANTS, "nil"):
                    position += 1
                    if operands or name:
                        operands.append(TemplateCall(token.text, ()))
                    else:
                        name = token.text
                    continue
                operand, position = self._parse_operand(tokens, position, depth)
                operands.append(operand)
            if not name and (len(operands) != 1 or piped):
                raise TemplateError("its template has an expression without a function, or with arguments for a value")
            if not name and operands[0] == TemplateLiteral(None):
                raise TemplateError("its template has nil as an expression")
            piped = (TemplateCall(name, (*operands, *piped)) if name else operands[0],)
            if position == len(tokens) or tokens[position].text == ")":
                return piped[0], position
            position += 1

    def _parse_operand(self, tokens: Sequence[_Token], position: int, depth: int) -> tuple[Any, int]:
        token = tokens[position]
        position += 1
        value: Any
        if token.text == "(":
            value, position = self._parse_commands(tokens, position, depth + 1)
            if position == len(tokens):
                raise TemplateError("its template has ( without )")
            position += 1
        elif token.kind == "variable":
            if token.text not in self._scopes[-1]:
                raise TemplateError(f"its template has the variable {token.text}, which nothing declares")
            value = TemplateVariable(token.text)
        elif token.kind == "field":
            value = TemplateField((token.text[1:],))
        elif token.kind == "dot":
            value = TemplateField(())
        else:
            value = TemplateLiteral(_read_literal(token))
        while position < len(tokens) and tokens[position].kind == "field" and not tokens[position].spaced:
            name = tokens[position].text[1:]
            value = (
                value._replace(names=(*value.names, name)) if isinstance(value, TemplateField) else TemplateField((name,), value)
            )
            position += 1
        return value, position


def _read_literal(token: _Token) -> Any:
    if token.kind == "raw":
        return token.text[1:-1]
    if token.kind == "text":
        return re.sub(r"\\(.)", _unescape, token.text[1:-1])
    if token.kind == "number":
        if re.fullmatch(r"[+-]?(?:0|[1-9]\d{0,17})", token.text):
            return Integer(token.text)
        if re.fullmatch(r"[+-]?\d+[.eE].*", token.text):
            return float(token.text)
        raise NotEvaluatedError(f"the number {token.text}")
    if token.text == "nil":
        return None
    if token.text not in _CONSTANTS:
        raise TemplateError(f"its template has an unexpected {token.text}")
    return _CONSTANTS[token.text]


def _unescape(found: re.Match[str]) -> str:
    if found[1] in "xuU01234567":
        raise NotEvaluatedError(f"the escape {found[0]}")
    if found[1] not in _ESCAPES:
        raise TemplateError(f"its template has the escape {found[0]}, which Go does not know")
    return _ESCAPES[found[1]]
