"""The last run's output as the plan needs it: records by identity, decoded when they are asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial

from gitsched.git import Repository
from gitsched.manifests.file import File
from gitsched.model.document import Body, Key, group_of
from gitsched.model.errors import Permanent
from gitsched.model.scope import is_namespaced
from gitsched.plan.planning import Before
from gitsched.reconcile.memo import Memo
from gitsched.render.layout import CLUSTERS, KEPT, PLACEMENTS, RECORD, STATUS, status_path
from gitsched.render.record import Record, parse_record
from gitsched.render.status import LOCAL_CONFIG, make_record

_MAPPINGS = ("metadata", "spec", "status")
_OWN = re.compile(rf"(README|LICENSE|\.git|hydrator\.metadata$|({CLUSTERS}|{STATUS}|{PLACEMENTS}|{KEPT})$)", re.IGNORECASE)
"""What a branch may hold that gitsched takes over: what it writes itself, and what forges put into a new repository."""


class Records(Mapping[Key, Body]):
    """The documents under status/ of an output tree. Bodies are shared by blob id: what did not change is the very same object."""

    def __init__(self, repository: Repository, tree: str | None, prefix: str, memo: Memo, bodies: dict[str, Body]) -> None:
        self._repository, self._tree, self._prefix = repository, tree, prefix
        self._memo, self._bodies = memo, bodies
        self._listed: dict[str, str] | None = None

    def prefetch(self) -> None:
        """Bring what the cache knows of all records into memory, in one go."""
        self._memo.load(_memo_key(blob) for blob in self._blobs().values() if blob not in self._bodies)

    def __getitem__(self, key: Key) -> Body:
        blob = self._blob(key)
        if blob is None:
            raise KeyError(key)
        return self._body(blob)

    def __iter__(self) -> Iterator[Key]:
        return (_key(body) for blob in self._blobs().values() if (body := self._body(blob)))

    def of_kind(self, group: str, kind: str) -> Iterator[tuple[Key, Body]]:
        """The records of one kind; only those are decoded."""
        under = status_path(Key(group, kind, "", "")).rpartition("/_/")[0] + "/"
        entries = self._repository.entries(self._tree, f"{self._prefix}{under}") if self._tree else []
        for entry in entries:
            if body := self._body(entry.blob):
                yield _key(body), body

    def others(self, keys: Iterable[Key]) -> Iterator[Body]:
        """The records of everything but the given identities; only those are decoded."""
        known = set(map(status_path, keys))
        return (self._body(blob) for path, blob in self._blobs().items() if path not in known)

    def learn(self, bodies: Iterable[tuple[Key, Body]]) -> None:
        """Take bodies that were just written to this tree for what reading them back would give."""
        for key, body in bodies:
            blob = self._blob(key)
            if blob is not None:
                self._bodies.setdefault(blob, _unmark(make_record(body)))

    def __len__(self) -> int:
        return len(self._blobs())

    def _blob(self, key: Key) -> str | None:
        """The blob of a record: one look where only few are asked for, a list of all where that is there."""
        path = status_path(key)
        if self._listed is not None:
            return self._listed.get(path)
        entry = self._repository.entry(self._tree, f"{self._prefix}{path}") if self._tree else None
        return entry[0] if entry else None

    def _blobs(self) -> dict[str, str]:
        if self._listed is None:
            entries = self._repository.entries(self._tree, f"{self._prefix}{STATUS}") if self._tree else []
            self._listed = {entry.path.removeprefix(self._prefix): entry.blob for entry in entries}
        return self._listed

    def _body(self, blob: str) -> Body:
        body = self._bodies.get(blob)
        if body is None:
            file = self._memo.get(_memo_key(blob)) or self._read(blob)
            body = self._bodies[blob] = _unmark(file.documents[0].body) if file.documents else {}
        return body

    def _read(self, blob: str) -> File:
        from gitsched.manifests.reading import read  # loads PyYAML, and most records are remembered

        file = read(self._repository.blob(blob), path="status.yaml", check=None)
        self._memo.put(_memo_key(blob), file)
        return file


def read_record(repository: Repository, tree: str | None, prefix: str) -> Record | None:
    """gitsched.json of an output tree; None where there is none.

    Permanent where a whole branch is somebody else's: gitsched replaces what it finds, and a mistyped name must not empty a branch.
    """
    entry = repository.entry(tree, f"{prefix}{RECORD}") if tree else None
    if tree and entry is None and not prefix:
        foreign = [name for name in repository.listing(tree, "") if not _OWN.match(name)]
        if foreign:
            known = ", ".join(sorted(foreign)[:3])
            raise Permanent(
                f"the output branch exists, and gitsched did not write it: it holds no {RECORD}, but {known}. "
                "Choose another branch, or set output.path to share this one"
            )
    return parse_record(repository.blob(entry[0])) if entry else None


def read_before(repository: Repository, tree: str | None, prefix: str, records: Records, record: Record | None) -> Before:
    """The previous output in the plan's terms."""
    clusters = repository.listing(tree, f"{prefix}{CLUSTERS}") if tree else {}
    retiring: Mapping[str, datetime] = record.retiring if record else {}
    return Before(records, records.others, partial(look_up, repository, tree, prefix), frozenset(clusters), retiring)


def look_up(repository: Repository, tree: str | None, prefix: str, path: str) -> str | None:
    """The blob of a path of the output."""
    entry = repository.entry(tree, f"{prefix}{path}") if tree else None
    return entry[0] if entry else None


def _unmark(body: Body) -> Body:
    """The record without the annotation that only its file carries, and without what could be none of ours: people may have written
    to the branch."""
    body = {name: value for name, value in body.items() if isinstance(value, dict) or name not in _MAPPINGS}
    metadata = body.get("metadata") or {}
    held = metadata.get("annotations")
    annotations = {name: text for name, text in held.items() if name != LOCAL_CONFIG} if isinstance(held, dict) else {}
    # In their place among the members: a record that is kept goes back with the bytes that it has.
    metadata = {name: annotations if name == "annotations" else value for name, value in metadata.items()}
    return {**body, "metadata": {name: value for name, value in metadata.items() if value or name != "annotations"}}


def _key(body: Body) -> Key:
    group, kind = group_of(str(body.get("apiVersion") or body.get("api") or "")), str(body.get("kind") or "")
    metadata = body.get("metadata") or {}
    namespace = str(metadata.get("namespace") or "")
    return Key(group, kind, namespace if is_namespaced(group, kind) is not False else "", str(metadata.get("name") or ""))


def _memo_key(blob: str) -> str:
    return f"status:{blob}"
