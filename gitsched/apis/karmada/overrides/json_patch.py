"""Apply JSON patch operations (RFC 6902) by JSON pointer (RFC 6901) without changing the original object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

MAX_POINTER_STEPS = 200
"""Maximum number of steps of a pointer, the nesting limit of source documents."""
_INDEX = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)

PointerSteps = Sequence[str]
"""A parsed pointer: names of members and, as strings, list indices."""


class InapplicablePatch(ValueError):
    """A patch cannot be applied. The message contains no value of the object, which may be a Secret.

    `pointer` is the location of the operation in its overrider.
    """

    def __init__(self, why: str, pointer: tuple[str | int, ...] = ()) -> None:
        super().__init__(why)
        self.pointer = pointer


def parse_pointer(text: str) -> tuple[str, ...]:
    """Parse a JSON pointer; "" is the complete object."""
    if text and not text.startswith("/"):
        raise InapplicablePatch(f"{_truncate(text)!r} is not a JSON pointer: it must begin with /")
    steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])
    if len(steps) > MAX_POINTER_STEPS:
        raise InapplicablePatch(f"the pointer has {len(steps)} steps, more than the maximum of {MAX_POINTER_STEPS}")
    return steps


def format_pointer(steps: PointerSteps) -> str:
    """Return the JSON pointer of these steps."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


class PatchedObject:
    """A copy-on-write object: each collection on the path of a change is copied once, everything else is shared.

    `original` is the object without any change. `visits` counts the containers that overriders have looked at.
    """

    __slots__ = ("_copies", "_holder", "_holder_steps", "original", "root", "visits")

    def __init__(self, root: Any) -> None:
        self.root = self.original = root
        self.visits = 0
        self._copies: dict[int, Any] = {}
        self._holder: Any = None
        self._holder_steps: PointerSteps | None = None

    def find_value(self, steps: PointerSteps) -> Any:
        """Return the value at a pointer. Raises InapplicablePatch when there is none."""
        value = self.root
        for number, step in enumerate(steps):
            value = value[_resolve_step(value, step, steps[: number + 1])]
        return value

    def apply(self, operator: str, steps: PointerSteps, value: Any = None) -> None:
        """Apply `add`, `replace` or `remove`. Raises InapplicablePatch when the path does not exist; the object is unusable then."""
        if not steps:
            if operator == "remove" or not isinstance(value, dict | list):
                raise InapplicablePatch("the complete object cannot be removed or replaced by a scalar")
            self.root, self._holder_steps = value, None
            return
        if self._holder_steps != steps[:-1]:  # what is changed is mostly beside what was changed last
            self._holder, self._holder_steps = self._copy_path(steps[:-1]), steps[:-1]
        holder = self._holder
        last = steps[-1]
        if operator == "add":
            _add_value(holder, last, value, steps)
        elif operator == "replace":
            holder[_resolve_step(holder, last, steps)] = value
        else:
            del holder[_resolve_step(holder, last, steps)]

    def _copy_path(self, steps: PointerSteps) -> Any:
        """Return a copy of the collection at a pointer that may be changed."""
        holder = self.root = self._copy_once(self.root, ())
        for number, step in enumerate(steps):
            here = steps[: number + 1]
            at = _resolve_step(holder, step, here)
            inner = self._copy_once(holder[at], here)
            holder[at] = inner
            holder = inner
        return holder

    def _copy_once(self, value: Any, here: PointerSteps) -> Any:
        if id(value) in self._copies:
            return value
        if not isinstance(value, dict | list):
            raise InapplicablePatch(f"{_format_steps(here)} is neither an object nor a list")
        copy: Any = value.copy()
        self._copies[id(copy)] = copy
        return copy


def _resolve_step(holder: Any, step: str, here: PointerSteps) -> str | int:
    """Return the member or the index of a step; a negative index counts from the end, as in upstream's library."""
    if isinstance(holder, dict) and step in holder:
        return step
    if isinstance(holder, list) and _INDEX.fullmatch(step) and -len(holder) <= int(step) < len(holder):
        return int(step)
    raise InapplicablePatch(f"{_format_steps(here)} does not exist")


def _add_value(holder: Any, step: str, value: Any, here: PointerSteps) -> None:
    """Set a member, or insert into a list; a negative index counts from the end of the new list."""
    if isinstance(holder, dict):
        holder[step] = value
        return
    at = len(holder) if step == "-" else int(step) if _INDEX.fullmatch(step) else len(holder) + 1
    if not -len(holder) - 1 <= at <= len(holder):
        raise InapplicablePatch(f"{_format_steps(here)} is out of range in a list of {len(holder)}")
    holder.insert(at if at >= 0 else at + len(holder) + 1, value)


def _format_steps(steps: PointerSteps) -> str:
    return _truncate(format_pointer(steps)) or "the object"


def _truncate(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:197]}..."
