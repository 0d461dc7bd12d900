"""Serialize rows of the plan cache: pickles with a checksum, restricted to gitsched's own types when read.

Their bytes come from a file that only its owner can write, as `gitsched.reconcile.cache.plan_cache` makes sure; still,
a file that is damaged or that somebody brought along must not do more than be useless.
"""

from __future__ import annotations

import io
import pickle
from hashlib import blake2b
from typing import Any

from gitsched.apis.engine import Snapshot
from gitsched.apis.gitsched.config import Config
from gitsched.model.time import EPOCH

_ALLOWED_MODULES = (
    "gitsched.apis.",
    "gitsched.model.",
    "gitsched.decide.",
    "gitsched.render.",
    "gitsched.schedule.",
    "gitsched.reconcile.cache.plan_cache",
)
"""The modules whose classes may be made: those that do no I/O, and the ledger's own."""
_ALLOWED_TYPES = frozenset({("collections", "Counter"), ("datetime", "date"), ("datetime", "datetime")})
_ALLOWED_TYPES |= {
    ("datetime", "timedelta"),
    ("datetime", "timezone"),
    ("builtins", "complex"),
    ("builtins", "frozenset"),
    ("builtins", "set"),
}
_DIGEST_SIZE = 16


class CorruptCacheError(Exception):
    """A row cannot be read: the ledger is worth nothing."""


def serialize(value: Any) -> bytes:
    """A value as a row."""
    return _compute_digest(data := pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) + data


def serialize_engines(sessions: Any) -> bytes:
    """Sessions as a row. Worlds are left out: they hold a repository, and the next run has its own."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(sessions)
    return _compute_digest(data := buffer.getvalue()) + data


def deserialize(row: Any) -> Any:
    """What was packed; Damaged when it is not that any more."""
    if not isinstance(row, bytes) or _compute_digest(data := row[_DIGEST_SIZE:]) != row[:_DIGEST_SIZE]:
        raise CorruptCacheError("a row is not what was written")
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
        raise CorruptCacheError(str(error)) from error


def _compute_digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_SIZE).digest()


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> str | None:
        return "world" if isinstance(value, Snapshot) else None


class _Unpickler(pickle.Unpickler):
    """Makes instances of the core's classes and plain values, whatever a file asks for; it calls no function."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ALLOWED_TYPES:
            return super().find_class(module, name)
        found = super().find_class(module, name) if f"{module}.".startswith(_ALLOWED_MODULES) and "." not in name else None
        if not isinstance(found, type) or found.__module__ != module:
            raise pickle.UnpicklingError(f"{module}.{name} is none of ours")
        return found

    def persistent_load(self, _identity: Any) -> Snapshot:
        """A world in which nothing is: what a session compares with its old one is other now."""
        return Snapshot({}, {}, frozenset(), {}, Config(), EPOCH, EPOCH)
