"""Rollout strategies All, Progressive and ProgressivePerGroup: which clusters may get a change, given the reports of the others.

Source: open-cluster-management.io/sdk-go/pkg/apis/cluster/v1alpha1/rollout.go. Those of Open Cluster Management and of kind Rollout use it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from gitsched.model.document import Body
from gitsched.model.time import EPOCH, add_duration, parse_duration
from gitsched.named_tuples import NamedTuple

SUCCESS, FAILURE = "Success", "Failure"
_PERCENTAGE = re.compile(r"([0-9]+)%", re.ASCII)


class RolloutReport(NamedTuple):
    """The last report of a cluster: `state` is Success or Failure, `time` is the date of the output commit it reports on."""

    state: str
    time: datetime


class ClusterRevision(NamedTuple):
    """The revision that was applied to a cluster, and when."""

    revision: str
    applied_at: datetime


class RolloutStrategy(NamedTuple):
    """A parsed rolloutStrategy: maxConcurrency, maxFailures, minSuccessTime, progressDeadline and mandatoryDecisionGroups.

    `max_concurrency` is how many clusters may be progressing at a time (None for all), `max_failures` how many may fail before the
    rollout stops, `progress_deadline` None waits without limit, `mandatory_groups` are names or indices of the groups that come first.
    """

    type: str = "All"
    max_concurrency: object = None
    max_failures: object = 0
    min_success_time: timedelta = timedelta()
    progress_deadline: timedelta | None = None
    mandatory_groups: tuple[str | int, ...] = ()


class RolloutGroup(NamedTuple):
    """A decision group of a Placement with the names of its clusters."""

    name: str
    group_index: int
    clusters: tuple[str, ...]


class UnconfirmedClusters(NamedTuple):
    """Clusters with an earlier revision, not yet the current one: those that have not reported on it, which count as progressing, and those
    where it failed."""

    progressing: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()


NONE_UNCONFIRMED = UnconfirmedClusters()


class RolloutProgress(NamedTuple):
    """The state of a rollout: the revision of each cluster that has one, clusters that succeeded or failed with the current revision, and
    when this can change without a commit or report. It `is_complete` if all clusters have a result, with no more failures than allowed."""

    revisions: Mapping[str, ClusterRevision]
    succeeded: frozenset[str]
    failed: frozenset[str]
    wakeup: datetime | None
    is_complete: bool = False


def parse_rollout_strategy(rollout_strategy: Body, clusters_per_group: object) -> RolloutStrategy:
    """Parse a rolloutStrategy; `clusters_per_group` of the Placement is the default of maxConcurrency."""
    strategy_type = str(rollout_strategy.get("type") or "All")
    settings: Body = (
        rollout_strategy.get({"All": "all", "Progressive": "progressive"}.get(strategy_type, "progressivePerGroup")) or {}
    )
    deadline = settings.get("progressDeadline")
    groups = (group.get("groupName") or group.get("groupIndex") for group in settings.get("mandatoryDecisionGroups") or ())
    return RolloutStrategy(
        strategy_type,
        settings.get("maxConcurrency", clusters_per_group) if strategy_type == "Progressive" else None,
        settings.get("maxFailures", 0),
        parse_duration(settings.get("minSuccessTime")) or timedelta(),
        None if deadline in (None, "None") else parse_duration(deadline),
        tuple(group for group in groups if group is not None),
    )


def advance_rollout(
    strategy: RolloutStrategy,
    groups: Sequence[RolloutGroup],
    revision: str,
    previous: Mapping[str, ClusterRevision],
    reports: Mapping[str, RolloutReport],
    now: datetime,
    unconfirmed: UnconfirmedClusters = NONE_UNCONFIRMED,
) -> RolloutProgress:
    """Apply the revision to the next clusters of the rollout; the others keep their revision.

    Of the clusters that may get the revision next, the unconfirmed ones are the first.
    """
    return _Rollout(strategy, groups, revision, previous, reports, now, unconfirmed).advance()


class _Rollout:
    """One rollout at one time."""

    def __init__(
        self,
        strategy: RolloutStrategy,
        groups: Sequence[RolloutGroup],
        revision: str,
        previous: Mapping[str, ClusterRevision],
        reports: Mapping[str, RolloutReport],
        now: datetime,
        unconfirmed: UnconfirmedClusters,
    ) -> None:
        self._unconfirmed = unconfirmed
        self._strategy, self._revision, self._reports, self._now = strategy, revision, reports, now
        self._mandatory_groups = [
            group
            for name_or_index in strategy.mandatory_groups
            for group in groups
            if name_or_index in (group.name, group.group_index)
        ]
        self._other_groups = [group for group in groups if group not in self._mandatory_groups]
        chosen = {name for group in groups for name in group.clusters}
        self._revisions = {name: current for name, current in previous.items() if name in chosen}
        self._total_clusters = len(chosen)
        self._wakeups: list[datetime] = []
        self._succeeded: set[str] = set()
        self._failed: set[str] = set()

    def advance(self) -> RolloutProgress:
        is_complete = False
        if self._strategy.type == "All":
            for group in (*self._mandatory_groups, *self._other_groups):
                self._apply(group.clusters)
                self._update_statuses(group.clusters)
        elif self._progress_per_group(self._mandatory_groups, 0):
            max_failures = parse_int_or_percent(self._strategy.max_failures, self._total_clusters)
            if self._strategy.type == "Progressive":
                names = [name for group in self._other_groups for name in group.clusters]
                is_complete = self._progress_per_cluster(names, max_failures)
            else:
                is_complete = self._progress_per_group(self._other_groups, max_failures)
        self._update_statuses([name for name, current in self._revisions.items() if current.revision == self._revision])
        wakeup = min(self._wakeups, default=None)
        return RolloutProgress(self._revisions, frozenset(self._succeeded), frozenset(self._failed), wakeup, is_complete)

    def _progress_per_group(self, groups: Iterable[RolloutGroup], max_failures: int) -> bool:
        """Apply one group after another while all their clusters report; return whether all groups are complete."""
        failures = 0
        for group in groups:
            self._apply(group.clusters)
            self._update_statuses(group.clusters)
            failures += len(self._failed.intersection(group.clusters))
            if failures > max_failures or any(name not in self._succeeded and name not in self._failed for name in group.clusters):
                return False
        return True

    def _progress_per_cluster(self, names: Sequence[str], max_failures: int) -> bool:
        """Apply to clusters up to maxConcurrency; return whether all clusters are complete."""
        max_concurrency = self._strategy.max_concurrency
        available = (
            parse_int_or_percent(max_concurrency, self._total_clusters) if max_concurrency is not None else self._total_clusters
        )
        self._update_statuses([name for name in names if name in self._revisions])
        waiting = [name for name in names if self._revisions.get(name, NO_REVISION).revision != self._revision]
        superseded = [name for name in waiting if name in self._unconfirmed.progressing]
        available = max(1, available) - sum(self._is_progressing(name) for name in names) - len(superseded)
        if len(self._failed.intersection(names)) > max_failures:
            return False
        self._apply(superseded)
        waiting.sort(key=lambda name: name not in self._unconfirmed.failed)
        others = [name for name in waiting if name not in self._unconfirmed.progressing]
        self._apply(others[: max(0, available)])
        return all(name in self._succeeded or name in self._failed for name in names)

    def _is_progressing(self, name: str) -> bool:
        return (
            self._revisions.get(name, NO_REVISION).revision == self._revision
            and name not in self._succeeded
            and name not in self._failed
        )

    def _apply(self, names: Iterable[str]) -> None:
        for name in names:
            if self._revisions.get(name, NO_REVISION).revision != self._revision:
                self._revisions[name] = ClusterRevision(self._revision, self._now)

    def _update_statuses(self, names: Iterable[str]) -> None:
        """Determine which clusters with the current revision succeeded or failed."""
        for name in names:
            current = self._revisions.get(name, NO_REVISION)
            if current.revision != self._revision or name in self._succeeded or name in self._failed:
                continue
            self._wakeups += self._determine_status(name, current)

    def _determine_status(self, name: str, current: ClusterRevision) -> Iterator[datetime]:
        state, event = determine_result(self._strategy, current.applied_at, self._reports.get(name), self._now)
        if state == SUCCESS:
            self._succeeded.add(name)
        elif state == FAILURE:
            self._failed.add(name)
        elif event is not None:
            yield event


def determine_result(
    strategy: RolloutStrategy, applied_at: datetime, report: RolloutReport | None, now: datetime
) -> tuple[str, datetime | None]:
    """Return Success, Failure, or "" for a cluster that is progressing; and the time since when, or at which that can change."""
    deadline = None if strategy.progress_deadline is None else add_duration(applied_at, strategy.progress_deadline)
    known = report if report is not None and report.time >= applied_at else None
    if known is not None and known.state == SUCCESS:
        success_time = add_duration(known.time, strategy.min_success_time)
        if known.time > now and deadline is not None:  # a clock that is ahead does not suspend the deadline
            return (FAILURE, deadline) if deadline <= now else ("", min(deadline, success_time))
        return (SUCCESS if success_time <= now else ""), success_time
    if known is not None and known.state == FAILURE:
        return FAILURE, known.time
    return (FAILURE if deadline is not None and deadline <= now else ""), deadline


NO_REVISION = ClusterRevision("\0", EPOCH)
"""The revision of a cluster without any."""


def parse_int_or_percent(value: Any, total: int) -> int:
    """Parse a number, or a percentage of `total`, rounded up."""
    match = _PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    if match:
        return math.ceil(int(match[1]) / 100 * total)
    number = (
        int(value) if isinstance(value, (int, float)) or (isinstance(value, str) and value.isdecimal() and len(value) < 10) else 0
    )
    return number if number > 0 else 0
