"""Evaluate the Go templates of an ApplicationSet: actions, variables, blocks and functions.

An expression whose value is not known stays in the text, marked. Source: text/template of Go and argoproj/argo-cd/applicationset/utils.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from gitsched.build.go_functions import (
    MAX_TEXT,
    Integer,
    LoopSignal,
    NotEvaluatedError,
    TemplateError,
    TextMap,
    format_value,
    is_empty,
    measure,
)
from gitsched.build.template_functions import FUNCTIONS, UNREAD_FUNCTIONS, call_function
from gitsched.build.template_syntax import (
    TemplateAction,
    TemplateCall,
    TemplateField,
    TemplateLiteral,
    TemplatePipeline,
    TemplateVariable,
    parse_template,
)
from gitsched.named_tuples import NamedTuple

_OPEN, _CLOSE, _REASON = "\ufdd0", "\ufdd1", "\ufdd2"
_MARKED = re.compile(f"{_OPEN}(.*?){_CLOSE}", re.DOTALL)
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_UNKNOWN: Final = object()
"""The value of a variable that is not known."""


class _UnknownValueError(Exception):
    """An expression needs a value that is not known."""


class Parameters(NamedTuple):
    """The parameters of one Application. `is_open`: there are others, whose values are not known."""

    values: Mapping[str, Any] = {}
    is_open: bool = False


def mark_unknown(text: str, reason: str = "") -> str:
    """Return an expression with the marks of one that is not evaluated; `reason` is what of it, "" if its value is not known."""
    return f"{_OPEN}{text}{_REASON + reason if reason else ''}{_CLOSE}"


def hide_marks(text: str) -> str:
    """Return a text as a person reads it, without the marks of expressions."""
    return _MARKED.sub(lambda found: found[1].partition(_REASON)[0], text) if _OPEN in text else text


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
    text, _, reason = expression.partition(_REASON)
    if reason:
        shown = next((found[0] for found in _EXPRESSION.finditer(text) if reason.strip("`") in found[0]), text)
        return f"its ApplicationSet has {shown}, and gitsched does not evaluate {reason}: write the value"
    return f"its ApplicationSet takes {text} from clusters or servers that this repository does not describe: write the value"


def render_go_template(
    text: str, parameters: Parameters, missing_key: str = "default", take: Callable[[int], None] = lambda _: None
) -> str:
    """Return the text of a template. `missing_key` is the option of that name: default, zero or error; `take` is told how many steps an
    expression takes. Raises TemplateError."""
    try:
        actions = parse_template(text)
        _check_functions(actions)
        return _Evaluation(parameters, missing_key, take).render(actions)
    except NotEvaluatedError as error:
        return mark_unknown(text, str(error))  # a part of it may decide about the rest


def _check_functions(actions: Iterable[TemplateAction]) -> None:
    """Raise TemplateError for a function that Argo CD does not have, and NotEvaluatedError for one that gitsched does not evaluate."""
    pending: list[Any] = [*actions]
    while pending:
        each = pending.pop()
        if isinstance(each, TemplateAction):
            pending += (each.pipeline.value, *each.body, *each.otherwise)
        elif isinstance(each, TemplateField):
            pending.append(each.start)
        elif isinstance(each, TemplateCall):
            if each.name in UNREAD_FUNCTIONS:
                raise NotEvaluatedError(f"`{each.name}`")
            if each.name not in FUNCTIONS:
                raise TemplateError(f"Argo CD has no function `{each.name}`")
            pending += each.arguments


class _Evaluation:
    """Evaluates one template. Variables are in scopes, of which the inner ones see the outer ones."""

    def __init__(self, parameters: Parameters, missing_key: str, take: Callable[[int], None]) -> None:
        self._parameters, self._missing_key, self._take = parameters, missing_key, take
        self._scopes: list[dict[str, Any]] = [{"$": parameters.values}]
        self._size = 0

    def render(self, actions: Iterable[TemplateAction]) -> str:
        return self._render(actions, self._parameters.values)

    def _render(self, actions: Iterable[TemplateAction], dot: Any) -> str:
        parts: list[str] = []
        for action in actions:
            part = self._render_action(action, dot, parts)
            self._size += len(part)
            if self._size > 10 * MAX_TEXT:
                raise TemplateError(f"gitsched writes at most {10 * MAX_TEXT:,} characters for a template")
            parts.append(part)
        return "".join(parts)

    def _render_action(self, action: TemplateAction, dot: Any, written: list[str]) -> str:
        if action.kind == "text":
            return action.source
        if action.kind in ("break", "continue"):
            raise LoopSignal(action.kind, "".join(written))
        try:
            value = self._evaluate(action.pipeline.value, dot)
        except _UnknownValueError:
            self._forget(action)
            return "" if action.kind == "output" and action.pipeline.variables else mark_unknown(action.source)
        if action.kind == "output":
            if action.pipeline.variables:
                self._bind(action.pipeline, value)
                return ""
            text = format_value(value)
            self._take(1 + (len(text) >> 6))
            return text
        self._scopes.append({})
        try:
            return self._render_range(action, value, dot) if action.kind == "range" else self._render_choice(action, value, dot)
        finally:
            self._scopes.pop()

    def _render_choice(self, action: TemplateAction, value: Any, dot: Any) -> str:
        if action.pipeline.variables:
            self._bind(action.pipeline, value)
        if is_empty(value):
            return self._render(action.otherwise, dot)
        return self._render(action.body, value if action.kind == "with" else dot)

    def _render_range(self, action: TemplateAction, value: Any, dot: Any) -> str:
        parts: list[str] = []
        for key, element in self._list_elements(value):
            self._take(1)
            self._scopes.append({})
            names = action.pipeline.variables
            pairs = zip(names, (element,) if len(names) == 1 else (key, element), strict=False)
            for name, each in pairs:
                self._bind(TemplatePipeline(None, (name,), action.pipeline.assigns), each)
            try:
                parts.append(self._render(action.body, element))
            except LoopSignal as signal:
                parts.append(signal.text)
                if signal.kind == "break":
                    break
            finally:
                self._scopes.pop()
        else:
            if is_empty(value):
                return self._render(action.otherwise, dot)
        return "".join(parts)

    def _list_elements(self, value: Any) -> list[tuple[Any, Any]]:
        if value is None:
            return []
        if isinstance(value, dict):
            return [(name, value[name]) for name in sorted(value)]
        if isinstance(value, list):
            return [(Integer(index), each) for index, each in enumerate(value)]
        if isinstance(value, Integer):
            self._take(max(0, value))
            return [(Integer(index), Integer(index)) for index in range(value)]
        raise TemplateError("a range of its template is over a value that is no list and no map")

    def _bind(self, pipeline: TemplatePipeline, value: Any) -> None:
        for name in pipeline.variables:
            scope = next((scope for scope in reversed(self._scopes) if name in scope), None) if pipeline.assigns else None
            (scope if scope is not None else self._scopes[-1])[name] = value

    def _forget(self, action: TemplateAction) -> None:
        """Make the variables unknown that an action sets whose value is not known."""
        if action.pipeline.variables and action.kind == "output":
            self._bind(action.pipeline, _UNKNOWN)
        pending = [*action.body, *action.otherwise]
        while pending:
            each = pending.pop()
            pending += (*each.body, *each.otherwise)
            if each.pipeline.assigns:
                known = (name for name in each.pipeline.variables if any(name in scope for scope in self._scopes))
                self._bind(each.pipeline._replace(variables=tuple(known)), _UNKNOWN)

    def _evaluate(self, value: Any, dot: Any) -> Any:
        if isinstance(value, TemplateLiteral):
            return value.value
        if isinstance(value, TemplateVariable):
            found = next(scope[value.name] for scope in reversed(self._scopes) if value.name in scope)
            if found is _UNKNOWN or (found is not self._parameters.values and find_unknown(found) is not None):
                raise _UnknownValueError
            return found
        if isinstance(value, TemplateField):
            return self._read_field(value, dot)
        return self._call(value, dot)

    def _call(self, call: TemplateCall, dot: Any) -> Any:
        if call.name in ("and", "or"):
            result: Any = None
            for argument in call.arguments:
                result = self._evaluate(argument, dot)
                if is_empty(result) == (call.name == "and"):
                    break
            if not call.arguments:
                raise TemplateError(f"`{call.name}` needs arguments")
            return result
        arguments = [self._evaluate(argument, dot) for argument in call.arguments]
        size = sum(map(measure, arguments))
        if size > MAX_TEXT:
            raise TemplateError(f"gitsched evaluates `{call.name}` for at most {MAX_TEXT:,} characters")
        self._take(1 + (size >> 6))
        return call_function(call.name, arguments)

    def _read_field(self, field: TemplateField, dot: Any) -> Any:
        start = self._evaluate(field.start, dot) if field.start is not None else dot
        value, is_missing = start, False
        is_root = start is self._parameters.values
        for position, name in enumerate(field.names):
            if isinstance(value, str) and _OPEN in value:
                raise _UnknownValueError
            if is_missing and self._missing_key != "zero":
                continue
            if value is None and position == 0:
                if self._missing_key == "error":
                    raise TemplateError(f"no generator gives .{'.'.join(field.names)}")
                return None
            if not isinstance(value, dict):
                raise TemplateError(
                    f".{'.'.join(field.names)} is not in its parameters: {'.'.join(field.names[:position]) or '.'} has no fields"
                )
            if name not in value:
                if self._parameters.is_open and position == 0 and is_root:
                    raise _UnknownValueError
                if self._missing_key == "error":
                    raise TemplateError(f"no generator gives .{'.'.join(field.names)}")
                is_missing = True
            value = value.get(name, "" if isinstance(value, TextMap) and self._missing_key == "zero" else None)
        if find_unknown(value) is not None or (is_root and self._parameters.is_open and not field.names):
            raise _UnknownValueError
        return value
