"""The records of the previous output, decoded on demand."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.output_config import OutputConfig as OutputConfig
from gitsched.git import Repository
from gitsched.manifests.parsed_file import MANY_FILES
from gitsched.model.document import Body, Key, is_namespaced, parse_api_group
from gitsched.model.fault import describe_fault
from gitsched.model.system_errors import is_bug
from gitsched.reconcile.run import Fetched, RunContext
from gitsched.render.output_files import (
    STATUS,
    make_record,
    status_path,
    strip_record,
)

if TYPE_CHECKING:
    from gitsched.manifests.record_parser import RecordParser
    from gitsched.reconcile.cache.caches import ParseCache

_log = logging.getLogger("gitsched.reconcile")


class OutputRecords(Mapping[Key, Body]):
    """The documents under status/ of an output tree. Bodies are shared by blob id: an unchanged record is the very same object."""

    def __init__(self, repository: Repository, tree: str | None, prefix: str, files: ParseCache, bodies: dict[str, Body]) -> None:
        self._repository, self._tree, self._prefix = repository, tree, prefix
        self._files, self._bodies = files, bodies
        self._paths: dict[str, str] | None = None
        self._blobs: dict[Key, str | None] = {}
        self._parser: RecordParser | None = None
        self._parsed = 0

    def prefetch(self) -> None:
        """Load all cached records into memory at once."""
        keys = {_make_record_key(blob): blob for blob in self._list_blobs().values() if blob not in self._bodies}
        self._files.load(keys)
        missing = [blob for key, blob in keys.items() if self._files.parsed.get(key) is None]
        self._repository.prefetch(missing)
        if len(missing) >= MANY_FILES:
            self._prepare_parser()

    def _prepare_parser(self) -> None:
        from gitsched.manifests.record_parser import RecordParser  # most records are cached

        self._parser = RecordParser()

    def __getitem__(self, key: Key) -> Body:
        blob = self._find_blob(key)
        if blob is None:
            raise KeyError(key)
        return self._read_body(blob)

    def __iter__(self) -> Iterator[Key]:
        return (_make_key(body) for blob in self._list_blobs().values() if (body := self._read_body(blob)))

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Key, Body]]:
        """Yield the records of one kind. No other record is decoded."""
        under = status_path(Key(group, kind, "", "")).rpartition("/_/")[0] + "/"
        entries = self._repository.entries(self._tree, f"{self._prefix}{under}") if self._tree else []
        for entry in entries:
            if body := self._read_body(entry.blob):
                yield _make_key(body), body

    def outside_groups(self, groups: Collection[str]) -> Iterator[tuple[Key, Body]]:
        """Yield the records whose group is not one of `groups`. No other record is decoded."""
        excluded = tuple(status_path(Key(group, "", "", "")).partition("/_/")[0] + "/" for group in groups)
        for path, blob in self._list_blobs().items():
            if not path.startswith(excluded) and (body := self._read_body(blob)):
                yield _make_key(body), body

    def list_except(self, keys: Iterable[Key]) -> Iterator[Body]:
        """Yield the records without the given identities. No other record is decoded."""
        known = set(map(status_path, keys))
        return (self._read_body(blob) for path, blob in self._list_blobs().items() if path not in known)

    def add_written(self, bodies: Iterable[tuple[Key, Body]]) -> None:
        """Add bodies that this process wrote to the tree, so that they need not be read back."""
        for key, body in bodies:
            blob = self._find_blob(key)
            if blob is not None:
                self._bodies.setdefault(blob, strip_record(make_record(body)))

    def __len__(self) -> int:
        return len(self._list_blobs())

    def _find_blob(self, key: Key) -> str | None:
        """Return the blob of a record, from the list of all records where it is loaded, else by a lookup of this one."""
        if self._paths is not None:
            return self._paths.get(status_path(key))
        if key not in self._blobs:
            entry = self._repository.find_entry(self._tree, f"{self._prefix}{status_path(key)}") if self._tree else None
            self._blobs[key] = entry[0] if entry else None
        return self._blobs[key]

    def _list_blobs(self) -> dict[str, str]:
        if self._paths is None:
            entries = self._repository.entries(self._tree, f"{self._prefix}{STATUS}") if self._tree else []
            self._paths = {entry.path.removeprefix(self._prefix): entry.blob for entry in entries}
        return self._paths

    def _read_body(self, blob: str) -> Body:
        body = self._bodies.get(blob)
        if body is None:
            try:
                body = strip_record(self._parse_body(blob))
            except Exception as error:
                if not is_bug(error):
                    raise
                body = _skip_record(blob, error)
            self._bodies[blob] = body
        return body

    def _parse_body(self, blob: str) -> Body:
        """Return the body of a record; {} for a file without one. Records that `RecordParser` reads are not cached: that takes as long."""
        file = self._files.parsed.get(_make_record_key(blob))
        if file is None:
            data = self._repository.blob(blob)
            self._parsed += 1
            if self._parsed == MANY_FILES:
                self._prepare_parser()
            body = self._parser.parse(data) if self._parser is not None else None
            if body is not None:
                return body
            from gitsched.manifests.parser import parse_file  # loads PyYAML, and most records are cached

            file = parse_file(data, path="status.yaml", validate=None)
            self._files.put(_make_record_key(blob), file)
        return file.documents[0].body if file.documents else {}


def _skip_record(blob: str, error: Exception) -> Body:
    """Return an empty record in place of one on which a bug shows. As with a damaged file, what it describes is decided again."""
    _log.warning("%s while the record %s of the output branch was read; report this bug with the id", describe_fault(error), blob)
    return {}


def open_records(context: RunContext, fetched: Fetched) -> OutputRecords:
    """Return the records of the previous output."""
    caches = context.caches
    return OutputRecords(fetched.output.repository, fetched.output_tree, fetched.prefix, caches.files, caches.record_bodies)


def _make_key(body: Body) -> Key:
    group, kind = parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    metadata = body.get("metadata") or {}
    namespace = str(metadata.get("namespace") or "")
    return Key(group, kind, namespace if is_namespaced(group, kind) is not False else "", str(metadata.get("name") or ""))


def _make_record_key(blob: str) -> str:
    return f"status:{blob}"
