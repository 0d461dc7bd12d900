"""Evaluate the Go templates of an ApplicationSet: fields, `index`, literals, pipelines and some functions of sprig.

An expression whose value is not known, or that has something else, stays in the text, marked. Source: text/template of Go,
Masterminds/sprig and argoproj/argo-cd/applicationset/utils.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gitsched.build.go_functions import FUNCTIONS, MAX_TEXT, Integer, TemplateError, format_value, is_known_pattern, measure

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"
_MARKED = re.compile(f"{_OPEN}(.*?){_CLOSE}", re.DOTALL)
_ACTION = re.compile(r"\{\{(-(?=\s))?(.*?)((?<=\s)-)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>[|()])|(?:(?P<field>\.(?:\w+(?:\.\w+)*)?)|(?P<text>"(?:[^"\\\n]|\\.)*"|`[^`]*`)|(?P<number>-?\d+(?:\.\d+)?)"""
    r"""|(?P<name>\w+))(?=[\s|()]|$))"""
)
_WORD = re.compile(r"\$?\w+|\S")
_MAX_DEPTH = 20
"""Nested parentheses of one expression."""


class _NotEvaluated(Exception):
    """gitsched does not evaluate an expression; the text says what of it."""


class _NotKnown(Exception):
    """An expression needs a value that is not known."""


class Parameters(NamedTuple):
    """The parameters of one Application. `is_open`: there are others, whose values are not known."""

    values: Mapping[str, Any] = {}
    is_open: bool = False


def mark_unknown(text: str) -> str:
    """Return an expression with the marks of one that is not evaluated."""
    return f"{_OPEN}{text}{_CLOSE}"


def hide_marks(text: str) -> str:
    """Return a text as a person reads it, without the marks of expressions."""
    return text.replace(_OPEN, "").replace(_CLOSE, "") if _OPEN in text else text


