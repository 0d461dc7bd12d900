"""Read the objects of a dump, as `kubectl get -o yaml` and `-o json` print it, one at a time: a dump may be larger than the memory.

The text is split at the items of its List before anything is parsed, so that the end of a dump that was cut concerns its last object only.
Values of Secrets and ConfigMaps, what kubectl applied last and the fields of server-side apply are removed: nobody needs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from gitsched.manifests.dumped_object import NAMELESS, DumpedObject, DumpEnd, ListType, drop_members
from gitsched.manifests.json_dump import JsonDump
from gitsched.manifests.parser import parse_file

MAX_OBJECT_SIZE: Final = 4 << 20
"""Bytes of one object."""
MAX_UNTYPED_SIZE: Final = 64 << 20
"""Bytes of items whose kind only the end of their List says."""
_TOP_LEVEL_KEY = re.compile(rb"[A-Za-z]")
_LIST_TYPE = re.compile(rb"""(apiVersion|kind):\s+["']?([\w./-]+)""")
_SECRET = re.compile(rb"""kind["']?\s*:\s*["']?Secret""")
_LINE = re.compile(r"\bline (\d+)")
_UNREAD_CODES = frozenset(("duplicate-key", "unsupported-key"))
"""Codes of issues of objects whose members are not certain."""
_MARKER = re.compile(rb"(---|\.\.\.)(\s|$)")
_DROPPED_SECTIONS = (b"data:", b"binaryData:", b"stringData:")


def read_dump(lines: Iterable[bytes]) -> Iterator[DumpedObject | DumpEnd]:
    """Yield the objects of a dump in YAML or JSON, and its end at last. The last object of a cut dump is not yielded.

    A dump is documents, and Lists of objects or of one kind, such as a DeploymentList whose items do not say their kind. Bad objects are
    yielded with a problem; no input raises an error.
    """
    stream = iter(lines)
    skipped, first = 0, b""
    for first in stream:
        if first.strip():
            break
        skipped += 1
    first = first.removeprefix(b"\xef\xbb\xbf")
    if first.lstrip()[:1] in (b"{", b"["):
        yield from JsonDump(chain([first], stream), skipped + 1, MAX_OBJECT_SIZE).read()
    else:
        yield from _YamlDump(chain([first], stream), skipped + 1).read()


