"""Kubernetes resource quantities with exact arithmetic."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:([eE][+-]?\d{1,3})|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])?)", re.ASCII)
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -3, "u": -2, "m": -1, "": 0, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}


NANO = 10**9
"""The smallest unit of a quantity is a nano."""
_NANO_OF_UNIT = {
    **{suffix: NANO * 1024**power for suffix, power in _BINARY.items()},
    **{suffix: 10 ** (9 + 3 * power) for suffix, power in _DECIMAL.items()},
}
_BYTES = ("memory", "ephemeral", "hugepages", "storage")
"""How the names of resources begin that are counted in bytes."""
MAX_AMOUNT = 2**63 - 1
"""The largest amount that Kubernetes counts with: an int64."""


class Quantity(NamedTuple):
    """An exact amount in units of a nano; `binary` means that it is written with Ki, Mi and so on (BinarySI)."""

    nano: int
    binary: bool = False

    def __str__(self) -> str:
        return _format_quantity(self)

    @property
    def fraction(self) -> Fraction:
        """The amount as a Fraction."""
        from fractions import Fraction  # lazy: slow to import, and most runs do not need it

        return Fraction(self.nano, NANO)

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded up, like MilliValue()."""
        return -(-self.nano // 10**6)

    @property
    def value(self) -> int:
        """The amount in whole units, rounded up, like Value()."""
        return -(-self.nano // NANO)


def parse_quantity(value: object) -> Quantity | None:
    """Parse a quantity as Kubernetes does ("500m", "1.5Gi", "1e3", 2), to the nano; None for anything else."""
    if isinstance(value, str):
        return _parse_text(value)
    return _parse_text(str(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


@lru_cache(maxsize=1 << 12)
def _parse_text(text: str) -> Quantity | None:
    """Parse a quantity; cached, since the same few amounts occur in thousands of manifests."""
    if text.isdecimal():
        number, suffix = text, ""
    else:
        length = 2 if text.endswith("i") else 1
        number, suffix = text[:-length], text[-length:]
    if number.isdecimal() and number.isascii() and len(number) <= 32 and suffix in _NANO_OF_UNIT:
        return Quantity(int(number) * _NANO_OF_UNIT[suffix], suffix in _BINARY)  # what most clusters report
    match = _QUANTITY.fullmatch(text) if len(text) <= 64 else None
    if match is None:
        return None
    sign, digits, exponent, suffix = match.groups()
    if exponent is None and digits.isdigit():
        nano = int(digits) * _NANO_OF_UNIT[suffix or ""]
        return Quantity(-nano if sign == "-" else nano, suffix in _BINARY)
    whole, _, decimals = digits.partition(".")
    unit = NANO * 1024 ** _BINARY[suffix] if suffix in _BINARY else NANO
    power = (int(exponent[1:]) if exponent else 3 * _DECIMAL.get(suffix or "", 0)) - len(decimals)
    amount = int(whole + decimals) * unit
    nano = amount * 10**power if power >= 0 else -(-amount // 10**-power)  # smaller fractions are rounded up, away from zero
    return Quantity(-nano if sign == "-" else nano, suffix in _BINARY)


def count_quantity(resource: str, quantity: Quantity) -> int:
    """Return the amount of a resource as schedulers count it: cpu in thousandths, everything else in whole units, both rounded
    up."""
    return -(-quantity.nano // get_unit(resource))


def get_unit(resource: str) -> int:
    """Return the unit in which schedulers count a resource, in nanos: a thousandth of a cpu, and 1 of everything else."""
    return 10**6 if resource == "cpu" else NANO


def format_resource_amount(resource: str, count: int, *, binary: bool) -> str:
    """Format an amount that schedulers count as Kubernetes writes it."""
    return str(Quantity(count * 10**6 if resource == "cpu" else count * NANO, binary))


def describe_amount(resource: str, count: int) -> str:
    """Return an amount that schedulers count for people to read: "366.5" for a cpu, "12Gi" for memory."""
    if resource == "cpu" and abs(count) >= 1000:
        return f"{count / 1000:.3f}".rstrip("0").rstrip(".")
    return format_resource_amount(resource, count, binary=resource.partition("-")[0] in _BYTES)


def add_quantities(left: Quantity, right: Quantity) -> Quantity:
    """Return the sum, in the format of the left one unless that is zero."""
    return Quantity(left.nano + right.nano, left.binary if left.nano else right.binary)


def _format_quantity(quantity: Quantity) -> str:
    left = quantity.nano
    if not left:
        return "0"
    if quantity.binary and left % NANO == 0 and abs(left) >= 1024 * NANO:
        units, power = left // NANO, 0
        while power < 6 and units % 1024 == 0:
            units, power = units // 1024, power + 1
        return f"{units}{_BINARY_SUFFIX.get(power, '')}"
    power = -3
    while power < 6 and left % 1000 == 0:
        left, power = left // 1000, power + 1
    return f"{left}{_DECIMAL_SUFFIX[power]}"
