"""Tree objects: list, compare and build them. Names are untrusted bytes; nothing is checked out and no symlink is followed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Generic, TypeVar

from gitsched.model.errors import Permanent
from gitsched.model.planned_files import EditedBlob, ExistingBlob, NewBlob, TextEdit, WritableFile, apply_text_edits
from gitsched.named_tuples import NamedTuple

COMMIT, TREE, BLOB = 1, 2, 3
_TYPE_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}

TREE_MODE = 0o040000
FILE_MODE = 0o100644
SYMLINK_MODE = 0o120000
SUBMODULE_MODE = 0o160000

MAX_DEPTH = 128
MAX_ENTRIES = 1_000_000
_LEAST_CACHED = 2_000
_MAX_CACHED = 4_000_000
_RUNS_CACHED = 4
"""The least and the most entries that a cache keeps, and, between these, for how many runs like the largest one."""

_RAW_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_RAW_TREE_MODES = (b"40000", b"040000")

RawEntry = tuple[bytes, bytes, bytes]
"""Mode in octal digits, name and raw object id of an entry, as stored in the tree object."""
RawObject = tuple[bytes, int, bytes]
"""Raw object id, object type and content."""


def hash_object(kind: int, data: bytes) -> bytes:
    """Return the raw id that Git gives an object."""
    return hashlib.sha1(b"%b %d\0%b" % (_TYPE_NAMES[kind], len(data), data), usedforsecurity=False).digest()


class TreeEntry(NamedTuple):
    """A file, symlink (`mode` 0o120000) or submodule (0o160000) of a tree.

    `path` is text: bytes that are not UTF-8 appear as \\xNN. `unsafe` marks a path that must not be used: undecodable, duplicate
    in its directory, containing `.`, `..` or `.git`, or a directory nested too deep to be read (`mode` 0o040000).
    """

    path: str
    blob: str
    mode: int
    unsafe: bool = False


def parse_tree(data: bytes) -> list[RawEntry]:
    """Parse a raw tree object into entries; ValueError when it is malformed."""
    rows: list[RawEntry] = _RAW_ENTRY.findall(data)
    if len(b"".join(chain.from_iterable(rows))) + 2 * len(rows) != len(data):
        raise ValueError("malformed tree object")
    return rows


def is_tree(row: RawEntry) -> bool:
    """Return whether the entry is a directory."""
    return row[0] in _RAW_TREE_MODES


class TreeReader:
    """Lists and builds the trees of one repository. Listings are cached by tree id, so that an unchanged tree is listed once.

    `read` returns the raw bytes of a tree by its id.
    """

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._tree_cache: _LruCache[str, list[RawEntry]] = _LruCache()
        self._listing_cache: _LruCache[tuple[str, str, bool], tuple[TreeEntry, ...]] = _LruCache()
        self._edited_blobs: _LruCache[EditedBlob, bytes] = _LruCache()

    def end_run(self) -> None:
        """Tell the caches that a run has ended: they keep what a few runs read."""
        self._tree_cache.end_run()
        self._listing_cache.end_run()
        self._edited_blobs.end_run()

    def read_tree(self, tree: str) -> list[RawEntry]:
        """Return the entries of one tree, in Git's order."""
        rows = self._tree_cache.get(tree)
        if rows is None:
            try:
                rows = parse_tree(self._read(tree))
            except ValueError as error:
                raise Permanent(f"tree {tree}: {error}") from error
            self._tree_cache.put(tree, rows, len(rows))
        return rows

    def build_tree(
        self,
        changes: Mapping[str, WritableFile | None],
        base: str | None,
        read: Callable[[str], bytes],
        has: Callable[[str], bool],
    ) -> tuple[str, list[RawObject]]:
        """Return the id of the base tree with every path of `changes` set, or removed where the value is None, and the objects to
        write for it. `read` and `has` are those of `TreeBuilder`."""
        read_once = lru_cache(maxsize=1)(read)  # the documents of a file follow each other
        builder = TreeBuilder(self.read_tree, read_once, has, self._edited_blobs)
        tree = builder.build(changes, base)
        for oid, rows in builder.trees.items():
            if self._tree_cache.get(oid) is None:
                self._tree_cache.put(oid, rows, len(rows))
        return tree, list(builder.objects.values())

    def entries(self, tree: str, under: str = "", limit: int = MAX_ENTRIES) -> list[TreeEntry]:
        """Return all entries below the directory (or the one file) `under`, sorted as Git sorts; [] when there is none.

        Raise Permanent if there are more entries than the limit, directories included.
        """
        if not under.strip("/"):
            return list(self._list_entries(tree, "", False, 0, EntryLimit(limit)))
        under = under.strip("/")
        row = self.find_entry(tree, under)
        if row is None:
            return []
        if not is_tree(row):
            return [TreeEntry(under, row[2].hex(), int(row[0], 8))]
        return list(self._list_entries(row[2].hex(), under + "/", False, under.count("/") + 1, EntryLimit(limit)))

    def find_entry(self, tree: str, path: str) -> RawEntry | None:
        """Return the entry at a path; None when there is none."""
        parts = path.encode("utf-8", "surrogatepass").split(b"/")
        for part in parts[:-1]:
            row = self._find_child(tree, part)
            if row is None or not is_tree(row):
                return None
            tree = row[2].hex()
        return self._find_child(tree, parts[-1])

    def _find_child(self, tree: str, name: bytes) -> RawEntry | None:
        return next((row for row in self.read_tree(tree) if row[1] == name), None)

    def _list_entries(self, tree: str, prefix: str, unsafe: bool, depth: int, budget: EntryLimit) -> tuple[TreeEntry, ...]:
        found = self._listing_cache.get((tree, prefix, unsafe))
        if found is not None:
            budget.count(len(found) + 1)
            return found
        rows = self.read_tree(tree)
        budget.count(len(rows) + 1)
        result: list[TreeEntry] = []
        for row, name, unsafe_name in decode_names(rows):
            path, blob = prefix + name, row[2].hex()
            if not is_tree(row):
                result.append(TreeEntry(path, blob, int(row[0], 8), unsafe or unsafe_name))
            elif depth >= MAX_DEPTH:
                result.append(TreeEntry(path, blob, TREE_MODE, True))
            else:
                result.extend(self._list_entries(blob, path + "/", unsafe or unsafe_name, depth + 1, budget))
        found = tuple(result)
        self._listing_cache.put((tree, prefix, unsafe), found, len(found))
        return found


