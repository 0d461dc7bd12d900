"""Rollout strategies All, Progressive and ProgressivePerGroup; the rollout recorded in the previous output; RolloutReports of
clusters."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.model.observation import DELIVERY_STATUS, DeliveryStatus
from gitsched.model.time import EPOCH, format_time, parse_duration, parse_time

SUCCESS, FAILURE = "Success", "Failure"
_PERCENTAGE = re.compile(r"([0-9]+)%", re.ASCII)


class RolloutReport(NamedTuple):
    """What a cluster said last: `state` is Success or Failure, `time` the moment of what it speaks of."""

    state: str
    time: datetime


class ClusterRevision(NamedTuple):
    """Which revision a cluster was given, and when."""

    revision: str
    applied_at: datetime


class RolloutStrategy(NamedTuple):
    """`most` is how many clusters may be under way together (None: all), `failures` how many may fail before nobody follows.

    `deadline` None waits for ever. `mandatory` are names or indices of groups that come first.
    """

    type: str = "All"
    max_concurrency: object = None
    max_failures: object = 0
    min_success_time: timedelta = timedelta()
    progress_deadline: timedelta | None = None
    mandatory_groups: tuple[str | int, ...] = ()


class RolloutGroup(NamedTuple):
    """A group of a Placement's decision with its clusters by name."""

    name: str
    group_index: int
    clusters: tuple[str, ...]


class RolloutProgress(NamedTuple):
    """`steps` are what each cluster has now; who is missing has nothing yet. `done` are clusters that succeeded with the present
    revision, `failed` those that did not, `wakeup` when time alone changes that."""

    revisions: Mapping[str, ClusterRevision]
    succeeded: frozenset[str]
    failed: frozenset[str]
    wakeup: datetime | None


def waits_for_reports(replica_set: Body) -> bool:
    """Whether a ManifestWorkReplicaSet goes on as clusters report; nothing is taken for granted about the document."""
    references = get_field(replica_set, "spec", "placementRefs")
    entries = references if isinstance(references, list) else []
    return any(get_field(entry, "rolloutStrategy", "type") not in (None, "All") for entry in entries if isinstance(entry, dict))


def parse_rollout_strategy(written: Body, per_group: object) -> RolloutStrategy:
    """A rolloutStrategy. `per_group` is the Placement's clustersPerDecisionGroup, for who does not say how many may be under way."""
    kind = str(written.get("type") or "All")
    settings: Body = written.get({"All": "all", "Progressive": "progressive"}.get(kind, "progressivePerGroup")) or {}
    deadline = settings.get("progressDeadline")
    groups = (group.get("groupName") or group.get("groupIndex") for group in settings.get("mandatoryDecisionGroups") or ())
    return RolloutStrategy(
        kind,
        settings.get("maxConcurrency", per_group) if kind == "Progressive" else None,
        settings.get("maxFailures", 0),
        parse_duration(settings.get("minSuccessTime")) or timedelta(),
        None if deadline in (None, "None") else parse_duration(deadline),
        tuple(group for group in groups if group is not None),
    )


def advance_rollout(
    strategy: RolloutStrategy,
    groups: Sequence[RolloutGroup],
    revision: str,
    before: Mapping[str, ClusterRevision],
    reports: Mapping[str, RolloutReport],
    moment: datetime,
) -> RolloutProgress:
    """Give the revision to whom it is due. Clusters that are not due yet keep what they have."""
    return _Rollout(strategy, groups, revision, before, reports, moment).advance()


class _Rollout:
    """The state of one rollout at one moment."""

    def __init__(
        self,
        strategy: RolloutStrategy,
        groups: Sequence[RolloutGroup],
        revision: str,
        before: Mapping[str, ClusterRevision],
        reports: Mapping[str, RolloutReport],
        moment: datetime,
    ) -> None:
        self._strategy, self._revision, self._reports, self._now = strategy, revision, reports, moment
        self._mandatory_groups = [
            group for wanted in strategy.mandatory_groups for group in groups if wanted in (group.name, group.group_index)
        ]
        self._other_groups = [group for group in groups if group not in self._mandatory_groups]
        chosen = {name for group in groups for name in group.clusters}
        self._revisions = {name: step for name, step in before.items() if name in chosen}
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
            most = _parse_int_or_percent(self._strategy.max_failures, self._total_clusters)
            if self._strategy.type == "Progressive":
                self._progress_per_cluster([name for group in self._other_groups for name in group.clusters], most)
            else:
                self._progress_per_group(self._other_groups, most)
        held = (name for name, step in self._revisions.items() if step.revision == self._revision)
        self._update_statuses(tuple(held))
        return RolloutProgress(
            self._revisions, frozenset(self._succeeded), frozenset(self._failed), min(self._wakeups, default=None)
        )

    def _progress_per_group(self, groups: Iterable[RolloutGroup], most: int) -> bool:
        """One group after another, as long as everybody answers; whether all are through."""
        failures = 0
        for group in groups:
            self._apply(group.clusters)
            self._update_statuses(group.clusters)
            failures += len(self._failed.intersection(group.clusters))
            if failures > most or any(name not in self._succeeded and name not in self._failed for name in group.clusters):
                return False
        return True

    def _progress_per_cluster(self, names: Sequence[str], most: int) -> None:
        """As many clusters as may be under way together."""
        wanted = self._strategy.max_concurrency
        room = _parse_int_or_percent(wanted, self._total_clusters) if wanted is not None else self._total_clusters
        self._update_statuses([name for name in names if name in self._revisions])
        room = max(1, room) - sum(self._is_progressing(name) for name in names)
        if len(self._failed.intersection(names)) > most:
            return
        for name in names:
            if room <= 0:
                break
            if self._revisions.get(name, NO_REVISION).revision != self._revision:
                self._apply((name,))
                room -= 1

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
        """Sort clusters with the present revision into those that are done, failed, or still under way."""
        for name in names:
            step = self._revisions.get(name, NO_REVISION)
            if step.revision != self._revision or name in self._succeeded or name in self._failed:
                continue
            self._wakeups += self._determine_status(name, step)

    def _determine_status(self, name: str, step: ClusterRevision) -> Iterator[datetime]:
        report = self._reports.get(name)
        end = None if self._strategy.progress_deadline is None else step.applied_at + self._strategy.progress_deadline
        if report is not None and report.time >= step.applied_at and report.state == SUCCESS:
            ready = report.time + self._strategy.min_success_time
            if ready <= self._now:
                self._succeeded.add(name)
            else:
                yield ready
        elif (report is not None and report.time >= step.applied_at and report.state == FAILURE) or (
            end is not None and end <= self._now
        ):
            self._failed.add(name)
        elif end is not None:
            yield end


