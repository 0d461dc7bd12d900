"""Label and metric constraints such as `location is DE` and `load <= 0.5`: the parser, and matching against candidates."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from gitsched.apis.krake.names import KEY_RULE, VALUE_RULE, is_label_key, is_label_value
from gitsched.model.document import Body
from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import Affinity
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Fleet, pack_mask

_BLANK = re.compile(r"[ \t]*")
_TOKEN = re.compile(r"[^ ,()=!]+")
_MAX_LENGTH = 4096
"""Maximum length of a constraint in characters; longer text is rejected without parsing."""

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
    """A constraint with a syntax error. `position` is the character offset, counted from 0."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class LabelConstraint(NamedTuple):
    """A parsed label constraint. `operator` is ==, !=, in or not in."""

    key: str
    operator: str
    values: tuple[str, ...]

    def match(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy the constraint. A missing label satisfies no operator, `is not` included."""
        value = labels.get(self.key)
        return value is not None and (value in self.values) is (self.operator in ("==", "in"))


class MetricConstraint(NamedTuple):
    """A parsed metric constraint. `operator` is ==, !=, >, >=, < or <=; `values` holds the one operand as written."""

    key: str
    operator: str
    values: tuple[str, ...]

    @property
    def bound(self) -> float | None:
        """The operand as a number; None if it is not a number, so that no value satisfies the constraint."""
        try:
            return float(self.values[0])
        except ValueError:
            return None

    def match(self, metrics: Mapping[str, float]) -> bool:
        """Return whether the metric values satisfy the constraint. A missing metric satisfies no operator, `is not` included."""
        value, bound = metrics.get(self.key), self.bound
        return value is not None and bound is not None and _COMPARISONS[self.operator](value, bound)

    def can_match(self, values: Sequence[float], *, is_range: bool) -> bool:
        """Return whether any of the values satisfies the constraint; a range includes all values between the first and the last."""
        bound = self.bound
        if bound is None:
            return False
        if is_range and self.operator == "==":
            return values[0] <= bound <= values[-1]
        return any(_COMPARISONS[self.operator](value, bound) for value in values)


@lru_cache(maxsize=1 << 14)
def parse_label_constraint(text: str) -> LabelConstraint:
    """Parse a label constraint. Raises ConstraintError, a ValueError with the position."""
    return LabelConstraint(*_parse(text, _LABEL_SPELLINGS, "label"))


@lru_cache(maxsize=1 << 14)
def parse_metric_constraint(text: str) -> MetricConstraint:
    """Parse a metric constraint. Raises ConstraintError, a ValueError with the position."""
    return MetricConstraint(*_parse(text, _METRIC_SPELLINGS, "metric"))


class _OperatorSpelling(NamedTuple):
    """One spelling of an operator; blanks between its words are optional."""

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
    """Backtracking parser of one constraint; records the furthest failure and the token expected there."""

    def __init__(self, text: str) -> None:
        self.text, self.furthest, self.expected = text, -1, ""

    def skip_blanks(self, position: int) -> int:
        match = _BLANK.match(self.text, position)
        return match.end() if match else position

    def record_failure(self, position: int, expected: str) -> None:
        if position > self.furthest:
            self.furthest, self.expected = position, expected

    def read_token(self, position: int, expected: str) -> _Token | None:
        position = self.skip_blanks(position)
        match = _TOKEN.match(self.text, position)
        if match is None:
            self.record_failure(position, expected)
            return None
        return _Token(match[0], position)

    def read_values(self, position: int, listed: bool) -> list[_Token] | None:
        """Read the value, or the list of values in parentheses; None if the text does not end after them."""
        if listed:
            values, position = self.read_list(self.skip_blanks(position))
        else:
            value = self.read_token(position, "a value")
            values, position = ([value], self.skip_blanks(value.position + len(value.text))) if value else ([], position)
        if values and position < len(self.text):
            self.record_failure(position, "the end of the constraint")
            return None
        return values or None

    def read_list(self, position: int) -> tuple[list[_Token], int]:
        """Read a list of values in parentheses, with any number of trailing commas; return no values if the list is malformed."""
        values: list[_Token] = []
        if not self.text.startswith("(", position):
            self.record_failure(position, "a list of values such as (DE, SK)")
            return [], position
        position += 1
        while value := self.read_token(position, "a value"):
            values.append(value)
            position = self.skip_blanks(value.position + len(value.text))
            if not self.text.startswith(",", position):
                break
            position += 1
            following = self.skip_blanks(position)
            if self.text.startswith((",", ")"), following):
                if "\t" in self.text[position:following]:  # Krake's grammar reads a tab here as a value
                    self.record_failure(position, "a value")
                    return [], position
                break
        while values and self.text.startswith(",", self.skip_blanks(position)):
            position = self.skip_blanks(position) + 1
        position = self.skip_blanks(position)
        if not values or not self.text.startswith(")", position):
            self.record_failure(position, "',' or ')'" if values else "a value")
            return [], position
        return values, self.skip_blanks(position + 1)


def _parse(text: str, spellings: tuple[_OperatorSpelling, ...], language: str) -> tuple[str, str, tuple[str, ...]]:
    if len(text) > _MAX_LENGTH:
        raise ConstraintError(f"is too long: a {language} constraint has at most {_MAX_LENGTH} characters", _MAX_LENGTH)
    parser = _ConstraintParser(text)
    key = parser.read_token(0, f"the name of a {language}")
    if key is not None:
        start = parser.skip_blanks(key.position + len(key.text))
        parser.record_failure(start, f"an operator such as {'is, is not, in, not in' if language == 'label' else 'is, >, <='}")
        for spelling in spellings:
            match = spelling.pattern.match(text, start)
            values = parser.read_values(match.end(), spelling.operator in ("in", "not in")) if match else None
            if values is not None:
                _validate_tokens(key, values)
                return key.text, spelling.operator, tuple(value.text for value in values)
    raise ConstraintError(
        f"is not a {language} constraint: expected {parser.expected} at character {parser.furthest + 1}", parser.furthest
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
    return "'" + "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in shown) + "'"


CUSTOM_RESOURCES = "custom_resources"
"""The candidate field that lists custom resources."""


class ConstraintSet(NamedTuple):
    """All constraints on a candidate. `affinity` expresses the labels and custom resources as a query to a Fleet."""

    labels: tuple[LabelConstraint, ...]
    custom_resources: tuple[str, ...]
    metrics: tuple[MetricConstraint, ...]
    affinity: Affinity


def parse_constraints(value: Any) -> ConstraintSet:
    """Parse one member of spec.constraints. Validation has accepted the document, so every constraint parses."""
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
    """Return all constraints in one line; "" if there are none."""
    custom = (f"custom resource {name}" for name in constraints.custom_resources)
    return "; ".join((*map(format_constraint, constraints.labels), *custom, *map(format_constraint, constraints.metrics)))


def _make_requirements(constraint: LabelConstraint) -> Iterator[Requirement]:
    """Translate a label constraint. In Krake a missing label satisfies no operator, so an exclusion also requires the label."""
    if constraint.operator in ("==", "in"):
        yield Requirement(constraint.key, "In", constraint.values)
    else:
        yield Requirement(constraint.key, "Exists", ())
        yield Requirement(constraint.key, "NotIn", constraint.values)


def match_metric_constraint(constraint: MetricConstraint, fleet: Fleet, metric_values: Sequence[Mapping[str, float]]) -> int:
    """Return the mask of the candidates whose metric values, given by index, satisfy a metric constraint."""
    return fleet.get_or_compute(("metric", constraint), lambda: pack_mask(constraint.match(metrics) for metrics in metric_values))


def describe_mismatch(
    constraints: ConstraintSet,
    labels: Mapping[str, str],
    resources: Sequence[str],
    metrics: Mapping[str, float],
    describe_metric: Callable[[str], str],
) -> str:
    """Return the first constraint that a candidate violates, with the reason; "" if it satisfies all.

    `describe_metric` describes the compared value of a metric, "" without the metric.
    """
    for label in constraints.labels:
        if not label.match(labels):
            return f"label constraint {format_constraint(label)}: {_describe_value(labels.get(label.key), f'label {label.key}')}"
    for resource in constraints.custom_resources:
        if resource not in resources:
            return f"custom resource {resource} is missing"
    for metric in constraints.metrics:
        if not metric.match(metrics):
            value = describe_metric(metric.key) or None
            return f"metric constraint {format_constraint(metric)}: {_describe_value(value, f'metric {metric.key}')}"
    return ""


def _describe_value(value: str | None, name: str) -> str:
    return f"{name} is missing" if value is None else f"it is {value}"


def format_constraint(constraint: LabelConstraint | MetricConstraint) -> str:
    """Return a constraint with its operator as a symbol."""
    values = ", ".join(constraint.values)
    return f"{constraint.key} {constraint.operator} {f'({values})' if 'in' in constraint.operator else values}"
