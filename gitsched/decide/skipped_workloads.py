"""Workloads that a plan skips because a bug shows on them: which records and files the previous output has of them, and how these stay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from gitsched.apis.policy_api import RemovedWorkload
from gitsched.decide.catalog import RawDocument
from gitsched.decide.delivered_replicas import restore_delivered
from gitsched.decide.registry import apis_by_group
from gitsched.model.document import Body, Key
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.system_errors import is_bug
from gitsched.named_tuples import NamedTuple
from gitsched.render.output_files import cluster_path, escape_segment, placement_path, relative_path, status_path

FindBlob = Callable[[str], str | None]


class SkippedWorkload(NamedTuple):
    """A workload whose files stay as the previous output has them: its records, its objects, and its replicas by cluster."""

    key: Key
    records: tuple[Key, ...]
    objects: tuple[Key, ...]
    replicas: Mapping[str, int | None]


class OwnedRecords:
    """The previous records by the workload that they are about."""

    def __init__(self, records: Mapping[Key, Body]) -> None:
        self._records = records
        self._workloads = {key: _read_workload(key, records) for key in sorted(records)}

    def list_of(self, documents: Iterable[RawDocument]) -> list[Key]:
        """Return the records of the workloads of documents."""
        names, aliases = _name_records(documents)
        return [key for key in self._workloads if self._belongs(key, names, aliases)]

    def find_owners(self, record: Key, documents: Sequence[RawDocument]) -> Iterator[int]:
        """Yield the positions of the documents whose workload a record is about."""
        for number, document in enumerate(documents):
            if self._belongs(record, *_name_records([document])):
                yield number

    def list_skipped(self, documents: Iterable[RawDocument]) -> list[SkippedWorkload]:
        """Return the workloads of documents, and those that only they bring to clusters."""
        skipped = []
        for document in documents:
            own = self.list_of([document])
            namespaces = {key.namespace for key in own} or {document.namespace or "default", ""}
            keys = [Key(document.group, document.kind, namespace, document.name) for namespace in sorted(namespaces)]
            found = [workload for key in own if (workload := self._workloads[key]) is not None]
            skipped += [_make_skipped(one, own) for one in found] or [SkippedWorkload(key, tuple(own), (key,), {}) for key in keys]
            names = {(key.namespace, key.name) for key in own}
            skipped += [
                _make_skipped(workload, [key])
                for key, workload in self._workloads.items()
                if workload is not None and workload.required_by & names and key not in own
            ]
        return skipped

    def list_moved(self, keys: Collection[Key]) -> list[SkippedWorkload]:
        """Return the workloads with these keys."""
        found = [(key, workload) for key, workload in self._workloads.items() if workload is not None and workload.key in keys]
        known = {workload.key for _, workload in found}
        others = [SkippedWorkload(key, (), (key,), {}) for key in sorted(keys) if key not in known]
        return [*(_make_skipped(workload, [key]) for key, workload in found), *others]

    def _belongs(self, key: Key, names: set[tuple[str, str, str]], aliases: set[str]) -> bool:
        workload = self._workloads[key]
        if workload is not None:
            return (*workload.key[:2], workload.key.name) in names
        return (key.group, key.kind, key.name) in names or key.name in aliases


def _name_records(documents: Iterable[RawDocument]) -> tuple[set[tuple[str, str, str]], set[str]]:
    """Return the group, kind and name of documents, and the names that a record of them may have.

    The latter are for a record that cannot be read, or that is about no cluster: its name begins with that of its workload.
    """
    names = {(document.group, document.kind, document.name) for document in documents}
    return names, {alias for _, kind, name in names for alias in (name, f"{name}-{kind.lower()}", f"{name}.{kind.lower()}")}


def _read_workload(key: Key, records: Mapping[Key, Body]) -> RemovedWorkload | None:
    api = apis_by_group.get(key.group)
    try:
        found = api.read_removed_workload(records[key]) if api is not None and api.read_removed_workload is not None else None
        return restore_delivered(found, records[key]) if found is not None else None
    except Exception as error:
        if not is_bug(error):
            raise
        return None


def _make_skipped(workload: RemovedWorkload, records: Iterable[Key]) -> SkippedWorkload:
    objects = (workload.key,) if workload.objects is None else workload.objects
    return SkippedWorkload(workload.key, tuple(records), objects, workload.replicas)


def list_object_paths(skipped: Iterable[SkippedWorkload]) -> frozenset[str]:
    """Return the paths of the objects of workloads, relative to the directory of a cluster."""
    return frozenset(relative_path(key) for workload in skipped for key in workload.objects)


def add_skipped_records(skipped: Iterable[SkippedWorkload], find_blob: FindBlob, files: dict[str, PlannedFile]) -> None:
    """Add the records of workloads as the previous output has them."""
    for workload in skipped:
        for path in (placement_path(workload.key), *map(status_path, workload.records)):
            blob = find_blob(path)
            if blob is not None:
                files.setdefault(path, ExistingBlob(blob))


def add_skipped_objects(
    skipped: Collection[SkippedWorkload],
    cluster: str,
    delivered: Collection[str],
    find_blob: FindBlob,
    manifests: dict[str, PlannedFile],
) -> tuple[int, int]:
    """Add the objects of workloads that a cluster has in the previous output, and return how many workloads and replicas these are.

    `delivered` are the paths that its directory has. What another workload delivers at a path takes precedence.
    """
    workloads = replicas = 0
    for workload in skipped:
        paths = [path for path in map(relative_path, workload.objects) if path in delivered]
        for path in paths:
            blob = find_blob(cluster_path(cluster, path))
            if blob is not None:
                manifests.setdefault(path, ExistingBlob(blob))
        names = [name for name in workload.replicas if escape_segment(name) == escape_segment(cluster)]
        if paths or names:
            workloads += 1
            replicas += sum(workload.replicas[name] or 0 for name in names)
    return workloads, replicas
