"""What policy APIs register by name exists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from gitsched.apis.registered import Registered
from gitsched.decide.registry import policy_apis


def list_registered(value: Any) -> Iterator[Registered]:
    """Yield what is registered by name in a value; a method of it counts as itself."""
    value = getattr(value, "__self__", value)
    if isinstance(value, Registered):
        yield value
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from list_registered(getattr(value, field.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from list_registered(part)


@pytest.mark.parametrize("api", ["karmada", "knative", "krake", "ocm"])
def test_every_name_that_a_policy_api_registers_exists(api: str) -> None:
    registered = list(list_registered(policy_apis[api]))
    assert registered
    for one in registered:
        assert one.load() is not None, one


def test_a_name_that_does_not_exist_is_noticed() -> None:
    with pytest.raises(AttributeError):
        Registered("gitsched.apis.karmada.engine", "Missing").load()
