"""Read the previous output: records by identity, decoded on demand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial

from gitsched.decide.plan import PreviousOutput
from gitsched.git import Repository
from gitsched.manifests.parsed_file import ParsedFile
from gitsched.model.document import Body, Key, is_namespaced, parse_api_group
from gitsched.model.errors import Permanent
from gitsched.reconcile.cache.parse_cache import ParseCache
from gitsched.render.layout import CLUSTERS, KEPT, PLACEMENTS, RUN_METADATA, STATUS, status_path
from gitsched.render.records import LOCAL_CONFIG, make_record
from gitsched.render.run_metadata import RunMetadata, parse_run_metadata

_MAPPINGS = ("metadata", "spec", "status")
_OUTPUT_NAMES = re.compile(rf"(README|LICENSE|\.git|hydrator\.metadata$|({CLUSTERS}|{STATUS}|{PLACEMENTS}|{KEPT})$)", re.IGNORECASE)
"""What a branch may hold that gitsched takes over: what it writes itself, and what forges put into a new repository."""


class OutputRecords(Mapping[Key, Body]):
    """The documents under status/ of an output tree. Bodies are shared by blob id: what did not change is the very same object."""

    def __init__(self, repository: Repository, tree: str | None, prefix: str, memo: ParseCache, bodies: dict[str, Body]) -> None:
        self._repository, self._tree, self._prefix = repository, tree, prefix
        self._parse_cache, self._bodies = memo, bodies
        self._paths: dict[str, str] | None = None

    def prefetch(self) -> None:
        """Bring what the cache knows of all records into memory, in one go."""
        self._parse_cache.load(_make_cache_key(blob) for blob in self._list_blobs().values() if blob not in self._bodies)

    def __getitem__(self, key: Key) -> Body:
        blob = self._find_blob(key)
        if blob is None:
            raise KeyError(key)
        return self._read_body(blob)

    def __iter__(self) -> Iterator[Key]:
        return (_make_key(body) for blob in self._list_blobs().values() if (body := self._read_body(blob)))

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Key, Body]]:
        """The records of one kind; only those are decoded."""
        under = status_path(Key(group, kind, "", "")).rpartition("/_/")[0] + "/"
        entries = self._repository.entries(self._tree, f"{self._prefix}{under}") if self._tree else []
        for entry in entries:
            if body := self._read_body(entry.blob):
                yield _make_key(body), body

    def list_except(self, keys: Iterable[Key]) -> Iterator[Body]:
        """The records of everything but the given identities; only those are decoded."""
        known = set(map(status_path, keys))
        return (self._read_body(blob) for path, blob in self._list_blobs().items() if path not in known)

    def add_written(self, bodies: Iterable[tuple[Key, Body]]) -> None:
        """Take bodies that were just written to this tree for what reading them back would give."""
        for key, body in bodies:
            blob = self._find_blob(key)
            if blob is not None:
                self._bodies.setdefault(blob, _strip_file_metadata(make_record(body)))

    def __len__(self) -> int:
        return len(self._list_blobs())

    def _find_blob(self, key: Key) -> str | None:
        """The blob of a record: one look where only few are asked for, a list of all where that is there."""
        path = status_path(key)
        if self._paths is not None:
            return self._paths.get(path)
        entry = self._repository.find_entry(self._tree, f"{self._prefix}{path}") if self._tree else None
        return entry[0] if entry else None

    def _list_blobs(self) -> dict[str, str]:
        if self._paths is None:
            entries = self._repository.entries(self._tree, f"{self._prefix}{STATUS}") if self._tree else []
            self._paths = {entry.path.removeprefix(self._prefix): entry.blob for entry in entries}
        return self._paths

    def _read_body(self, blob: str) -> Body:
        body = self._bodies.get(blob)
        if body is None:
            file = self._parse_cache.get(_make_cache_key(blob)) or self._parse_blob(blob)
            body = self._bodies[blob] = _strip_file_metadata(file.documents[0].body) if file.documents else {}
        return body

    def _parse_blob(self, blob: str) -> ParsedFile:
        from gitsched.manifests.parser import parse_file  # loads PyYAML, and most records are remembered

        file = parse_file(self._repository.blob(blob), path="status.yaml", check=None)
        self._parse_cache.put(_make_cache_key(blob), file)
        return file


def read_run_record(repository: Repository, tree: str | None, prefix: str) -> RunMetadata | None:
    """gitsched.json of an output tree; None where there is none.

    Permanent where a whole branch is somebody else's: gitsched replaces what it finds, and a mistyped name must not empty a branch.
    """
    entry = repository.find_entry(tree, f"{prefix}{RUN_METADATA}") if tree else None
    if tree and entry is None and not prefix:
        foreign = [name for name in repository.list_directory(tree, "") if not _OUTPUT_NAMES.match(name)]
        if foreign:
            known = ", ".join(sorted(foreign)[:3])
            raise Permanent(
                f"the output branch exists, and gitsched did not write it: it holds no {RUN_METADATA}, but {known}. "
                "Choose another branch, or set output.path to share this one"
            )
    return parse_run_metadata(repository.blob(entry[0])) if entry else None


def read_previous_output(
    repository: Repository, tree: str | None, prefix: str, records: OutputRecords, record: RunMetadata | None
) -> PreviousOutput:
    """The previous output in the plan's terms."""
    clusters = repository.list_directory(tree, f"{prefix}{CLUSTERS}") if tree else {}
    retiring: Mapping[str, datetime] = record.retiring if record else {}
    return PreviousOutput(
        records, records.list_except, partial(find_output_blob, repository, tree, prefix), frozenset(clusters), retiring
    )


def find_output_blob(repository: Repository, tree: str | None, prefix: str, path: str) -> str | None:
    """The blob of a path of the output."""
    entry = repository.find_entry(tree, f"{prefix}{path}") if tree else None
    return entry[0] if entry else None


def _strip_file_metadata(body: Body) -> Body:
    """The record without the annotation that only its file carries, and without what could be none of ours: people may have written
    to the branch."""
    body = {name: value for name, value in body.items() if isinstance(value, dict) or name not in _MAPPINGS}
    metadata = body.get("metadata") or {}
    held = metadata.get("annotations")
    annotations = {name: text for name, text in held.items() if name != LOCAL_CONFIG} if isinstance(held, dict) else {}
    # In their place among the members: a record that is kept goes back with the bytes that it has.
    metadata = {name: annotations if name == "annotations" else value for name, value in metadata.items()}
    return {**body, "metadata": {name: value for name, value in metadata.items() if value or name != "annotations"}}


def _make_key(body: Body) -> Key:
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    metadata = body.get("metadata") or {}
    namespace = str(metadata.get("namespace") or "")
    return Key(group, kind, namespace if is_namespaced(group, kind) is not False else "", str(metadata.get("name") or ""))


def _make_cache_key(blob: str) -> str:
    return f"status:{blob}"
