"""Values of CEL expressions: integers, doubles and optionals."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gitsched.apis.ocm.cel.interpreter import Activation, _compile  # Program returns only whether the value is true
from gitsched.apis.ocm.cel.parser import parse
from gitsched.apis.ocm.cel.types import EvaluationError, OptionalValue


def value(text: str) -> Any:
    return _compile(parse(text), frozenset())(Activation({}, 10_000))


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_integer_arithmetic_is_that_of_go(left: int, right: int) -> None:
    def result(text: str) -> Any:
        try:
            return value(text)
        except EvaluationError:
            return None

    total = left + right
    assert result(f"{left} + ({right})") == (total if -(2**63) <= total < 2**63 else None)
    if right:
        quotient, rest = result(f"{left} / ({right})"), result(f"{left} % ({right})")
        assert quotient is None or (quotient * right + rest == left and abs(rest) < abs(right))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_unchanged_by_conversion_to_string_and_back(number: float) -> None:
    assert value(f"double(string({number!r}))") == number or number < 0


def test_optional_values_and_elements() -> None:
    assert value("optional.of(1)") == OptionalValue(True, 1)
    assert value("[?optional.none(), ?optional.of(2)]") == [2]
