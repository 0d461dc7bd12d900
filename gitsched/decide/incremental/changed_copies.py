"""The copies that an incremental plan retains for an overlap, and what they change in the directories of clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from gitsched.decide.incremental.changed_moves import list_renames
from gitsched.decide.incremental.changed_output import CopyPaths
from gitsched.decide.incremental.plan_state import PlanTimes
from gitsched.decide.overlap.delivered_copies import DeliveredCopies
from gitsched.decide.overlap.retained_copies import retain_copies
from gitsched.decide.overlap.retained_files import RenderedWorkload, add_retained_files
from gitsched.decide.overlap.retention_input import RetentionInput
from gitsched.decide.relations.object_queries import has_far_companions
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.changes import CopyRetention
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.planned_files import ExistingBlob
from gitsched.model.scheduling import Outcome
from gitsched.render.output_files import CLUSTER_JSON, cluster_path, relative_path

if TYPE_CHECKING:
    from gitsched.decide.incremental.changed_moves import ChangedMoves
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.rendered_tree import BlobLookup
    from gitsched.model.changes import Move, RetainedCopy
    from gitsched.model.document import Body, Document
    from gitsched.model.planned_files import PlannedFile

_DELIVERED = ExistingBlob("")
"""Placeholder for a manifest of a workload that was not decided again."""


def retain_changed_copies(
    changes: IncrementalChanges, moves: ChangedMoves, leaving: Sequence[Outcome], find_blob: BlobLookup
) -> CopyRetention:
    """Return the retained copies of a plan. Raise NeedsCompletePlan if only a complete plan can tell, also if it preserves other copies
    than before."""
    retained = changes.totals.retained
    involved = {key for copy in retained for key in (copy.workload, copy.follows) if key is not None}
    involved |= {move.key for move in moves.moves if move.before}
    involved |= moves.renames.names.keys() if moves.renames is not None else set()
    if _waits_for_reports(changes):
        raise NeedsCompletePlan("a report of a cluster may say when a preserved copy goes")
    if not changes.restored.isdisjoint(involved):
        raise NeedsCompletePlan("the removal of a workload with copies that stay is withheld")
    if any(_is_composed(changes, key) for key in involved if changes.find_outcome(key) is not None):
        raise NeedsCompletePlan("a workload that consists of several objects moves")
    if not changes.totals.undelivered.isdisjoint((*(copy.workload for copy in retained), *_list_losing(moves.moves))):
        raise NeedsCompletePlan("a cluster may have another manifest of a moving workload than was decided")
    retention = retain_copies(
        RetentionInput(
            lambda key: _find_outcome(changes, key),
            changes.snapshot.templates,
            changes.continued.engines,
            frozenset(move.key for move in changes.withheld.moves),
            moves.moves,
            moves.removed,
            (),
            retained,
            DeliveredCopies(changes.snapshot.previous, find_blob, lambda name: changes.rows.read_cluster(name) is not None),
            changes.is_cluster,
            partial(list_renames, changes),
            lambda companions, workloads: _list_companion_templates(changes, companions, workloads),
            PlanTimes(changes.snapshot.at, changes.snapshot.now),
            changes.totals.config,
            leaving=leaving,
            requested=changes.withheld.requested_clusters,
        )
    )
    copies = (*retained, *retention.copies)
    if any(copy.paths != (cluster_path(copy.cluster, relative_path(copy.workload)),) for copy in copies):
        raise NeedsCompletePlan("a copy that stays consists of several files")
    if _share_paths(changes, copies):
        raise NeedsCompletePlan("a copy that stays has the path of another object")
    if _preserves_more(retention, retained):
        raise NeedsCompletePlan("copies are preserved whose manifests have to be read")
    return retention


def _preserves_more(retention: CopyRetention, before: Iterable[RetainedCopy]) -> bool:
    """Return whether copies are preserved that were not preserved `before`: their manifests have to be read."""
    known = {(copy.workload, copy.cluster) for copy in before if copy.preserved}
    return any(copy.preserved and (copy.workload, copy.cluster) not in known for copy in retention.copies)


def _waits_for_reports(changes: IncrementalChanges) -> bool:
    """Return whether a report of a cluster may say when a preserved copy goes."""
    waiting = any(copy.preserved and copy.until is not None for copy in changes.totals.retained)
    return waiting and bool(changes.snapshot.documents.get(CLUSTER_REPORT))


def may_lack_replicas(changes: IncrementalChanges, moves: Iterable[Move]) -> bool:
    """Return whether a cluster may keep a manifest with fewer replicas than were decided again, so that others cannot lose theirs: one that
    did not keep it in the last plan, or that keeps it while others lose some, or the workload is removed."""
    if not changes.totals.undelivered.isdisjoint(changes.removed):
        return True
    losing = _list_losing(moves)
    withheld = {move.key for move in changes.withheld.moves}
    for key, outcome in changes.outcomes.items():
        if key in withheld:
            continue
        row = changes.rows.read_workload(key) if outcome.kept_clusters or key in changes.totals.undelivered else None
        kept = row.outcome.kept_clusters if row is not None else set()
        if (kept or outcome.kept_clusters) and (key in losing or kept != outcome.kept_clusters):
            return True
    return False


def _list_losing(moves: Iterable[Move]) -> set[Key]:
    """Return the workloads that have fewer replicas in a cluster than before."""
    return {
        move.key
        for move in moves
        if any(name not in move.after or (count or 0) > (move.after[name] or 0) for name, count in move.before.items())
    }


def list_copy_paths(
    changes: IncrementalChanges, retention: CopyRetention, retiring: Collection[str], find_blob: BlobLookup
) -> CopyPaths:
    """Return the paths of retained copies. Raise NeedsCompletePlan if a copy goes where the manifest of a workload that was not decided
    again takes its place. `retiring` are the clusters without a document."""
    before, placed = changes.totals.retained, {}
    for copy in (*before, *retention.copies):
        if copy.workload not in placed and (outcome := changes.find_outcome(copy.workload)) is not None:
            files = changes.workloads.get(copy.workload)
            placed[copy.workload] = RenderedWorkload(outcome, files.manifests if files else _read_manifests(changes, copy), {})
    manifests: dict[str, dict[str, PlannedFile]] = {}
    for copy in retention.copies:
        if copy.workload in placed:
            manifests.setdefault(copy.cluster, {}).update(placed[copy.workload].manifests.get(copy.cluster, {}))
    add_retained_files(retention.copies, placed, find_blob, manifests, {})
    after: dict[str, set[str]] = {}
    kept: dict[str, set[str]] = {}
    for copy in retention.copies:
        path = relative_path(copy.workload)
        file = manifests.get(copy.cluster, {}).get(path)
        if file is not None:
            after.setdefault(copy.cluster, set()).add(path)
        own = placed.get(copy.workload)
        if file is not None and (own is None or file is not own.manifests.get(copy.cluster, {}).get(path)):
            kept.setdefault(copy.cluster, set()).add(path)
    for copy in before:
        path = relative_path(copy.workload)
        own = placed.get(copy.workload)
        stays = path in kept.get(copy.cluster, ())
        if own is not None and own.manifests.get(copy.cluster, {}).get(path) is _DELIVERED and not stays:
            raise NeedsCompletePlan("a manifest that is not rendered takes the place of a copy")
    occupied, left = {copy.cluster for copy in retention.copies}, {copy.cluster for copy in before}
    known = {name for name in occupied if name in retiring and find_blob(cluster_path(name, CLUSTER_JSON)) is not None}
    return CopyPaths(
        _group_paths(before),
        {cluster: frozenset(paths) for cluster, paths in after.items()},
        {cluster: frozenset(paths) for cluster, paths in kept.items()},
        frozenset(known),
        frozenset(name for name in left - known if name in retiring),
    )


def _find_outcome(changes: IncrementalChanges, key: Key) -> Outcome | None:
    """Return the outcome of a workload, of one that was not decided again as far as retained copies depend on it."""
    outcome = changes.find_outcome(key)
    if outcome is None or key in changes.outcomes:
        return outcome
    row = changes.rows.read_workload(key)
    records: tuple[tuple[Key, Body], ...] = tuple((record, {}) for record in row.record_keys) if row is not None else ()
    return outcome._replace(records=records, time=changes.snapshot.at)


def _is_composed(changes: IncrementalChanges, key: Key) -> bool:
    """Return whether a workload consists of other objects than itself, or concerns the manifests of others."""
    if key.kind == "Namespace" or key in changes.totals.source.with_variants:
        return True
    outcome = changes.outcomes.get(key)
    if outcome is not None:
        return bool(outcome.manifests is not None or outcome.bundles or outcome.kept_paths)
    row = changes.rows.read_workload(key)
    own = {relative_path(key)}
    return row is not None and (
        bool(row.outcome.bundles) or any(not own.issuperset(paths) for paths in row.manifest_paths.values())
    )


def _share_paths(changes: IncrementalChanges, copies: Iterable[RetainedCopy]) -> bool:
    """Return whether the copy of a workload that is no longer placed has the path of another object, whose kind differs only in case."""
    foreign = {relative_path(copy.workload): copy.workload for copy in copies if changes.find_outcome(copy.workload) is None}
    if not foreign:
        return False
    names = {(key.namespace, key.name) for key in foreign.values()}
    keys = (*changes.rows.template_index, *changes.documents)
    return any((key.namespace, key.name) in names and foreign.get(relative_path(key), key) != key for key in keys)


def _list_companion_templates(
    changes: IncrementalChanges, companions: Collection[Key], workloads: Collection[Key]
) -> Mapping[Key, Document]:
    """Return companions and workloads, with all companions through which the former may belong to the latter."""
    keys = {*companions, *workloads}
    namespaces = {key.namespace for key in companions}
    has_far = has_far_companions(changes.rows.relations.database)
    known = (*changes.rows.template_index, *changes.templates)
    keys |= {key for key in known if key[:2] in COMPANION_KINDS and (has_far or key.namespace in namespaces)}
    templates = changes.snapshot.templates
    return {key: templates[key] for key in sorted(keys) if key in templates}


def _read_manifests(changes: IncrementalChanges, copy: RetainedCopy) -> dict[str, dict[str, PlannedFile]]:
    row = changes.rows.read_workload(copy.workload)
    found = row.manifest_paths.items() if row is not None else ()
    return {cluster: dict.fromkeys(paths, _DELIVERED) for cluster, paths in found}


def _group_paths(copies: Iterable[RetainedCopy]) -> dict[str, frozenset[str]]:
    grouped: dict[str, set[str]] = {}
    for copy in copies:
        grouped.setdefault(copy.cluster, set()).add(relative_path(copy.workload))
    return {cluster: frozenset(paths) for cluster, paths in grouped.items()}
