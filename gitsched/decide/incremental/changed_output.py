"""The files of the output tree that an incremental plan changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.incremental.changed_namespaces import NAMESPACE
from gitsched.decide.namespace_manifests import add_namespace_manifests
from gitsched.model.document import Key
from gitsched.model.planned_files import ExistingBlob
from gitsched.named_tuples import NamedTuple
from gitsched.render.cluster_directory import complete_directory, write_cluster_json
from gitsched.render.output_files import CLUSTER_JSON, cluster_path, status_path, write_record

if TYPE_CHECKING:
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.changed_namespaces import NamespaceManifests
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import ClusterRow, Totals
    from gitsched.decide.rendered_tree import BlobLookup
    from gitsched.model.document import Body
    from gitsched.model.planned_files import PlannedFile

_UNCHANGED = ExistingBlob("")
"""Placeholder for a file of a cluster directory that does not change."""


class CopyPaths(NamedTuple):
    """Relative paths of retained copies by cluster: in the last plan, and in this one. `kept` are those of this plan at which the copy
    stays, rather than the manifest of a workload; `kept_facts` are clusters whose cluster.json stays, and `changed_facts` those where it no
    longer does."""

    before: Mapping[str, frozenset[str]] = {}
    after: Mapping[str, frozenset[str]] = {}
    kept: Mapping[str, frozenset[str]] = {}
    kept_facts: frozenset[str] = frozenset()
    changed_facts: frozenset[str] = frozenset()

    @property
    def changed_clusters(self) -> set[str]:
        """The clusters that get or lose a copy."""
        names = {*self.before, *self.after, *self.changed_facts}
        return {name for name in names if name in self.changed_facts or self.before.get(name) != self.after.get(name)}


NO_COPY_PATHS = CopyPaths()


def list_changed_files(
    changes: IncrementalChanges, new_totals: Totals, cluster_rows: Mapping[str, ClusterRow], copies: CopyPaths
) -> Iterable[tuple[str, PlannedFile | None]]:
    """Yield the changed files of the output tree by path; None for a removed file."""
    yield from _list_changed_manifests(changes, new_totals, cluster_rows, copies)
    for removed in changes.removed.values():
        yield from ((path, None) for path in removed.record_paths)
    for key, files in changes.workloads.items():
        before = changes.rows.read_workload(key)
        yield from ((path, None) for path in (before.record_paths if before else ()) if path not in files.records)
        yield from files.records.items()
    yield from _list_changed_records(changes.totals.engines.records, changes.continued.records).items()


def has_record_conflict(changes: IncrementalChanges, find_blob: BlobLookup) -> bool:
    """Return whether a workload or an engine would overwrite the record of another one."""
    totals, records = changes.totals, changes.continued.records
    new: list[str] = []
    for key, files in changes.workloads.items():
        row = changes.rows.read_workload(key)
        new += (path for path in files.records if row is None or path not in row.record_paths)
    if records != totals.engines.records:
        known = {key for key, _ in totals.engines.records}
        new += (status_path(key) for key, _ in records if key not in known)
    return len(set(new)) < len(new) or any(find_blob(path) is not None for path in new)


def _list_changed_manifests(
    changes: IncrementalChanges, new_totals: Totals, cluster_rows: Mapping[str, ClusterRow], copies: CopyPaths
) -> Iterable[tuple[str, PlannedFile | None]]:
    totals, snapshot = changes.totals, changes.snapshot
    same_namespaces = new_totals.namespace_manifests is totals.namespace_manifests and changes.diff.tenants is None
    former = snapshot
    if changes.diff.tenants is not None and snapshot.tenancy is not None:
        former = snapshot._replace(tenancy=snapshot.tenancy._replace(paths=changes.diff.tenants.before))
    select_old = _select_namespaces(totals.namespace_manifests, former)
    select_new = _select_namespaces(new_totals.namespace_manifests, snapshot)
    for name, row in cluster_rows.items():
        previous = changes.rows.read_cluster(name)
        kept = copies.kept.get(name, frozenset())
        rendered = (files.manifests.get(name, {}) for files in changes.workloads.values())
        changed = {path: file for files in rendered for path, file in files.items() if path not in kept}
        if previous is not None and previous.manifest_paths == row.manifest_paths and same_namespaces:
            yield from ((cluster_path(name, path), file) for path, file in changed.items())
            if previous.facts != row.facts and name not in copies.kept_facts:
                yield cluster_path(name, CLUSTER_JSON), write_cluster_json(row.facts)
        else:
            old = _list_directory_files(previous, {}, totals, select_old(name)) if previous else {}
            new = _list_directory_files(row, changed, new_totals, select_new(name))
            if name in copies.kept_facts:
                new[CLUSTER_JSON] = _UNCHANGED
            yield from ((cluster_path(name, path), None) for path in old if path not in new)
            yield from (
                (cluster_path(name, path), file) for path, file in new.items() if file is not _UNCHANGED and old.get(path) != file
            )
        if name in copies.changed_facts:
            yield cluster_path(name, CLUSTER_JSON), write_cluster_json(row.facts)


def _select_namespaces(manifests: NamespaceManifests, snapshot: Snapshot) -> Callable[[str], NamespaceManifests]:
    """Return what gives the Namespaces of the source that a cluster may get."""
    if snapshot.tenancy is None or not manifests:
        return lambda _: manifests
    from gitsched.decide.tenants.tenant_namespaces import make_namespace_filter  # few sources have tenants

    keys = [Key(*NAMESPACE, "", directory) for directory in manifests]
    return make_namespace_filter(manifests, keys, snapshot.documents, snapshot.tenancy)


def _list_directory_files(
    row: ClusterRow, changed: Mapping[str, PlannedFile], totals: Totals, namespaces: NamespaceManifests
) -> dict[str, PlannedFile]:
    files: dict[str, PlannedFile] = {path: changed.get(path, _UNCHANGED) for path in row.manifest_paths}
    files_with_namespaces = add_namespace_manifests(files, namespaces)
    return complete_directory(row.facts, files_with_namespaces, totals.config.output.protected_namespaces)


def _list_changed_records(before: Iterable[tuple[Key, Body]], after: Iterable[tuple[Key, Body]]) -> dict[str, PlannedFile | None]:
    """Return the files of the changed records that belong to no workload; None for a removed one."""
    if before == after:
        return {}
    old, new = dict(before), dict(after)
    gone: dict[str, PlannedFile | None] = {status_path(key): None for key in old if key not in new}
    return {**gone, **{status_path(key): write_record(body) for key, body in new.items() if old.get(key) != body}}
