"""The state of a plan after an incremental one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitsched.reconcile.cache.plan_cache import PlanCache
    from gitsched.reconcile.run import Fetched, Planned, StateUpdate


def update_state(fetched: Fetched, planned: Planned, state: StateUpdate, output_tree: str) -> PlanCache | None:
    """Return the state that an incremental plan started from, with its changes; None if the next plan has to be complete."""
    cache, incremental, reading_rules, _ = state
    settled = cache.header.settled
    if state.used_versions is not None:
        from gitsched.reconcile.source.settled_files import list_settled  # few commits change what is built

        found = list_settled(fetched, output_tree, state.used_versions)
        if found is None:
            return None
        settled = found
    changed, observed = incremental.changes.api_documents, dict(planned.plan.observations)
    kinds = (*(kind for kind in cache.header.kinds if changed.get(kind, ((),))), *(kind for kind in changed if changed[kind]))
    totals = incremental.totals
    header = cache.header._replace(
        source_tree=fetched.source.tree,
        output_tree=output_tree,
        kinds=tuple(dict.fromkeys(kinds)),
        totals=totals._replace(retained=(), adopted={}, engines=totals.engines._replace(observations=observed)),
        facts=planned.facts,
        reading_rules=reading_rules,
        settled=settled,
        builds=planned.builds,
        failed_builds=state.failed_builds,
    )
    cache.update(incremental.changes, header)
    return cache
