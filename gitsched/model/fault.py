"""Describe an unexpected error, that is, a bug, without values of documents."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from gitsched.model.finding import INTERNAL_ERROR, Finding

MAX_FRAMES = 20
"""The innermost frames of an error that its id is computed from."""
_MEMBERS = 8


def describe_fault(error: BaseException) -> str:
    """Return the type of an error, where it was raised, and an id that is the same wherever it happens. The text of the error is left out,
    because it may have values of Secrets."""
    cause = _find_cause(error)
    frames = list(_list_frames(cause))
    digest = sha256("\n".join((type(cause).__name__, *frames)).encode()).hexdigest()[:12]
    return f"internal error {digest} ({type(cause).__name__} in {frames[-1] if frames else 'an unknown place'})"


def make_fault_finding(error: BaseException, what: str) -> Finding:
    """Return the error about a bug that showed while something was done: `what` says what that was, and what works all the same."""
    return Finding("error", INTERNAL_ERROR, f"{describe_fault(error)} while {what}; report this bug with the id")


def list_frame_values(error: BaseException) -> Iterator[Any]:
    """Yield the values that the functions had in which an error was raised, those of the innermost function first; of a tuple also its
    first members, such as the arguments of a function that takes any number of them.

    From Python 3.12 on a comprehension is no function of its own, and its values are not known after the error.
    """
    for frame, _ in reversed(list(traceback.walk_tb(_find_cause(error).__traceback__))[-MAX_FRAMES:]):
        for value in list(frame.f_locals.values()):
            yield value
            if type(value) is tuple:
                yield from value[:_MEMBERS]


def _find_cause(error: BaseException) -> BaseException:
    """Return the error that an error was raised from, as far back as there is one."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _list_frames(error: BaseException) -> Iterator[str]:
    """Yield module, function and line of the frames of an error, without those that repeat."""
    last = ""
    for frame in traceback.extract_tb(error.__traceback__)[-MAX_FRAMES:]:
        module = frame.filename.rpartition("gitsched/")[2] or frame.filename.rpartition("/")[2]
        text = f"{module}:{frame.lineno} {frame.name}"
        if text != last:
            yield text
        last = text
