"""What a plan keeps in place of broken files and failed builds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gitsched.model.document import Key
    from gitsched.reconcile.cache.plan_cache import PlanCache
    from gitsched.reconcile.run import Fetched, RunContext


def stays_in_force(context: RunContext, fetched: Fetched, cache: PlanCache, due: frozenset[Key]) -> bool:
    """Return whether what the last plan used in place of broken files and failed builds is what this one uses, unless files change."""
    header = cache.header
    if header.settled:
        from gitsched.reconcile.source.settled_files import stay_settled  # most sources are valid

        if not stay_settled(context, fetched, header.settled):
            return False
    if header.failed_builds:
        from gitsched.reconcile.builds.failed_builds import stay_failed  # most builds succeed

        return not due and fetched.source.tree == header.source_tree and stay_failed(context, fetched, header)
    return True
