"""Find since when a run would change the output branch without a commit of the source: because time has passed, or facts are new."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from gitsched.model.fleet_status import DueRun
from gitsched.reconcile.incremental.planned_fleet import PlannedFleet, use_fleet
from gitsched.reconcile.output.output_commit import write

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from datetime import datetime

    from gitsched.decide.plan_result import Plan
    from gitsched.model.changes import RetainedCopy
    from gitsched.reconcile.run import Fetched, RunContext

MAX_WAIT: Final = 60
"""How many minutes a commit of the source, or something that time changes, may wait for a run before that is wrong: people who reconcile by
hand need some time."""
MAX_TIMES: Final = 4
"""Times at which something may have been due that are tried one after another; the last of them counts untried."""


def find_wait_end(now: datetime) -> datetime:
    """Return the time before which what waits for a run has waited too long."""
    return now - timedelta(minutes=MAX_WAIT)


def list_due_times(context: RunContext, fetched: Fetched) -> list[datetime]:
    """Return the times in the last record that have passed long ago, and from which a run may change something, the earliest first."""
    record, limit = fetched.record, find_wait_end(context.settings.now)
    if record is None:
        return []
    times, copied = [*_list_ends(record.retained)], {copy.until for copy in record.retained}
    times += [record.next_wakeup] if record.next_wakeup is not None and record.next_wakeup not in copied else []
    return sorted(time for time in times if time <= limit)


def _list_ends(copies: Iterable[RetainedCopy]) -> Iterable[datetime]:
    """Yield when copies end. A run keeps a copy whose overlap has ended if it sees the replacement first then."""
    return (max(copy.until, copy.counted_from or copy.until) for copy in copies if copy.until is not None)


def find_due_run(context: RunContext, fetched: Fetched, times: Sequence[datetime], plan: Plan, *, differs: bool) -> DueRun | None:
    """Return what a run would do that time or new facts have changed, and since when; None if that is not long ago. The `plan` is the
    present one, and differs from the output branch. If the source `differs` from that of the last run, only the end of an overlap is known
    to change something by itself."""
    ends = {*_list_ends(fetched.record.retained)} if fetched.record is not None else set()
    since = next((time for time in times if time in ends), None) if differs else _find_since(context, fetched, times, ends)
    if since is None:
        return None
    return DueRun(since, tuple(move.key for move in plan.moves), bool(plan.ended), tuple(_list_continued(plan)))


def _list_continued(plan: Plan) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yield the rollouts that a run continues, with the clusters that get the change."""
    for rollout in plan.rollouts:
        names = tuple(one.cluster for one in rollout.clusters if one.state == "updated")
        if names:
            yield rollout.name, names


def is_due(plan: Plan) -> bool:
    """Return whether a plan of the source that the last run planned shows by itself that a run would change the output branch."""
    return bool(plan.moves or any(_list_continued(plan)))


def _find_since(context: RunContext, fetched: Fetched, times: Iterable[datetime], ends: Container[datetime]) -> datetime | None:
    """Return the first time long ago from which a run would change the output branch: that of the commits, one of the given ones, or one
    after these."""
    pending = sorted({*times, max(fetched.time, fetched.record.time if fetched.record is not None else fetched.time)})
    limit = find_wait_end(context.settings.now)
    pending = [time for time in pending if time <= limit]
    for _ in range(MAX_TIMES - 1):
        if not pending or pending[0] in ends:
            break
        since = pending.pop(0)
        changed, later = _try_run(context._replace(settings=context.settings._replace(now=since)), fetched)
        if changed:
            return since
        if later is not None and since < later <= limit:
            pending = sorted({later, *pending})
    return next(iter(pending), None)


def _try_run(context: RunContext, fetched: Fetched) -> tuple[bool, datetime | None]:
    """Return whether a run would change the output branch, and when time would change what it does."""

    def compare(fleet: PlannedFleet) -> tuple[bool, datetime | None]:
        return write(context, fetched, fleet.planned).changed, fleet.plan.next_wakeup

    return use_fleet(context, fetched, compare, written=True, withholds=True)[1]