NO_REVISION = ClusterRevision("\0", EPOCH)
"""What a cluster has that was given nothing yet."""


def _parse_int_or_percent(written: Any, total: int) -> int:
    """A number, or a percentage of all, rounded up."""
    match = _PERCENTAGE.fullmatch(written) if isinstance(written, str) else None
    if match:
        return math.ceil(int(match[1]) / 100 * total)
    number = int(written) if isinstance(written, (int, float)) or (isinstance(written, str) and written.isdecimal()) else 0
    return number if number > 0 else 0


ROLLOUT_ANNOTATION = "gitsched.io/rollout"
"""On a record: steps as [revision, since, clusters], objects as [group, kind, namespace, name], in JSON."""


class PreviousRollout(NamedTuple):
    """`objects` are all that any of the steps put into a cluster."""

    revisions: Mapping[str, ClusterRevision]
    objects: tuple[Key, ...]


NO_PREVIOUS_ROLLOUT = PreviousRollout({}, ())


def read_previous_rollout(record: Body | None) -> PreviousRollout:
    """The memory in a record; nothing where there is none, or none that can be read."""
    text = as_string_map(get_field(record or {}, "metadata", "annotations")).get(ROLLOUT_ANNOTATION)
    if text is None:
        return NO_PREVIOUS_ROLLOUT
    try:
        noted: Any = json.loads(text)
        steps = {
            str(name): ClusterRevision(str(revision), moment)
            for revision, since, clusters in noted["steps"]
            if (moment := parse_time(since)) is not None
            for name in clusters
        }
        return PreviousRollout(steps, tuple(Key(*map(str, entry)) for entry in noted["objects"]))
    except (ValueError, KeyError, TypeError):
        return NO_PREVIOUS_ROLLOUT


def format_rollout(steps: Mapping[str, ClusterRevision], objects: Iterable[Key]) -> str:
    """The annotation, with clusters that were given the same together."""
    together: dict[ClusterRevision, list[str]] = {}
    for name, step in sorted(steps.items()):
        together.setdefault(step, []).append(name)
    noted = {
        "objects": [list(key) for key in sorted(objects)],
        "steps": [[step.revision, _format_applied_at(step.applied_at), names] for step, names in sorted(together.items())],
    }
    return json.dumps(noted, separators=(",", ":"))


def _format_applied_at(moment: datetime) -> str:
    return format_time(moment)


class RolloutReports(NamedTuple):
    """The latest word of each cluster: as the source has it, and with what was observed `seen`, None where nothing was."""

    from_source: Mapping[str, RolloutReport]
    combined: Mapping[str, RolloutReport]
    observed_at: datetime | None

    def known_at(self, moment: datetime) -> Mapping[str, RolloutReport]:
        """What is known at a moment."""
        return self.combined if self.observed_at is None or self.observed_at <= moment else self.from_source


def read_reports(documents: Iterable[Document], observations: Mapping[Any, Any]) -> RolloutReports:
    """RolloutReports, and the commit statuses among the observations."""
    written, observed = list(_read_source_reports(documents)), list(_read_observed_reports(observations))
    # Without a time they were known from the start.
    seen = getattr(observations, "time", None) if observed else None
    moment = seen.replace(microsecond=0) if isinstance(seen, datetime) else None
    return RolloutReports(_latest_by_cluster(written), _latest_by_cluster([*written, *observed]), moment)


def _latest_by_cluster(reports: Iterable[tuple[str, RolloutReport]]) -> dict[str, RolloutReport]:
    latest: dict[str, RolloutReport] = {}
    for cluster, report in reports:
        known = latest.get(cluster)
        # Of two reports about one moment the worse one counts.
        if known is None or (known.time, known.state == FAILURE) < (report.time, report.state == FAILURE):
            latest[cluster] = report
    return latest


def _read_source_reports(documents: Iterable[Document]) -> Iterable[tuple[str, RolloutReport]]:
    for document in documents:
        for entry in document.body["spec"]["clusters"]:
            moment = parse_time(entry["time"])
            if moment is not None:
                yield entry["name"], RolloutReport(entry["state"], moment)


def _read_observed_reports(observations: Mapping[Any, Any]) -> Iterable[tuple[str, RolloutReport]]:
    for key, status in observations.items():
        said = isinstance(key, tuple) and len(key) == 4 and key[0] == DELIVERY_STATUS
        if said and isinstance(status, DeliveryStatus) and status.state in (SUCCESS, FAILURE):
            yield str(key[2]), RolloutReport(status.state, status.time)
