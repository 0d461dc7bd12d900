"""Rows of the ledger as bytes: pickles with a digest in front, which nothing but this package's own types are made from.

Their bytes come from a file that only its owner can write, as `gitsched.reconcile.shelf` makes sure; still, a file that is damaged or
that somebody brought along must not do more than be useless.
"""

from __future__ import annotations

import io
import pickle
from hashlib import blake2b
from typing import Any

from gitsched.apis.gitsched.config import Config
from gitsched.apis.world import World
from gitsched.model.time import EPOCH

_CORE = (
    "gitsched.apis.",
    "gitsched.model.",
    "gitsched.plan.",
    "gitsched.render.",
    "gitsched.schedule.",
    "gitsched.reconcile.shelf",
)
"""The modules whose classes may be made: those that do no I/O, and the ledger's own."""
_PLAIN = frozenset({("collections", "Counter"), ("datetime", "date"), ("datetime", "datetime")})
_PLAIN |= {
    ("datetime", "timedelta"),
    ("datetime", "timezone"),
    ("builtins", "complex"),
    ("builtins", "frozenset"),
    ("builtins", "set"),
}
_DIGEST = 16


class Damaged(Exception):
    """A row cannot be read: the ledger is worth nothing."""


def pack(value: Any) -> bytes:
    """A value as a row."""
    return _digest(data := pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) + data


def pack_sessions(sessions: Any) -> bytes:
    """Sessions as a row. Worlds are left out: they hold a repository, and the next run has its own."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(sessions)
    return _digest(data := buffer.getvalue()) + data


def unpack(row: Any) -> Any:
    """What was packed; Damaged when it is not that any more."""
    if not isinstance(row, bytes) or _digest(data := row[_DIGEST:]) != row[:_DIGEST]:
        raise Damaged("a row is not what was written")
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        raise Damaged(str(error)) from error


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> str | None:
        return "world" if isinstance(value, World) else None


class _Unpickler(pickle.Unpickler):
    """Makes instances of the core's classes and plain values, whatever a file asks for; it calls no function."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        found = super().find_class(module, name) if f"{module}.".startswith(_CORE) and "." not in name else None
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name} is none of ours")
        return found

    def persistent_load(self, _identity: Any) -> World:
        """A world in which nothing is: what a session compares with its old one is other now."""
        return World({}, {}, frozenset(), {}, Config(), EPOCH, EPOCH)
