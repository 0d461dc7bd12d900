"""The tables of the tests: every row is checked, and every one that fails is reported."""

from __future__ import annotations

import pytest

from tests.tables import each_row


@each_row(("number", "square"), [(1, 1), pytest.param(2, 5, id="wrong"), (3, 8), (4, 16)])
def _check_square(number: int, square: int) -> None:
    assert number * number == square


def test_every_row_that_fails_is_reported() -> None:
    (rows,) = _check_square.pytestmark[0].args[1]
    with pytest.raises(ExceptionGroup) as caught:
        _check_square(rows_of_number=rows)
    assert [error.__notes__ for error in caught.value.exceptions] == [["in the row wrong"], ["in the row (3, 8)"]]


@each_row("number", range(250))
def _accept(number: int) -> None: ...


def test_a_long_table_has_several_tests() -> None:
    (parameters,) = _accept.pytestmark
    assert parameters.kwargs["ids"] == ["1..100", "101..200", "201..250"]
