"""The format of cached rows: pickles with a checksum that can contain only gitsched's own types, and some of Python that hold values.

Engines are graphs of objects of many types that refer to each other, which no format of plain values keeps. So rows are pickles, read
with an unpickler that creates only instances of the core's classes and of _ALLOWED_TYPES, and calls no function.

Rows of workloads are plain values, which take a fifth of the time and fewer bytes: each value of a type names it. A row with anything that
most workloads do not have, such as findings or edits, keeps its types. Small entries of many objects share a fixed number of rows.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from importlib import import_module
from itertools import repeat
from operator import itemgetter
from typing import Any, TypeVar
from zlib import crc32

from gitsched.apis.snapshot import EMPTY_SNAPSHOT, Snapshot
from gitsched.decide.incremental.plan_state import ClusterRow, WorkloadRow
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome, TargetCluster
from gitsched.model.time import EPOCH
from gitsched.reconcile.cache import document_rows

_ALLOWED_MODULES = (
    "gitsched.apis.",
    "gitsched.model.",
    "gitsched.decide.",
    "gitsched.kinds.",
    "gitsched.render.",
    "gitsched.schedule.",
    "gitsched.reconcile.cache.failed_builds",
    "gitsched.reconcile.cache.plan_cache",
    "gitsched.reconcile.cache.reading_rules",
    "gitsched.reconcile.cache.root_documents",
)
"""The modules whose classes may be unpickled: those that do no I/O, and those of caches."""
_ALLOWED_TYPES = frozenset(
    {
        ("collections", "Counter"),
        ("datetime", "date"),
        ("datetime", "datetime"),
        ("datetime", "timedelta"),
        ("datetime", "timezone"),
        ("builtins", "complex"),
        ("builtins", "frozenset"),
        ("builtins", "set"),
    }
)
_DIGEST_SIZE = 16
Row = tuple[str, str, int, bytes | None]
"""Kind, name, position among the rows of this kind, and content; None to remove the row. The position of an existing row stays."""
SEPARATOR = "\n"
"""Between the parts of a name."""
WORKLOAD, CLUSTER, DOCUMENTS = "workload", "cluster", "api_documents"
"""Kinds of rows, which have one for each object."""
SHARDS = 64
V = TypeVar("V")


class CorruptCacheError(Exception):
    """A row cannot be read, so the complete plan cache is discarded."""


def serialize(value: Any) -> bytes:
    """Serialize a value as a row."""
    return _compute_digest(data := pickle.dumps(value, pickle.HIGHEST_PROTOCOL)) + data


def serialize_engines(engines: Any) -> bytes:
    """Serialize policy engines as a row. Snapshots are left out: they hold a repository, and the next run has its own."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {Snapshot: _forget_snapshot}  # a persistent id would be asked of every object
    pickler.dump(engines)
    return _compute_digest(data := buffer.getvalue()) + data


def deserialize(row: Any) -> Any:
    """Deserialize a row. Raise CorruptCacheError if its checksum is wrong or it contains other types."""
    if not isinstance(row, bytes) or _compute_digest(data := row[_DIGEST_SIZE:]) != row[:_DIGEST_SIZE]:
        raise CorruptCacheError("a row is not what was written")
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise CorruptCacheError(str(error)) from error


def _compute_digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_SIZE).digest()


def _forget_snapshot(_snapshot: Snapshot) -> tuple[type[Snapshot], tuple[object, ...]]:
    """Return what is stored in place of a snapshot: an empty one, so that an engine finds everything changed against it."""
    return Snapshot, tuple(EMPTY_SNAPSHOT)


class _StandIn(type):
    """A type that takes the place of an allowed one in a row, and creates instances of that one.

    A row may set attributes of what it creates. With the allowed type itself it could set those of the type, for this whole process.
    """

    allowed: type

    def __call__(cls, *arguments: Any) -> Any:
        return cls.allowed(*arguments)

    def __setattr__(cls, name: str, _value: object) -> None:
        raise TypeError(f"the attribute {name!r} of a type cannot be set")


@cache
def _make_stand_in(module: str, name: str) -> _StandIn:
    is_listed = (module, name) in _ALLOWED_TYPES
    may_be_named = is_listed or (f"{module}.".startswith(_ALLOWED_MODULES) and "." not in name)
    allowed = getattr(import_module(module), name, None) if may_be_named else None
    if not isinstance(allowed, type) or (allowed.__module__ != module and not is_listed):
        raise pickle.UnpicklingError(f"{module}.{name} is not an allowed type")

    def create(_: type, *arguments: Any) -> Any:
        return allowed.__new__(allowed, *arguments)

    return _StandIn(name, (), {"__new__": create, "allowed": allowed})


class _Unpickler(pickle.Unpickler):
    """Create only instances of the core's classes and plain values; call no function that a file names."""

    def find_class(self, module: str, name: str) -> Any:
        return _make_stand_in(module, name)


_OUTCOME_FIELDS, _TARGET_FIELDS, _ROW_FIELDS = 11, 2, 5
"""The fields of an outcome, a target and a row before those that have their defaults."""
_SAMPLE = WorkloadRow(Outcome(Key("", "", "", ""), "", "", "", "", (), None, (), "", EPOCH), "", (), {})
_OUTCOME_DEFAULTS, _ROW_DEFAULTS = _SAMPLE.outcome[_OUTCOME_FIELDS:], _SAMPLE[_ROW_FIELDS:]
_TARGET_DEFAULTS = TargetCluster("")[_TARGET_FIELDS:]

