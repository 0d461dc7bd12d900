"""Read the objects of a dump, as `kubectl get -o yaml` and `-o json` print it, one at a time: a dump may be larger than the memory.

The text is split at the items of its List before anything is parsed, so that the end of a dump that was cut concerns its last object only.
Values of Secrets and ConfigMaps and the fields of server-side apply are removed from the text first: nobody needs them.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final, NamedTuple

from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body

MAX_OBJECT_SIZE: Final = 4 << 20
"""Bytes of one object."""
_ITEMS_IN_JSON = re.compile(r'"items"\s*:\s*\[')
_TOP_LEVEL_KEY = re.compile(rb"[A-Za-z]")
_MARKER = re.compile(rb"(---|\.\.\.)(\s|$)")
_DROPPED_SECTIONS = (b"data:", b"binaryData:", b"stringData:")
_BLANKS = re.compile(r"[\s,]*")


class DumpedObject(NamedTuple):
    """One object of a dump, or why it cannot be read; `line` is where it begins, 0 in JSON."""

    body: Body | None
    line: int
    problem: str = ""


class DumpEnd(NamedTuple):
    """The end of a dump. `cut`: the text ends before the dump does, so that further objects may be missing."""

    cut: bool


def read_dump(lines: Iterable[bytes]) -> Iterator[DumpedObject | DumpEnd]:
    """Yield the objects of a dump in YAML or JSON, and its end at last. The last object of a cut dump is not yielded.

    Bad objects are yielded with a problem; no input raises an error.
    """
    stream = iter(lines)
    first = next((line for line in stream if line.strip()), b"").removeprefix(b"\xef\xbb\xbf")
    if first.lstrip()[:1] in (b"{", b"["):
        yield from _read_json(chain([first], stream))
    else:
        yield from _YamlDump(chain([first], stream)).read()


class _YamlDump:
    """The state of reading one dump in YAML: a List with its items, or documents.

    `_column` is that of the items of the present List; the constants say where else the present line is.
    """

    _DOCUMENT, _FIRST_ITEM, _AFTER_ITEMS = -1, -2, -3

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self._cut = False
        self._begin(1)

    def _begin(self, start: int) -> None:
        """Begin a document."""
        self._pending: list[bytes] = []
        self._start, self._size, self._column = start, 0, self._DOCUMENT
        self._needs_end = False

    def read(self) -> Iterator[DumpedObject | DumpEnd]:
        last = b"\n"
        for number, line in enumerate(self._lines, 1):
            last = line
            if line[:1] in (b"-", b".") and _MARKER.match(line):
                yield from self._end_document()
                self._begin(number + 1)
            elif self._column == self._DOCUMENT and line.rstrip() in (b"items:", b"items: []"):
                # kubectl sorts members, so that the kind of a List follows its items.
                self._needs_end = not any(before.startswith(b"kind:") for before in self._pending)
                self._pending, self._size, self._column = [], 0, self._FIRST_ITEM
            else:
                yield from self._read_line(number, line)
        if not last.endswith(b"\n"):
            self._cut, self._pending = True, []
        yield from self._end_document()
        yield DumpEnd(self._cut)

    def _read_line(self, number: int, line: bytes) -> Iterator[DumpedObject]:
        """Read a line of a document or an item."""
        if self._column == self._AFTER_ITEMS and line.startswith(b"apiVersion:"):  # several dumps in one file
            self._begin(number)
        if self._column != self._DOCUMENT and _TOP_LEVEL_KEY.match(line):
            yield from self._flush()
            self._column, self._needs_end = self._AFTER_ITEMS, False
        if self._column == self._FIRST_ITEM and line.lstrip(b" ").startswith(b"- "):
            self._column = len(line) - len(line.lstrip(b" "))
        if self._column >= 0 and line.startswith(b"- ", self._column) and not line[: self._column].strip():
            yield from self._flush()
            self._start = number
        if self._column == self._DOCUMENT or self._column >= 0:
            if self._size <= MAX_OBJECT_SIZE:
                self._pending.append(line)
            self._size += len(line)

    def _end_document(self) -> Iterator[DumpedObject]:
        """End the present document. The last item of a List without an end may be incomplete."""
        if self._needs_end:
            self._cut = True
        else:
            yield from self._flush()

    def _flush(self) -> Iterator[DumpedObject]:
        """Yield the object whose lines were collected."""
        pending, size, column = self._pending, self._size, max(self._column, self._DOCUMENT)
        self._pending, self._size = [], 0
        if size > MAX_OBJECT_SIZE:
            yield DumpedObject(None, self._start, f"the object has more than {MAX_OBJECT_SIZE >> 20} MiB")
        elif any(line.strip() and not line.lstrip().startswith(b"#") for line in pending):
            if column >= 0:
                pending[0] = b" " * (column + 2) + pending[0][column + 2 :]
            yield _parse_object(b"".join(_drop_values(pending, column + 2 if column >= 0 else 0)), self._start)


def _drop_values(lines: Iterable[bytes], base: int) -> Iterator[bytes]:
    """Yield the lines of an object without values of Secrets and ConfigMaps and without managedFields. `base` is the column of its
    members."""
    section, dropped = b"", -1
    for line in lines:
        text = line.lstrip(b" ")
        column = len(line) - len(text)
        if dropped >= 0:
            if column > dropped or not text.strip() or (column == dropped and text.startswith(b"-")):
                continue
            dropped = -1
        if column == base and not text.startswith((b"-", b"#")):
            section = text
            if text.startswith(_DROPPED_SECTIONS):
                dropped = base
                continue
        elif section.startswith(b"metadata:") and column == base + 2 and text.startswith(b"managedFields:"):
            dropped = column
            continue
        yield line


def _parse_object(text: bytes, line: int) -> DumpedObject:
    file = parse_file(text, path="dump.yaml", validate=None)
    if file.documents:
        return DumpedObject(file.documents[0].body, line)
    issue = next(iter(file.issues), None)
    return DumpedObject(None, line, issue.message if issue is not None else file.reason or "it has no apiVersion, kind and name")


def _read_json(chunks: Iterator[bytes]) -> Iterator[DumpedObject | DumpEnd]:
    """Yield the objects of a dump in JSON. The text of one object at a time is in memory."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    texts = map(decode, chunks)
    buffer, items = "", None
    for text in texts:
        buffer += text
        items = _ITEMS_IN_JSON.search(buffer)
        if items is not None or len(buffer) > MAX_OBJECT_SIZE:
            break
    if items is None:
        yield from _read_single(buffer)
        return
    parser, buffer, wanted = json.JSONDecoder(), buffer[items.end() :], 0
    while True:
        start = _skip_blanks(buffer)
        if buffer.startswith("]", start):
            yield DumpEnd(cut=False)
            return
        found = _decode_first(parser, buffer, start) if len(buffer) >= wanted else None
        if found is not None:
            value, end = found
            buffer, wanted = buffer[end:], 0
            yield _make_json_object(value)
            continue
        wanted = len(buffer) + max(
            1, len(buffer) - start
        )  # twice the text for each attempt, so that a large object takes linear time
        while len(buffer) < wanted and (text := next(texts, "")):
            buffer += text
        if len(buffer) < wanted:  # the text has ended
            wanted = 0
            if _decode_first(parser, buffer, _skip_blanks(buffer)) is None and not buffer.startswith("]", _skip_blanks(buffer)):
                yield DumpEnd(cut=True)
                return
        elif len(buffer) > 2 * MAX_OBJECT_SIZE:
            yield DumpedObject(None, 0, f"an object has more than {MAX_OBJECT_SIZE >> 20} MiB, and what follows it is not read")
            yield DumpEnd(cut=True)
            return


def _skip_blanks(text: str) -> int:
    blanks = _BLANKS.match(text)
    return blanks.end() if blanks is not None else 0


def _decode_first(parser: json.JSONDecoder, text: str, start: int) -> tuple[Any, int] | None:
    """Return the first value in a text with its end; None if it is not complete."""
    try:
        return parser.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def _read_single(text: str) -> Iterator[DumpedObject | DumpEnd]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield DumpEnd(cut=True)
        return
    for entry in value if isinstance(value, list) else [value]:
        yield _make_json_object(entry)
    yield DumpEnd(cut=False)


def _make_json_object(value: Any) -> DumpedObject:
    if not isinstance(value, dict) or not isinstance(value.get("metadata"), dict):
        return DumpedObject(None, 0, "it has no apiVersion, kind and name")
    dropped = {"data", "binaryData", "stringData"}
    body = {name: member for name, member in value.items() if name not in dropped}
    body["metadata"] = {name: member for name, member in value["metadata"].items() if name != "managedFields"}
    return DumpedObject(body, 0)
