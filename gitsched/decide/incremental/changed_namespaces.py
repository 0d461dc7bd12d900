"""Update the Namespaces of the source for an incremental plan: a changed one is in the directory of each cluster with objects in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.namespace_manifests import list_namespace_manifests
from gitsched.model.document import Key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.render.output_files import escape_segment

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.decide.incremental.plan_state import ClusterRow, PlanRows, Totals
    from gitsched.model.changes import Move
    from gitsched.model.planned_files import PlannedFile

NAMESPACE = ("", "Namespace")
NamespaceManifests = Mapping[str, tuple[str, "PlannedFile"]]


def update_namespace_manifests(
    totals: Totals,
    rows: PlanRows,
    changes: Mapping[Key, DocumentPair],
    changed: Iterable[ClusterRow],
    withheld: Iterable[Move],
) -> NamespaceManifests:
    """Return the path and manifest of each Namespace of the source by the directory of its objects, after changes of templates.

    Raise NeedsCompletePlan if one of the `changed` clusters has objects in a Namespace that documents define differently, or if the source
    does not have the Namespace of a workload with `withheld` changes any more.
    """
    _check_withheld(totals, rows, changes, withheld)
    unused = totals.source.unused & totals.source.repeated
    duplicates = _list_directories(key for key in unused if key[:2] == NAMESPACE)
    if duplicates and any(path.partition("/")[0] in duplicates for row in changed for path in row.manifest_paths):
        raise NeedsCompletePlan("a cluster has objects in a Namespace that is defined more than once")
    pairs = {key: pair for key, pair in changes.items() if key[:2] == NAMESPACE}
    if not pairs:
        return totals.namespace_manifests
    manifests = {name: known for name, known in totals.namespace_manifests.items() if name not in _list_directories(pairs)}
    present = {key: after for key, (_, after) in pairs.items() if after is not None}
    return manifests | list_namespace_manifests(present, totals.config.output.protected_namespaces)


def _check_withheld(totals: Totals, rows: PlanRows, changes: Mapping[Key, DocumentPair], withheld: Iterable[Move]) -> None:
    """Raise NeedsCompletePlan if a Namespace stays for workloads with withheld changes, or stays no longer."""
    names = {move.key.namespace for move in (*totals.withheld.moves, *withheld)}
    for name in names:
        key = Key(*NAMESPACE, "", name)
        is_gone = changes[key][1] is None if key in changes else key not in rows.template_index
        if is_gone and (key in changes or escape_segment(name) in totals.namespace_manifests):
            raise NeedsCompletePlan("the Namespace of workloads with withheld changes is gone")


def concerns_protected(keys: Iterable[Key], totals: Totals) -> bool:
    """Return whether one of these objects is a Namespace that only a complete plan delivers or leaves out."""
    found = [key for key in keys if key[:2] == NAMESPACE]
    return bool(found) and (
        bool(totals.source.with_variants) or any(key.name in totals.config.output.protected_namespaces for key in found)
    )


def list_rows_with_objects(rows: PlanRows, clusters: Iterable[str], changed: Iterable[Key]) -> dict[str, ClusterRow]:
    """Return the rows of the clusters that have objects in one of the `changed` Namespaces, by name."""
    directories = tuple(f"{name}/" for name in _list_directories(key for key in changed if key[:2] == NAMESPACE))
    found = ((name, rows.read_cluster(name)) for name in clusters) if directories else ()
    return {
        name: row for name, row in found if row is not None and any(path.startswith(directories) for path in row.manifest_paths)
    }


def _list_directories(keys: Iterable[Key]) -> Collection[str]:
    return {escape_segment(key.name) for key in keys}
