"""Compare JSON values."""

from __future__ import annotations

from typing import Any


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON; unlike in Python true is not 1. Shared objects are not compared."""
    if one is other:
        return True
    pairs = [(one, other)]
    while pairs:
        here, there = pairs.pop()
        if here is there:
            continue
        if type(here) is not type(there):
            return False
        if isinstance(here, dict):
            if here.keys() != there.keys():
                return False
            pairs += [(value, there[name]) for name, value in here.items()]
        elif isinstance(here, list):
            if len(here) != len(there):
                return False
            pairs += zip(here, there, strict=True)
        elif here != there:
            return False
    return True