def decode_names(rows: Iterable[RawEntry]) -> Iterable[tuple[RawEntry, str, bool]]:
    """Yield each row with its name as text and whether that name is unsafe."""
    seen: set[bytes] = set()
    for row in rows:
        name = row[1]
        try:
            text, unsafe = name.decode(), name in (b".", b"..") or b"/" in name or name.lower() == b".git" or name in seen
        except UnicodeDecodeError:
            text, unsafe = name.decode("utf-8", "backslashreplace"), True
        seen.add(name)
        yield row, text, unsafe


class EntryLimit:
    """A limit on the entries of one listing: small trees can refer to each other so often that their listing never ends."""

    def __init__(self, limit: int = MAX_ENTRIES) -> None:
        self.limit = self.left = limit

    def count(self, entries: int) -> None:
        self.left -= entries
        if self.left < 0:
            raise Permanent(f"the tree has more than {self.limit:,} entries")


K = TypeVar("K")
V = TypeVar("V")


class _LruCache(Generic[K, V]):
    """A mapping that discards the least recently used items.

    It keeps several times the weight that the largest run added, so a process that follows a small repository for months stays small.
    """

    def __init__(self) -> None:
        self._limit = _LEAST_CACHED
        self._total = self._added = 0
        self._items: dict[K, tuple[V, int]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: K) -> V | None:
        item = self._items.pop(key, None)
        if item is None:
            return None
        self._items[key] = item
        return item[0]

    def put(self, key: K, value: V, weight: int) -> None:
        self._added += weight + 1
        self._limit = min(max(self._limit, _RUNS_CACHED * self._added), _MAX_CACHED)
        self._total += weight + 1
        self._items[key] = (value, weight + 1)
        while self._total > self._limit and len(self._items) > 1:
            oldest = next(iter(self._items))
            self._total -= self._items.pop(oldest)[1]

    def end_run(self) -> None:
        """Begin to count what the next run adds."""
        self._added = 0


