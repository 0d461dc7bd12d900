"""Quantities and semantic versions, as Kubernetes offers them."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import total_ordering
from typing import Any, NamedTuple

from gitsched.apis.ocm.cel.registry import function
from gitsched.apis.ocm.cel.values import MAX_INT, MIN_INT, Failed
from gitsched.model.quantity import parse_quantity

_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_LARGEST = (1 << 64) - 1


class Amount(NamedTuple):
    """A quantity, by its value alone."""

    amount: Fraction

    @property
    def type(self) -> str:
        return "quantity"


@total_ordering
class Version:
    """A semantic version; what comes after + plays no part."""

    __slots__ = ("numbers", "rank")
    type = "semver"

    def __init__(self, numbers: tuple[int, int, int], before: str) -> None:
        self.numbers = numbers
        parts = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in before.split(".")) if before else ()
        self.rank: tuple[Any, ...] = (numbers, not before, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.rank == other.rank

    def __lt__(self, other: Version) -> bool:
        return self.rank < other.rank

    def __hash__(self) -> int:
        return hash(self.rank)


@function("quantity(string): quantity")
def quantity(text: str) -> Amount:
    parsed = parse_quantity(text)
    if parsed is None:
        raise Failed("no quantity")
    return Amount(parsed.amount)


@function("isQuantity(string): bool")
def is_quantity(text: str) -> bool:
    return parse_quantity(text) is not None


@function("quantity.isGreaterThan(quantity): bool")
def quantity_greater(left: Amount, right: Amount) -> bool:
    return left > right


@function("quantity.isLessThan(quantity): bool")
def quantity_less(left: Amount, right: Amount) -> bool:
    return left < right


@function("quantity.compareTo(quantity): int")
def compare_quantities(left: Amount, right: Amount) -> int:
    return (left > right) - (left < right)


@function("sign(quantity): int")
def sign(value: Amount) -> int:
    return (value.amount > 0) - (value.amount < 0)


@function("quantity.isInteger(): bool")
def is_integer(value: Amount) -> bool:
    return value.amount.denominator == 1 and MIN_INT <= value.amount <= MAX_INT


@function("quantity.asInteger(): int")
def as_integer(value: Amount) -> int:
    if not is_integer(value):
        raise Failed("the quantity is no integer")
    return value.amount.numerator


@function("quantity.asApproximateFloat(): double")
def as_float(value: Amount) -> float:
    try:
        return float(value.amount)
    except OverflowError:
        raise Failed("the quantity is too large") from None


@function("quantity.add(quantity): quantity", "quantity.add(int): quantity")
def add(left: Amount, right: Amount | int) -> Amount:
    return Amount(left.amount + (right if isinstance(right, int) else right.amount))


@function("quantity.sub(quantity): quantity", "quantity.sub(int): quantity")
def subtract(left: Amount, right: Amount | int) -> Amount:
    return Amount(left.amount - (right if isinstance(right, int) else right.amount))


@function("semver(string): semver")
def semver(text: str) -> Version:
    parsed = _parse(text)
    if parsed is None:
        raise Failed("no semantic version")
    return parsed


@function("isSemver(string): bool")
def is_semver(text: str) -> bool:
    return _parse(text) is not None


def _parse(text: str) -> Version | None:
    match = _SEMVER.fullmatch(text)
    if match is None:
        return None
    major, minor, patch = (int(part) for part in match.groups()[:3])
    return Version((major, minor, patch), match[4] or "") if max(major, minor, patch) <= _LARGEST else None


@function("semver.isGreaterThan(semver): bool")
def version_greater(left: Version, right: Version) -> bool:
    return left > right


@function("semver.isLessThan(semver): bool")
def version_less(left: Version, right: Version) -> bool:
    return left < right


@function("semver.compareTo(semver): int")
def compare_versions(left: Version, right: Version) -> int:
    return (left > right) - (left < right)


@function("semver.major(): int")
def major(version: Version) -> int:
    return version.numbers[0]


@function("semver.minor(): int")
def minor(version: Version) -> int:
    return version.numbers[1]


@function("semver.patch(): int")
def patch(version: Version) -> int:
    return version.numbers[2]
