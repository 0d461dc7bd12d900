"""Keep workloads in their clusters whose template or policy is deleted, where the policy says so.

The file of such a workload stays on the output branch for `output.retireAfter`, with the annotations that keep Flux and Argo CD from
deleting the object, so that every delivery tool has applied them before the file leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gitsched.model.changes import CopyRetention, RetainedCopy
from gitsched.model.time import add_duration, choose_start
from gitsched.render.cluster_directory import add_prune_options
from gitsched.render.output_files import write_manifest

if TYPE_CHECKING:
    from gitsched.decide.incremental.plan_state import PlanTimes
    from gitsched.decide.overlap.delivered_copies import DeliveredCopies
    from gitsched.decide.removals import RemovedPlacement
    from gitsched.model.document import Body, Key
    from gitsched.model.planned_files import PlannedFile
    from gitsched.model.scheduling import Outcome


def preserve_copies(
    known: Iterable[RetainedCopy],
    removed: Mapping[Key, RemovedPlacement],
    delivered: DeliveredCopies,
    find_outcome: Callable[[Key], Outcome | None],
    times: PlanTimes,
    duration: timedelta,
) -> CopyRetention:
    """Return the preserved copies of a plan: those `known` from earlier runs whose time is not over, and those of `removed` workloads.

    A workload that is placed in a cluster again is no copy there any more.
    """
    found = {(copy.workload, copy.cluster): copy for copy in known if copy.preserved}
    settled = found.copy()
    start = choose_start(times.source_time, times.now, duration)
    for copy in _list_removed(removed.values(), delivered):
        new = copy._replace(start=start, until=add_duration(start, duration), preserved=True)
        found.setdefault((copy.workload, copy.cluster), new)
    placed = {key for key in found if (one := find_outcome(key[0])) is not None and key[1] in one.replicas_by_cluster}
    over = {key for key, copy in found.items() if key not in placed and _is_over(copy, times.now)}
    copies = tuple(found[key] for key in sorted(found.keys() - placed - over))
    ended = tuple(found[key] for key in sorted(over))
    return CopyRetention(copies, ended, is_settled=found == settled and not placed and not over)


def _list_removed(removed: Iterable[RemovedPlacement], delivered: DeliveredCopies) -> Iterator[RetainedCopy]:
    for workload, _, _, owner in removed:
        if workload.preserved and owner is None:
            for copy in delivered.list_removed(workload, {}, workload.key, runs_once=True):
                yield copy._replace(follows=None)


def _is_over(copy: RetainedCopy, now: datetime) -> bool:
    return copy.until is None or copy.until <= now


def annotate_preserved(copy: RetainedCopy, read_manifest: Callable[[str], Body | None]) -> dict[str, PlannedFile]:
    """Return the manifests of a preserved copy by path that do not have the annotations yet."""
    bodies = ((path, read_manifest(path)) for path in copy.paths)
    changed = ((path, body, add_prune_options(body)) for path, body in bodies if body is not None)
    return {path: write_manifest(new) for path, body, new in changed if new is not body}