Paths = tuple[str, ...]


def flatten_row(row: WorkloadRow) -> object:
    """Return a row as plain values; the row itself if it has more than these can say."""
    outcome = row.outcome
    if (
        outcome[_OUTCOME_FIELDS:] != _OUTCOME_DEFAULTS
        or outcome.records
        or outcome.time.tzinfo is not UTC
        or row[_ROW_FIELDS:] != _ROW_DEFAULTS
        or any(target[_TARGET_FIELDS:] != _TARGET_DEFAULTS for target in outcome.targets)
    ):
        return row
    names = [target.cluster for target in outcome.targets]
    return (
        tuple(outcome.key),
        (*outcome[1:5], outcome.replicas, outcome.reason, outcome.time.isoformat(), outcome.unassigned),
        names,
        [target.replicas for target in outcome.targets],
        row.source_path,
        row.record_paths,
        _flatten_paths(row.manifest_paths, names),
        _flatten_keys(row.record_keys),
    )


def restore_row(stored: Any) -> WorkloadRow:
    """Return the row of a stored value. Raise CorruptCacheError for any other value."""
    if isinstance(stored, WorkloadRow):
        return stored
    try:
        key, head, names, counts, source_path, record_paths, paths, record_keys = stored
        api, state, policy, group, replicas, reason, time, unassigned = head
        targets = tuple(map(TargetCluster, names, counts))
        return WorkloadRow(
            Outcome(Key(*key), api, state, policy, group, targets, replicas, (), reason, datetime.fromisoformat(time), unassigned),
            source_path,
            record_paths,
            dict(zip(names, repeat(paths), strict=False)) if isinstance(paths, tuple) else paths,
            _restore_keys(record_keys),
        )
    except (TypeError, ValueError) as error:
        raise CorruptCacheError(f"not the row of a workload: {error}") from error


def _flatten_paths(paths: Mapping[str, Paths], names: list[str]) -> Mapping[str, Paths] | Paths:
    """Return the paths alone where each target has the same ones."""
    first = next(iter(paths.values()), None)
    if first is None or list(paths) != names or any(found != first for found in paths.values()):
        return paths
    return first


def _flatten_keys(keys: Iterable[Key]) -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, keys))


def _restore_keys(keys: Iterable[Any]) -> tuple[Key, ...]:
    return tuple([Key(*key) for key in keys])


def list_document_rows(documents: Mapping[tuple[str, str], tuple[Document, ...]]) -> Iterator[Row]:
    for kind, listed in sorted(documents.items()):
        if len(listed) < document_rows.MIN_DIVIDED:
            yield (DOCUMENTS, SEPARATOR.join(kind), 0, serialize(listed))
            continue
        yield from ((DOCUMENTS, name, 0, serialize(row)) for name, row in document_rows.list_parts(kind, listed))


def list_workload_rows(workloads: Mapping[Key, WorkloadRow | None]) -> Iterator[Row]:
    rows = sorted(((SEPARATOR.join(key), row) for key, row in workloads.items() if row is not None), key=itemgetter(0))
    return ((WORKLOAD, name, 0, serialize(flatten_row(row))) for name, row in rows)


def list_cluster_rows(clusters: Mapping[str, ClusterRow | None]) -> Iterator[Row]:
    return ((CLUSTER, name, 0, serialize(row)) for name, row in sorted(clusters.items()) if row is not None)


class Shards(Mapping[Key, V]):
    """Entries by key, in the rows of one kind. Rows are read on demand with `read`."""

    def __init__(self, kind: str, read: Callable[[str, str], Any]) -> None:
        self._kind, self._read = kind, read
        self._shards: dict[int, dict[Key, V]] = {}
        self._changed: set[int] = set()

    def fill(self, entries: Mapping[Key, V]) -> None:
        """Set all entries."""
        self._shards = {number: {} for number in range(SHARDS)}
        for key, entry in entries.items():
            self._shards[_choose_shard(key)][key] = entry

    def update(self, entries: Mapping[Key, V | None]) -> None:
        """Change some entries; None removes one."""
        for key, entry in entries.items():
            number = _choose_shard(key)
            shard = self._load(number)
            if entry is not None:
                shard[key] = entry
            else:
                shard.pop(key, None)
            self._changed.add(number)

    def list_rows(self, *, every: bool = False) -> list[Row]:
        """Return every row with an entry, or those that changed since the last call, without content if they have no entry any more."""
        numbers = [number for number in range(SHARDS) if self._load(number)] if every else sorted(self._changed)
        self._changed.clear()
        return [(self._kind, str(number), 0, serialize(shard) if (shard := self._load(number)) else None) for number in numbers]

    def __getitem__(self, key: Key) -> V:
        return self._load(_choose_shard(key))[key]

    def __iter__(self) -> Iterator[Key]:
        return (key for number in range(SHARDS) for key in self._load(number))

    def __len__(self) -> int:
        return sum(len(self._load(number)) for number in range(SHARDS))

    def items(self) -> ItemsView[Key, V]:
        """Return all entries, without a lookup of each."""
        return {key: entry for number in range(SHARDS) for key, entry in self._load(number).items()}.items()

    def _load(self, number: int) -> dict[Key, V]:
        if number not in self._shards:
            self._shards[number] = dict(self._read(self._kind, str(number)) or {})  # other readers may share what is read
        return self._shards[number]


def _choose_shard(key: Key) -> int:
    return crc32(SEPARATOR.join(key).encode("utf-8", "surrogatepass")) % SHARDS
