"""JSON inside strings, as Go decodes it into a struct."""

from __future__ import annotations

import json
from typing import Any


class Mistake(ValueError):
    """What is wrong, in words for the person who wrote it."""


def decode(text: object) -> Any:
    """The first JSON value of a text; what follows it is ignored. Mistake when there is none."""
    if not isinstance(text, str):
        raise Mistake("must be a string that holds JSON")
    try:
        value, _ = json.JSONDecoder(parse_constant=_refuse).raw_decode(text.lstrip(" \t\r\n"))
    except json.JSONDecodeError as error:
        raise Mistake(f"is no JSON: {error.msg}") from error
    except RecursionError as error:
        raise Mistake("is no JSON: too deep") from error
    except ValueError as error:  # Python reads no number of thousands of digits
        raise Mistake("holds a number that is too long") from error
    return value


def read_argument(args: object, name: str, bits: int = 32) -> int:
    """The one argument of a plug-in from its `Args`; 0 where the object says nothing.

    A field that is not known is a mistake, its case does not matter, and the value is a whole number of so many bits.
    """
    if not isinstance(args, str):
        raise Mistake(f'must be a string such as "{{\\"{name}\\": 2}}"')
    value = decode(args)
    if value is None:
        return 0
    if not isinstance(value, dict):
        raise Mistake("must hold one JSON object")
    number = 0
    for field, entry in value.items():
        if field.casefold() != name.casefold():
            raise Mistake(f"has the unknown field {field!r}; it takes {name}")
        if entry is None:
            continue
        if type(entry) is not int or not -(2 ** (bits - 1)) <= entry < 2 ** (bits - 1):
            raise Mistake(f"{name} must be a whole number of {bits} bits")
        number = entry
    return number


def _refuse(constant: str) -> Any:
    raise json.JSONDecodeError(f"{constant} is no JSON", constant, 0)
