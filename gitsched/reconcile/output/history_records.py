"""Read what one commit of the output branch moved: workloads from their PlacementDecisions, and recorded decisions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.added_taints import read_added_taints
from gitsched.decide.cluster_conditions import index_cluster_kinds
from gitsched.decide.recorded_decisions import compare_recorded, describe_records, select_described
from gitsched.git import Repository
from gitsched.manifests.parser import parse_file
from gitsched.model.changes import Move, RecordChange
from gitsched.model.commit import Commit
from gitsched.model.document import Body, Key, as_object, parse_api_group
from gitsched.model.errors import GitschedError
from gitsched.model.history import HistoryFilter, PlacementMove, TaintChange
from gitsched.model.scheduling import RecordedDecision
from gitsched.named_tuples import NamedTuple
from gitsched.render.format_versions import FORMAT_VERSION, upgrade_record
from gitsched.render.output_files import PLACEMENTS, STATUS, cluster_path, status_path
from gitsched.render.placement_records import PlacementRecord, read_placement_key, read_placement_record

if TYPE_CHECKING:
    from gitsched.reconcile.run import Fetched, RunResult

MAX_MOVES = 2_000
"""Records of one commit that are read; the others are counted."""
MAX_RECORD = 4 << 20
"""Bytes of a record, a manifest or another file that is read."""
_KIND = re.compile(rb"^kind:[ \t]*[\"']?([A-Za-z][A-Za-z0-9]{0,62})[\"']?[ \t]*\r?$", re.MULTILINE)
_DIRECTORY_MODE = 0o040000


class HistoryBranch(NamedTuple):
    """An output branch: its name, a repository that has it, its head, where the output is inside of it, and whether it is local."""

    branch: str
    repository: Repository
    head: str
    prefix: str
    is_local: bool = False

    @classmethod
    def of_fetched(cls, fetched: Fetched) -> HistoryBranch:
        """Return the output branch as it was fetched."""
        output = fetched.output
        return cls(output.branch, output.repository, fetched.output_head or "", fetched.prefix)

    @classmethod
    def of_run(cls, run: RunResult) -> HistoryBranch:
        """Return the output branch as a run left it, in a repository of its own."""
        return cls(run.branch, Repository(run.git_directory), run.after or run.before or "", run.prefix)


class CommitRecords:
    """Reads the records of commits of an output branch, as far as a filter selects them. `read_version` returns the format version of a
    commit, so that records of different versions are compared in the same form."""

    def __init__(self, output: HistoryBranch, chosen: HistoryFilter, read_version: Callable[[Commit], int]) -> None:
        self._output, self._filter, self._read_version = output, chosen, read_version

    def read_moves(self, commit: Commit, parent: Commit | None, limit: int = 0) -> tuple[tuple[PlacementMove, ...], int]:
        """Return what a commit moved, from at most `limit` records, by default MAX_MOVES, and the number of the others."""
        limit = limit or MAX_MOVES
        before, after = (self._find_placements(each) for each in (parent, commit))
        if before == after:
            return (), 0
        paths = []
        for path in self._output.repository.changed_paths(before, after):
            key = read_placement_key(path)
            if key is not None and self._filter.selects_key(key):
                paths.append((path, key))
        moves = []
        for path, key in paths[:limit]:
            found = self._read_move(path, key, commit, parent, before, after)
            if found is not None and (found.damage or self._filter.selects_clusters(found.move.before, found.move.after)):
                moves.append(found)
        return tuple(moves), max(len(paths) - limit, 0)

    def list_placements(self, commit: Commit) -> Iterator[str]:
        """Yield the paths below placements/ of the records of a commit."""
        tree = self._find_placements(commit)
        return (entry.path for entry in self._output.repository.entries(tree)) if tree is not None else iter(())

    def list_selected(self, commit: Commit) -> Iterator[Key]:
        """Yield the workloads that a commit places and the filter selects, with their kinds in lower case."""
        for path in self.list_placements(commit):
            key = read_placement_key(path)
            if key is not None and self._filter.selects_key(key):
                if not self._filter.cluster:
                    yield key
                    continue
                record = self.read_placement(commit, path)
                if record is not None and self._filter.selects_clusters(record.clusters, {}):
                    yield key

    def read_placement(self, commit: Commit, path: str) -> PlacementRecord | None:
        """Return one record of a commit by its path below placements/; None if there is none."""
        return self._read_record(self._find_placements(commit), path)

    def read_recorded(self, commit: Commit) -> tuple[RecordedDecision, ...]:
        """Return all recorded decisions of a commit."""
        tree = self._find_tree(commit.tree, STATUS)
        listed = (entry.path for entry in self._output.repository.entries(tree)) if tree is not None else ()
        paths = [path for path in select_described(listed) if self._is_readable(tree, path)]
        return describe_records(self._read_bodies(tree, paths, self._read_version(commit)))

    def _find_placements(self, commit: Commit | None) -> str | None:
        return self._find_tree(commit.tree, PLACEMENTS) if commit is not None else None

    def _find_tree(self, tree: str, name: str, prefix: str | None = None) -> str | None:
        entry = self._output.repository.find_entry(tree, f"{self._output.prefix if prefix is None else prefix}{name}")
        return entry[0] if entry is not None and entry[1] == _DIRECTORY_MODE else None

    def _read_move(
        self, path: str, key: Key, commit: Commit, parent: Commit | None, before: str | None, after: str | None
    ) -> PlacementMove | None:
        """Return the move of a workload; None where only other parts of its record changed."""
        old, new = self._read_record(before, path), self._read_record(after, path)
        damage = "; ".join(
            f"the record {when} cannot be read: {record.damage}"
            for when, record in (("before", old), ("after", new))
            if record is not None and record.damage
        )
        was, now = old or PlacementRecord({}), new or PlacementRecord({})
        if was.clusters == now.clusters and not damage:
            return None
        named = key._replace(kind=self._find_kind(commit, parent, path, was, now) or key.kind)
        move = Move(named, was.clusters, now.clusters, now.reason)
        return PlacementMove(move, was.reason if was.reason != now.reason else "", new is None, damage)

    def _read_record(self, tree: str | None, path: str) -> PlacementRecord | None:
        entry = self._output.repository.find_entry(tree, path) if tree is not None else None
        if entry is None:
            return None
        try:
            data = self._output.repository.read_small_blob(entry[0], MAX_RECORD)
            return _parse_record(data) if data is not None else PlacementRecord({}, damage=f"it has more than {MAX_RECORD} bytes")
        except GitschedError as error:
            return PlacementRecord({}, damage=str(error))

    def _find_kind(self, commit: Commit, parent: Commit | None, path: str, was: PlacementRecord, now: PlacementRecord) -> str:
        """Return the kind as a manifest of the workload writes it; "" if there is none."""
        for each, record in ((commit, now), (parent, was)):
            name = next(iter(record.clusters), None)
            if each is None or name is None:
                continue
            entry = self._output.repository.find_entry(each.tree, f"{self._output.prefix}{cluster_path(name, path)}")
            if entry is None:
                continue
            try:
                match = _KIND.search(self._output.repository.read_small_blob(entry[0], MAX_RECORD) or b"")
            except GitschedError:
                continue
            if match is not None:
                return match[1].decode()
        return ""

    def read_record_changes(self, commit: Commit, parent: Commit | None) -> tuple[tuple[RecordChange, ...], int]:
        """Return the recorded decisions that changed, from the records that changed, and how many records are not read because of a
        limit."""
        before, after = (self._find_tree(each.tree, STATUS) if each is not None else None for each in (parent, commit))
        if before == after:
            return (), 0
        changed = list(select_described(self._output.repository.changed_paths(before, after)))
        paths = [path for path in changed[:MAX_MOVES] if self._is_readable(before, path) and self._is_readable(after, path)]
        versions = (FORMAT_VERSION if each is None else self._read_version(each) for each in (parent, commit))
        old, new = (
            describe_records(self._read_bodies(tree, paths, version))
            for tree, version in zip((before, after), versions, strict=True)
        )
        changes = tuple(change for change in compare_recorded(old, new) if self._selects_record(change))
        return changes, len(changed) - len(paths)

    def read_added_taints(self, commit: Commit, parent: Commit) -> Iterator[TaintChange]:
        """Yield the taints that conditions and policies of the API added to clusters, or that ended, with a commit."""
        before, after = (self._find_tree(each.tree, STATUS) for each in (parent, commit))
        if before == after:
            return
        for topology in index_cluster_kinds().values():
            if topology.taints is None:
                continue
            directory = status_path(Key(topology.group, topology.kind, "", "x")).removeprefix(f"{STATUS}/").rpartition("/")[0]
            old, new = (self._find_tree(tree, directory, "") if tree is not None else None for tree in (before, after))
            if old == new:
                continue
            paths = self._output.repository.changed_paths(old, new)[:MAX_MOVES]
            sides = [
                {
                    (key.name, str(added.taint)): added
                    for key, body in self._read_bodies(tree, paths, self._read_version(each))
                    for added in read_added_taints(body)
                }
                for tree, each in ((old, parent), (new, commit))
            ]
            for index, side in enumerate(sides):
                for (name, text), added in side.items():
                    if (name, text) not in sides[1 - index]:
                        yield TaintChange(name, text, added.taint.effect == topology.taints.drain, bool(index), "", added.added_by)

    def has_record(self, commit: Commit, key: Key, mark: bytes = b"") -> bool:
        """Return whether a commit has a record with a key, which contains `mark`."""
        entry = self._output.repository.find_entry(commit.tree, f"{self._output.prefix}{status_path(key)}")
        data = self._output.repository.read_small_blob(entry[0], MAX_RECORD) if entry is not None else None
        return data is not None and mark in data

    def read_record(self, commit: Commit, key: Key) -> Body | None:
        """Return the record of a commit with a key; None if there is none."""
        tree, path = self._find_tree(commit.tree, STATUS), status_path(key).removeprefix(f"{STATUS}/")
        if tree is None or not self._is_readable(tree, path):
            return None
        return next((body for _, body in self._read_bodies(tree, [path], self._read_version(commit))), None)

    def _is_readable(self, tree: str | None, path: str) -> bool:
        entry = self._output.repository.find_entry(tree, path) if tree is not None else None
        return entry is None or self._output.repository.blob_size(entry[0]) <= MAX_RECORD

    def _read_bodies(self, tree: str | None, paths: Iterable[str], version: int) -> Iterator[tuple[Key, Body]]:
        for path in paths:
            entry = self._output.repository.find_entry(tree, path) if tree is not None else None
            if entry is None:
                continue
            for document in parse_file(self._output.repository.blob(entry[0]), path="record.yaml", validate=None).documents:
                metadata, api_version = (
                    as_object(document.body.get("metadata")),
                    document.body.get("apiVersion") or document.body.get("api"),
                )
                name, namespace = (str(metadata.get(field) or "") for field in ("name", "namespace"))
                group, kind = parse_api_group(str(api_version or "")), str(document.body.get("kind") or "")
                yield Key(group, kind, namespace, name), upgrade_record(group, kind, document.body, version)

    def _selects_record(self, change: RecordChange) -> bool:
        before, after = ({target.name: None for target in targets} for targets in (change.before, change.after))
        changed = dict.fromkeys(before.keys() ^ after.keys()) or {**before, **after}
        return self._filter.selects_key(change.subject) and self._filter.selects_clusters(changed, {})


def identify_recorded(key: Key) -> Key:
    """Return a key as a path of the output branch has it."""
    return key._replace(kind=key.kind.lower(), group=key.group.lower())


def _parse_record(data: bytes) -> PlacementRecord:
    parsed = parse_file(data, path="placement.yaml", validate=None)
    if parsed.status != "resources":
        issue = parsed.issues[0].message if parsed.issues else parsed.reason or "it has no document"
        return PlacementRecord({}, damage=issue)
    return read_placement_record([document.body for document in parsed.documents])
