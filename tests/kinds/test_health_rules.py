"""Rules of the table of kinds about health, one kind of test at a time."""

from __future__ import annotations

from typing import Any

import pytest

from gitsched.kinds.health import interpret_health
from gitsched.kinds.kind import Health, Kind
from gitsched.kinds.kind import Test as HealthTest

ENOUGH = HealthTest(path="status.ready", operator=">=", other="spec.replicas")
READY = HealthTest(path="status.phase", values=("Ready", 1))
STALLED = HealthTest(condition="Stalled", reasons=("Full", "Slow"))


def interpret(*alternatives: tuple[HealthTest, ...], status: dict[str, Any], replicas: int | None = 2) -> bool | None:
    health: Health = alternatives
    return interpret_health({"spec": {"replicas": replicas}, "status": status}, Kind("Namespaced", "a", health=health))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"ready": 2, "phase": "Ready"}, True),
        ({"ready": 1, "phase": "Ready"}, False),
        ({"phase": "Ready"}, None),
        ({"phase": "Failed"}, False),
        ({"ready": True, "phase": "Ready"}, None),
    ],
)
def test_a_missing_number_is_unknown_unless_another_test_fails(status: dict[str, Any], expected: bool | None) -> None:
    assert interpret((ENOUGH, READY), status=status) is expected


def test_one_alternative_is_enough_and_an_unknown_one_leaves_the_result_open() -> None:
    assert interpret((ENOUGH,), (READY,), status={"phase": "Ready"}) is True
    assert interpret((ENOUGH,), (READY,), status={"phase": "Failed"}) is None
    assert interpret((READY,), (ENOUGH,), status={"ready": 1}) is False
    assert interpret(status={"phase": "Ready"}) is None


def test_a_missing_limit_may_be_optional() -> None:
    assert interpret((ENOUGH._replace(optional=True),), status={"ready": 1}, replicas=None) is True
    assert interpret((ENOUGH,), status={"ready": 1}, replicas=None) is None


@pytest.mark.parametrize(("phase", "expected"), [("Ready", True), (1, True), (True, False), (None, False), ("ready", False)])
def test_a_value_is_one_of_a_list_and_true_is_not_one(phase: Any, expected: bool) -> None:
    assert interpret((READY,), status={"phase": phase}) is expected
    assert interpret((READY._replace(operator="not in"),), status={"phase": phase}) is not expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"type": "Stalled", "status": "True", "reason": "Full"}, True),
        ({"type": "Stalled", "status": "True", "reason": "Other"}, False),
        ({"type": "Stalled", "status": "False", "reason": "Full"}, False),
        ({"type": "Ready", "status": "True", "reason": "Full"}, False),
    ],
)
def test_a_condition_is_true_for_one_of_the_reasons_or_must_not_be(entry: dict[str, str], expected: bool) -> None:
    assert interpret((STALLED,), status={"conditions": [entry]}) is expected
    assert interpret((STALLED._replace(negated=True),), status={"conditions": [entry]}) is not expected


def test_texts_and_fields_are_compared() -> None:
    part = HealthTest(path="status.phase", operator="contains", values=("unning", "one"))
    assert [interpret((part,), status={"phase": phase}) for phase in ("Running", "Done", "Failed", 1)] == [True, True, False, False]
    equal = HealthTest(path="status.ready", operator="==", other="spec.replicas")
    assert [interpret((equal,), status={"ready": ready}) for ready in (2, 3)] == [True, False]
