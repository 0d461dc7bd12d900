"""Check the types of arguments of the Python API: a TypeError names the argument, what it has to be and what it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from gitsched.model.document import Body

_SCALARS = (str, int, float, type(None), date)
"""Values that YAML parsers return. JSON has no dates; validation reports them where they matter."""
_FAST = frozenset((*_SCALARS, bool, datetime, dict, list))
_MAX_DEPTH = 300


def check_documents(documents: Any, name: str) -> list[Body]:
    """Return documents as a list. Values that no YAML or JSON parser returns are a TypeError, also deep inside of a document."""
    found = list_documents(documents, name)
    for index, body in enumerate(found):
        check_document(body, name, index)
    return found


def list_documents(documents: Any, name: str) -> list[Any]:
    """Return documents as a list. What is not iterable, or one document in place of a list, is a TypeError."""
    if isinstance(documents, str | bytes | Mapping) or not isinstance(documents, Iterable):
        hint = (
            ": put it into a list"
            if isinstance(documents, dict)
            else ": parse its YAML first"
            if isinstance(documents, str | bytes)
            else ""
        )
        raise TypeError(f"`{name}` is {_describe(documents)}, not a list of documents{hint}")
    if isinstance(documents, tuple) and hasattr(documents, "documents"):
        raise TypeError(f"`{name}` is {_describe(documents)}, not a list of documents: use its member `documents`")
    return list(documents)


def check_document(body: Any, name: str, index: int) -> None:
    """Accept a document that a YAML or JSON parser may return. `index` is its position in the argument `name`."""
    if not isinstance(body, dict):
        hint = ": leave out empty documents of a YAML stream" if body is None else ""
        raise TypeError(f"`{name}[{index}]` is {_describe(body)}, not a dict{hint}")
    if not _is_plain(body):
        path, value = _find_other(body, f"{name}[{index}]", 0) or (name, body)
        raise TypeError(f"`{path}` is {_describe(value)}: a document consists of dicts, lists, strings, numbers, booleans and None")


def check_time(time: Any, name: str) -> datetime | None:
    """Return a time in UTC, or None."""
    if time is None:
        return None
    if not isinstance(time, datetime):
        raise TypeError(f"`{name}` is {_describe(time)}, not a datetime")
    if time.utcoffset() is None:
        raise TypeError(f"`{name}` is a datetime without a timezone: use datetime(..., tzinfo=UTC)")
    return time if time.tzinfo is UTC else time.astimezone(UTC)


def check_mapping(value: Any, name: str) -> None:
    """Accept a mapping and None."""
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"`{name}` is {_describe(value)}, not a mapping")


def check_texts(values: Any, name: str) -> None:
    """Accept a collection of strings and None."""
    if values is None:
        return
    if isinstance(values, str | bytes) or not isinstance(values, Collection):
        hint = ": put it into a list" if isinstance(values, str) else ""
        raise TypeError(f"`{name}` is {_describe(values)}, not a list of strings{hint}")
    for value in values:
        check_text(value, f"an entry of `{name}`")


def check_text(value: Any, name: str) -> None:
    """Accept a string."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {_describe(value)}, not a string")


def check_choice(value: Any, name: str, choices: Collection[str]) -> None:
    """Accept one of the choices; ValueError for another string."""
    check_text(value, f"`{name}`")
    if value not in choices:
        raise ValueError(f"`{name}` is {value!r}, not one of {', '.join(map(repr, choices))}")


def _is_plain(body: Body) -> bool:
    """Return whether a document has no value that no parser returns. Shared parts count once, also where they contain themselves."""
    pending: list[Any] = [body]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        members = value.values() if isinstance(value, dict) else value
        for member in members:
            if type(member) not in _FAST and not isinstance(member, (*_SCALARS, dict, list)):
                return False
            if isinstance(member, dict | list) and id(member) not in seen:
                seen.add(id(member))
                pending.append(member)
    return True


def _find_other(value: Any, path: str, depth: int) -> tuple[str, Any] | None:
    """Return the path of a value that no parser returns, and the value."""
    if isinstance(value, dict | list):
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for name, member in members if depth < _MAX_DEPTH else ():
            step = f"[{name!r}]"
            found = _find_other(member, f"{path}{step}", depth + 1)
            if found is not None:
                return found
        return None
    return None if isinstance(value, _SCALARS) else (path, value)


def _describe(value: Any) -> str:
    """Return the type of a value with an article."""
    name = "None" if value is None else type(value).__name__
    return name if value is None else f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
