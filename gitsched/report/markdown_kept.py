"""The sections of the pull request comment about workloads that keep what they have: held ones, those that wait for a wave of a rollout,
copies for an overlap, and placements that stay because of scheduling history. `most` limits the entries of each section."""

from __future__ import annotations

from gitsched.model.changes import RetainedWorkload
from gitsched.model.finding import count_shown, format_count
from gitsched.model.markdown import format_code, format_text
from gitsched.report.held import describe_held, describe_held_workload, describe_retained_number
from gitsched.report.lines import format_clusters, format_key, list_limited
from gitsched.report.retained_copies import COPIES_SHOWN, describe_retained_copies
from gitsched.report.review import Review

_MAX_LINE = 300
ROLLOUT_LINES = 20
"""Lines of one rollout that a comment has."""


def write_held(review: Review, most: int, omitted: list[str]) -> str:
    """Return the workloads with data that keep their clusters until they are released."""
    if not review.held:
        return ""
    most = count_shown(len(review.held), most) if most else 0
    entries = [describe_held_workload(*entry) for entry in [*review.held.items()][:most]]
    lines = [f"- {format_text(where, _MAX_LINE)}; {format_text(release.strip(), _MAX_LINE)}" for where, release in entries]
    more = len(review.held) - most
    if more > 0:
        omitted.append(format_count(more, "held workload"))
        lines.append(f"- and {more:,} more")
    return f"**{describe_held(review.held)[0]}**\n\n" + "\n".join(lines)


def write_rollouts(review: Review, most: int, omitted: list[str]) -> str:
    """Return which clusters get a change in which wave, and what the others wait for."""
    if not review.rollouts:
        return ""
    from gitsched.report.rollouts import describe_rollout  # few runs roll out in waves

    parts = []
    for rollout in review.rollouts[: max(most, 1)]:
        title, *lines = describe_rollout(rollout)
        shown = list_limited([f"- {format_text(line.strip(), _MAX_LINE)}" for line in lines], ROLLOUT_LINES, "- and {} more")
        parts.append(f"**{format_text(title, _MAX_LINE)}**\n\n" + "\n".join(shown))
    if len(review.rollouts) > len(parts):
        omitted.append(format_count(len(review.rollouts) - len(parts), "rollout"))
    return "\n\n".join(parts)


def write_retained_copies(review: Review, most: int) -> str:
    """Return the copies that stay for an overlap."""
    if not review.retained_copies:
        return ""
    lines = describe_retained_copies(review.retained_copies, min(most, COPIES_SHOWN), review.unmerged, review.planned_withheld)
    return "**Copies that stay for an overlap:**\n\n" + "\n".join(f"- {format_text(line, _MAX_LINE)}" for line in lines)


def write_retained(review: Review, most: int, omitted: list[str]) -> str:
    """Return the workloads that the change affects but that keep their placement because of scheduling history."""
    if not review.retained:
        return ""
    moved = {move.key for move in review.moves}
    most = count_shown(len(review.retained), most) if most else 0
    lines = [
        _write_retained_workload(workload, "moves only to" if workload.key in moved else "stays on")
        for workload in review.retained[:most]
    ]
    more = len(review.retained) - most
    if more > 0:
        omitted.append(f"{more} that keep their placement")
        lines.append(f"- and {more:,} more")
    title, *causes = describe_retained_number(review.retained)
    listed = [f"- {format_text(cause.strip(), _MAX_LINE)}" for cause in causes]
    return "\n".join([f"**{title.removesuffix(':')}{':' if lines or causes else ''}**\n", *listed, *lines])


def _write_retained_workload(retained: RetainedWorkload, verb: str) -> str:
    current, rescheduled = (format_code(format_clusters(each)) for each in (retained.current, retained.if_rescheduled))
    workload, remedy = format_code(format_key(retained.key)), format_text(retained.remedy, _MAX_LINE)
    return f"- {workload} {verb} {current}; if it were new: {rescheduled}; {remedy}"
