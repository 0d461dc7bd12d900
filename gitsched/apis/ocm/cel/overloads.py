"""CEL function overloads: declare them by signature, find and call the one that matches.

`string.startsWith(string): bool` is a member, `size(list): int` is not, and `global optional.none(): optional` has a name of two parts.
T is any type, the same one wherever it stands in a signature.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from gitsched.apis.ocm.cel.types import DYN, TYPE_PARAMETER, EvaluationError, OptionalValue, TypeValue, UInt, base_type, type_name

_SIGNATURE = re.compile(
    r"(?:global (?P<full>[\w.]+)|(?:(?P<target>\w+(?:\(\w+\))?)\.)?(?P<name>\w+))"
    r"\((?P<types>[\w, ()]*)\): (?P<result>\w+(?:\([\w, ()]+\))?)"
)
_TYPE_NAMES: dict[type, str] = {
    bool: "bool",
    UInt: "uint",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    dict: "map",
    list: "list",
    OptionalValue: "optional",
    TypeValue: "type",
    datetime: "timestamp",
    timedelta: "duration",
    type(None): "null",
}

CostTracker = Callable[[int], None]
Implementation = TypeVar("Implementation", bound=Callable[..., Any])


class Overload(NamedTuple):
    """`types` begin with the target's, if it is a member. `metered` functions take what counts their steps first."""

    member: bool
    types: tuple[str, ...]
    result: str
    call: Callable[..., Any]
    metered: bool


FUNCTIONS: dict[str, list[Overload]] = {}
"""Every overload of every function, in the order in which they are tried."""


def cel_function(*signatures: str, metered: bool = False) -> Callable[[Implementation], Implementation]:
    """Offer a function under one or more signatures."""

    def offer(call: Implementation) -> Implementation:
        for signature in signatures:
            match = _SIGNATURE.fullmatch(signature)
            if match is None:
                raise ValueError(f"no signature: {signature}")
            types = tuple(part.strip() for part in match["types"].split(",") if part.strip())
            target = match["target"]
            overload = Overload(target is not None, (*((target,) if target else ()), *types), match["result"], call, metered)
            FUNCTIONS.setdefault(match["full"] or match["name"], []).append(overload)
        return call

    return offer


def type_of(value: Any) -> str:
    """The type of a value as signatures write it."""
    return _TYPE_NAMES.get(value.__class__) or str(getattr(value, "type", type(value).__name__))


def matches_type(value: Any, wanted: str) -> bool:
    return (
        wanted in (DYN, TYPE_PARAMETER) or (wanted == "map" and isinstance(value, dict)) or type_of(value) == base_type(wanted)
    )  # of the parts only the checker knows


def list_overloads(name: str, member: bool, count: int) -> list[Overload]:
    """The overloads of a function that are written like this call."""
    return [overload for overload in FUNCTIONS.get(name, ()) if overload.member == member and len(overload.types) == count]


def call_function(name: str, overloads: list[Overload], arguments: list[Any], spend: CostTracker) -> Any:
    """Call the first overload whose types fit."""
    for overload in overloads:
        if all(map(matches_type, arguments, overload.types)):
            return overload.call(spend, *arguments) if overload.metered else overload.call(*arguments)
    raise EvaluationError(f"{name} does not take {', '.join(map(type_name, arguments))}")
