"""Label and metric constraints such as `location is DE` and `load <= 0.5`: the parser, and matching against candidates."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from gitsched.apis.krake.names import KEY_RULE, VALUE_RULE, is_label_key, is_label_value
from gitsched.model.document import Body
from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import Affinity
from gitsched.schedule.fleet import Fleet, pack_mask

_BLANK = re.compile(r"[ \t]*")
_TOKEN = re.compile(r"[^ ,()=!]+")
_MAX_LENGTH = 4096
"""Characters of a constraint at most; what is longer cannot be valid, and is not looked at."""

_EQUAL = {"is": "==", "=": "==", "==": "==", "is not": "!=", "!=": "!="}
_LABEL_OPERATORS = {**_EQUAL, "in": "in", "not in": "not in"}
_METRIC_OPERATORS = {
    **_EQUAL,
    **dict.fromkeys((">", "gt", "greater than"), ">"),
    **dict.fromkeys((">=", "=>", "gte", "greater than or equal"), ">="),
    **dict.fromkeys(("<", "lt", "less than", "lesser than"), "<"),
    **dict.fromkeys(("<=", "=<", "lte", "less than or equal", "lesser than or equal"), "<="),
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class ConstraintError(ValueError):
    """A text that is no constraint. `position` counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class LabelConstraint(NamedTuple):
    """`operator` is ==, !=, in or not in."""

    key: str
    operator: str
    values: tuple[str, ...]

    def match(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy it. A label that is missing satisfies nothing, not even `is not`."""
        value = labels.get(self.key)
        return value is not None and (value in self.values) is (self.operator in ("==", "in"))


class MetricConstraint(NamedTuple):
    """`operator` is ==, !=, >, >=, < or <=; `values` holds the one operand as it was written."""

    key: str
    operator: str
    values: tuple[str, ...]

    @property
    def bound(self) -> float | None:
        """The operand; None where it is no number, which nothing satisfies."""
        try:
            return float(self.values[0])
        except ValueError:
            return None

    def match(self, metrics: Mapping[str, float]) -> bool:
        """Whether values by metric name satisfy it. A missing metric satisfies nothing, not even `is not`."""
        value, bound = metrics.get(self.key), self.bound
        return value is not None and bound is not None and _COMPARISONS[self.operator](value, bound)


@lru_cache(maxsize=1 << 14)
def parse_label_constraint(text: str) -> LabelConstraint:
    """The constraint on labels that a text is. Raises ConstraintError, a ValueError that knows the position."""
    return LabelConstraint(*_parse(text, _LABEL_SPELLINGS, "label"))


@lru_cache(maxsize=1 << 14)
def parse_metric_constraint(text: str) -> MetricConstraint:
    """The constraint on metrics that a text is. Raises ConstraintError, a ValueError that knows the position."""
    return MetricConstraint(*_parse(text, _METRIC_SPELLINGS, "metric"))


class _OperatorSpelling(NamedTuple):
    """One way to write an operator; blanks between its words are optional."""

    pattern: re.Pattern[str]
    operator: str


def _compile_spellings(operators: Mapping[str, str]) -> tuple[_OperatorSpelling, ...]:
    shortest_first = sorted(operators, key=lambda spelling: (len(spelling), spelling))
    return tuple(
        _OperatorSpelling(re.compile(_BLANK.pattern.join(map(re.escape, spelling.split()))), operators[spelling])
        for spelling in shortest_first
    )


_LABEL_SPELLINGS = _compile_spellings(_LABEL_OPERATORS)
_METRIC_SPELLINGS = _compile_spellings(_METRIC_OPERATORS)


class _Token(NamedTuple):
    text: str
    position: int


class _ConstraintParser:
    """One attempt after another at a text; remembers how far the best one came, and what it wanted there."""

    def __init__(self, text: str) -> None:
        self.text, self.furthest, self.expected = text, -1, ""

    def skip_blanks(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        return match.end() if match else at

    def record_failure(self, at: int, wanted: str) -> None:
        if at > self.furthest:
            self.furthest, self.expected = at, wanted

    def read_token(self, at: int, wanted: str) -> _Token | None:
        at = self.skip_blanks(at)
        match = _TOKEN.match(self.text, at)
        if match is None:
            self.record_failure(at, wanted)
            return None
        return _Token(match[0], at)

    def read_values(self, at: int, listed: bool) -> list[_Token] | None:
        """The value, or the values in parentheses, if they reach the end of the text."""
        if listed:
            words, at = self.read_list(self.skip_blanks(at))
        else:
            word = self.read_token(at, "a value")
            words, at = ([word], self.skip_blanks(word.position + len(word.text))) if word else ([], at)
        if words and at < len(self.text):
            self.record_failure(at, "the end of the constraint")
            return None
        return words or None

    def read_list(self, at: int) -> tuple[list[_Token], int]:
        """The values in parentheses, and where the text goes on; none where it is no such list. Commas may trail, any number of them."""
        words: list[_Token] = []
        if not self.text.startswith("(", at):
            self.record_failure(at, "a list of values such as (DE, SK)")
            return [], at
        at += 1
        while word := self.read_token(at, "a value"):
            words.append(word)
            at = self.skip_blanks(word.position + len(word.text))
            if not self.text.startswith(",", at):
                break
            at += 1
            after = self.skip_blanks(at)
            if self.text.startswith((",", ")"), after):
                if "\t" in self.text[at:after]:  # where a value may stand, a tab is one
                    self.record_failure(at, "a value")
                    return [], at
                break
        while words and self.text.startswith(",", self.skip_blanks(at)):
            at = self.skip_blanks(at) + 1
        at = self.skip_blanks(at)
        if not words or not self.text.startswith(")", at):
            self.record_failure(at, "',' or ')'" if words else "a value")
            return [], at
        return words, self.skip_blanks(at + 1)


def _parse(text: str, spellings: tuple[_OperatorSpelling, ...], language: str) -> tuple[str, str, tuple[str, ...]]:
    if len(text) > _MAX_LENGTH:
        raise ConstraintError(f"a {language} constraint has {_MAX_LENGTH} characters at most", _MAX_LENGTH)
    reading = _ConstraintParser(text)
    key = reading.read_token(0, f"the name of a {language}")
    if key is not None:
        start = reading.skip_blanks(key.position + len(key.text))
        reading.record_failure(start, f"an operator such as {'is, is not, in, not in' if language == 'label' else 'is, >, <='}")
        for spelling in spellings:
            match = spelling.pattern.match(text, start)
            words = reading.read_values(match.end(), spelling.operator in ("in", "not in")) if match else None
            if words is not None:
                _validate_tokens(key, words)
                return key.text, spelling.operator, tuple(word.text for word in words)
    raise ConstraintError(
        f"is no {language} constraint: expected {reading.expected} at character {reading.furthest + 1}", reading.furthest
    )


def _validate_tokens(key: _Token, values: list[_Token]) -> None:
    if not is_label_key(key.text):
        raise ConstraintError(f"{_quote(key.text)} at character {key.position + 1} cannot be a name: {KEY_RULE}", key.position)
    for value in values:
        if not is_label_value(value.text):
            raise ConstraintError(
                f"{_quote(value.text)} at character {value.position + 1} cannot be a value: {VALUE_RULE}", value.position
            )


def _quote(text: str) -> str:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return "'" + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in shown) + "'"


CUSTOM_RESOURCES = "custom_resources"
"""The field of a candidate that says which custom resources it has."""


class ConstraintSet(NamedTuple):
    """What a candidate must satisfy. `affinity` is what a fleet answers by itself: labels and custom resources."""

    labels: tuple[LabelConstraint, ...]
    custom_resources: tuple[str, ...]
    metrics: tuple[MetricConstraint, ...]
    affinity: Affinity


def parse_constraints(value: Any) -> ConstraintSet:
    """The member of a spec's `constraints`. The texts are valid: admission has seen them."""
    body: Body = value if isinstance(value, dict) else {}
    labels = tuple(parse_label_constraint(text) for text in body.get("labels") or ())
    resources = tuple(str(name) for name in body.get(CUSTOM_RESOURCES) or ())
    metrics = tuple(parse_metric_constraint(text) for text in body.get("metrics") or ())
    requirements = tuple(requirement for constraint in labels for requirement in _make_requirements(constraint))
    fields = tuple(Requirement(CUSTOM_RESOURCES, "In", (name,)) for name in resources)
    return ConstraintSet(
        labels, resources, metrics, Affinity(labels=Selector(requirements) if requirements else None, fields=fields)
    )


def format_constraints(constraints: ConstraintSet) -> str:
    """All constraints in one line; "" without any."""
    custom = (f"custom resource {name}" for name in constraints.custom_resources)
    return "; ".join((*map(_format_constraint, constraints.labels), *custom, *map(_format_constraint, constraints.metrics)))


def _make_requirements(constraint: LabelConstraint) -> Iterator[Requirement]:
    """A label that is missing satisfies no operator of Krake's, so that an exclusion asks for the label, too."""
    if constraint.operator in ("==", "in"):
        yield Requirement(constraint.key, "In", constraint.values)
    else:
        yield Requirement(constraint.key, "Exists", ())
        yield Requirement(constraint.key, "NotIn", constraint.values)


def match_metric_constraint(constraint: MetricConstraint, fleet: Fleet, measures: Sequence[Mapping[str, float]]) -> int:
    """The candidates whose measurements, by index, satisfy a metric constraint."""
    return fleet.get_or_compute(("metric", constraint), lambda: pack_mask(constraint.match(measured) for measured in measures))


def describe_mismatch(
    constraints: ConstraintSet, labels: Mapping[str, str], resources: Sequence[str], measured: Mapping[str, float]
) -> str:
    """Why a candidate does not satisfy constraints: the first one that it does not; "" if it does."""
    for label in constraints.labels:
        if not label.match(labels):
            actual = _describe_value(labels.get(label.key), f"there is no label {label.key}")
            return f"label constraint {_format_constraint(label)}: {actual}"
    for resource in constraints.custom_resources:
        if resource not in resources:
            return f"custom resource {resource} is not there"
    for metric in constraints.metrics:
        if not metric.match(measured):
            value = measured.get(metric.key)
            return f"metric constraint {_format_constraint(metric)}: {_describe_value(value, f'there is no metric {metric.key}')}"
    return ""


def _describe_value(value: object, nothing: str) -> str:
    return nothing if value is None else f"it is {value}"


def _format_constraint(constraint: LabelConstraint | MetricConstraint) -> str:
    values = ", ".join(constraint.values)
    return f"{constraint.key} {constraint.operator} {f'({values})' if 'in' in constraint.operator else values}"
