"""Clusters that lost their document: their directory stays for a while, so that delivery tools prune what they applied."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from gitsched.apis.gitsched.output_config import OutputConfig
from gitsched.decide.incremental.plan_state import PlanTimes, PreviousOutput
from gitsched.decide.overlap.retained_copies import find_end
from gitsched.model.changes import RetainedCopy
from gitsched.model.time import add_duration, choose_start
from gitsched.render.output_files import escape_segment


def list_retiring_clusters(
    names: Iterable[str], previous: PreviousOutput, retained: Iterable[RetainedCopy], times: PlanTimes, config: OutputConfig
) -> tuple[dict[str, datetime], list[datetime]]:
    """Return the clusters that retire, with the time since when, and the ends of those whose directory is removed now.

    A cluster with `retained` copies keeps these first. `output.retireAfter` counts from the commit after which its directory is empty.
    Names that are no directory of a cluster, as in a damaged output branch, do not retire.
    """
    occupied, source_time = {copy.cluster for copy in retained}, times.source_time
    left: dict[str, datetime] = {}
    for copy in previous.retained:
        if copy.cluster not in occupied:
            end = find_end(copy, config.overlap) or source_time
            left[copy.cluster] = max(min(end, times.now), left.get(copy.cluster, end))
    retiring: dict[str, datetime] = {}
    ended: list[datetime] = []
    for name in sorted(name for name in names if escape_segment(name) == name):
        since = previous.retiring.get(name)
        if since is None or name in left:
            since = choose_start(left.get(name, source_time), times.now, config.retire_after)
        end = add_duration(since, config.retire_after)
        if name in occupied or end > times.now:
            retiring[name] = since
        else:
            ended.append(end)
    return retiring, ended
