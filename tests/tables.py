"""Tests of long tables: one test for many rows, since each test takes several milliseconds in addition to what it does."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_ROWS = 100
"""Rows that one test checks: a table of a thousand has ten tests, which several workers share."""
_Parameters = type(pytest.param())


def each_row(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test for each row of a table, as `pytest.mark.parametrize` does, but in few tests. All rows that fail are reported.

    The rows of a test share its fixtures, so that a test that changes what a fixture returns needs `parametrize`.
    """
    keys = (names,) if isinstance(names, str) else names
    table = [row if isinstance(row, _Parameters) else pytest.param(*(row if len(keys) > 1 else (row,))) for row in rows]
    batches = [table[start : start + _ROWS] for start in range(0, len(table), _ROWS)]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def check(**arguments: Any) -> None:
            failures = []
            for row in arguments.pop(parameter.name):
                try:
                    test(**dict(zip(keys, row.values, strict=True)), **arguments)
                except Exception as error:  # noqa: BLE001 - every one is raised below
                    error.add_note(f"in the row {row.id or str(row.values)[:400]}")
                    failures.append(error)
            if failures:
                raise ExceptionGroup(f"{len(failures)} rows failed", failures)

        signature = inspect.signature(test)
        parameter = inspect.Parameter(f"rows_of_{keys[0]}", inspect.Parameter.KEYWORD_ONLY)
        others = [
            value.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, value in signature.parameters.items() if name not in keys
        ]
        check.__signature__ = signature.replace(parameters=[*others, parameter])
        ids = [f"{number * _ROWS + 1}..{number * _ROWS + len(batch)}" for number, batch in enumerate(batches)]
        return pytest.mark.parametrize(parameter.name, batches, ids=ids)(check)

    return decorate
