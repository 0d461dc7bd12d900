"""Kubernetes CEL libraries for quantities and semantic versions."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import total_ordering
from typing import Any

from gitsched.apis.ocm.cel.overloads import cel_function
from gitsched.apis.ocm.cel.types import MAX_INT, MIN_INT, EvaluationError
from gitsched.model.quantity import parse_quantity
from gitsched.named_tuples import NamedTuple

_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_MAX_UINT64 = (1 << 64) - 1


class QuantityValue(NamedTuple):
    """A quantity; its suffix does not matter."""

    value: Fraction

    @property
    def type(self) -> str:
        return "quantity"


@total_ordering
class SemanticVersion:
    """A semantic version; build metadata is ignored."""

    __slots__ = ("numbers", "precedence")
    type = "semver"

    def __init__(self, numbers: tuple[int, int, int], prerelease: str) -> None:
        self.numbers = numbers
        parts = (
            tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in prerelease.split(".")) if prerelease else ()
        )
        self.precedence: tuple[Any, ...] = (numbers, not prerelease, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemanticVersion) and self.precedence == other.precedence

    def __lt__(self, other: SemanticVersion) -> bool:
        return self.precedence < other.precedence

    def __hash__(self) -> int:
        return hash(self.precedence)


@cel_function("quantity(string): quantity")
def quantity(text: str) -> QuantityValue:
    parsed = parse_quantity(text)
    if parsed is None:
        raise EvaluationError("not a quantity")
    return QuantityValue(parsed.fraction)


@cel_function("isQuantity(string): bool")
def is_quantity(text: str) -> bool:
    return parse_quantity(text) is not None


@cel_function("quantity.isGreaterThan(quantity): bool")
def quantity_greater(left: QuantityValue, right: QuantityValue) -> bool:
    return left > right


@cel_function("quantity.isLessThan(quantity): bool")
def quantity_less(left: QuantityValue, right: QuantityValue) -> bool:
    return left < right


@cel_function("quantity.compareTo(quantity): int")
def compare_quantities(left: QuantityValue, right: QuantityValue) -> int:
    return (left > right) - (left < right)


@cel_function("sign(quantity): int")
def quantity_sign(value: QuantityValue) -> int:
    return (value.value > 0) - (value.value < 0)


@cel_function("quantity.isInteger(): bool")
def quantity_is_integer(value: QuantityValue) -> bool:
    return value.value.denominator == 1 and MIN_INT <= value.value <= MAX_INT


@cel_function("quantity.asInteger(): int")
def quantity_as_integer(value: QuantityValue) -> int:
    if not quantity_is_integer(value):
        raise EvaluationError("the quantity is not an integer")
    return value.value.numerator


@cel_function("quantity.asApproximateFloat(): double")
def quantity_as_float(value: QuantityValue) -> float:
    try:
        return float(value.value)
    except OverflowError:
        raise EvaluationError("the quantity is too large") from None


@cel_function("quantity.add(quantity): quantity", "quantity.add(int): quantity")
def add_quantity(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
    return QuantityValue(left.value + (right if isinstance(right, int) else right.value))


@cel_function("quantity.sub(quantity): quantity", "quantity.sub(int): quantity")
def subtract_quantity(left: QuantityValue, right: QuantityValue | int) -> QuantityValue:
    return QuantityValue(left.value - (right if isinstance(right, int) else right.value))


@cel_function("semver(string): semver")
def semver(text: str) -> SemanticVersion:
    parsed = _parse_semver(text)
    if parsed is None:
        raise EvaluationError("not a semantic version")
    return parsed


@cel_function("isSemver(string): bool")
def is_semver(text: str) -> bool:
    return _parse_semver(text) is not None


def _parse_semver(text: str) -> SemanticVersion | None:
    match = _SEMVER.fullmatch(text)
    if match is None:
        return None
    major, minor, patch = (int(part) for part in match.groups()[:3])
    return SemanticVersion((major, minor, patch), match[4] or "") if max(major, minor, patch) <= _MAX_UINT64 else None


@cel_function("semver.isGreaterThan(semver): bool")
def semver_greater(left: SemanticVersion, right: SemanticVersion) -> bool:
    return left > right


@cel_function("semver.isLessThan(semver): bool")
def semver_less(left: SemanticVersion, right: SemanticVersion) -> bool:
    return left < right


@cel_function("semver.compareTo(semver): int")
def compare_semvers(left: SemanticVersion, right: SemanticVersion) -> int:
    return (left > right) - (left < right)


@cel_function("semver.major(): int")
def semver_major(version: SemanticVersion) -> int:
    return version.numbers[0]


@cel_function("semver.minor(): int")
def semver_minor(version: SemanticVersion) -> int:
    return version.numbers[1]


@cel_function("semver.patch(): int")
def semver_patch(version: SemanticVersion) -> int:
    return version.numbers[2]
