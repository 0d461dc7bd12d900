"""Check that documents from Python are what a YAML or JSON file could have: the other layers rely on it."""

from __future__ import annotations

from math import isfinite
from operator import is_
from typing import Any

MAX_DEPTH = 200
"""Collections that may be nested, as in files."""
_KEY_TYPES = (str, int, float, type(None))
"""The types of keys that validation reports, or that it reads as strings. No JSON encoder accepts others."""
_INTEGERS = range(-(2**63), 2**64)


def describe_unreadable(body: Any) -> str:
    """Return why a document cannot even be validated; "" if it can. Validation reports all other values that no file could have."""
    if not isinstance(body, dict):
        return f"it is a {type(body).__name__}, not a mapping"
    level: list[Any] = [body]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return f"collections are nested more than {MAX_DEPTH} deep"
        names = (name for value in level if isinstance(value, dict) for name in value)
        unwritable = next((name for name in names if not isinstance(name, _KEY_TYPES)), "")
        if unwritable != "":
            return f"a key is a {type(unwritable).__name__}, which JSON does not have"
        members = (member for value in level for member in (value.values() if isinstance(value, dict) else value))
        # Shared parts count once, so that a document which contains itself is read in bounded time.
        level = list({id(member): member for member in members if isinstance(member, dict | list)}.values())
    identity = (body.get("apiVersion"), body.get("api"), body.get("kind"))
    return next(("the kind has a lone surrogate" for text in identity if isinstance(text, str) and _has_surrogate(text)), "")


def describe_defect(body: Any) -> str:
    """Return what a previous document has that no file could have; "" if there is nothing."""
    if not isinstance(body, dict):
        return f"it is a {type(body).__name__}, not a mapping"
    pending: list[tuple[Any, int]] = [(body, 1)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, dict):
            if any(not isinstance(name, str) for name in value):
                return "a key is not a string"
            if any(_has_surrogate(name) for name in value):
                return "a key has a lone surrogate"
            pending += ((member, depth + 1) for member in value.values())
        elif isinstance(value, list):
            pending += ((member, depth + 1) for member in value)
        else:
            defect = _describe_scalar_defect(value)
            if defect:
                return defect
        if depth > MAX_DEPTH:
            return f"collections are nested more than {MAX_DEPTH} deep"
    return ""


def with_string_keys(value: Any) -> Any:
    """Return a value with strings as keys of all mappings, so that they have an order: itself if it has no others."""
    if isinstance(value, dict):
        names = [name if isinstance(name, str) else repr(name) for name in value]
        members = [with_string_keys(member) for member in value.values()]
        same = all(map(is_, names, value)) and all(map(is_, members, value.values()))
        return value if same else dict(zip(names, members, strict=True))
    if isinstance(value, list):
        members = [with_string_keys(member) for member in value]
        return value if all(map(is_, members, value)) else members
    return value


def _describe_scalar_defect(value: Any) -> str:
    if isinstance(value, str):
        return "a string has a lone surrogate" if _has_surrogate(value) else ""
    if isinstance(value, float):
        return "" if isfinite(value) else "a number is not finite"
    if isinstance(value, int):
        return "" if value in _INTEGERS else "a number has more than 64 bits"
    return "" if value is None else f"a value is a {type(value).__name__}, which JSON does not have"


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
