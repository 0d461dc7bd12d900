"""CEL function overloads: declare them by signature, find and call the one that matches.

`string.startsWith(string): bool` is a member function, `size(list): int` a global function, and `global optional.none(): optional` a
global function with a qualified name. The type parameter T is any type, the same in the whole signature.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from gitsched.apis.ocm.cel.types import DYN, TYPE_PARAMETER, EvaluationError, OptionalValue, TypeValue, UInt, base_type, type_name
from gitsched.named_tuples import NamedTuple

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
    """One overload of a function: `types` of its arguments, receiver first. A `metered` function takes a CostTracker as first argument.
    Any other costs a tenth of the length of its strings."""

    member: bool
    types: tuple[str, ...]
    result: str
    call: Callable[..., Any]
    metered: bool


FUNCTIONS: dict[str, list[Overload]] = {}
"""The overloads of each function by name, in the order in which they are tried."""


def cel_function(*signatures: str, metered: bool = False) -> Callable[[Implementation], Implementation]:
    """Register a function as overload with one or more signatures."""

    def register(call: Implementation) -> Implementation:
        for signature in signatures:
            match = _SIGNATURE.fullmatch(signature)
            if match is None:
                raise ValueError(f"invalid signature: {signature}")
            types = tuple(part.strip() for part in match["types"].split(",") if part.strip())
            target = match["target"]
            overload = Overload(target is not None, (*((target,) if target else ()), *types), match["result"], call, metered)
            FUNCTIONS.setdefault(match["full"] or match["name"], []).append(overload)
        return call

    return register


def type_of(value: Any) -> str:
    """Return the type of a value as it is written in signatures."""
    return _TYPE_NAMES.get(value.__class__) or str(getattr(value, "type", type(value).__name__))


def matches_type(value: Any, parameter: str) -> bool:
    return (
        parameter in (DYN, TYPE_PARAMETER)
        or (parameter == "map" and isinstance(value, dict))
        or type_of(value) == base_type(parameter)
    )  # type arguments are only known to the checker


def list_overloads(name: str, member: bool, count: int) -> list[Overload]:
    """Return the overloads of a function by call style and number of arguments."""
    return [overload for overload in FUNCTIONS.get(name, ()) if overload.member == member and len(overload.types) == count]


def call_function(name: str, overloads: list[Overload], arguments: list[Any], charge: CostTracker) -> Any:
    """Call the first overload that accepts the arguments; EvaluationError if there is none."""
    for overload in overloads:
        if all(map(matches_type, arguments, overload.types)):
            if overload.metered:
                return overload.call(charge, *arguments)
            charge(sum(len(argument) // 10 for argument in arguments if isinstance(argument, str | bytes)))
            return overload.call(*arguments)
    raise EvaluationError(f"no such overload: {name}({', '.join(map(type_name, arguments))})")
