"""Kubernetes quantities, exactly."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

_TEXT = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE][+-]?\d{1,3})|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?)", re.ASCII)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}


class Quantity(NamedTuple):
    """An exact amount; `binary` says that it is written with Ki, Mi, ... (BinarySI)."""

    amount: Fraction
    binary: bool = False

    def __str__(self) -> str:
        return _format(self)

    @property
    def milli(self) -> int:
        """In thousandths, rounded up, as MilliValue()."""
        return -(-self.amount.numerator * 1000 // self.amount.denominator)

    @property
    def value(self) -> int:
        """In whole units, rounded up, as Value()."""
        return -(-self.amount.numerator // self.amount.denominator)


def parse_quantity(value: object) -> Quantity | None:
    """A quantity as Kubernetes reads it ("500m", "1.5Gi", "1e3", 2), to the nano; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return _parse(str(value))


@lru_cache(maxsize=1 << 12)
def _parse(text: str) -> Quantity | None:
    """The same few amounts stand in thousands of manifests."""
    match = _TEXT.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        return None
    sign, digits, exponent, suffix = match.groups()
    amount = Fraction(Decimal(digits))
    if exponent:
        amount *= Fraction(10) ** int(exponent[1:])
    elif suffix in _BINARY:
        amount *= 1024 ** _BINARY[suffix]
    else:
        amount *= Fraction(1000) ** _DECIMAL[suffix or ""]
    nano = -(-amount.numerator * 10**9 // amount.denominator)  # finer than a nano is rounded up, away from zero
    return Quantity(Fraction(-nano if sign == "-" else nano, 10**9), suffix in _BINARY)


def count_quantity(resource: str, quantity: Quantity) -> int:
    """The amount of a resource as schedulers count it: cpu in thousandths, everything else in whole units, both rounded up."""
    return quantity.milli if resource == "cpu" else quantity.value


def add(left: Quantity, right: Quantity) -> Quantity:
    """The sum, written in the form of the left one unless that is zero."""
    return Quantity(left.amount + right.amount, left.binary if left.amount else right.binary)


def _format(quantity: Quantity) -> str:
    amount = quantity.amount
    if not amount:
        return "0"
    if quantity.binary and amount.denominator == 1 and abs(amount) >= 1024:
        whole, power = amount.numerator, 0
        while power < 6 and whole % 1024 == 0:
            whole, power = whole // 1024, power + 1
        return f"{whole}{_BINARY_SUFFIX.get(power, '')}"
    power = -3
    scaled = amount * 10**9
    while power < 6 and scaled.denominator == 1 and scaled.numerator % 1000 == 0:
        scaled, power = scaled / 1000, power + 1
    return f"{scaled.numerator // scaled.denominator}{_DECIMAL_SUFFIX[power]}"
