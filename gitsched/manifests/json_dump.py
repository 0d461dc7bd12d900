"""Read the objects of a dump in JSON, one at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from gitsched.manifests.dumped_object import NAMELESS, DumpedObject, DumpEnd, ListType, drop_members

_ITEMS_IN_JSON = re.compile(r'"items"\s*:\s*\[')
_BLANKS = re.compile(r"[\s,]*")


class JsonDump:
    """The state of reading one dump in JSON: Lists or single objects. The text of one object at a time is in memory.

    `line` is that of the first chunk, `limit` the bytes of one object. `_line` and `_column` are the position of the start of the buffer.
    """

    def __init__(self, chunks: Iterable[bytes], line: int, limit: int) -> None:
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._texts = map(decode, chunks)
        self._buffer, self._line, self._column = "", line, 1
        self._limit = limit
        self._parser = json.JSONDecoder()
        self._untyped: list[tuple[Any, int, int]] = []

    def read(self) -> Iterator[DumpedObject | DumpEnd]:
        while True:
            kind = self._find_items()
            if kind is None:
                yield from self._read_rest()
                return
            ended = False
            for entry in self._read_items(kind):
                ended = ended or isinstance(entry, DumpEnd)
                yield entry
            if ended:
                return

    def _find_items(self) -> ListType | None:
        """Advance to the first item of a List; None if what follows is no List."""
        start = 0
        while True:
            items = _ITEMS_IN_JSON.search(self._buffer, start)
            if items is not None:
                before = _load(f'{self._buffer[: items.start()].lstrip(", ")}"items":[]}}')
                if isinstance(before, dict):
                    self._advance(items.end())
                    return ListType.read(before)
                return None
            start = max(len(self._buffer) - 64, 0)
            if len(self._buffer) > self._limit or not self._read_more():
                return None

    def _read_items(self, kind: ListType) -> Iterator[DumpedObject | DumpEnd]:
        """Yield the items of a List, and the end of the dump if it is in them."""
        wanted = 0
        while True:
            start = _skip_blanks(self._buffer)
            if self._buffer.startswith("]", start):
                self._advance(start + 1)
                yield from self._end_list(kind)
                return
            found = _decode_first(self._parser, self._buffer, start) if len(self._buffer) >= wanted else None
            if found is not None:
                self._advance(start)
                yield from self._make_objects(found[0], kind)
                self._advance(found[1] - start)
                wanted = 0
                continue
            # Twice the text for each attempt, so that a large object takes linear time.
            wanted = len(self._buffer) + max(1, len(self._buffer) - start)
            while len(self._buffer) < wanted and self._read_more():
                pass
            if len(self._buffer) < wanted:  # the text has ended
                wanted, start = 0, _skip_blanks(self._buffer)
                if _decode_first(self._parser, self._buffer, start) is None and not self._buffer.startswith("]", start):
                    self._advance(len(self._buffer))
                    yield DumpEnd(True, self._line, self._column)
                    return
            elif len(self._buffer) > 2 * self._limit:
                problem = f"an object has more than {self._limit >> 20} MiB, and what follows it is not read"
                yield DumpedObject(None, self._line, self._column, problem)
                yield DumpEnd(True, self._line, self._column)
                return

    def _end_list(self, kind: ListType) -> Iterator[DumpedObject]:
        """Read what follows the items of a List; yield its items that do not say their kind."""
        while (rest := self._decode_rest()) is None and len(self._buffer) <= self._limit and self._read_more():
            pass
        after = ListType.read(rest[0] if rest is not None else None)
        kind = ListType(*(later or known for later, known in zip(after, kind, strict=True)))
        untyped, self._untyped = self._untyped, []
        for value, line, column in untyped:
            members = kind.members if kind.is_typed else {}
            yield _make_json_object({**members, **value}, line, column)
        if rest is not None:
            self._advance(rest[1])

    def _decode_rest(self) -> tuple[Any, int] | None:
        """Return the members of a List that follow its items, with their end; None if they are not complete."""
        start = _skip_blanks(self._buffer)
        found = _decode_first(self._parser, "{" + self._buffer[start:], 0)
        return (found[0], start + found[1] - 1) if found is not None else None

    def _make_objects(self, value: Any, kind: ListType) -> Iterator[DumpedObject]:
        if isinstance(value, dict) and "kind" not in value:
            if kind.is_typed:
                yield _make_json_object({**kind.members, **value}, self._line, self._column)
            else:
                self._untyped.append((value, self._line, self._column))
        elif isinstance(value, dict) and isinstance(value.get("items"), list) and str(value["kind"]).endswith("List"):
            inner = ListType.read(value)
            for item in value["items"]:
                members = inner.members if inner.is_typed and isinstance(item, dict) and "kind" not in item else {}
                yield _make_json_object({**members, **item} if members else item, self._line, self._column)
        else:
            yield _make_json_object(value, self._line, self._column)

    def _read_rest(self) -> Iterator[DumpedObject | DumpEnd]:
        """Yield what is no List: single objects, or one list of them."""
        while len(self._buffer) <= 2 * self._limit and self._read_more():
            pass
        while (start := _skip_blanks(self._buffer)) < len(self._buffer):
            found = _decode_first(self._parser, self._buffer, start)
            self._advance(start)
            if found is None:
                self._advance(len(self._buffer))
                yield DumpEnd(True, self._line, self._column)
                return
            value, end = found
            for entry in value if isinstance(value, list) else [value]:
                yield from self._make_objects(entry, ListType())
            self._advance(end - start)
        for value, line, column in self._untyped:
            yield _make_json_object(value, line, column)
        yield DumpEnd(False, self._line, self._column)

    def _read_more(self) -> bool:
        """Read another piece of the text; False at its end."""
        text = next(self._texts, "")
        self._buffer += text
        return bool(text)

    def _advance(self, count: int) -> None:
        """Drop the start of the buffer."""
        text, self._buffer = self._buffer[:count], self._buffer[count:]
        breaks = text.count("\n")
        self._column = len(text) - text.rfind("\n") if breaks else self._column + len(text)
        self._line += breaks


def _skip_blanks(text: str) -> int:
    blanks = _BLANKS.match(text)
    return blanks.end() if blanks is not None else 0


def _load(text: str) -> Any:
    """Return the value of a text in JSON; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _decode_first(parser: json.JSONDecoder, text: str, start: int) -> tuple[Any, int] | None:
    """Return the first value in a text with its end; None if it is not complete."""
    try:
        return parser.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _make_json_object(value: Any, line: int, column: int) -> DumpedObject:
    named = isinstance(value, dict) and isinstance(value.get("metadata"), dict) and isinstance(value.get("kind"), str)
    return DumpedObject(drop_members(value), line, column) if named else DumpedObject(None, line, column, NAMELESS)
