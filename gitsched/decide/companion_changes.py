"""Decide for an incremental plan whether the findings about companions stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.decide.delivered_objects import NO_CLUSTERS, Clusters
from gitsched.decide.plan_state import NO_COMPANION_ROW, CompanionRow, PlanRows
from gitsched.kinds.companion_index import CompanionIndex
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.companion_targets import NO_FEATURES, CompanionFeatures, is_far, read_features
from gitsched.model.document import Document, Key

if TYPE_CHECKING:
    from gitsched.decide.incremental_changes import IncrementalChanges
    from gitsched.kinds.requirements import PodPaths
    from gitsched.model.scheduling import Outcome

NEVER_RELATED = frozenset(
    ("", kind) for kind in ("ConfigMap", "LimitRange", "Namespace", "ResourceQuota", "Secret", "ServiceAccount")
)
"""Kinds that are neither companions nor targets of companions."""


def update_companions(changes: IncrementalChanges) -> dict[Key, CompanionRow] | None:
    """Return the rows of changed workloads and of their companions and targets, which all go along with each other; None if only a complete
    plan can tell."""
    rows, totals, came_or_went = changes.rows, changes.totals, changes.came_or_went
    if not totals.has_companions:
        return None if any(key[:2] in COMPANION_KINDS for key in came_or_went) else {}
    pod_paths, kept = totals.config.pod_paths, dict[Key, CompanionRow]()
    changed: dict[Key, CompanionFeatures] = dict.fromkeys(changes.removed, NO_FEATURES)
    for key, document in changes.documents.items():
        row, outcome = rows.read_workload(key), changes.outcomes.get(key)
        features = read_features(key, document.body, pod_paths)
        if outcome is None:
            before = changes.templates[key][0] if key in changes.templates else document
            same = row is None and before is not None and read_features(key, before.body, pod_paths) == features
            if features != NO_FEATURES and not same:
                return None
            continue
        companions = row.companions if row is not None else NO_COMPANION_ROW
        was_placed = row is not None and bool(row.outcome.targets)
        if row is None or features != (companions.features or NO_FEATURES) or was_placed != bool(outcome.targets):
            changed[key] = features
        elif companions.is_reported and (outcome.policy, outcome.state) != (row.outcome.policy, row.outcome.state):
            return None
        kept[key] = companions
    went = (key for key in came_or_went if key not in changes.documents and key not in changes.removed)
    if any(_had_features(changes.templates[key][0], pod_paths) for key in went):
        return None  # a companion that no policy selected is gone
    changed = {key: features for key, features in changed.items() if _matters(rows, key, features)}
    if changed:
        relations = None if totals.has_far_companions else _relate(changes, changed)
        if relations is None:
            return None
        kept |= relations
    for key in (*changes.documents, *changed):
        row, outcome = rows.read_workload(key), changes.outcomes.get(key)
        moved = row is None or outcome is None or _list_clusters(outcome) != _list_clusters(row.outcome)
        if (moved or key in changed) and not _go_along(changes, kept, key):
            return None
    return kept


def _matters(rows: PlanRows, key: Key, features: CompanionFeatures) -> bool:
    """Return whether an object can be a companion or target, or was one."""
    row = rows.read_workload(key)
    return features != NO_FEATURES or (row is not None and row.companions.features not in (None, NO_FEATURES))


def _had_features(document: Document | None, pod_paths: PodPaths) -> bool:
    return document is not None and read_features(document.key, document.body, pod_paths) != NO_FEATURES


def _relate(changes: IncrementalChanges, changed: Mapping[Key, CompanionFeatures]) -> dict[Key, CompanionRow] | None:
    """Return the rows of objects with changed features, and of all whose companions or targets they are or were; None if objects of other
    namespaces, or some that no policy selects, may be among these."""
    rows, namespaces = changes.rows, {key.namespace for key in changed}
    index: CompanionIndex[Key] = CompanionIndex()
    known: dict[Key, CompanionRow] = {}
    for key, entry in rows.template_index.items():
        if key.namespace not in namespaces or key in changed:
            continue
        row = rows.read_workload(key) if entry.placement is not None else None
        if row is None:
            if key[:2] not in NEVER_RELATED:
                return None  # what no policy selects may be a companion or a target as well
        elif row.companions.features is not None:
            known[key] = row.companions
            index.add(key, key, row.companions.features)
    before = {one for key in changed for one in _list_relations(rows, key)}
    for key, features in changed.items():
        if is_far(key, features):
            return None
        if features != NO_FEATURES:
            index.add(key, key, features)
    related = {*changed, *before, *index.list_related(changed)}
    targets = {one: index.list_targets(one) for one in sorted(related) if _is_compared(changes, index, one)}
    touched = {*related, *(one for found in targets.values() for one in found)} - {key for key in related if key in changes.removed}
    result = {}
    for key in sorted(touched):
        stored = known.get(key, NO_COMPANION_ROW)
        if stored.is_reported:
            return None
        served = [one for one in stored.companions if one not in related]
        served += [one for one, found in targets.items() if key in found]
        own_features = changed.get(key) or stored.features
        own = tuple(sorted(targets.get(key, ()))) if key in related else stored.targets
        result[key] = CompanionRow(None if own_features == NO_FEATURES else own_features, own, tuple(sorted(served)), False)
    return result


def _is_compared(changes: IncrementalChanges, index: CompanionIndex[Key], key: Key) -> bool:
    """Return whether an object is a companion that is placed and should go along with its targets."""
    features, clusters = index.find_features(key), _find_clusters(changes, key)
    return features is not None and features.is_companion and features.follows is not False and bool(clusters and clusters[0])


def _list_relations(rows: PlanRows, key: Key) -> tuple[Key, ...]:
    row = rows.read_workload(key)
    return (*row.companions.targets, *row.companions.companions) if row is not None else ()


def _go_along(changes: IncrementalChanges, kept: Mapping[Key, CompanionRow], key: Key) -> bool:
    """Return whether a changed object and its companions, before and now, each go exactly to the clusters of their targets."""
    row, now = changes.rows.read_workload(key), kept.get(key, NO_COMPANION_ROW)
    before = row.companions if row is not None else NO_COMPANION_ROW
    if before.is_reported or now.is_reported:
        return False
    own = (key,) if now.targets or before.targets else ()
    return all(_goes_along(changes, kept, one) for one in (*own, *before.companions, *now.companions) if one not in changes.removed)


def _goes_along(changes: IncrementalChanges, kept: Mapping[Key, CompanionRow], companion: Key) -> bool:
    """Return whether a companion goes exactly to the clusters of its targets."""
    row = changes.rows.read_workload(companion)
    companions = kept.get(companion) or (row.companions if row is not None else None)
    if companions is None:
        return False
    if not companions.targets:
        return True  # it selects nothing
    targets = NO_CLUSTERS
    for key in companions.targets:
        found = _find_clusters(changes, key)
        if found is None:
            return False
        targets |= found[0]
    return _find_clusters(changes, companion) == (targets, targets)


def _find_clusters(changes: IncrementalChanges, key: Key) -> tuple[Clusters, Clusters] | None:
    outcome = changes.find_outcome(key)
    return _list_clusters(outcome) if outcome is not None else None


def _list_clusters(outcome: Outcome) -> tuple[Clusters, Clusters]:
    """Return the clusters of a workload, and those from which it is not being evicted."""
    return (
        frozenset(target.cluster for target in outcome.targets),
        frozenset(target.cluster for target in outcome.targets if not target.evicting),
    )
