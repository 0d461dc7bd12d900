"""How a change of a workload reaches the chosen clusters: all at once, some after others, or one decision group after another.

What a cluster says about a change is a report; who says nothing is waited for. Upstream's words: All, Progressive, ProgressivePerGroup.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from gitsched.model.document import Body, member
from gitsched.model.time import EPOCH, parse_duration

SUCCESS, FAILURE = "Success", "Failure"
_PERCENTAGE = re.compile(r"([0-9]+)%", re.ASCII)


class Report(NamedTuple):
    """What a cluster said last: `state` is Success or Failure, `time` the moment of what it speaks of."""

    state: str
    time: datetime


class Step(NamedTuple):
    """Which revision a cluster was given, and when."""

    revision: str
    since: datetime


class Strategy(NamedTuple):
    """`most` is how many clusters may be under way together (None: all), `failures` how many may fail before nobody follows.

    `deadline` None waits for ever. `mandatory` are names or indices of groups that come first.
    """

    type: str = "All"
    most: object = None
    failures: object = 0
    soak: timedelta = timedelta()
    deadline: timedelta | None = None
    mandatory: tuple[str | int, ...] = ()


class DecisionGroup(NamedTuple):
    """A group of a Placement's decision with its clusters by name."""

    name: str
    place: int
    clusters: tuple[str, ...]


class Progress(NamedTuple):
    """`steps` are what each cluster has now; who is missing has nothing yet. `done` are clusters that succeeded with the present
    revision, `failed` those that did not, `wakeup` when time alone changes that."""

    steps: Mapping[str, Step]
    done: frozenset[str]
    failed: frozenset[str]
    wakeup: datetime | None


def follows_reports(replica_set: Body) -> bool:
    """Whether a ManifestWorkReplicaSet goes on as clusters report; nothing is taken for granted about the document."""
    references = member(replica_set, "spec", "placementRefs")
    entries = references if isinstance(references, list) else []
    return any(member(entry, "rolloutStrategy", "type") not in (None, "All") for entry in entries if isinstance(entry, dict))


def parse_strategy(written: Body, per_group: object) -> Strategy:
    """A rolloutStrategy. `per_group` is the Placement's clustersPerDecisionGroup, for who does not say how many may be under way."""
    kind = str(written.get("type") or "All")
    settings: Body = written.get({"All": "all", "Progressive": "progressive"}.get(kind, "progressivePerGroup")) or {}
    deadline = settings.get("progressDeadline")
    groups = (group.get("groupName") or group.get("groupIndex") for group in settings.get("mandatoryDecisionGroups") or ())
    return Strategy(
        kind,
        settings.get("maxConcurrency", per_group) if kind == "Progressive" else None,
        settings.get("maxFailures", 0),
        parse_duration(settings.get("minSuccessTime")) or timedelta(),
        None if deadline in (None, "None") else parse_duration(deadline),
        tuple(group for group in groups if group is not None),
    )


def advance(
    strategy: Strategy,
    groups: Sequence[DecisionGroup],
    revision: str,
    before: Mapping[str, Step],
    reports: Mapping[str, Report],
    moment: datetime,
) -> Progress:
    """Give the revision to whom it is due. Clusters that are not due yet keep what they have."""
    return _Rollout(strategy, groups, revision, before, reports, moment).run()


class _Rollout:
    """The state of one rollout at one moment."""

    def __init__(
        self,
        strategy: Strategy,
        groups: Sequence[DecisionGroup],
        revision: str,
        before: Mapping[str, Step],
        reports: Mapping[str, Report],
        moment: datetime,
    ) -> None:
        self._strategy, self._revision, self._reports, self._moment = strategy, revision, reports, moment
        self._first = [group for wanted in strategy.mandatory for group in groups if wanted in (group.name, group.place)]
        self._rest = [group for group in groups if group not in self._first]
        chosen = {name for group in groups for name in group.clusters}
        self._steps = {name: step for name, step in before.items() if name in chosen}
        self._total = len(chosen)
        self._wakeups: list[datetime] = []
        self._done: set[str] = set()
        self._failed: set[str] = set()

    def run(self) -> Progress:
        if self._strategy.type == "All":
            for group in (*self._first, *self._rest):
                self._give(group.clusters)
                self._look(group.clusters)
        elif self._go_by_groups(self._first, 0):
            most = _count(self._strategy.failures, self._total)
            if self._strategy.type == "Progressive":
                self._go_by_clusters([name for group in self._rest for name in group.clusters], most)
            else:
                self._go_by_groups(self._rest, most)
        held = (name for name, step in self._steps.items() if step.revision == self._revision)
        self._look(tuple(held))
        return Progress(self._steps, frozenset(self._done), frozenset(self._failed), min(self._wakeups, default=None))

    def _go_by_groups(self, groups: Iterable[DecisionGroup], most: int) -> bool:
        """One group after another, as long as everybody answers; whether all are through."""
        failures = 0
        for group in groups:
            self._give(group.clusters)
            self._look(group.clusters)
            failures += len(self._failed.intersection(group.clusters))
            if failures > most or any(name not in self._done and name not in self._failed for name in group.clusters):
                return False
        return True

    def _go_by_clusters(self, names: Sequence[str], most: int) -> None:
        """As many clusters as may be under way together."""
        wanted = self._strategy.most
        room = _count(wanted, self._total) if wanted is not None else self._total
        self._look([name for name in names if name in self._steps])
        room = max(1, room) - sum(self._is_under_way(name) for name in names)
        if len(self._failed.intersection(names)) > most:
            return
        for name in names:
            if room <= 0:
                break
            if self._steps.get(name, NOTHING).revision != self._revision:
                self._give((name,))
                room -= 1

    def _is_under_way(self, name: str) -> bool:
        return self._steps.get(name, NOTHING).revision == self._revision and name not in self._done and name not in self._failed

    def _give(self, names: Iterable[str]) -> None:
        for name in names:
            if self._steps.get(name, NOTHING).revision != self._revision:
                self._steps[name] = Step(self._revision, self._moment)

    def _look(self, names: Iterable[str]) -> None:
        """Sort clusters with the present revision into those that are done, failed, or still under way."""
        for name in names:
            step = self._steps.get(name, NOTHING)
            if step.revision != self._revision or name in self._done or name in self._failed:
                continue
            self._wakeups += self._judge(name, step)

    def _judge(self, name: str, step: Step) -> Iterator[datetime]:
        report = self._reports.get(name)
        end = None if self._strategy.deadline is None else step.since + self._strategy.deadline
        if report is not None and report.time >= step.since and report.state == SUCCESS:
            ready = report.time + self._strategy.soak
            if ready <= self._moment:
                self._done.add(name)
            else:
                yield ready
        elif (report is not None and report.time >= step.since and report.state == FAILURE) or (
            end is not None and end <= self._moment
        ):
            self._failed.add(name)
        elif end is not None:
            yield end


NOTHING = Step("\0", EPOCH)
"""What a cluster has that was given nothing yet."""


def _count(written: Any, total: int) -> int:
    """A number, or a percentage of all, rounded up."""
    match = _PERCENTAGE.fullmatch(written) if isinstance(written, str) else None
    if match:
        return math.ceil(int(match[1]) / 100 * total)
    number = int(written) if isinstance(written, (int, float)) or (isinstance(written, str) and written.isdecimal()) else 0
    return number if number > 0 else 0
