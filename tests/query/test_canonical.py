"""Canonical bytes: equal if and only if a reader cannot tell two values apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitsched.query import Codec


class Point(NamedTuple):
    x: int | str | None
    y: int | str | None = 0


class Other(NamedTuple):
    x: int | str | None
    y: int | str | None = 0


CODEC = Codec((Point, Other))
_TIMES = st.datetimes(timezones=st.just(UTC))
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary() | _TIMES
_HASHABLE = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.builds(Point, inner, inner), max_leaves=4
)
_VALUES = st.recursive(
    _HASHABLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(_HASHABLE, inner, max_size=4),
        st.frozensets(_HASHABLE, max_size=4),
        st.builds(Point, inner, inner),
        st.builds(Other, inner),
    ),
    max_leaves=12,
)


@given(_VALUES)
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    data = CODEC.encode(value)
    again = CODEC.decode(data)
    assert again == value
    assert type(again) is type(value)
    assert CODEC.encode(again) == data


@given(st.sets(_HASHABLE, max_size=6))
def test_sets_have_no_order(value: set[object]) -> None:
    assert CODEC.encode(value) == CODEC.encode({*value, *sorted(value, key=repr, reverse=True)})


def test_values_that_a_reader_can_distinguish_differ() -> None:
    values = [
        *(1, 1.0, True, "1", b"1", None, 0, 0.0, -0.0, False, "", (), [], {}, set(), frozenset()),
        *((1, 2), [1, 2], (1.0, 2), {1: 2, 3: 4}, {3: 4, 1: 2}, Point(1), Other(1), (1, 0), Point(1.0), [Point(1)], (Point(1),)),
        *(("Point", 1, 0), (..., "Point", 1, 0), datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00+00:00"),
    ]
    encoded = [CODEC.encode(value) for value in values]
    assert len(set(encoded)) == len(values)


@pytest.mark.parametrize(
    "value", [object(), Codec, datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=1))), Point(..., object())]
)
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="has no canonical bytes"):
        CODEC.encode([value])
