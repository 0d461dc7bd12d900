"""Planned files become a tree: what no change touches keeps its object, whoever put it there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from gitsched.git.pack import BLOB, TREE, Object, hash_object
from gitsched.git.trees import MAX_DEPTH, Row, is_tree
from gitsched.model.files import END, Bytes, Edit, Keep, PlannedFile, Span

_UNSAFE = re.compile(
    r"(?:^|[/\\])(?:\.{0,2}|(?!\.gitattributes(?:[/\\]|$))(?i:\.git)[^/\\]*|(?i:git~\d+))(?:[/\\]|$)|\0",
)
_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""What macOS ignores in a file name, so that `.g<invisible>it` is `.git` there."""


def check_path(path: str) -> tuple[bytes, ...]:
    """The parts of an output path; ValueError (a bug of the caller) for one that could be taken for another place."""
    if _UNSAFE.search(path if path.isascii() else _INVISIBLE.sub("", path)):
        raise ValueError(f"not a safe path for the output tree: {path!r}")
    parts = tuple(path.encode().split(b"/"))
    if len(parts) > MAX_DEPTH:
        raise ValueError(f"the path has {len(parts)} levels: {path[:80]!r}...")
    return parts


def edit_text(data: bytes, spans: Sequence[Span]) -> bytes:
    """The UTF-8 text with its spans, which count characters, replaced; every other byte, line ends included, stays."""
    text = data.decode()
    pieces: list[str] = []
    position = 0
    for start, stop, new in spans:
        end = len(text) if stop == END else stop
        if not position <= start <= end <= len(text):
            raise ValueError(f"span {start}..{end} overlaps another or leaves the text of {len(text)} characters")
        pieces += (text[position:start], new)
        position = end
    return "".join((*pieces, text[position:])).encode()


class _Node:
    __slots__ = ("children", "file", "named")

    def __init__(self) -> None:
        self.named = False
        self.file: PlannedFile | None = None
        self.children: dict[bytes, _Node] = {}


class Planting:
    """One tree in the making, with the objects that have to be written for it (`objects`, by raw id).

    `rows` lists a tree of the repository written to, `read` gives the content of a source blob, `has` says whether the repository
    written to holds an object, `edited` remembers the raw id of each edit across calls.
    """

    def __init__(
        self,
        rows: Callable[[str], list[Row]],
        read: Callable[[str], bytes],
        has: Callable[[str], bool],
        edited: dict[Edit, bytes],
    ) -> None:
        self._rows = rows
        self._read = read
        self._has = has
        self._edited = edited
        self._hashed: dict[int, bytes] = {}  # the files live as long as the changes that this is asked to plant
        self.objects: dict[bytes, Object] = {}
        self.trees: dict[str, list[Row]] = {}

    def plant(self, changes: Mapping[str, PlannedFile | None], base: str | None) -> str:
        """The id of the base tree with every path of `changes` set, or removed where the value is None."""
        root = _Node()
        for path, file in changes.items():
            node = root
            for part in check_path(path):
                child = node.children.get(part)
                if child is None:
                    child = node.children[part] = _Node()
                node = child
            node.named, node.file = True, file
        tree = self._apply(root, base)
        return (tree or self._add(TREE, b"")).hex()

    def _apply(self, node: _Node, base: str | None) -> bytes | None:
        before = {row[1]: row for row in self._rows(base)} if base else {}
        after = dict(before)
        for name, child in node.children.items():
            row = self._entry(name, child, before.get(name))
            if row is None:
                after.pop(name, None)
            else:
                after[name] = row
        if not after:
            return None
        if base and after == before:
            return bytes.fromhex(base)
        rows = sorted(after.values(), key=_order)
        tree = self._add(TREE, b"".join(b"%b %b\0%b" % (mode.lstrip(b"0"), name, oid) for mode, name, oid in rows))
        self.trees[tree.hex()] = rows
        return tree

    def _entry(self, name: bytes, node: _Node, before: Row | None) -> Row | None:
        """What stands at a name afterwards; a removal below something that is no directory removes nothing."""
        was_tree = before is not None and is_tree(before)
        if node.children:
            base = before[2].hex() if before is not None and was_tree and not node.named else None
            tree = self._apply(node, base)
            if tree is not None and node.file is not None:
                raise ValueError(f"{name.decode()!r} is planned both as a file and as a directory")
            if tree is not None:
                return (b"40000", name, tree)
            if not node.named:
                return None if was_tree else before
        if node.file is None:
            return None
        oid = self._blob(node.file, before)
        return before if before is not None and before[2] == oid and before[0] == b"100644" else (b"100644", name, oid)

    def _blob(self, file: PlannedFile, before: Row | None) -> bytes:
        if isinstance(file, Bytes):
            oid = self._hashed.get(id(file))
            if oid is None:
                oid = self._hashed[id(file)] = hash_object(BLOB, file.data)
            return oid if before is not None and before[2] == oid else self._add(BLOB, file.data, oid)
        if isinstance(file, Keep):
            oid = bytes.fromhex(file.blob)
            if (before is None or before[2] != oid) and oid not in self.objects and not self._has(file.blob):
                self._add(BLOB, self._read(file.blob), oid)
            return oid
        known = self._edited.get(file)
        if known is not None and (known in self.objects or self._has(known.hex())):
            return known
        oid = self._edited[file] = self._add(BLOB, edit_text(self._read(file.blob), file.spans))
        return oid

    def _add(self, kind: int, data: bytes, oid: bytes | None = None) -> bytes:
        oid = oid or hash_object(kind, data)
        self.objects.setdefault(oid, (oid, kind, data))
        return oid


def _order(row: Row) -> bytes:
    """Git sorts a directory as if its name ended in a slash."""
    return row[1] + b"/" if is_tree(row) else row[1]
