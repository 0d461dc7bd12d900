"""Rows of the documents of one kind: one row for few of them, else a fixed number of parts, so that a change stores only one part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from zlib import crc32

from gitsched.model.document import Document

MIN_DIVIDED = 100
"""Documents of a kind from which on they are divided."""
PARTS = 32
_SEPARATOR = "\n"
Documents = tuple[Document, ...]


def name_row(kind: tuple[str, str]) -> str:
    """Return the name of the row that has all documents of a kind, or that says that they are divided."""
    return _SEPARATOR.join(kind)


def list_rows(kind: tuple[str, str], documents: Documents) -> Iterator[tuple[str, Any]]:
    """Return the name and value of every row of a kind."""
    if len(documents) < MIN_DIVIDED:
        return iter(((name_row(kind), documents),))
    return list_parts(kind, documents)


def list_parts(kind: tuple[str, str], documents: Documents) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of every row of a kind whose documents are divided."""
    name = name_row(kind)
    yield name, PARTS
    yield from ((f"{name}{_SEPARATOR}{number}", part) for number, part in _divide(documents).items())


def read_rows(kind: tuple[str, str], read: Callable[[str], Any]) -> Documents:
    """Return the documents of a kind, by key. `read` returns the value of a row, or None."""
    name = name_row(kind)
    found = read(name)
    if not isinstance(found, int):
        return found or ()
    parts = (read(f"{name}{_SEPARATOR}{number}") or () for number in range(found))
    return tuple(sorted((document for part in parts for document in part), key=lambda document: document.key))


def list_changed_rows(kind: tuple[str, str], before: Documents, after: Documents) -> dict[str, Any]:
    """Return the values of the rows of a kind that differ, None for a removed one."""
    former, present = (dict(list_rows(kind, documents)) for documents in (before, after))
    if not after:
        present = {}
    return {name: present.get(name) for name in {**former, **present} if not _is_same(former.get(name), present.get(name))}


def _is_same(before: Any, after: Any) -> bool:
    if isinstance(before, tuple) and isinstance(after, tuple):
        return len(before) == len(after) and all(one is other for one, other in zip(before, after, strict=True))
    return bool(before == after)


def _divide(documents: Documents) -> Mapping[int, Documents]:
    parts: dict[int, list[Document]] = {}
    for document in documents:
        parts.setdefault(crc32(_SEPARATOR.join(document.key).encode("utf-8", "surrogatepass")) % PARTS, []).append(document)
    return {number: tuple(part) for number, part in sorted(parts.items())}
