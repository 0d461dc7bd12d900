"""Refuse pickles that could run code, while another machine sends messages in a protocol that has them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

_ALLOWED = frozenset((("builtins", "bytes"),))
"""Names that pickles may refer to: Dask says with one which type a result has."""
_EVENT = "pickle.find_class"


class PickleRefused(Exception):
    """A pickle refers to a class or function, which unpickling might call."""


class _Guard:
    """An audit hook, which Python cannot remove: it refuses while `refused` is a list."""

    def __init__(self) -> None:
        self.refused: list[str] | None = None
        self.is_installed = False

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == _EVENT and self.refused is not None and arguments not in _ALLOWED:
            name = ".".join(map(str, arguments))
            self.refused.append(name)
            raise PickleRefused(f"a pickle refers to {name}")


_GUARD = _Guard()


@contextlib.contextmanager
def pickles_refused() -> Iterator[list[str]]:
    """Let this process, with all of its threads, load no pickle that refers to a class or function. Yield the names that were refused.

    Without such a name a pickle is plain data: every class and function in it is looked up by name, and Python raises an audit event for
    each look-up before it imports the module.
    """
    if not _GUARD.is_installed:
        sys.addaudithook(_GUARD)
        _GUARD.is_installed = True
    before, _GUARD.refused = _GUARD.refused, []
    try:
        yield _GUARD.refused
    finally:
        _GUARD.refused = before
