"""Continue an engine with changed Placements, clusters, cluster sets and scores: which workloads the results of Placements affect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gitsched.apis.capabilities import SnapshotChanges
from gitsched.apis.continuation import is_plain, keeps_followers
from gitsched.apis.gitsched.config import GROUP as CONFIG_GROUP
from gitsched.apis.ocm import names
from gitsched.apis.ocm.missing_placements import PlacementNames
from gitsched.apis.ocm.placement_states import PlacementState
from gitsched.apis.ocm.workloads import read_placement_annotation
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Document, Key

_OTHER_INPUTS = ((names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET), (CONFIG_GROUP, names.ROLLOUT_REPORT))
"""Kinds of documents besides Placements and what these are scheduled by, on which outcomes depend."""

Results = Mapping[Key, tuple[PlacementState, tuple[str, ...]]]
"""The state of each Placement, and which of its clusters exist."""


def can_continue(snapshot: Snapshot, changes: SnapshotChanges, *, has_followers: bool) -> bool:
    """Return whether all workloads are templates that follow Placements, or companions that follow workloads as before."""
    return (
        is_plain(snapshot)
        and not any(key[:2] in _OTHER_INPUTS for key in changes.api_documents)
        and (names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET) not in snapshot.documents
        and keeps_followers(snapshot, changes, has_followers=has_followers)
    )


def find_affected(before: Results, after: Results, changes: SnapshotChanges) -> Iterator[Key]:
    """Yield the templates whose Placement has another result than before, or does not exist, if another one may be meant now."""
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    if not changed:
        return
    known = None if before.keys() == after.keys() else (PlacementNames(before), PlacementNames(after))
    for key, entry in changes.template_index.items():
        if names.PLACEMENT_LABEL not in entry.annotations or _is_removed(changes, key):
            continue
        template = Document(key, entry.api_version, {"metadata": {"annotations": entry.annotations}})
        placement = read_placement_annotation(template)
        if placement in changed or (placement is not None and placement not in after and _differ(placement, known)):
            yield key


def _differ(missing: Key, known: tuple[PlacementNames, PlacementNames] | None) -> bool:
    """Return whether another Placement may be meant by a missing one than before."""
    return known is not None and len({names.suggest(missing, in_annotation=True) for names in known}) > 1


def find_selectable(before: Results, after: Results, changes: SnapshotChanges) -> frozenset[Key] | None:
    """Return the templates whose Placement has another result than before, both without records; None if other documents changed."""
    if any(key[:2] in _OTHER_INPUTS for key in changes.api_documents):
        return None
    return frozenset(find_affected(before, after, changes))


def _is_removed(changes: SnapshotChanges, key: Key) -> bool:
    pair = changes.templates.get(key)
    return pair is not None and pair[1] is None
