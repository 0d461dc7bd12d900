"""Compare the resilience of two plans: workloads that become more or less vulnerable to a loss, and the line that causes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.model.document import Document, Key
from gitsched.model.finding import FieldOrigin, Pointer
from gitsched.model.simulation import FailureDomain, ImpactChange, Resilience, ResilienceChange, WorkloadEffect
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.scenario import ClusterIndex, index_clusters_and_nodes
from gitsched.simulate.simulation import simulate_all_losses


def compare_resilience(base: Baseline, head: Baseline, by: str, unreachable: bool = False) -> ResilienceChange:
    """Simulate every loss of one kind of failure domain in both plans and return the differences, the worst first."""
    before, after = simulate_all_losses(base, by, unreachable), simulate_all_losses(head, by, unreachable)
    return compare_resilience_tables(base, head, before, after)


def compare_resilience_tables(base: Baseline, head: Baseline, before: Resilience, after: Resilience) -> ResilienceChange:
    """Return the differences of two tables of losses, the worst first."""
    changes = list(_list_resilience_changes(base, head, before, after))
    changes.sort(key=lambda c: (not c.is_worse, not c.becomes_unplaced, (c.before or 0) - (c.after or 0), c.key, c.domain))
    return ResilienceChange(before, after, tuple(changes))


def _list_resilience_changes(base: Baseline, head: Baseline, before: Resilience, after: Resilience) -> Iterator[ImpactChange]:
    old, new = _index_effects(before), _index_effects(after)
    for scope in sorted(old.keys() | new.keys()):
        degraded = [
            {key for key, effect in table.get(scope, {}).items() if effect.lost_replicas or effect.becomes_unplaced}
            for table in (old, new)
        ]
        for key in sorted(degraded[0] | degraded[1]):
            lost_before, unplaced_before = _count_lost_replicas(base, old, scope, key)
            lost, unplaced = _count_lost_replicas(head, new, scope, key)
            if (lost_before or 0, unplaced_before) != (lost or 0, unplaced):
                rule = find_changed_rule(base, head, scope, key)
                yield ImpactChange(scope, key, lost_before, lost, "", rule, unplaced and not unplaced_before)


def _index_effects(table: Resilience) -> dict[FailureDomain, dict[Key, WorkloadEffect]]:
    return {row.domain: {effect.key: effect for effect in row.effects} for row in table.rows if row.domain is not None}


def _count_lost_replicas(
    baseline: Baseline, table: dict[FailureDomain, dict[Key, WorkloadEffect]], scope: FailureDomain, key: Key
) -> tuple[int | None, bool]:
    """Return the number of replicas that do not run because of the loss, and whether the workload becomes unplaced."""
    if scope not in table or not _has_workload(baseline, key):
        return None, False
    effect = table[scope].get(key)
    return (effect.lost_replicas, effect.becomes_unplaced) if effect is not None else (0, False)


def _has_workload(baseline: Baseline, key: Key) -> bool:
    return key in baseline.decisions.outcomes or key in baseline.decisions.catalog.templates


def find_changed_rule(base: Baseline, head: Baseline, scope: FailureDomain, key: Key) -> FieldOrigin | None:
    """Return the changed field that affects a workload: of its policy, its own document or a cluster; None if there is none."""
    pairs = [
        (find_policy_document(base, key), find_policy_document(head, key)),
        (_find_template(base, key), _find_template(head, key)),
    ]
    for old, new in (*pairs, *_pair_cluster_documents(base, head, scope)):
        rule = _find_first_rule(old, new)
        if rule is not None:
            return rule
    return None


def _find_template(baseline: Baseline, key: Key) -> Document | None:
    return baseline.decisions.templates.get(key) or baseline.decisions.catalog.templates.get(key)


def find_policy_document(baseline: Baseline, key: Key) -> Document | None:
    """Return the document of the policy of a workload."""
    outcome = baseline.decisions.outcomes.get(key)
    if outcome is None or not outcome.policy:
        return None
    documents = baseline.decisions.catalog.api_documents_by_key.values()
    return next((document for document in documents if outcome.policy in (document.key.title, str(document.key))), None)


def _pair_cluster_documents(
    base: Baseline, head: Baseline, scope: FailureDomain
) -> Iterator[tuple[Document | None, Document | None]]:
    """Yield the documents of clusters in both plans, the lost clusters last."""
    indexes = [index_clusters_and_nodes(each.decisions.catalog, each.has_inner_placements) for each in (base, head)]
    names = sorted(indexes[0].keys() | indexes[1].keys())
    lost = [name for name in names if any(_is_in_scope(index, name, scope) for index in indexes)]
    for name in sorted(names, key=lambda name: (name in lost, name)):
        old, new = ({document.key: document for _, document, _ in index.get(name, ())} for index in indexes)
        for key in sorted(old.keys() | new.keys()):
            yield old.get(key), new.get(key)


def _is_in_scope(clusters: ClusterIndex, name: str, scope: FailureDomain) -> bool:
    return any(scope.name in location.domains(scope.kind) for _, _, location in clusters.get(name, ()))


def _find_first_rule(old: Document | None, new: Document | None) -> FieldOrigin | None:
    """Return the first difference of two documents, as a field of the newer one if it exists."""
    shown = new or old
    if shown is None or shown.origin is None:
        return None
    if old is None or new is None or old.key != new.key:
        return FieldOrigin(shown.origin, ()) if old is not new else None
    pointer = find_first_difference(_select_decisive_fields(old), _select_decisive_fields(new))
    return FieldOrigin(shown.origin, pointer) if pointer is not None else None


def _select_decisive_fields(document: Document) -> dict[str, Any]:
    """Return the body with only those metadata fields that affect scheduling."""
    metadata = document.body.get("metadata") or {}
    kept = {name: metadata.get(name) for name in ("labels", "annotations", "deletionTimestamp")}
    return {**document.body, "metadata": kept}


def find_first_difference(old: Any, new: Any) -> Pointer | None:
    """Return the pointer of the first difference of two values, in the order of the newer one; None if they are equal."""
    if old == new and type(old) is type(new):
        return None
    if isinstance(old, dict) and isinstance(new, dict):
        for name in (*new, *(name for name in old if name not in new)):
            if name not in old or name not in new:
                return (name,) if name in new else ()
            inner = find_first_difference(old[name], new[name])
            if inner is not None:
                return (name, *inner)
        return None
    if isinstance(old, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            inner = find_first_difference(one, other)
            if inner is not None:
                return (index, *inner)
        return (len(old),) if len(new) > len(old) else ()
    return ()
