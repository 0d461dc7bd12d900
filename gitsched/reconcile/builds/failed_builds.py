"""Failed builds of the last run: what a run has in their place stays the same as long as nothing changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.reconcile.builds.build_runs import has_programs
from gitsched.reconcile.source.source_history import SourceHistory

if TYPE_CHECKING:
    from gitsched.reconcile.cache.plan_cache import PlanCacheHeader
    from gitsched.reconcile.run import Fetched, RunContext


def stay_failed(context: RunContext, fetched: Fetched, header: PlanCacheHeader) -> bool:
    """Return whether the builds that failed in the last run fail in one of the same tree, too, with the same objects in their place."""
    record, source, history = fetched.record, context.source, SourceHistory(context, fetched)
    if record is None or not all(build.lasting for build in header.failed_builds.values()):
        return False
    if history.commits or history.list_findings() or not has_programs(header.builds, context.caches.open_builds()):
        return False
    for name, build in header.failed_builds.items():
        last = record.builds.kept.get(name, record.source)
        if build.commit and (build.commit != last or not source.fetch_commit(last)):
            return False
        # Without objects, the build has to fail in that commit as well.
        if not build.commit and not (source.fetch_commit(last) and source.repository.commit(last).tree == header.source_tree):
            return False
    return True
