"""Canonical bytes of values: two values are equal if and only if their bytes are.

1, 1.0 and True differ, as do 0.0 and -0.0, a tuple and a list, and dictionaries in another order, because a reader can tell them apart.
Sets have no order. The bytes are those of `marshal` in its version 2, which writes equal values alike wherever they came from.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

Key = tuple[str, ...]
"""What identifies an input, a result of a query or a row of a relation under its name."""

DIGEST_SIZE = 16
_VERSION = 2
_PLAIN, _TYPED = b"\0", b"\1"
_TIME = "datetime"


class Codec:
    """Writes and reads values: None, booleans, numbers, strings, bytes, tuples, lists, dictionaries and sets of these, times in UTC, and
    instances of the given NamedTuple types."""

    def __init__(self, types: Iterable[type] = ()) -> None:
        self._types: dict[str, Any] = {one.__name__: one for one in types}

    def encode(self, value: Any) -> bytes:
        """Return the canonical bytes of a value. Raise TypeError for a value of another type."""
        try:
            return _PLAIN + marshal.dumps(value, _VERSION)
        except ValueError:  # it has a value of a type that marshal does not know
            return _TYPED + marshal.dumps(self._flatten(value), _VERSION)

    def decode(self, data: bytes) -> Any:
        """Return the value of canonical bytes."""
        value = marshal.loads(memoryview(data)[1:])  # noqa: S302 - pages are read with a checksum
        return value if data[:1] == _PLAIN else self._restore(value)

    def _flatten(self, value: Any) -> Any:
        """Return a value with (..., name, fields) in place of every instance of a type."""
        kind = type(value)
        if value is None or kind in (str, int, bool, float, bytes, complex):
            return value
        if kind in (tuple, list, set, frozenset):
            return kind(map(self._flatten, value))
        if kind is dict:
            return {self._flatten(key): self._flatten(one) for key, one in value.items()}
        if kind is datetime and value.tzinfo is UTC:
            return (..., _TIME, value.isoformat())
        if self._types.get(kind.__name__) is kind:
            return (..., kind.__name__, *map(self._flatten, value))
        raise TypeError(f"a value of type {kind.__module__}.{kind.__qualname__} has no canonical bytes")

    def _restore(self, value: Any) -> Any:
        kind = type(value)
        if kind is tuple and value and value[0] is ...:
            _, name, *fields = value
            return datetime.fromisoformat(fields[0]) if name == _TIME else self._types[name](*map(self._restore, fields))
        if kind in (tuple, list, set, frozenset):
            return kind(map(self._restore, value))
        if kind is dict:
            return {self._restore(key): self._restore(one) for key, one in value.items()}
        return value


_PLAIN_CODEC = Codec()


def digest(data: bytes) -> bytes:
    """Return a digest that stands for bytes."""
    return blake2b(data, digest_size=DIGEST_SIZE).digest()


def digest_value(value: object) -> bytes:
    """Return a digest of the canonical bytes of a plain value, for `Database.assign`."""
    return digest(_PLAIN_CODEC.encode(value))


def identify(name: str, key: Key) -> int:
    """Return the number (64 bits) by which reads of an input, a query or a group are recorded.

    If two had the same number, a change of one would compute the readers of the other again, in vain.
    """
    return int.from_bytes(blake2b(marshal.dumps((name, key), _VERSION), digest_size=8).digest())
