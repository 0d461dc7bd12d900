"""Copies that clusters keep for an overlap, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from gitsched.model.changes import NOTHING_WITHHELD, AwaitedReplacement, RetainedCopy, WithheldChanges
from gitsched.model.finding import format_count, format_names
from gitsched.model.mistakes import RESCHEDULE_DISPLACED
from gitsched.model.time import format_duration, format_time
from gitsched.report.lines import format_clusters, format_key, format_words, list_limited
from gitsched.report.name_ranges import format_ranges

if TYPE_CHECKING:
    from gitsched.report.review import Review

COPIES_SHOWN = 20
"""The number of lines about copies; JSON contains all."""
UNTIL_ALLOWED = "until the withheld change that needs it is allowed or withdrawn"
"""How long a copy stays whose cluster the workload would get with a withheld change."""
NAMES_SHOWN = 3
"""The number of workloads that are named where one line stands for many copies."""


MAX_SINGLE_COPIES = 10
"""The number of copies up to which each that goes is listed."""
MAX_SINGLE_WORKLOADS = 3
"""The number of workloads up to which the copies of each that stay are a line; of more, those with the same end are one."""


AWAITED: Final[Mapping[AwaitedReplacement, str]] = {
    "": "until another cluster has one",
    "rescheduling": f"until rescheduled, which no run does by itself: {RESCHEDULE_DISPLACED} requests it",
    "fit": "until another cluster fits: gitsched explain {} says what each one lacks",
}
"""Until when copies stay that nothing replaces, with what to do, by what they wait for. A place is for the workload."""


def describe_retained_copies(
    copies: Sequence[RetainedCopy],
    shown: int = COPIES_SHOWN,
    unmerged: datetime | None = None,
    withheld: WithheldChanges = NOTHING_WITHHELD,
) -> list[str]:
    """Return a line for the copies of each workload, or for many that stay equally long; the first of them by workload, and the number of
    the others. `unmerged` is the time of a plan that no run carries out: an overlap that begins with it counts from a later run. What
    a run would leave out as `withheld` stays placed until it is allowed."""
    groups: dict[tuple[str, str, str], list[RetainedCopy]] = {}
    kept = {move.key for move in withheld.moves}
    for copy in copies:
        start = f"once what {withheld.withheld_by} withholds is allowed, " if copy.start is None and copy.workload in kept else ""
        groups.setdefault((start, format_key(copy.workload), _describe_end(copy, unmerged)), []).append(copy)
    if len({name for _, name, _ in groups}) <= MAX_SINGLE_WORKLOADS:
        lines = [
            f"{start}{name} stays in {_describe_places(same)} {name_workload(end, same)}"
            for (start, name, end), same in groups.items()
        ]
        return list_limited(lines, shown)
    ends: dict[tuple[str, str], list[RetainedCopy]] = {}
    for (start, _, end), same in groups.items():
        ends.setdefault((start, end), []).extend(same)
    lines = [f"{start}{_name_copies(same, 'stay')} {name_workload(end, same)}" for (start, end), same in ends.items()]
    return list_limited(lines, shown)


def _describe_places(copies: Sequence[RetainedCopy]) -> str:
    """Return the clusters of the copies of a workload with their replicas."""
    first, *others = copies
    if others or first.replicas is None:
        return format_clusters({copy.cluster: copy.replicas for copy in copies})
    return f"{first.cluster} with {format_count(first.replicas, 'replica')}"


def count_after_run(copy: RetainedCopy, unmerged: datetime | None) -> timedelta | None:
    """Return how long a copy stays after the run that carries out an `unmerged` plan; None if its overlap does not begin with that."""
    if unmerged is None or copy.start is None or copy.until is None or copy.start < unmerged:
        return None
    return copy.until - copy.start


def describe_next_change(review: Review) -> str:
    """Return when something changes without a commit, or how long after the run that carries out an unmerged plan; "" for never."""
    if review.next_wakeup is None:
        return ""
    for copy in review.retained_copies:
        stays = count_after_run(copy, review.unmerged)
        if stays is not None and copy.until == review.next_wakeup:
            return f"{format_duration(stays)} after the run that carries this out"
    return format_time(review.next_wakeup)


def _describe_end(copy: RetainedCopy, unmerged: datetime | None) -> str:
    stays = count_after_run(copy, unmerged)
    after = ", and is kept in the cluster after that" if copy.preserved else ""
    if stays is not None:
        return f"for {format_duration(stays)} after the run that moves it{after}"
    if copy.preserved and copy.until is not None:
        return f"until {format_time(copy.until)}{after}"
    if copy.start is None:
        return AWAITED[copy.awaits]
    if copy.release:
        return f"until {copy.release}"
    return f"until {format_time(copy.until)}" if copy.until is not None else UNTIL_ALLOWED


def name_workload(end: str, copies: Sequence[RetainedCopy]) -> str:
    """Return when copies end, with the first workload in the command that says more."""
    return end.replace("{}", format_words(copies[0].follows or copies[0].workload))


def describe_ended_copies(copies: Sequence[RetainedCopy], shown: int = COPIES_SHOWN) -> list[str]:
    """Return a line for each copy that goes because its overlap is over, or one for many."""
    over = [copy for copy in copies if not copy.preserved]
    lines = [
        f"{format_key(copy.workload)} is kept in {copy.cluster}: its file leaves the branch" for copy in copies if copy.preserved
    ]
    if len(over) > MAX_SINGLE_COPIES:
        lines.append(f"{_name_copies(over, 'go')}: their overlap is over")
    else:
        lines += [f"{format_key(copy.workload)} goes from {copy.cluster}: its overlap is over" for copy in over]
    return list_limited(lines, shown)


def _name_copies(copies: Sequence[RetainedCopy], verb: str) -> str:
    """Return the number of copies, the first workloads and the clusters: "12 copies stay in c000–c002 (Deployment a/b, ...)"."""
    names = format_names(list(dict.fromkeys(format_key(copy.workload) for copy in copies)), NAMES_SHOWN)
    place = f"{'in' if verb == 'stay' else 'from'} {format_ranges({copy.cluster for copy in copies})}"
    one = "goes" if verb == "go" else "stays"
    return f"{format_count(len(copies), 'copy', 'copies')} {one if len(copies) == 1 else verb} {place} ({names})"
