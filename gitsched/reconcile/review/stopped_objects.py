"""Objects that are one of several of a workload, such as a Deployment of a Bundle, and of which no cluster runs a replica any more."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from gitsched.apis.replicas import count_copy_replicas
from gitsched.manifests.parser import parse_file
from gitsched.model.changes import Move
from gitsched.model.document import Body, Key, parse_api_group
from gitsched.render.output_files import CLUSTERS, relative_path
from gitsched.report.consequences import FAILING_KINDS, classify_loss
from gitsched.report.lines import shrinks

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.diff.plans import FileChange
    from gitsched.git import Repository

MAX_STOPPED = 50
"""The number of paths of objects that are looked for in all clusters."""
_ZERO = re.compile(rb"""(?:replicas|parallelism|size)["']?[ \t]*:[ \t]*0\b""", re.IGNORECASE)


class OutputTrees:
    """Two trees of the output branch; `prefix` is where the output is inside them."""

    def __init__(self, repository: Repository, prefix: str, before: str | None, after: str, config: Config) -> None:
        self._repository, self._prefix, self._trees, self._config = repository, prefix, (before, after), config
        self.read = cache(self._read)
        self.count = cache(self._count)

    def find(self, side: int, path: str) -> str | None:
        """Return the blob at a path in the first or the second tree."""
        tree = self._trees[side]
        entry = self._repository.find_entry(tree, f"{self._prefix}{path}") if tree else None
        return entry[0] if entry is not None else None

    def count_all(self, relative: str) -> dict[str, int]:
        """Return the replicas of a manifest in each cluster that has it in the second tree."""
        names = self._repository.list_directory(self._trees[1] or "", f"{self._prefix}{CLUSTERS}")
        blobs = {name: self.find(1, f"{CLUSTERS}/{name}/{relative}") for name in sorted(names)}
        return {name: self.count(blob) for name, blob in blobs.items() if blob is not None}

    def has_no_replicas(self, blob: str | None) -> bool:
        """Return whether a manifest is not there, or may have 0 replicas."""
        return blob is None or bool(_ZERO.search(self._repository.blob(blob)))

    def _read(self, blob: str) -> Body:
        documents = parse_file(self._repository.blob(blob), path="", validate=None).documents
        return documents[0].body if documents else {}

    def _count(self, blob: str) -> int:
        return count_copy_replicas([self.read(blob)], self._config) or 0


def list_stopped_objects(
    files: Iterable[FileChange], moves: Sequence[Move], workloads: Sequence[Container[Key]], trees: OutputTrees
) -> Iterator[Move]:
    """Yield as moves the objects that lose their last replica while the workload that they are a part of goes on.

    `files` are the changed manifests, `workloads` the workloads of both plans, which are no parts.
    """
    owners = [
        move for move in moves if move.before and trees.find(0, f"{CLUSTERS}/{min(move.before)}/{relative_path(move.key)}") is None
    ]
    groups = _group_suspects(files, {relative_path(move.key) for move in moves}, trees)
    for relative, changes in sorted(groups.items())[:MAX_STOPPED]:
        key = _identify(trees.read(changes[0].before or ""))
        if not any(key in known for known in workloads):
            yield from _find_stopped(key, relative, changes, owners, trees)


def _find_stopped(
    key: Key, relative: str, changes: Iterable[FileChange], owners: Iterable[Move], trees: OutputTrees
) -> Iterator[Move]:
    """Yield the move of an object if no cluster runs a replica of it any more, unless a workload that it may be a part of stops as well."""
    before = {change.path.split("/", 2)[1]: trees.count(change.before or "") for change in changes}
    after = trees.count_all(relative) if any(before.values()) else {}
    parts = [move for move in owners if before.keys() <= move.before.keys()]
    if not any(before.values()) or any(after.values()) or any(classify_loss(move) in FAILING_KINDS for move in parts):
        return
    causes = [move.causes for move in parts if shrinks(move)]
    now = dict.fromkeys(after.keys() & before.keys(), 0)
    yield Move(key, before, now, "", causes[0] if len(causes) == 1 else (), intended=not after)


def _group_suspects(files: Iterable[FileChange], own: Container[str], trees: OutputTrees) -> dict[str, list[FileChange]]:
    """Return the changes after which a manifest is not there or may have 0 replicas, by its path in a cluster, without the paths `own`."""
    groups: dict[str, list[FileChange]] = {}
    for change in files:
        if change.before is not None and change.path.startswith(f"{CLUSTERS}/"):
            relative = change.path.split("/", 2)[2]
            if relative not in own and trees.has_no_replicas(change.after):
                groups.setdefault(relative, []).append(change)
    return groups


def _identify(body: Body) -> Key:
    metadata = body.get("metadata") or {}
    group = parse_api_group(str(body.get("apiVersion", "")))
    return Key(group, str(body.get("kind", "")), str(metadata.get("namespace", "")), str(metadata.get("name", "")))