_UNSAFE_PATH = re.compile(
    r"(?:^|[/\\])(?:\.{0,2}|(?!\.gitattributes(?:[/\\]|$))(?i:\.git)[^/\\]*|(?i:git~\d+))(?:[/\\]|$)|\0",
)
_IGNORED_CHARACTERS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that macOS ignores in a file name: `.g<invisible>it` is `.git` there."""


def check_path(path: str) -> tuple[bytes, ...]:
    """Return the parts of an output path; ValueError (a bug of the caller) for an unsafe path."""
    if _UNSAFE_PATH.search(path if path.isascii() else _IGNORED_CHARACTERS.sub("", path)):
        raise ValueError(f"not a safe path for the output tree: {path!r}")
    parts = tuple(path.encode().split(b"/"))
    if len(parts) > MAX_DEPTH:
        raise ValueError(f"the path has {len(parts)} levels: {path[:80]!r}...")
    return parts


def apply_edits(data: bytes, spans: Sequence[TextEdit]) -> bytes:
    """Replace spans of UTF-8 text, counted in characters; all other bytes, line ends included, stay. Raise ValueError like
    `apply_text_edits`."""
    return apply_text_edits(data.decode(), spans).encode()


def hash_file(read: Callable[[str], bytes], file: WritableFile) -> str:
    """Return the id that Git gives the content of a planned file; `read` returns the content of a blob."""
    if isinstance(file, ExistingBlob):
        return file.blob
    data = file.data if isinstance(file, NewBlob) else apply_edits(read(file.blob), file.edits)
    return hash_object(BLOB, data).hex()


class _Directory:
    """The planned files and directories below a path."""

    __slots__ = ("directories", "files")

    def __init__(self) -> None:
        self.files: dict[bytes, WritableFile | None] = {}
        self.directories: dict[bytes, _Directory] = {}


def _group_by_directory(changes: Mapping[str, WritableFile | None]) -> _Directory:
    """Return the files of a change by directory. ValueError (a bug of the caller) for an unsafe path."""
    root = _Directory()
    directories, names = {"": root}, dict[str, bytes]()
    for path, file in changes.items():
        parent = path[: path.rfind("/") + 1]
        leaf = path[len(parent) :]
        directory, name = directories.get(parent), names.get(leaf)
        if directory is None:
            *steps, name = check_path(path)
            directory = root
            for step in steps:
                directory = directory.directories.setdefault(step, _Directory())
            directories[parent], names[leaf] = directory, name
        elif name is None:  # a path is safe where its directory and its name are
            (name,) = check_path(leaf)
            names[leaf] = name
        directory.files[name] = file
    return root


class TreeBuilder:
    """Builds one tree, and the objects that must be written for it (`objects`, by raw id).

    `rows` lists a tree of the target repository, `read` returns the content of a source blob, `has` says whether the target
    repository has an object, `edited` caches the raw id of each edit across calls.
    """

    def __init__(
        self,
        rows: Callable[[str], list[RawEntry]],
        read: Callable[[str], bytes],
        has: Callable[[str], bool],
        edited: _LruCache[EditedBlob, bytes],
    ) -> None:
        self._rows = rows
        self._read = read
        self._has = has
        self._edited = edited
        self._resolved: dict[int, bytes] = {}  # by id(): the files live as long as `changes`, and clusters share them
        self.objects: dict[bytes, RawObject] = {}
        self.trees: dict[str, list[RawEntry]] = {}

    def build(self, changes: Mapping[str, WritableFile | None], base: str | None) -> str:
        """Return the id of the base tree with every path of `changes` set, or removed where the value is None."""
        tree = self._build_tree(_group_by_directory(changes), base)
        return (tree or self._add_object(TREE, b"")).hex()

    def _build_tree(self, directory: _Directory, base: str | None) -> bytes | None:
        before = {row[1]: row for row in self._rows(base)} if base else {}
        after = dict(before)
        for name, file in directory.files.items():
            row = self._build_file(name, file, before.get(name))
            if row is None:
                after.pop(name, None)
            else:
                after[name] = row
        for name, inner in directory.directories.items():
            row = self._build_directory(name, inner, before.get(name), directory.files)
            if row is None:
                after.pop(name, None)
            else:
                after[name] = row
        if not after:
            return None
        if base and after == before:
            return bytes.fromhex(base)
        has_only_files = not base and not directory.directories
        rows = sorted(after.values(), key=itemgetter(1) if has_only_files else _sort_key)
        tree = self._add_object(TREE, write_rows(rows) if base else b"".join([b"%b %b\0%b" % row for row in rows]))
        self.trees[tree.hex()] = rows
        return tree

    def _build_directory(
        self, name: bytes, directory: _Directory, before: RawEntry | None, planned: Mapping[bytes, WritableFile | None]
    ) -> RawEntry | None:
        """Return the new entry of a directory. A removal below an entry that is not a directory removes nothing.

        `planned` are the files beside it. Where one of them has the same name, what the directory had is removed first.
        """
        was_tree = before is not None and is_tree(before)
        base = before[2].hex() if before is not None and was_tree and name not in planned else None
        tree = self._build_tree(directory, base)
        if tree is None:
            return self._build_file(name, planned.get(name), before) if name in planned else None if was_tree else before
        if planned.get(name) is not None:
            raise ValueError(f"{name.decode()!r} is planned both as a file and as a directory")
        return (b"40000", name, tree)

    def _build_file(self, name: bytes, file: WritableFile | None, before: RawEntry | None) -> RawEntry | None:
        if file is None:
            return None
        oid = self._resolve_blob(file, before)
        return before if before is not None and before[2] == oid and before[0] == b"100644" else (b"100644", name, oid)

    def _resolve_blob(self, file: WritableFile, before: RawEntry | None) -> bytes:
        oid = self._resolved.get(id(file))
        if oid is None:
            oid = self._resolved[id(file)] = self._find_blob(file, before)
        return oid

    def _find_blob(self, file: WritableFile, before: RawEntry | None) -> bytes:
        """Return the id of the content of a file, which is added to `objects` if the repository may not have it."""
        if isinstance(file, NewBlob):
            oid = hash_object(BLOB, file.data)
            return oid if before is not None and before[2] == oid else self._add_object(BLOB, file.data, oid)
        if isinstance(file, ExistingBlob):
            oid = bytes.fromhex(file.blob)
            if (before is None or before[2] != oid) and oid not in self.objects and not self._has(file.blob):
                self._add_object(BLOB, self._read(file.blob), oid)
            return oid
        cached = self._edited.get(file)
        if cached is not None and (cached in self.objects or self._has(cached.hex())):
            return cached
        oid = self._add_object(BLOB, apply_edits(self._read(file.blob), file.edits))
        self._edited.put(file, oid, 0)
        return oid

    def _add_object(self, kind: int, data: bytes, oid: bytes | None = None) -> bytes:
        oid = oid or hash_object(kind, data)
        self.objects.setdefault(oid, (oid, kind, data))
        return oid


def sort_rows(rows: Iterable[RawEntry]) -> list[RawEntry]:
    """Return the entries of a tree in Git's order."""
    return sorted(rows, key=_sort_key)


def write_rows(rows: Iterable[RawEntry]) -> bytes:
    """Return the tree object with sorted entries, without the leading zeros that a mode may have where it was read."""
    return b"".join([b"%b %b\0%b" % (mode.lstrip(b"0"), name, oid) for mode, name, oid in rows])


def _sort_key(row: RawEntry) -> bytes:
    """Sort a directory as if its name ended in a slash, as Git does."""
    return row[1] + b"/" if is_tree(row) else row[1]
