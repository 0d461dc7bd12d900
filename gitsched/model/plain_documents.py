"""Check that documents from Python are what a YAML or JSON file could have: the other layers rely on it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from operator import is_
from typing import Any

MAX_DEPTH = 200
"""Collections that may be nested, as in files."""
MAX_COLLECTIONS = 200_000
"""Collections of a document. Shared parts count as often as they occur."""
_KEY_TYPES = (str, int, float, type(None))
"""The types of keys that validation reports, or that it reads as strings. No JSON encoder accepts others."""
_INTEGERS = range(-(2**63), 2**64)
_JSON_SCALARS = frozenset({str, int, float, bool, type(None)})


def has_only_json(body: Any) -> bool:
    """Return whether a document has only what JSON has: dicts with strings as keys, lists, strings, numbers, booleans and None.

    It is a quick answer, True only if `describe_unreadable` finds nothing but a lone surrogate in the kind, and `with_string_keys` changes
    nothing. A document that has too many collections or contains itself has more than this reads.
    """
    if type(body) is not dict:
        return False
    level: list[Any] = [body]
    unread = MAX_COLLECTIONS
    for _ in range(MAX_DEPTH):
        unread -= len(level)
        inner: list[Any] = []
        for value in level:
            if type(value) is dict:
                for name, member in value.items():
                    if type(name) is not str:
                        return False
                    kind = type(member)
                    if kind is str:
                        continue
                    if kind is dict or kind is list:
                        inner.append(member)
                    elif kind not in _JSON_SCALARS:
                        return False
            else:
                for member in value:
                    kind = type(member)
                    if kind is dict or kind is list:
                        inner.append(member)
                    elif kind not in _JSON_SCALARS:
                        return False
            if len(inner) > unread:
                return False
        if not inner:
            return True
        level = inner
    return False


def describe_unreadable(body: Any) -> str:
    """Return why a document cannot even be validated; "" if it can. Validation reports all other values that no file could have."""
    if not isinstance(body, dict):
        return f"it is a {type(body).__name__}, not a mapping"
    # A part that is shared is read once, and counted as often as it occurs: a document that contains itself is read in bounded time.
    level: list[tuple[Any, int]] = [(body, 1)]
    depth = count = 0
    while level:
        depth, count = depth + 1, count + sum(times for _, times in level)
        if depth > MAX_DEPTH:
            return _describe_size(depth, 0)
        names = (name for value, _ in level if isinstance(value, dict) for name in value)
        unwritable = next((name for name in names if not isinstance(name, _KEY_TYPES)), "")
        if unwritable != "":
            return f"a key is a {type(unwritable).__name__}, which JSON does not have"
        inner: dict[int, tuple[Any, int]] = {}
        for value, times in level:
            for member in value.values() if isinstance(value, dict) else value:
                if isinstance(member, dict | list):
                    inner[id(member)] = (member, times + inner.get(id(member), (member, 0))[1])
        level = list(inner.values())
    if count > MAX_COLLECTIONS:
        return _describe_size(depth, count)
    return describe_kind(body)


def describe_kind(body: Mapping[str, Any]) -> str:
    """Return what the kind of a document has that no file could have; "" if there is nothing."""
    for name in ("apiVersion", "api", "kind"):
        text = body.get(name)
        if isinstance(text, str) and not text.isascii() and _has_surrogate(text):
            return "the kind has a lone surrogate"
    return ""


def describe_defect(body: Any) -> str:
    """Return what a previous document has that no file could have; "" if there is nothing."""
    if not isinstance(body, dict):
        return f"it is a {type(body).__name__}, not a mapping"
    pending: list[tuple[Any, int]] = [(body, 1)]
    count = 0
    while pending:
        value, depth = pending.pop()
        if isinstance(value, dict | list):
            count += 1
            if defect := _describe_size(depth, count):
                return defect
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
    return ""


def _describe_size(depth: int, count: int) -> str:
    if depth > MAX_DEPTH:
        return f"collections are nested more than {MAX_DEPTH} deep"
    return f"there are more than {MAX_COLLECTIONS:,} collections, shared ones counted each time" if count > MAX_COLLECTIONS else ""


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
