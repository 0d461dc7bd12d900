"""Decide from an observed object whether it is healthy, by the table of kinds."""

from __future__ import annotations

from typing import Any

from gitsched.kinds.kind import Kind, Test, find_values
from gitsched.model.document import Body, get_field, list_objects


def interpret_health(body: Body, kind: Kind) -> bool | None:
    """Return whether an observed object, with its status, is healthy; None if the table has no rule or a number of the rule is missing."""
    unknown = not kind.health
    for tests in kind.health:
        results = [_run_test(body, test) for test in tests]
        if all(results):
            return True
        unknown = unknown or (None in results and False not in results)
    return None if unknown else False


def _run_test(body: Body, test: Test) -> bool | None:
    if test.condition:
        return _has_condition(body, test) is not test.negated
    value = _get_value(body, test.path)
    if test.operator == "contains":
        return isinstance(value, str) and any(text in value for text in test.values)
    if test.operator in ("in", "not in"):
        return any(_is_same(value, other) for other in test.values) is (test.operator == "in")
    other = _get_value(body, test.other)
    if test.operator == "==":
        return _is_same(value, other)
    if other is None and test.optional:
        return True
    return value >= other if _is_number(value) and _is_number(other) else None


def _has_condition(body: Body, test: Test) -> bool:
    return any(
        entry.get("type") == test.condition
        and entry.get("status") == "True"
        and (not test.reasons or entry.get("reason") in test.reasons)
        for entry in list_objects(get_field(body, "status", "conditions"))
    )


def _get_value(body: Body, path: str) -> Any:
    return next(find_values(body, path), None)


def _is_same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
