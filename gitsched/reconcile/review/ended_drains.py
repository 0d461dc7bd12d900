"""Find the drains that a planned change ends, and who began them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.model.history import EndedDrain
from gitsched.reconcile.output.history_taints import ComparedTrees, list_taint_changes
from gitsched.reconcile.review.run_causes import find_drain

if TYPE_CHECKING:
    from gitsched.model.commit import Commit
    from gitsched.reconcile.review.comparison import PlanComparison


def list_ended_drains(compared: PlanComparison) -> Iterator[EndedDrain]:
    """Yield the taints that let workloads leave clusters before a change and not after it."""
    source, cache, earlier = compared.context.source.repository, compared.context.caches.files, _find_earlier(compared)
    paths = sorted(compared.review.comparison.changed_paths)
    if earlier is None or not paths:
        return
    for change in list_taint_changes(cache, ComparedTrees(source, earlier.tree, compared.later.fetched.source.tree, paths)):
        if change.evicts and not change.added:
            added_by = find_drain(source, cache, earlier.oid, change.cluster, change.taint)
            yield EndedDrain(change.cluster, change.taint, change.location, added_by)


def _find_earlier(compared: PlanComparison) -> Commit | None:
    """Return the commit of the source with which a plan is compared; None if it is not available."""
    if compared.earlier is not None:
        return compared.earlier.fetched.source
    record, source = compared.later.fetched.record, compared.context.source.repository
    return source.commit(record.source) if record is not None and source.has_commit(record.source) else None
