"""Update for an incremental plan which companions and targets belong together, and the findings about them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.incremental.plan_state import NO_COMPANION_ROW, CompanionRow, PlanRows, ReferenceRow
from gitsched.decide.incremental.separated_companions import (
    CompanionComparison,
    NeedsAllCompanions,
    list_clusters,
    update_separated,
)
from gitsched.decide.relations.delivered_objects import Clusters
from gitsched.kinds.companion_index import CompanionIndex
from gitsched.kinds.companion_kinds import COMPANION_KINDS, SHARED_SERVICE_KINDS
from gitsched.kinds.companion_targets import (
    FOLLOW_VALUES,
    NO_FEATURES,
    CompanionFeatures,
    is_far,
    read_features,
    read_follow_annotation,
)
from gitsched.model.document import Document, Key

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.relations.reference_findings import LocatedFinding
    from gitsched.model.scheduling import Outcome

NEVER_RELATED = frozenset(
    ("", kind) for kind in ("ConfigMap", "LimitRange", "Namespace", "ResourceQuota", "Secret", "ServiceAccount")
)
"""Kinds that are neither companions nor targets of companions."""
MAX_UNSELECTED = 200
"""Objects that no policy selects whose documents are read, beside changed ones in the same namespaces."""


class CompanionChanges(NamedTuple):
    """The rows of changed workloads and of their companions and targets, and the findings about references and companions, of which
    `separated_count` are about companions that do not go where their targets go."""

    rows: Mapping[Key, CompanionRow]
    findings: tuple[LocatedFinding, ...]
    separated_count: int


def update_companions(changes: IncrementalChanges, references: Mapping[Key, ReferenceRow]) -> CompanionChanges | None:
    """Return what changes about companions; None if only a complete plan can tell. `references` are the changed rows of references."""
    totals, came_or_went = changes.totals, changes.came_or_went
    if not totals.has_companions:
        if any(key[:2] in COMPANION_KINDS for key in came_or_went):
            return None
        return CompanionChanges({}, totals.reference_findings, totals.separated_count)
    if any(key[:2] in SHARED_SERVICE_KINDS for key in (*came_or_went, *changes.diff.api_documents)):
        return None  # other clusters may reach a Service now, or no longer
    documents = (document for pair in changes.diff.api_documents.values() for document in pair if document is not None)
    if any(read_follow_annotation(document.body) not in ("", *FOLLOW_VALUES) for document in documents):
        return None  # a finding says that the annotation has no effect
    kept = _update_rows(changes)
    if kept is None:
        return None
    try:
        return _compare(changes, kept, references)
    except NeedsAllCompanions:
        return None


def _update_rows(changes: IncrementalChanges) -> dict[Key, CompanionRow] | None:
    """Return the rows of changed workloads, and of those whose companions or targets change; None if only a complete plan can tell."""
    rows, totals, came_or_went = changes.rows, changes.totals, changes.came_or_went
    pod_paths, kept = totals.config.pod_paths, dict[Key, CompanionRow]()
    changed: dict[Key, CompanionFeatures] = dict.fromkeys(changes.removed, NO_FEATURES)
    changed |= dict.fromkeys((key for key in came_or_went if key not in changes.documents), NO_FEATURES)
    for key, document in changes.documents.items():
        row, outcome = rows.read_workload(key), changes.outcomes.get(key)
        features = read_features(key, document.body, pod_paths)
        if outcome is None:
            if row is not None or features != _read_features_before(changes, key, document):
                changed[key] = features
            continue
        companions = row.companions if row is not None else NO_COMPANION_ROW
        was_placed = row is not None and bool(row.outcome.targets)
        if row is None or features != (companions.features or NO_FEATURES) or was_placed != bool(outcome.targets):
            changed[key] = features
        elif companions.is_reported and (outcome.policy, outcome.state) != (row.outcome.policy, row.outcome.state):
            return None
        kept[key] = companions
    before = {key: _read_features_before(changes, key) for key in changed}
    if any(one.has_unknown_annotation for one in (*changed.values(), *before.values())):
        return None  # a finding says so
    if any((before[key].follows is True) != (features.follows is True) for key, features in changed.items()):
        return None  # policy engines look for followers where there are any
    changed = {key: features for key, features in changed.items() if features != NO_FEATURES or before[key] != NO_FEATURES}
    if changed:
        relations = None if totals.has_far_companions else _relate(changes, changed, before)
        if relations is None:
            return None
        kept |= relations
    return kept


def _compare(
    changes: IncrementalChanges, kept: dict[Key, CompanionRow], references: Mapping[Key, ReferenceRow]
) -> CompanionChanges:
    """Compare the companions among changed workloads, and those of these, before and now, with their targets.

    Raise NeedsAllCompanions if only a complete plan can.
    """
    comparison = CompanionComparison(changes, kept, references)
    concerned: dict[Key, bool] = {}
    for key in {**changes.documents, **changes.removed, **kept}:
        row = changes.rows.read_workload(key)
        before, now = row.companions if row is not None else NO_COMPANION_ROW, kept.get(key, NO_COMPANION_ROW)
        if before == now and row is not None and not _has_moved(row.outcome, changes.outcomes.get(key)):
            continue
        if before.is_reported or now.is_reported:
            raise NeedsAllCompanions
        own = (key,) if before.targets or now.targets else ()
        for one in (*own, *before.companions, *now.companions):
            concerned.setdefault(one, _is_separated(changes, one))
    compared = {key: None if key in changes.removed else comparison.compare(key) for key in sorted(concerned)}
    for key, placement in compared.items():
        companions, is_separated = comparison.read_row(key), placement is not None and placement.is_separated
        if companions is not None and companions.is_separated != is_separated and key not in changes.removed:
            kept[key] = companions._replace(is_separated=is_separated)
    separated = {key: one if one is not None and one.is_separated else None for key, one in compared.items()}
    return CompanionChanges(kept, *update_separated(changes, comparison, separated, concerned))


def _is_separated(changes: IncrementalChanges, key: Key) -> bool:
    row = changes.rows.read_workload(key)
    return row is not None and row.companions.is_separated


def _has_moved(before: Outcome, after: Outcome | None) -> bool:
    """Return whether a workload that was decided again goes to other clusters, or there because of another policy."""
    return after is not None and (after.policy, *list_clusters(after)) != (before.policy, *list_clusters(before))


def _read_features_before(changes: IncrementalChanges, key: Key, unchanged: Document | None = None) -> CompanionFeatures:
    """Return the features that an object had in the last plan. `unchanged` is its document if that did not change."""
    row = changes.rows.read_workload(key)
    if row is not None:
        return row.companions.features or NO_FEATURES
    document = changes.templates[key][0] if key in changes.templates else unchanged
    return NO_FEATURES if document is None else read_features(key, document.body, changes.totals.config.pod_paths)


def _relate(
    changes: IncrementalChanges, changed: Mapping[Key, CompanionFeatures], before: Mapping[Key, CompanionFeatures]
) -> dict[Key, CompanionRow] | None:
    """Return the rows of objects with changed features, and of all whose companions or targets they are or were; None if objects of other
    namespaces may be among these, or some that no policy selects are."""
    rows = changes.rows
    others = _list_others(changes, changed)
    if others is None or any(is_far(key, features) for key, features in changed.items()):
        return None
    index: CompanionIndex[Key] = CompanionIndex()
    for key, features in (*others.items(), *changed.items()):
        if features != NO_FEATURES:
            index.add(key, key, features)
    related = {*changed, *(one for key in changed for one in _list_relations(rows, key)), *index.list_related(changed)}
    if _concern_unselected(index, related, lambda key: changes.find_outcome(key) is not None):
        return None
    targets = {one: index.list_targets(one) for one in sorted(related) if _is_compared(changes, index, one)}
    touched = {*related, *(one for found in targets.values() for one in found)} - {key for key in related if key in changes.removed}
    result = {}
    for key in sorted(touched):
        row = rows.read_workload(key) if key in others else None
        stored = row.companions if row is not None else NO_COMPANION_ROW
        if stored.is_reported:
            return None
        served = [one for one in stored.companions if one not in related]
        served += [one for one, found in targets.items() if key in found]
        own_features = changed.get(key) or stored.features
        own = tuple(sorted(targets.get(key, ()))) if key in related else stored.targets
        result[key] = CompanionRow(
            None if own_features == NO_FEATURES else own_features, own, tuple(sorted(served)), False, stored.is_separated
        )
    for key in changed:
        index.add(key, key, before[key])
    were_related = {*changed, *index.list_related(changed)}
    return None if _concern_unselected(index, were_related, lambda key: rows.read_workload(key) is not None) else result


def _list_others(changes: IncrementalChanges, changed: Collection[Key]) -> dict[Key, CompanionFeatures] | None:
    """Return the features of all other objects in the namespaces of changed ones; None if too many of them have no row."""
    namespaces, pod_paths = {key.namespace for key in changed}, changes.totals.config.pod_paths
    found: dict[Key, CompanionFeatures] = {}
    unselected = 0
    for key in changes.restored:
        if key.namespace in namespaces and key not in changed and (row := changes.rows.read_workload(key)) is not None:
            found[key] = row.companions.features or NO_FEATURES
    for key, entry in changes.rows.template_index.items():
        if key.namespace not in namespaces or key in changed:
            continue
        row = changes.rows.read_workload(key) if entry.placement is not None else None
        if row is not None:
            found[key] = row.companions.features or NO_FEATURES
        elif key[:2] not in NEVER_RELATED and (document := changes.snapshot.templates.get(key)) is not None:
            unselected += 1
            if unselected > MAX_UNSELECTED:
                return None
            found[key] = read_features(key, document.body, pod_paths)
    return found


def _concern_unselected(index: CompanionIndex[Key], keys: Iterable[Key], is_selected: Callable[[Key], bool]) -> bool:
    """Return whether one of some companions, or one of its targets, is not selected by a policy while the other is, which may be a
    finding."""
    for key in keys:
        features = index.find_features(key)
        if features is None or not features.is_companion:
            continue
        if is_selected(key):
            if not all(map(is_selected, index.list_targets(key))):
                return True
        elif any(map(is_selected, index.list_workloads(key))):
            return True
    return False


def _is_compared(changes: IncrementalChanges, index: CompanionIndex[Key], key: Key) -> bool:
    """Return whether an object is a companion that is placed and should go along with its targets."""
    features, clusters = index.find_features(key), _find_clusters(changes, key)
    return features is not None and features.is_companion and features.follows is not False and bool(clusters and clusters[0])


def _list_relations(rows: PlanRows, key: Key) -> tuple[Key, ...]:
    row = rows.read_workload(key)
    return (*row.companions.targets, *row.companions.companions) if row is not None else ()


def _find_clusters(changes: IncrementalChanges, key: Key) -> tuple[Clusters, Clusters] | None:
    outcome = changes.find_outcome(key)
    return list_clusters(outcome) if outcome is not None else None
