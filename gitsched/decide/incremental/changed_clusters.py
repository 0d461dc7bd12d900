"""Update the rows of the clusters whose facts, workloads, replicas or manifests change in an incremental plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.decide.incremental.plan_state import ClusterRow, PlanRows, WorkloadRow
from gitsched.decide.rendered_tree import NOTHING_COUNTED, ReplicaCounts, count_replicas
from gitsched.model.planned_files import ClusterInfo

if TYPE_CHECKING:
    from gitsched.decide.incremental.changed_output import CopyPaths
    from gitsched.model.document import Key


def update_cluster_rows(
    rows: PlanRows,
    workload_rows: Mapping[Key, WorkloadRow | None],
    clusters: Mapping[str, ClusterInfo | None],
    copies: CopyPaths,
) -> dict[str, ClusterRow]:
    """Return the rows of changed clusters, by name.

    `workload_rows` are those of workloads that were decided again, None for removed ones. `clusters` are those whose facts changed, None
    for those without a document: they keep an empty directory for a while. `copies` are the paths of copies retained for an overlap.
    """
    counts: dict[str, ReplicaCounts] = {}
    removed: dict[str, set[str]] = {}
    added: dict[str, set[str]] = {}
    for key, row in workload_rows.items():
        for paths, one, sign in ((removed, rows.read_workload(key), -1), (added, row, 1)):
            if one is None:
                continue
            count_replicas(counts, one.outcome, sign)
            for cluster, relative_paths in one.manifest_paths.items():
                paths.setdefault(cluster, set()).update(relative_paths)
    cluster_rows = {}
    for name in sorted({*counts, *removed, *added, *clusters, *copies.changed_clusters}):
        before = rows.read_cluster(name)
        if before is None and clusters.get(name) is None:
            continue  # bound to a cluster without a document, which has no directory
        before = before or ClusterRow(ClusterInfo(name, {}), frozenset())
        facts = before.facts if name not in clusters else clusters[name] or ClusterInfo(name, {})
        known, change = before.facts, counts.get(name, NOTHING_COUNTED)
        workloads, replicas = known.workloads + change.workloads, known.replicas + change.replicas
        facts = facts._replace(workloads=workloads, replicas=replicas, marked=known.marked + change.marked)
        kept = before.manifest_paths - removed.get(name, set()) - copies.before.get(name, frozenset())
        cluster_rows[name] = ClusterRow(facts, kept | added.get(name, set()) | copies.after.get(name, frozenset()))
    return cluster_rows
