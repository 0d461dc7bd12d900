"""Two plans side by side: whom a change makes more vulnerable to losses, and which line does it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.model.document import Document, Key
from gitsched.model.finding import Pointer, Rule
from gitsched.model.simulation import Effect, Resilience, ResilienceChange, Scope, Shift
from gitsched.plan.ground import Ground
from gitsched.plan.scenario import list_everywhere
from gitsched.plan.simulating import sweep


def compare(base: Ground, head: Ground, by: str, silent: bool = False) -> ResilienceChange:
    """Every single loss of a cluster, node, zone, region or provider in both (see `sweep`), and the workloads that fare otherwise; what
    got worse first."""
    return compare_tables(base, head, sweep(base, by, silent), sweep(head, by, silent))


def compare_tables(base: Ground, head: Ground, before: Resilience, after: Resilience) -> ResilienceChange:
    """As `compare`, of tables that are at hand."""
    shifts = list(_list_shifts(base, head, before, after))
    shifts.sort(key=lambda s: (not s.worse, not s.homeless, (s.before or 0) - (s.after or 0), s.key, s.scope))
    return ResilienceChange(before, after, tuple(shifts))


def _list_shifts(base: Ground, head: Ground, before: Resilience, after: Resilience) -> Iterator[Shift]:
    old, new = _tabulate(before), _tabulate(after)
    for scope in sorted(old.keys() | new.keys()):
        harmed = [{key for key, effect in table.get(scope, {}).items() if effect.worse or effect.homeless} for table in (old, new)]
        for key in sorted(harmed[0] | harmed[1]):
            was, homeless_before = _count(base, old, scope, key)
            now, homeless = _count(head, new, scope, key)
            if (was or 0, homeless_before) != (now or 0, homeless):
                yield Shift(scope, key, was, now, "", find_cause(base, head, scope, key), homeless and not homeless_before)


def _tabulate(table: Resilience) -> dict[Scope, dict[Key, Effect]]:
    return {row.scope: {effect.key: effect for effect in row.effects} for row in table.rows if row.scope is not None}


def _count(ground: Ground, table: dict[Scope, dict[Key, Effect]], scope: Scope, key: Key) -> tuple[int | None, bool]:
    """How many replicas more than without the loss do not run, and whether it loses its last place."""
    if scope not in table or not _is_known(ground, key):
        return None, False
    effect = table[scope].get(key)
    return (effect.worse, effect.homeless) if effect is not None else (0, False)


def _is_known(ground: Ground, key: Key) -> bool:
    return key in ground.decided.outcomes or key in ground.decided.catalog.templates


def find_cause(base: Ground, head: Ground, scope: Scope, key: Key) -> Rule | None:
    """What somebody changed that a workload fares otherwise by: its policy, itself, or a cluster; None where it is none of these."""
    pairs = [(find_policy(base, key), find_policy(head, key)), (_find(base, key), _find(head, key))]
    for old, new in (*pairs, *_list_clusters(base, head, scope)):
        rule = _point(old, new)
        if rule is not None:
            return rule
    return None


def _find(ground: Ground, key: Key) -> Document | None:
    return ground.decided.templates.get(key) or ground.decided.catalog.templates.get(key)


def find_policy(ground: Ground, key: Key) -> Document | None:
    """The document of the policy that a workload follows."""
    outcome = ground.decided.outcomes.get(key)
    if outcome is None or not outcome.policy:
        return None
    documents = ground.decided.catalog.settings_by_key.values()
    return next((document for document in documents if outcome.policy in (document.key.title, str(document.key))), None)


def _list_clusters(base: Ground, head: Ground, scope: Scope) -> Iterator[tuple[Document | None, Document | None]]:
    """The documents of clusters in both, those that survive first: where nothing can go any more is told before what is lost."""
    sites = [list_everywhere(ground.decided.catalog, ground.nodes) for ground in (base, head)]
    lost = [name for name in sorted(sites[0].keys() | sites[1].keys()) if any(_stands(known, name, scope) for known in sites)]
    for name in sorted(sites[0].keys() | sites[1].keys(), key=lambda name: (name in lost, name)):
        old, new = ({document.key: document for _, document, _ in known.get(name, ())} for known in sites)
        for key in sorted(old.keys() | new.keys()):
            yield old.get(key), new.get(key)


def _stands(sites: Any, name: str, scope: Scope) -> bool:
    return any(scope.name in site.values(scope.by) for _, _, site in sites.get(name, ()))


def _point(old: Document | None, new: Document | None) -> Rule | None:
    """The first difference of two documents, in the newer one where there is one."""
    shown = new or old
    if shown is None or shown.origin is None:
        return None
    if old is None or new is None or old.key != new.key:
        return Rule(shown.origin, ()) if old is not new else None
    place = find_difference(_essence(old), _essence(new))
    return Rule(shown.origin, place) if place is not None else None


def _essence(document: Document) -> dict[str, Any]:
    """What of a document decides: no comments for people, and nothing that a server counts."""
    metadata = document.body.get("metadata") or {}
    kept = {name: metadata.get(name) for name in ("labels", "annotations", "deletionTimestamp")}
    return {**document.body, "metadata": kept}


def find_difference(old: Any, new: Any) -> Pointer | None:
    """Where two values first differ, in the order of the newer one; None where they do not."""
    if old == new and type(old) is type(new):
        return None
    if isinstance(old, dict) and isinstance(new, dict):
        for name in (*new, *(name for name in old if name not in new)):
            if name not in old or name not in new:
                return (name,) if name in new else ()
            inner = find_difference(old[name], new[name])
            if inner is not None:
                return (name, *inner)
        return None
    if isinstance(old, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            inner = find_difference(one, other)
            if inner is not None:
                return (index, *inner)
        return (len(old),) if len(new) > len(old) else ()
    return ()
