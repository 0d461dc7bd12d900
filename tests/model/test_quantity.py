"""Resource quantities."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.model.quantity import Quantity, add_quantities, describe_amount, parse_quantity
from tests.tables import each_row

# What apimachinery's resource.Quantity prints after parsing.
CANONICAL = """
0 0 | 0m 0 | 0Ki 0 | 0.0 0 | -0 0
1 1 | 10 10 | 1000 1k | 1500 1500 | 100000 100k | 1000000 1M | 1234567 1234567
1.5 1500m | 0.5 500m | .5 500m | 5. 5 | 1.0 1 | 0.001 1m | 0.0001 100u | 0.0000001 100n
500m 500m | 1000m 1 | 1500m 1500m | 100u 100u | 1000u 1m | 1n 1n | 0.1n 1n | 1.1n 2n
1k 1k | 1.5k 1500 | 1000k 1M | 1M 1M | 1G 1G | 1T 1T | 1P 1P | 1E 1E
1e3 1k | 1E3 1k | 1e-3 1m | 2e9 2G | 1.5e3 1500 | 12e0 12
1Ki 1Ki | 1024Ki 1Mi | 1.5Gi 1536Mi | 1Mi 1Mi | 2048Mi 2Gi | 1025Ki 1025Ki | 1Ti 1Ti | 1Pi 1Pi | 1Ei 1Ei
0.5Ki 512 | 0.5Mi 512Ki | 1.5Ki 1536
+1 1 | -1 -1 | -500m -500m | -1Ki -1Ki | -1.5 -1500m | +5Gi 5Gi
"""
PAIRS = [tuple(entry.split()) for line in CANONICAL.strip().splitlines() for entry in line.split(" | ")]
REFUSED = [
    "",
    " ",
    "1 ",
    " 1",
    "a",
    "m",
    "Ki",
    "1ki",
    "1K",
    "1KI",
    "1mi",
    "1kk",
    "1e",
    "1e1000",
    "1e3Ki",
    "--1",
    "+-1",
    "1,5",
    "1.2.3",
]
REFUSED += [".", "+", "0x10", "1_000", "١", "1" * 65, "NaN", "inf"]


@each_row(("text", "canonical"), PAIRS)
def test_a_quantity_is_formatted_canonically(text: str, canonical: str) -> None:
    quantity = parse_quantity(text)
    assert quantity is not None
    assert str(quantity) == canonical


@each_row("text", REFUSED)
def test_other_texts_are_not_quantities(text: str) -> None:
    assert parse_quantity(text) is None


@pytest.mark.parametrize("value", [None, True, False, [], {}, b"1", float("nan"), float("inf")])
def test_other_types_are_not_quantities(value: Any) -> None:
    assert parse_quantity(value) is None


@pytest.mark.parametrize(("value", "canonical"), [(0, "0"), (2, "2"), (1000, "1k"), (1.5, "1500m"), (-3, "-3"), (0.1, "100m")])
def test_numbers_are_quantities_too(value: float, canonical: str) -> None:
    assert str(parse_quantity(value)) == canonical


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [("1", 1, 1000), ("1m", 1, 1), ("1u", 1, 1), ("1500m", 2, 1500), ("1Ki", 1024, 1024000), ("0", 0, 0)],
)
def test_whole_units_and_thousandths_are_rounded_up(text: str, value: int, milli: int) -> None:
    quantity = parse_quantity(text)
    assert quantity is not None
    assert (quantity.value, quantity.milli) == (value, milli)


@pytest.mark.parametrize(
    ("left", "right", "total"),
    [("1Gi", "1G", "2073741824"), ("1Gi", "1Gi", "2Gi"), ("1G", "1Gi", "2073741824"), ("0", "1Gi", "1Gi"), ("500m", "1", "1500m")],
)
def test_a_sum_is_exact_and_keeps_the_format_of_the_first(left: str, right: str, total: str) -> None:
    first, second = parse_quantity(left), parse_quantity(right)
    assert first is not None
    assert second is not None
    assert str(add_quantities(first, second)) == total


@given(st.integers(-(10**24), 10**24), st.booleans())
def test_a_formatted_quantity_parses_to_the_same_amount(nano: int, binary: bool) -> None:
    quantity = Quantity(nano, binary)
    again = parse_quantity(str(quantity))
    assert again is not None
    assert (again.nano, again.fraction) == (nano, Fraction(nano, 10**9))
    assert str(again) == str(quantity)


@given(st.text(max_size=12))
def test_no_text_raises(text: str) -> None:
    quantity = parse_quantity(text)
    assert quantity is None or parse_quantity(str(quantity)) is not None


@pytest.mark.parametrize(
    ("resource", "count", "text"),
    [
        ("cpu", 366_500, "366.5"),
        ("cpu", 8_000, "8"),
        ("cpu", 250, "250m"),
        ("memory", 12 << 30, "12Gi"),
        ("ephemeral-storage", 3 << 20, "3Mi"),
        ("hugepages-2Mi", 1 << 30, "1Gi"),
        ("nvidia.com/gpu", 1024, "1024"),
        ("pods", 110, "110"),
    ],
)
def test_amounts_are_written_as_people_read_them(resource: str, count: int, text: str) -> None:
    assert describe_amount(resource, count) == text
