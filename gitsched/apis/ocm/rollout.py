"""Rollout strategies All, Progressive and ProgressivePerGroup; the rollout recorded in the previous output; RolloutReports."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.apis.ocm.names import MANAGED_CLUSTER, MANIFEST_WORK_REPLICA_SET
from gitsched.model.document import Body, Document, Key, get_field, read_annotations, read_json
from gitsched.model.observation import DELIVERY_STATUS, DeliveryStatus
from gitsched.model.time import EPOCH, format_time, parse_duration, parse_time

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


class RolloutProgress(NamedTuple):
    """The state of a rollout: the revision of each cluster that has one, clusters that succeeded or failed with the current revision, and
    when this can change without a commit or report."""

    revisions: Mapping[str, ClusterRevision]
    succeeded: frozenset[str]
    failed: frozenset[str]
    wakeup: datetime | None


def waits_for_reports(replica_set: Body) -> bool:
    """Report whether the rollout of a ManifestWorkReplicaSet depends on reports; the document need not be valid."""
    references = get_field(replica_set, "spec", "placementRefs")
    entries = references if isinstance(references, list) else []
    return any(get_field(entry, "rolloutStrategy", "type") not in (None, "All") for entry in entries if isinstance(entry, dict))


def list_reporting_clusters(documents: Iterable[Body]) -> set[str]:
    """Return the names of all ManagedClusters if the rollout of a ManifestWorkReplicaSet waits for their reports."""
    bodies = list(documents)
    if not any(waits_for_reports(body) for body in bodies if body.get("kind") == MANIFEST_WORK_REPLICA_SET):
        return set()
    return {str(get_field(body, "metadata", "name")) for body in bodies if body.get("kind") == MANAGED_CLUSTER}


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
) -> RolloutProgress:
    """Apply the revision to the next clusters of the rollout; the others keep their revision."""
    return _Rollout(strategy, groups, revision, previous, reports, now).advance()


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
    ) -> None:
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
        if self._strategy.type == "All":
            for group in (*self._mandatory_groups, *self._other_groups):
                self._apply(group.clusters)
                self._update_statuses(group.clusters)
        elif self._progress_per_group(self._mandatory_groups, 0):
            max_failures = _parse_int_or_percent(self._strategy.max_failures, self._total_clusters)
            if self._strategy.type == "Progressive":
                self._progress_per_cluster([name for group in self._other_groups for name in group.clusters], max_failures)
            else:
                self._progress_per_group(self._other_groups, max_failures)
        self._update_statuses([name for name, current in self._revisions.items() if current.revision == self._revision])
        return RolloutProgress(
            self._revisions, frozenset(self._succeeded), frozenset(self._failed), min(self._wakeups, default=None)
        )

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

    def _progress_per_cluster(self, names: Sequence[str], max_failures: int) -> None:
        """Apply to clusters up to maxConcurrency."""
        max_concurrency = self._strategy.max_concurrency
        available = (
            _parse_int_or_percent(max_concurrency, self._total_clusters) if max_concurrency is not None else self._total_clusters
        )
        self._update_statuses([name for name in names if name in self._revisions])
        available = max(1, available) - sum(self._is_progressing(name) for name in names)
        if len(self._failed.intersection(names)) > max_failures:
            return
        for name in names:
            if available <= 0:
                break
            if self._revisions.get(name, NO_REVISION).revision != self._revision:
                self._apply((name,))
                available -= 1

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
        report = self._reports.get(name)
        deadline = None if self._strategy.progress_deadline is None else current.applied_at + self._strategy.progress_deadline
        if report is not None and report.time >= current.applied_at and report.state == SUCCESS:
            success_time = report.time + self._strategy.min_success_time
            if success_time <= self._now:
                self._succeeded.add(name)
            else:
                yield success_time
        elif (report is not None and report.time >= current.applied_at and report.state == FAILURE) or (
            deadline is not None and deadline <= self._now
        ):
            self._failed.add(name)
        elif deadline is not None:
            yield deadline


NO_REVISION = ClusterRevision("\0", EPOCH)
"""The revision of a cluster without any."""


def _parse_int_or_percent(value: Any, total: int) -> int:
    """Parse a number, or a percentage of `total`, rounded up."""
    match = _PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    if match:
        return math.ceil(int(match[1]) / 100 * total)
    number = int(value) if isinstance(value, (int, float)) or (isinstance(value, str) and value.isdecimal()) else 0
    return number if number > 0 else 0


ROLLOUT_ANNOTATION = "gitsched.io/rollout"
"""An annotation of a record, JSON: steps as [revision, applied at, clusters], objects as [group, kind, namespace, name]."""


class PreviousRollout(NamedTuple):
    """The rollout of the previous output; `objects` are the objects of all revisions that clusters have."""

    revisions: Mapping[str, ClusterRevision]
    objects: tuple[Key, ...]


NO_PREVIOUS_ROLLOUT = PreviousRollout({}, ())


def read_previous_rollout(record: Body | None) -> PreviousRollout:
    """Read the rollout from its record; an empty one if there is none, or the annotation is invalid."""
    text = read_annotations(record or {}).get(ROLLOUT_ANNOTATION)
    if text is None:
        return NO_PREVIOUS_ROLLOUT
    try:
        content: Any = read_json(text)
        revisions = {
            str(name): ClusterRevision(str(revision), time)
            for revision, applied_at, clusters in content["steps"]
            if (time := parse_time(applied_at)) is not None
            for name in clusters
        }
        return PreviousRollout(revisions, tuple(Key(*map(str, entry)) for entry in content["objects"]))
    except (ValueError, KeyError, TypeError):
        return NO_PREVIOUS_ROLLOUT


def format_rollout(revisions: Mapping[str, ClusterRevision], objects: Iterable[Key]) -> str:
    """Format the annotation; clusters with the same revision and time share an entry."""
    clusters_by_revision: dict[ClusterRevision, list[str]] = {}
    for name, step in sorted(revisions.items()):
        clusters_by_revision.setdefault(step, []).append(name)
    content = {
        "objects": [list(key) for key in sorted(objects)],
        "steps": [[step.revision, format_time(step.applied_at), names] for step, names in sorted(clusters_by_revision.items())],
    }
    return json.dumps(content, separators=(",", ":"))


class RolloutReports(NamedTuple):
    """The last report of each cluster: from the source, and combined with commit statuses read at `observed_at` (None if none were)."""

    from_source: Mapping[str, RolloutReport]
    combined: Mapping[str, RolloutReport]
    observed_at: datetime | None

    def known_at(self, time: datetime) -> Mapping[str, RolloutReport]:
        """Return the reports known at a time."""
        return self.combined if self.observed_at is None or self.observed_at <= time else self.from_source


def read_reports(documents: Iterable[Document], observations: Mapping[Any, Any]) -> RolloutReports:
    """Read RolloutReports, and the commit statuses among the observations."""
    from_source, observed = list(_read_source_reports(documents)), list(_read_observed_reports(observations))
    # Observations without a time count as known at any time.
    time = getattr(observations, "time", None) if observed else None
    observed_at = time.replace(microsecond=0) if isinstance(time, datetime) else None
    return RolloutReports(_latest_by_cluster(from_source), _latest_by_cluster([*from_source, *observed]), observed_at)


def _latest_by_cluster(reports: Iterable[tuple[str, RolloutReport]]) -> dict[str, RolloutReport]:
    latest: dict[str, RolloutReport] = {}
    for cluster, report in reports:
        last = latest.get(cluster)
        # Of two reports with the same time, a failure wins.
        if last is None or (last.time, last.state == FAILURE) < (report.time, report.state == FAILURE):
            latest[cluster] = report
    return latest


def _read_source_reports(documents: Iterable[Document]) -> Iterable[tuple[str, RolloutReport]]:
    for document in documents:
        for entry in document.body["spec"]["clusters"]:
            time = parse_time(entry["time"])
            if time is not None:
                yield entry["name"], RolloutReport(entry["state"], time)


def _read_observed_reports(observations: Mapping[Any, Any]) -> Iterable[tuple[str, RolloutReport]]:
    for key, status in observations.items():
        is_status = isinstance(key, tuple) and len(key) == 4 and key[0] == DELIVERY_STATUS
        if is_status and isinstance(status, DeliveryStatus) and status.state in (SUCCESS, FAILURE):
            yield str(key[2]), RolloutReport(status.state, status.time)
