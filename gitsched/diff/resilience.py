"""Compare the resilience of two plans: which workloads become more vulnerable to the loss of a cluster, node, zone, region or
provider, and which line causes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.model.document import Document, Key
from gitsched.model.finding import FieldOrigin, Pointer
from gitsched.model.simulation import FailureDomain, ImpactChange, Resilience, ResilienceChange, WorkloadEffect
from gitsched.simulate.baseline import Baseline
from gitsched.simulate.scenario import index_clusters_and_nodes
from gitsched.simulate.simulation import simulate_all_losses


def compare_resilience(base: Baseline, head: Baseline, by: str, silent: bool = False) -> ResilienceChange:
    """Every single loss of a cluster, node, zone, region or provider in both (see `sweep`), and the workloads that fare otherwise; what
    got worse first."""
    return compare_resilience_tables(base, head, simulate_all_losses(base, by, silent), simulate_all_losses(head, by, silent))


def compare_resilience_tables(base: Baseline, head: Baseline, before: Resilience, after: Resilience) -> ResilienceChange:
    """As `compare`, of tables that are at hand."""
    shifts = list(_list_resilience_changes(base, head, before, after))
    shifts.sort(key=lambda s: (not s.is_worse, not s.becomes_unplaced, (s.before or 0) - (s.after or 0), s.key, s.domain))
    return ResilienceChange(before, after, tuple(shifts))


def _list_resilience_changes(base: Baseline, head: Baseline, before: Resilience, after: Resilience) -> Iterator[ImpactChange]:
    old, new = _index_effects(before), _index_effects(after)
    for scope in sorted(old.keys() | new.keys()):
        harmed = [
            {key for key, effect in table.get(scope, {}).items() if effect.lost_replicas or effect.becomes_unplaced}
            for table in (old, new)
        ]
        for key in sorted(harmed[0] | harmed[1]):
            was, homeless_before = _count_lost_replicas(base, old, scope, key)
            now, homeless = _count_lost_replicas(head, new, scope, key)
            if (was or 0, homeless_before) != (now or 0, homeless):
                yield ImpactChange(
                    scope, key, was, now, "", find_changed_rule(base, head, scope, key), homeless and not homeless_before
                )


def _index_effects(table: Resilience) -> dict[FailureDomain, dict[Key, WorkloadEffect]]:
    return {row.domain: {effect.key: effect for effect in row.effects} for row in table.rows if row.domain is not None}


def _count_lost_replicas(
    ground: Baseline, table: dict[FailureDomain, dict[Key, WorkloadEffect]], scope: FailureDomain, key: Key
) -> tuple[int | None, bool]:
    """How many replicas more than without the loss do not run, and whether it loses its last place."""
    if scope not in table or not _has_workload(ground, key):
        return None, False
    effect = table[scope].get(key)
    return (effect.lost_replicas, effect.becomes_unplaced) if effect is not None else (0, False)


def _has_workload(ground: Baseline, key: Key) -> bool:
    return key in ground.decisions.outcomes or key in ground.decisions.catalog.templates


def find_changed_rule(base: Baseline, head: Baseline, scope: FailureDomain, key: Key) -> FieldOrigin | None:
    """What somebody changed that a workload fares otherwise by: its policy, itself, or a cluster; None where it is none of these."""
    pairs = [
        (find_policy_document(base, key), find_policy_document(head, key)),
        (_find_template(base, key), _find_template(head, key)),
    ]
    for old, new in (*pairs, *_pair_cluster_documents(base, head, scope)):
        rule = _find_first_rule(old, new)
        if rule is not None:
            return rule
    return None


def _find_template(ground: Baseline, key: Key) -> Document | None:
    return ground.decisions.templates.get(key) or ground.decisions.catalog.templates.get(key)


def find_policy_document(ground: Baseline, key: Key) -> Document | None:
    """The document of the policy that a workload follows."""
    outcome = ground.decisions.outcomes.get(key)
    if outcome is None or not outcome.policy:
        return None
    documents = ground.decisions.catalog.api_documents_by_key.values()
    return next((document for document in documents if outcome.policy in (document.key.title, str(document.key))), None)


def _pair_cluster_documents(
    base: Baseline, head: Baseline, scope: FailureDomain
) -> Iterator[tuple[Document | None, Document | None]]:
    """The documents of clusters in both, those that survive first: where nothing can go any more is told before what is lost."""
    sites = [index_clusters_and_nodes(ground.decisions.catalog, ground.has_inner_placements) for ground in (base, head)]
    lost = [name for name in sorted(sites[0].keys() | sites[1].keys()) if any(_is_in_scope(known, name, scope) for known in sites)]
    for name in sorted(sites[0].keys() | sites[1].keys(), key=lambda name: (name in lost, name)):
        old, new = ({document.key: document for _, document, _ in known.get(name, ())} for known in sites)
        for key in sorted(old.keys() | new.keys()):
            yield old.get(key), new.get(key)


def _is_in_scope(sites: Any, name: str, scope: FailureDomain) -> bool:
    return any(scope.name in site.domains(scope.kind) for _, _, site in sites.get(name, ()))


def _find_first_rule(old: Document | None, new: Document | None) -> FieldOrigin | None:
    """The first difference of two documents, in the newer one where there is one."""
    shown = new or old
    if shown is None or shown.origin is None:
        return None
    if old is None or new is None or old.key != new.key:
        return FieldOrigin(shown.origin, ()) if old is not new else None
    place = find_first_difference(_select_decisive_fields(old), _select_decisive_fields(new))
    return FieldOrigin(shown.origin, place) if place is not None else None


def _select_decisive_fields(document: Document) -> dict[str, Any]:
    """What of a document decides: no comments for people, and nothing that a server counts."""
    metadata = document.body.get("metadata") or {}
    kept = {name: metadata.get(name) for name in ("labels", "annotations", "deletionTimestamp")}
    return {**document.body, "metadata": kept}


def find_first_difference(old: Any, new: Any) -> Pointer | None:
    """Where two values first differ, in the order of the newer one; None where they do not."""
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
