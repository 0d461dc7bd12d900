"""Changes to an object by JSON pointer (RFC 6901), as a JSON patch (RFC 6902) makes them. The object itself is never changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

DEEPEST = 200
"""Steps that a pointer may have, as many as a source document may nest."""
_INDEX = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)

Steps = Sequence[str]
"""A pointer taken apart: names of members and, as text, positions in lists."""


class Inapplicable(ValueError):
    """Why a change cannot be made, for people. It repeats no value of the object, which may be a Secret.

    `pointer` is the place of the change in what asks for it.
    """

    def __init__(self, why: str, pointer: tuple[str | int, ...] = ()) -> None:
        super().__init__(why)
        self.pointer = pointer


def parse_pointer(text: str) -> tuple[str, ...]:
    """The steps of a JSON pointer; "" is the whole object."""
    if text and not text.startswith("/"):
        raise Inapplicable(f"{_shorten(text)!r} is no JSON pointer: it must begin with /")
    steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])
    if len(steps) > DEEPEST:
        raise Inapplicable(f"the pointer has {len(steps)} steps; {DEEPEST} are the most")
    return steps


def write_pointer(steps: Steps) -> str:
    """The JSON pointer of these steps."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: true is not 1, as it is in Python. What both share is not looked into."""
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


class Draft:
    """An object in the making. Only the collections on the way to a change are copied, each once; the rest is shared."""

    __slots__ = ("_own", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self._own: dict[int, Any] = {}

    def find(self, steps: Steps) -> Any:
        """The value at a pointer. Raises Inapplicable where there is none."""
        value = self.root
        for number, step in enumerate(steps):
            value = value[_existing(value, step, steps[: number + 1])]
        return value

    def apply(self, operator: str, steps: Steps, value: Any = None) -> None:
        """Do `add`, `replace` or `remove`. Raises Inapplicable where the place does not exist; the draft is of no use then."""
        if not steps:
            if operator == "remove" or not isinstance(value, dict | list):
                raise Inapplicable("the whole object cannot be removed, nor become a single value")
            self.root = value
            return
        holder = self._open(steps[:-1])
        last = steps[-1]
        if operator == "add":
            _add(holder, last, value, steps)
        elif operator == "replace":
            holder[_existing(holder, last, steps)] = value
        else:
            del holder[_existing(holder, last, steps)]

    def _open(self, steps: Steps) -> Any:
        """The collection at a pointer, this draft's own to be changed."""
        holder = self.root = self._copy(self.root, ())
        for number, step in enumerate(steps):
            here = steps[: number + 1]
            at = _existing(holder, step, here)
            inner = self._copy(holder[at], here)
            holder[at] = inner
            holder = inner
        return holder

    def _copy(self, value: Any, here: Steps) -> Any:
        if id(value) in self._own:
            return value
        if not isinstance(value, dict | list):
            raise Inapplicable(f"{_place(here)} is neither an object nor a list")
        copy: Any = value.copy()
        self._own[id(copy)] = copy
        return copy


def _existing(holder: Any, step: str, here: Steps) -> str | int:
    """The member or the position that a step names; a negative position counts from the end, as in upstream's library."""
    if isinstance(holder, dict) and step in holder:
        return step
    if isinstance(holder, list) and _INDEX.fullmatch(step) and -len(holder) <= int(step) < len(holder):
        return int(step)
    raise Inapplicable(f"there is no {_place(here)}")


def _add(holder: Any, step: str, value: Any, here: Steps) -> None:
    """Set a member, or insert into a list; a position from the end counts the list with the new entry."""
    if isinstance(holder, dict):
        holder[step] = value
        return
    at = len(holder) if step == "-" else int(step) if _INDEX.fullmatch(step) else len(holder) + 1
    if not -len(holder) - 1 <= at <= len(holder):
        raise Inapplicable(f"{_place(here)} is no place in a list of {len(holder)}")
    holder.insert(at if at >= 0 else at + len(holder) + 1, value)


def _place(steps: Steps) -> str:
    return _shorten(write_pointer(steps)) or "the object"


def _shorten(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}..."
