"""The rows of a plan state in Git trees, so that a machine without a cache continues from the last plan.

The ref of the plan has a small tree: `state.json` says what the state describes and where its rows are, `header` is the row that a run
reads if nothing has changed. The ref of the rows has a blob for each part of a kind: `<kind>/<xx>/<xx>`. A hash assigns names to parts, so
a commit writes only the parts whose rows changed. Checksums of rows and the ids of Git find damage; limits bound what is read.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING

from gitsched.git.state_refs import StateRefs
from gitsched.model.document import as_object
from gitsched.model.errors import Conflict, GitschedError
from gitsched.model.planned_files import NewBlob, WritableFile
from gitsched.model.time import EPOCH
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.cache.plan_cache import HEADER
from gitsched.reconcile.cache.row_format import CorruptCacheError

if TYPE_CHECKING:
    from gitsched.git import Signer
    from gitsched.reconcile.cache.row_format import Row

_log = logging.getLogger("gitsched.reconcile")
FORMAT = 1
INDEX = "state.json"
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")
MAX_INDEX_SIZE = 1 << 16
MAX_BLOB_SIZE = 1 << 28
"""Bytes of one part or row."""
_PART_SIZE = 12_000
"""Bytes of rows that one part has on average."""
_MAX_BITS = 16
_LEVEL = 3
"""Of compression: three times as fast as the default, and a tenth larger."""
_GROWTH = 4
"""The parts of a kind are made anew once they are so many times as large as they should be."""
_NAME, _EMAIL = "gitsched", "gitsched@localhost"


class PartCount(NamedTuple):
    """The rows of one kind: they are in `1 << bits` parts."""

    bits: int
    rows: int
    size: int

    def find_part(self, kind: str, name: str) -> str:
        """Return the path of the part with a row."""
        number = int.from_bytes(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).digest()) >> (32 - self.bits)
        return f"{kind}/{number >> 6:02x}/{number & 63:02x}"


class StateIndex(NamedTuple):
    """What a state describes: `key` is of the build and of the options, `output` and `source` are trees, and `rows` is a commit."""

    key: str
    output: str
    source: str
    rows: str
    kinds: dict[str, PartCount]

    def to_json(self) -> bytes:
        """Return the content of state.json."""
        kinds = {kind: list(count) for kind, count in sorted(self.kinds.items())}
        body = {"format": FORMAT, **self._asdict(), "kinds": kinds, "digest": _compute_digest(kinds)}
        return json.dumps(body, indent=1).encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> StateIndex:
        """Parse state.json; ValueError if it has another format."""
        body = as_object(json.loads(data))
        if body.get("format") != FORMAT:
            raise ValueError(f"its format is {body.get('format')!r:.20}, and this version reads {FORMAT}")
        key, output, source, rows = (body.get(name) for name in ("key", "output", "source", "rows"))
        kinds = {}
        for kind, count in as_object(body.get("kinds")).items():
            if not (kind.isidentifier() and isinstance(count, list) and len(count) == 3 and all(type(one) is int for one in count)):
                raise ValueError(f"{INDEX} has no valid counts")
            kinds[kind] = PartCount(*count)
        if not all(isinstance(text, str) and _OBJECT_ID.fullmatch(text) for text in (output, source, rows)) or not isinstance(
            key, str
        ):
            raise ValueError(f"{INDEX} is not valid")
        if body.get("digest") != _compute_digest({kind: list(count) for kind, count in kinds.items()}):
            raise ValueError(f"{INDEX} is not what was written")
        if not all(0 <= count.bits <= _MAX_BITS for count in kinds.values()):
            raise ValueError(f"{INDEX} has no valid counts")
        return cls(str(key), str(output), str(source), str(rows), kinds)


def _compute_digest(kinds: dict[str, list[int]]) -> str:
    """Return a checksum of the kinds of rows: a row of a kind that is not there counts as missing."""
    return blake2b(json.dumps(kinds, sort_keys=True).encode(), digest_size=16).hexdigest()


Part = dict[str, tuple[int, bytes]]
"""The rows of one part by name: position and content."""


class PlanTree:
    """A RowStore in the trees of two refs. `commit` is that of the opened state, "" for a new one."""

    def __init__(self, refs: StateRefs, key: str, *, commit: str = "", index: StateIndex | None = None) -> None:
        self.refs, self.commit, self.index = refs, commit, index
        self.key = key
        self._parts: dict[str, Part] = {}
        self._has_rows = False
        self._trees = ("", "")
        self._time = EPOCH
        self._signer: Signer | None = None

    @classmethod
    def open(cls, refs: StateRefs, key: str, commit: str) -> PlanTree:
        """Return the state of a commit of the plan, which has been fetched. Raise CorruptCacheError, or another GitschedError, if it cannot
        be read."""
        repository = refs.repository
        entry = repository.find_entry(repository.commit(commit).tree, INDEX)
        data = repository.read_small_blob(entry[0], MAX_INDEX_SIZE) if entry is not None else None
        if data is None:
            raise CorruptCacheError(f"it has no {INDEX}, or a too large one")
        try:
            index = StateIndex.from_json(data)
        except (ValueError, RecursionError) as error:
            raise CorruptCacheError(str(error)) from error
        return cls(refs, key, commit=commit, index=index)

    def describe(self, trees: tuple[str, str], time: datetime, signer: Signer | None) -> None:
        """Set what the next state to be written describes, its output and source trees, and the time and signer of its commit."""
        self._trees, self._time, self._signer = trees, time, signer

    def read(self, kind: str, name: str) -> bytes | None:
        """See `RowStore`."""
        if self.index is None:
            return None
        if kind == HEADER:
            return self._read_blob(self.commit, HEADER)
        count = self.index.kinds.get(kind)
        if count is None:
            return None
        with self._reported():
            found = self._read_part(count.find_part(kind, name)).get(name)
        return found[1] if found is not None else None

    def read_all(self, kind: str) -> list[tuple[str, bytes]]:
        """See `RowStore`."""
        with self._reported():
            rows = [(position, name, data) for _, part in self._list_parts(kind) for name, (position, data) in part.items()]
        return [(name, data) for _, name, data in sorted(rows)]

    def create(self, rows: Iterable[Row]) -> None:
        """Write all rows of a new state. See `RowStore`."""
        header, kinds = b"", dict[str, dict[str, tuple[int, bytes]]]()
        for kind, name, position, data in rows:
            if kind == HEADER:
                header = data or b""
            elif data is not None:
                kinds.setdefault(kind, {})[name] = position, data
        counts, parts = {}, dict[str, Part]()
        for kind, named in kinds.items():
            size = sum(len(data) for _, data in named.values())
            counts[kind] = count = PartCount(_count_bits(len(named), size), len(named), size)
            for name, row in named.items():
                parts.setdefault(count.find_part(kind, name), {})[name] = row
        self._publish(header, counts, parts, base=None)

    def update(self, rows: Iterable[Row], _is_known: Callable[[bytes | None], bool], /) -> bool:
        """Write the parts with changed rows. See `RowStore`: the id of the commit says more than the header. A state that is not
        described stays as it is: this run may not replace it."""
        if self.index is None or not all(self._trees) or self.refs.repository.resolve_ref(self.refs.plan) != self.commit:
            return False
        header, changed, counts = b"", dict[str, Part](), dict(self.index.kinds)
        for kind, name, position, data in rows:
            if kind == HEADER:
                header = data or b""
                continue
            count = counts.get(kind, PartCount(0, 0, 0))
            path = count.find_part(kind, name)
            part = changed.setdefault(path, dict(self._read_part(path)) if kind in self.index.kinds else {})
            before = part.pop(name, None)
            if data is not None:
                part[name] = (before[0] if before is not None else position), data
            grown, bytes_grown = (data is not None) - (before is not None), len(data or b"") - len(before[1] if before else b"")
            counts[kind] = count._replace(rows=count.rows + grown, size=count.size + bytes_grown)
        if any(_is_unbalanced(count) for count in counts.values()):
            self.create([(HEADER, "", 0, header), *self._list_rows(counts, changed)])
        else:
            base = self.refs.repository.commit(self.index.rows).tree if changed else None
            self._publish(header, counts, changed, base=base)
        return True

    def discard(self, error: Exception) -> None:
        """Say that the state is not read. The next complete plan replaces it."""
        report_ignored(self.refs, str(error))

    def _list_rows(self, counts: dict[str, PartCount], changed: dict[str, Part]) -> Iterator[Row]:
        """Yield all rows with the changed parts."""
        for kind in counts:
            stored = dict(self._list_parts(kind))
            for part in (stored | {path: rows for path, rows in changed.items() if path.startswith(f"{kind}/")}).values():
                yield from ((kind, name, position, data) for name, (position, data) in part.items())

    def _publish(self, header: bytes, counts: dict[str, PartCount], parts: dict[str, Part], *, base: str | None) -> None:
        repository = self.refs.repository

        def commit(tree: str, subject: str, signer: Signer | None) -> str:
            return repository.commit_tree(tree, (), subject, name=_NAME, email=_EMAIL, time=self._time, sign=signer)

        output, source = self._trees
        rows = self.index.rows if self.index is not None and not parts else ""
        has_rows = self._has_rows or not rows
        if not rows:
            files: dict[str, WritableFile | None] = {path: NewBlob(_encode(part)) if part else None for path, part in parts.items()}
            tree = repository.write_tree(files, base=base, read=repository)
            rows = commit(tree, "Rows of the state of the last plan", None)
        index = StateIndex(self.key, output, source, rows, counts)
        tree = repository.write_tree({INDEX: NewBlob(index.to_json()), HEADER: NewBlob(header)}, base=None, read=repository)
        plan = commit(tree, f"State of the plan of the output tree {output[:12]}", self._signer)
        expected = self.commit or repository.resolve_ref(self.refs.plan)
        self.commit, self.index, self._has_rows = plan, index, has_rows
        self._parts.clear()
        try:
            self.refs.publish(plan, rows, expected)
        except Conflict as error:
            _log.info("another process has stored the state of a plan first: %s", error)
        except GitschedError as error:
            _log.warning(
                "the state of this plan is not on the remote, so a machine without a cache plans everything again: %s", error
            )

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except CorruptCacheError as error:
            self.discard(error)
            raise

    def _list_parts(self, kind: str) -> Iterator[tuple[str, Part]]:
        if self.index is None or kind not in self.index.kinds:
            return
        self._fetch_rows()
        repository = self.refs.repository
        try:
            paths = [entry.path for entry in repository.entries(repository.commit(self.index.rows).tree, kind, 2 << _MAX_BITS)]
        except GitschedError as error:
            raise CorruptCacheError(str(error)) from error
        for path in paths:
            yield path, self._read_part(path)

    def _read_part(self, path: str) -> Part:
        part = self._parts.get(path)
        if part is None:
            assert self.index is not None
            self._fetch_rows()
            data = self._read_blob(self.index.rows, path)
            part = self._parts[path] = _decode(data) if data is not None else {}
        return part

    def _fetch_rows(self) -> None:
        """Fetch the rows as soon as one is needed: all of them, because each request costs more than a few megabytes."""
        if not self._has_rows and self.index is not None:
            try:
                found = self.refs.fetch(self.index.rows)
            except GitschedError as error:
                raise CorruptCacheError(str(error)) from error
            if not found:
                raise CorruptCacheError(f"its rows {self.index.rows} are missing")
            self.refs.keep(self.refs.rows, self.index.rows)
            self._has_rows = True

    def _read_blob(self, commit: str, path: str) -> bytes | None:
        repository = self.refs.repository
        try:
            entry = repository.find_entry(repository.commit(commit).tree, path)
            if entry is None:
                return None
            data = repository.read_small_blob(entry[0], MAX_BLOB_SIZE)
            if data is None:
                raise CorruptCacheError(f"{path} is larger than {MAX_BLOB_SIZE >> 20} MiB")
            return data
        except GitschedError as error:
            raise CorruptCacheError(str(error)) from error


def report_ignored(refs: StateRefs, reason: str) -> None:
    """Log that a state is not used."""
    _log.warning("the state of the last plan at %s is not used, and everything is planned again: %s", refs.plan, reason)


def _count_bits(rows: int, size: int) -> int:
    return min(max(min(rows, size // _PART_SIZE) - 1, 0).bit_length(), _MAX_BITS)


def _is_unbalanced(count: PartCount) -> bool:
    wanted = _count_bits(count.rows, count.size)
    return not wanted - _GROWTH.bit_length() < count.bits < wanted + _GROWTH.bit_length()


def _encode(part: Part) -> bytes:
    """Return a zlib stream of a line of JSON, with names, positions and sizes, and of the contents.

    Git would compress it, too, but first look for differences between all parts, which costs a server more than everything else.
    """
    rows = sorted(part.items())
    head = json.dumps([[name, position, len(data)] for name, (position, data) in rows]).encode()
    return zlib.compress(b"".join((head, b"\n", *(data for _, (_, data) in rows))), _LEVEL)


def _decode(data: bytes) -> Part:
    part, start = dict[str, tuple[int, bytes]](), 0
    try:
        stream = zlib.decompressobj()
        head, _, rows = stream.decompress(data, MAX_BLOB_SIZE).partition(b"\n")
        if not stream.eof:
            raise ValueError("it is not complete, or too large")
        for name, position, size in json.loads(head):
            if type(size) is not int or type(position) is not int or size < 0:
                raise ValueError("a size is not valid")
            part[str(name)] = position, rows[start : start + size]
            start += size
        if start != len(rows):
            raise ValueError("the sizes of its rows do not match")
    except (ValueError, TypeError, RecursionError, zlib.error) as error:
        raise CorruptCacheError(f"a part is damaged: {error}") from error
    return part
