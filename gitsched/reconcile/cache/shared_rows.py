"""Rows that several plans of one process read from one stored state, which each of them opens anew: decoded once, never changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gitsched.decide.incremental.known_decisions import KnownDecisions


class SharedRows:
    """The decoded header and rows of the state that was opened last, and decisions of plans that start from it."""

    def __init__(self) -> None:
        self.decisions = KnownDecisions()
        self._stored: bytes | None = None
        self._header: Any = None
        self._rows: dict[tuple[str, str], Any] = {}

    def open(self, stored: bytes | None, decode: Callable[[bytes | None], Any]) -> Any:
        """Return the header of a state, and forget the rows of another one: a state with the same header is the same one."""
        if stored is None or stored != self._stored:
            self._stored, self._header, self._rows, self.decisions = stored, decode(stored), {}, KnownDecisions()
        return self._header

    def read(self, kind: str, name: str, decode: Callable[[], Any]) -> Any:
        """Return a row, or what else is made of rows under a name of its own."""
        if (kind, name) not in self._rows:
            self._rows[kind, name] = decode()
        return self._rows[kind, name]