def find_unknown(value: Any) -> str | None:
    """Return the first expression in a value that is not evaluated; None if there is none."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            found = _MARKED.search(each)
            if found is not None:
                return found[1]
        elif isinstance(each, dict):
            pending += (*each, *each.values())
        elif isinstance(each, (list, tuple)):
            pending += each
    return None


def split_unknown(text: str) -> list[str]:
    """Return the parts of a text between expressions that are not evaluated."""
    return _MARKED.split(text)[::2]


def describe_unknown(expression: str) -> str:
    """Say why an expression is not evaluated, and what to do."""
    for action in _ACTION.finditer(expression):
        try:
            _parse_expression(action[2])
        except _NotEvaluated as error:
            return f"its ApplicationSet has {action[0]}, and gitsched does not evaluate {error}: write the value"
    return f"its ApplicationSet takes {expression} from clusters or servers that this repository does not describe: write the value"


def render_go_template(
    text: str, parameters: Parameters, missing_key: str = "default", take: Callable[[int], None] = lambda _: None
) -> str:
    """Return the text of a template. `missing_key` is the option of that name: default, zero or error; `take` is told how many steps an
    expression takes. Raises TemplateError."""
    actions = list(_ACTION.finditer(text))
    parts: list[str] = []
    position, trims = 0, False
    try:
        for action in actions:
            literal = text[position : action.start()]
            literal = literal.lstrip() if trims else literal
            parts.append(literal.rstrip() if action[1] else literal)
            position, trims = action.end(), bool(action[3])
            if re.fullmatch(r"\s*/\*.*\*/\s*", action[2], re.DOTALL):
                continue
            expression = _parse_expression(action[2])
            try:
                parts.append(format_value(_Evaluation(parameters, missing_key).evaluate(expression)))
                take(1 + (len(parts[-1]) >> 6))
            except _NotKnown:
                parts.append(mark_unknown(action[0]))
    except _NotEvaluated:
        return mark_unknown(text)  # a part of it may decide about the rest
    return "".join(parts) + (text[position:].lstrip() if trims else text[position:])


class _Call(NamedTuple):
    """A function, or "" for a plain value, with its arguments: fields, literals and calls."""

    name: str
    arguments: tuple[Any, ...]


class _Field(NamedTuple):
    names: tuple[str, ...]


def _parse_expression(text: str) -> _Call:
    """Return the calls of an expression, the last one outermost. Raises _NotEvaluated."""
    tokens: list[re.Match[str]] = []
    position, text = 0, text.strip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            word = _WORD.search(text, position)
            raise _NotEvaluated(f"`{word[0] if word else text}`")
        tokens.append(token)
        position = token.end()
    call, rest = _parse_pipeline(tokens, 0)
    if rest != len(tokens):
        raise _NotEvaluated(f"`{text}`")
    return call


def _parse_pipeline(tokens: list[re.Match[str]], depth: int, at: int = 0) -> tuple[_Call, int]:
    if depth > _MAX_DEPTH:
        raise _NotEvaluated("so many parentheses")
    piped: tuple[Any, ...] = ()
    while True:
        name, arguments = "", list[Any]()
        while at < len(tokens) and tokens[at]["sign"] not in ("|", ")"):
            token = tokens[at]
            at += 1
            if token["sign"]:
                inner, at = _parse_pipeline(tokens, depth + 1, at)
                if at == len(tokens):
                    raise _NotEvaluated("`(`")
                arguments.append(inner)
                at += 1
            elif token["name"] and not arguments and not name and token["name"] not in ("true", "false", "nil"):
                name = token["name"]
                if name not in FUNCTIONS:
                    raise _NotEvaluated(f"`{name}`")
            else:
                arguments.append(_read_operand(token))
        if name == "printf" and not (arguments and is_known_pattern(arguments[0])):
            raise _NotEvaluated("`printf` with this pattern")
        if not name and len(arguments) + len(piped) != 1:
            raise _NotEvaluated("this expression")
        piped = (_Call(name, (*arguments, *piped)),)
        if at == len(tokens) or tokens[at]["sign"] == ")":
            return piped[0], at
        at += 1


def _read_operand(token: re.Match[str]) -> Any:
    if token["field"]:
        return _Field(tuple(token["field"].split(".")[1:]) if token["field"] != "." else ())
    if token["number"]:
        return float(token["number"]) if "." in token["number"] else Integer(token["number"][:18])
    if token["text"]:
        return _read_literal(token["text"])
    constants: dict[str, Any] = {"true": True, "false": False}
    if token["name"] not in constants:
        raise _NotEvaluated(f"`{token[0].strip()}`")
    return constants[token["name"]]


def _read_literal(text: str) -> str:
    if text[0] == "`":
        return text[1:-1]
    if re.search(r'\\[^"\\nt]', text):
        raise _NotEvaluated(f"the escapes in {text}")
    escapes = {"n": "\n", "t": "\t"}
    return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), text[1:-1])


class _Evaluation:
    def __init__(self, parameters: Parameters, missing_key: str) -> None:
        self._parameters, self._missing_key = parameters, missing_key

    def evaluate(self, value: Any) -> Any:
        if isinstance(value, _Field):
            return self._read_field(value.names)
        if not isinstance(value, _Call):
            return value
        arguments = [self.evaluate(argument) for argument in value.arguments]
        if not value.name:
            return arguments[0]
        if sum(map(measure, arguments)) > MAX_TEXT:
            raise TemplateError(f"gitsched evaluates `{value.name}` for at most {MAX_TEXT:,} characters")
        try:
            return FUNCTIONS[value.name](*arguments)
        except (TypeError, ValueError, AttributeError):
            raise TemplateError(f"`{value.name}` cannot take these values") from None

    def _read_field(self, names: tuple[str, ...]) -> Any:
        value: Any = self._parameters.values
        is_missing = False
        for position, name in enumerate(names):
            if isinstance(value, str) and _OPEN in value:
                raise _NotKnown
            if is_missing and self._missing_key != "zero":
                continue
            if not isinstance(value, dict):
                raise TemplateError(
                    f".{'.'.join(names)} is not in its parameters: {'.'.join(names[:position]) or '.'} has no fields"
                )
            if name not in value:
                if self._parameters.is_open and position == 0:
                    raise _NotKnown
                if self._missing_key == "error":
                    raise TemplateError(f"no generator gives .{'.'.join(names)}")
                is_missing = True
            value = value.get(name)
        if find_unknown(value) is not None:
            raise _NotKnown
        return value