class _YamlDump:
    """The state of reading one dump in YAML: a List with its items, or documents.

    `_column` is that of the items of the present List; the constants say where else the present line is. `_untyped` are the items whose
    kind the end of their List says, with the lines at which they begin.
    """

    _DOCUMENT, _FIRST_ITEM, _AFTER_ITEMS = -1, -2, -3

    def __init__(self, lines: Iterable[bytes], start: int = 1) -> None:
        self._lines, self._first = lines, start
        self._cut = False
        self._begin(start)

    def _begin(self, start: int) -> None:
        """Begin a document."""
        self._pending: list[bytes] = []
        self._start, self._size, self._column = start, 0, self._DOCUMENT
        self._needs_end = False
        self._type: dict[bytes, bytes] = {}
        self._untyped: list[tuple[list[bytes], int, int]] = []
        self._untyped_size = 0

    def read(self) -> Iterator[DumpedObject | DumpEnd]:
        number, last = self._first, b"\n"
        for number, line in enumerate(self._lines, self._first):
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
        yield DumpEnd(self._cut, number, len(last.rstrip(b"\r\n").decode("utf-8", "replace")) + 1)

    def _read_line(self, number: int, line: bytes) -> Iterator[DumpedObject]:
        """Read a line of a document or an item."""
        if (
            self._column == self._AFTER_ITEMS and line.startswith(b"apiVersion:") and not self._needs_end
        ):  # several dumps in one file
            yield from self._flush_untyped()
            self._begin(number)
        if self._column in (self._DOCUMENT, self._AFTER_ITEMS) or _TOP_LEVEL_KEY.match(line):
            self._note_type(line)
        if self._column != self._DOCUMENT and _TOP_LEVEL_KEY.match(line):
            yield from self._flush()
            self._column, self._needs_end = self._AFTER_ITEMS, self._needs_end and not line.startswith((b"kind:", b"metadata:"))
        if self._column == self._FIRST_ITEM and line.lstrip(b" ").startswith(b"- "):
            self._column = len(line) - len(line.lstrip(b" "))
        if self._column >= 0 and line.startswith(b"- ", self._column) and not line[: self._column].strip():
            yield from self._flush()
            self._start = number
        if self._column == self._DOCUMENT or self._column >= 0:
            if self._size <= MAX_OBJECT_SIZE:
                self._pending.append(line)
            self._size += len(line)

    def _note_type(self, line: bytes) -> None:
        """Remember a line that says the kind of the present List."""
        found = _LIST_TYPE.match(line)
        if found is not None:
            self._type[found[1]] = found[2]

    def _end_document(self) -> Iterator[DumpedObject]:
        """End the present document. The last item of a List without an end may be incomplete."""
        if self._needs_end:
            self._cut = True
        else:
            yield from self._flush()
        yield from self._flush_untyped()

    def _flush(self) -> Iterator[DumpedObject]:
        """Yield the object whose lines were collected."""
        pending, size, column = self._pending, self._size, max(self._column, self._DOCUMENT)
        self._pending, self._size = [], 0
        if size > MAX_OBJECT_SIZE:
            yield DumpedObject(None, self._start, 1, f"the object has more than {MAX_OBJECT_SIZE >> 20} MiB")
        elif any(line.strip() and not line.lstrip().startswith(b"#") for line in pending):
            if column >= 0:
                pending[0] = b" " * (column + 2) + pending[0][column + 2 :]
            base = column + 2 if column >= 0 else 0
            if column < 0 or any(line.startswith(b"kind:", base) for line in pending):
                yield from _parse_objects(pending, base, self._start)
            elif self._untyped_size > MAX_UNTYPED_SIZE:
                yield DumpedObject(None, self._start, 1, f"{NAMELESS}: write the kind of the List before its items")
            else:
                self._untyped.append((pending, base, self._start))
                self._untyped_size += size

    def _flush_untyped(self) -> Iterator[DumpedObject]:
        """Yield the items that do not say their kind, with that of their List."""
        untyped, self._untyped = self._untyped, []
        members = {name.decode(): text.decode("ascii", "replace") for name, text in self._type.items()}
        kind = ListType.read(members)
        added = (
            [b"%s: %s\n" % entry for entry in ((n.encode(), t.encode()) for n, t in kind.members.items())] if kind.is_typed else []
        )
        for pending, base, start in untyped:
            before = [b" " * base + line for line in added]
            yield from _parse_objects([*before, *pending], base, start - len(before))


def _list_kept(lines: Iterable[bytes], base: int) -> Iterator[int]:
    """Yield the indices of the lines of an object without values of Secrets and ConfigMaps and without managedFields. `base` is the column
    of its members."""
    section, dropped = b"", -1
    for index, line in enumerate(lines):
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
        yield index


def _parse_objects(lines: list[bytes], base: int, start: int) -> Iterator[DumpedObject]:
    """Yield the objects of a text that begins at a line."""
    kept = list(_list_kept(lines, base))
    text = b"".join([lines[index] for index in kept])
    file = parse_file(text, path="dump.yaml", validate=None)
    unread = (one for one in file.issues if one.code in _UNREAD_CODES or not file.documents)
    issue = next(unread, None)
    if file.documents and issue is None:
        for document in file.documents:
            line = start + kept[min(document.line, len(kept)) - 1]
            yield DumpedObject(drop_members(document.body), max(line, start), document.column)
        return
    if issue is None or _SECRET.search(text):  # a message may quote the text
        problem = NAMELESS if issue is None and not file.reason else "it is not valid YAML" if issue is not None else file.reason
        yield DumpedObject(None, start, base + 1, problem)
        return

    def find_line(number: int) -> int:
        return start + kept[min(number, len(kept)) - 1]

    message = _LINE.sub(lambda found: f"line {find_line(int(found[1]))}", issue.message)
    yield DumpedObject(None, find_line(issue.line), issue.column, message)
