"""Records as JSON, for other processes and files: a named tuple becomes the list of its fields, and is read again by its types.

What is read comes from another process or from a file, so each value is compared with the type that it has to have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from gitsched.model.changes import RecordChange
from gitsched.model.document import Key
from gitsched.model.errors import GitschedError
from gitsched.model.fleet_topology import SimulatedSite
from gitsched.model.holds import HeldPlacement

T = TypeVar("T")
_CHECKED_TYPES = {"HeldPlacement": HeldPlacement, "Key": Key, "RecordChange": RecordChange, "SimulatedSite": SimulatedSite}
"""Types that the modules of records import for type checkers alone."""


class InvalidRecordError(GitschedError):
    """A value is not a record of the expected type."""


def write_record(record: tuple[Any, ...]) -> bytes:
    """Return a record as JSON on one line."""
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=dict).encode()


def read_record(kind: type[T], data: bytes) -> T:
    """Read a record of a type. Raise InvalidRecordError for anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidRecordError(f"not JSON: {str(error)[:100]}") from error
    return cast("T", _convert(kind, value))


@cache
def _list_fields(kind: Any) -> tuple[Any, ...]:
    hints = get_type_hints(kind, localns=_CHECKED_TYPES)
    return tuple(hints[name] for name in kind._fields)


def _convert(kind: Any, value: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):  # of one type and None
        return None if value is None else _convert(next(one for one in arguments if one is not NoneType), value)
    if origin is tuple:
        return _convert_tuple(arguments, _expect(list, value))
    if origin is Mapping:
        return {name: _convert(arguments[1], entry) for name, entry in _expect(dict, value).items()}
    if hasattr(kind, "_fields"):
        return kind(*_convert_tuple(_list_fields(kind), _expect(list, value)))
    return _expect(kind, value)


def _convert_tuple(kinds: tuple[Any, ...], values: list[Any]) -> tuple[Any, ...]:
    if kinds[-1] is Ellipsis:
        return tuple(_convert(kinds[0], value) for value in values)
    if len(kinds) != len(values):
        raise InvalidRecordError(f"expected {len(kinds)} values, got {len(values)}")
    return tuple(_convert(kind, value) for kind, value in zip(kinds, values, strict=True))


def _expect(kind: Any, value: Any) -> Any:
    if type(value) is not kind:
        raise InvalidRecordError(f"expected a value of type {kind.__name__}, got {json.dumps(value)[:60]}")
    return value
