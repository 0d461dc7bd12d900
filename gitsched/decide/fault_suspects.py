"""Find the documents that an unexpected error may be about: those that the functions had as a value in which it was raised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gitsched.model.document import Body, Origin
from gitsched.model.fault import list_frame_values

MAX_SUSPECTS = 3
"""Documents that an error may be about, and that are tried before all documents are searched."""

Place = tuple[str, int, int]
"""The blob of a file, and the position of a document in it and in a List."""


class FaultSuspects:
    """The documents by the objects that are part of them, each by its position among all."""

    def __init__(self, documents: Iterable[tuple[Body, Place | None]]) -> None:
        self._by_object: dict[int, int | None] = {}
        self._by_place: dict[Place, int] = {}
        self._kept: list[Body] = []  # so that no other object gets one of the ids
        for number, (body, place) in enumerate(documents):
            self._kept.append(body)
            if place is not None:
                self._by_place.setdefault(place, number)
            for part in _list_parts(body):
                shared = self._by_object.get(id(part), number) != number
                self._by_object[id(part)] = None if shared else number

    def list(self, error: BaseException) -> list[int]:
        """Return the positions of the documents, that of the innermost function first."""
        found: dict[int, None] = {}
        for value in list_frame_values(error):
            origin = _read_origin(value)
            number = self._by_place.get((origin.blob, origin.index, origin.item)) if origin is not None else None
            number = self._by_object.get(id(value)) if number is None else number
            if number is not None:
                found[number] = None
        return list(found)


def list_frame_origins(error: BaseException) -> Iterator[Origin]:
    """Yield the origins of documents that the functions had as a value, that of the innermost function first."""
    yield from (origin for value in list_frame_values(error) if (origin := _read_origin(value)) is not None)


def _read_origin(value: Any) -> Origin | None:
    """Return the origin of a document, or of anything that has one."""
    origin = getattr(value, "origin", None) if isinstance(value, tuple) else None
    return origin if isinstance(origin, Origin) else None


def _list_parts(body: Any) -> Iterator[Any]:
    """Yield a body and all mappings and lists in it."""
    pending = [body]
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list):
            yield value
            pending += value.values() if isinstance(value, dict) else value
