"""The two constraint languages: label constraints such as `location is DE`, metric constraints such as `load <= 0.5`.

    constraint = key operator value | key set-operator "(" value { "," value } { "," } ")"

A parser by hand, since the languages are what a grammar cannot say in fewer words: a key or value is a greedy run of any characters
but a blank and `,()=!`, keywords are not reserved (`is is is` is a constraint), and among several readings of a text the one with the
shortest operator counts (`load gte5` is `load > e5`). So each operator is tried, shortest first, and the first reading that uses up the
text is the constraint; its key and values must then be what labels may be.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

from gitsched.apis.krake.names import KEY_RULE, VALUE_RULE, is_label_key, is_label_value

_BLANK = re.compile(r"[ \t]*")
_WORD = re.compile(r"[^ ,()=!]+")
_LONGEST = 4096
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
_COMPARE: dict[str, Callable[[float, float], bool]] = {
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
        return value is not None and bound is not None and _COMPARE[self.operator](value, bound)


@lru_cache(maxsize=1 << 14)
def parse_label_constraint(text: str) -> LabelConstraint:
    """The constraint on labels that a text is. Raises ConstraintError, a ValueError that knows the position."""
    return LabelConstraint(*_parse(text, _LABEL_SPELLINGS, "label"))


@lru_cache(maxsize=1 << 14)
def parse_metric_constraint(text: str) -> MetricConstraint:
    """The constraint on metrics that a text is. Raises ConstraintError, a ValueError that knows the position."""
    return MetricConstraint(*_parse(text, _METRIC_SPELLINGS, "metric"))


class _Spelling(NamedTuple):
    """One way to write an operator; blanks between its words are optional."""

    pattern: re.Pattern[str]
    operator: str


def _spell(operators: Mapping[str, str]) -> tuple[_Spelling, ...]:
    shortest_first = sorted(operators, key=lambda spelling: (len(spelling), spelling))
    return tuple(
        _Spelling(re.compile(_BLANK.pattern.join(map(re.escape, spelling.split()))), operators[spelling])
        for spelling in shortest_first
    )


_LABEL_SPELLINGS = _spell(_LABEL_OPERATORS)
_METRIC_SPELLINGS = _spell(_METRIC_OPERATORS)


class _Word(NamedTuple):
    text: str
    position: int


class _Reading:
    """One attempt after another at a text; remembers how far the best one came, and what it wanted there."""

    def __init__(self, text: str) -> None:
        self.text, self.furthest, self.wanted = text, -1, ""

    def skip(self, at: int) -> int:
        match = _BLANK.match(self.text, at)
        return match.end() if match else at

    def fail(self, at: int, wanted: str) -> None:
        if at > self.furthest:
            self.furthest, self.wanted = at, wanted

    def word(self, at: int, wanted: str) -> _Word | None:
        at = self.skip(at)
        match = _WORD.match(self.text, at)
        if match is None:
            self.fail(at, wanted)
            return None
        return _Word(match[0], at)

    def values(self, at: int, listed: bool) -> list[_Word] | None:
        """The value, or the values in parentheses, if they reach the end of the text."""
        if listed:
            words, at = self.listed(self.skip(at))
        else:
            word = self.word(at, "a value")
            words, at = ([word], self.skip(word.position + len(word.text))) if word else ([], at)
        if words and at < len(self.text):
            self.fail(at, "the end of the constraint")
            return None
        return words or None

    def listed(self, at: int) -> tuple[list[_Word], int]:
        """The values in parentheses, and where the text goes on; none where it is no such list. Commas may trail, any number of them."""
        words: list[_Word] = []
        if not self.text.startswith("(", at):
            self.fail(at, "a list of values such as (DE, SK)")
            return [], at
        at += 1
        while word := self.word(at, "a value"):
            words.append(word)
            at = self.skip(word.position + len(word.text))
            if not self.text.startswith(",", at):
                break
            at += 1
            after = self.skip(at)
            if self.text.startswith((",", ")"), after):
                if "\t" in self.text[at:after]:  # where a value may stand, a tab is one
                    self.fail(at, "a value")
                    return [], at
                break
        while words and self.text.startswith(",", self.skip(at)):
            at = self.skip(at) + 1
        at = self.skip(at)
        if not words or not self.text.startswith(")", at):
            self.fail(at, "',' or ')'" if words else "a value")
            return [], at
        return words, self.skip(at + 1)


def _parse(text: str, spellings: tuple[_Spelling, ...], language: str) -> tuple[str, str, tuple[str, ...]]:
    if len(text) > _LONGEST:
        raise ConstraintError(f"a {language} constraint has {_LONGEST} characters at most", _LONGEST)
    reading = _Reading(text)
    key = reading.word(0, f"the name of a {language}")
    if key is not None:
        start = reading.skip(key.position + len(key.text))
        reading.fail(start, f"an operator such as {'is, is not, in, not in' if language == 'label' else 'is, >, <='}")
        for spelling in spellings:
            match = spelling.pattern.match(text, start)
            words = reading.values(match.end(), spelling.operator in ("in", "not in")) if match else None
            if words is not None:
                _judge(key, words)
                return key.text, spelling.operator, tuple(word.text for word in words)
    raise ConstraintError(
        f"is no {language} constraint: expected {reading.wanted} at character {reading.furthest + 1}", reading.furthest
    )


def _judge(key: _Word, values: list[_Word]) -> None:
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
