"""Decide for an incremental plan whether the findings about companions stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.decide.delivered_objects import NO_CLUSTERS, Clusters
from gitsched.decide.plan_state import CompanionRow, PlanRows, Totals
from gitsched.kinds.companion_targets import NO_FEATURES, read_features
from gitsched.model.document import Document, Key

if TYPE_CHECKING:
    from gitsched.model.scheduling import Outcome


def keep_companions(
    rows: PlanRows, documents: Mapping[Key, Document], outcomes: Mapping[Key, Outcome], totals: Totals
) -> dict[Key, CompanionRow] | None:
    """Return the rows of changed workloads, whose companions and targets are the same and go along with them; None if only a complete plan
    can tell. Documents without an outcome are objects that no policy selects."""
    if not totals.has_companions:
        return {}
    pod_paths, kept = totals.config.pod_paths, dict[Key, CompanionRow]()
    for key, document in documents.items():
        row, outcome = rows.read_workload(key), outcomes.get(key)
        features = read_features(key, document.body, pod_paths)
        if row is None or outcome is None:
            if features != NO_FEATURES:
                return None
            continue
        companions, before = row.companions, row.outcome
        if features != (companions.features or NO_FEATURES):
            return None
        if _list_clusters(outcome) != _list_clusters(before):
            pairs = (key,) if companions.targets else ()
            if companions.is_reported or not all(
                _goes_along(rows, outcomes, companion) for companion in (*pairs, *companions.companions)
            ):
                return None
        elif companions.is_reported and (outcome.policy, outcome.state) != (before.policy, before.state):
            return None
        kept[key] = companions
    return kept


def _goes_along(rows: PlanRows, outcomes: Mapping[Key, Outcome], companion: Key) -> bool:
    """Return whether a companion goes exactly to the clusters of its targets."""
    row = rows.read_workload(companion)
    if row is None:
        return False
    targets = NO_CLUSTERS
    for key in row.companions.targets:
        found = _find_clusters(rows, outcomes, key)
        if found is None:
            return False
        targets |= found[0]
    return _find_clusters(rows, outcomes, companion) == (targets, targets)


def _find_clusters(rows: PlanRows, outcomes: Mapping[Key, Outcome], key: Key) -> tuple[Clusters, Clusters] | None:
    row = rows.read_workload(key)
    outcome = outcomes.get(key) or (row.outcome if row is not None else None)
    return _list_clusters(outcome) if outcome is not None else None


def _list_clusters(outcome: Outcome) -> tuple[Clusters, Clusters]:
    """Return the clusters of a workload, and those from which it is not being evicted."""
    return (
        frozenset(target.cluster for target in outcome.targets),
        frozenset(target.cluster for target in outcome.targets if not target.evicting),
    )
