"""Decide which copies of a workload stay where it leaves a cluster or gets fewer replicas there, until its replacement had its time.

Decisions and records are those of the policy APIs; this concerns only what the directories of clusters have. A run that gives a workload
more replicas somewhere takes none away elsewhere: those that it would lose are retained for `output.overlap`, counted from this commit. A
run that adds nothing removes at once what is no longer wanted and not retained. What counts is what is delivered: where the manifest of a
cluster does not change, as while dispatching to it is suspended or a rollout holds it back, copies elsewhere stay without a limit until it
changes. An overlap that is over when a late run adds more ends in that run, unless its replacement is lost or moves in it. A copy of an
earlier run also stays while the guard withholds a move that would place its workload there again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import HealthReport, HealthReporting
from gitsched.apis.companions import CompanionFollowers
from gitsched.apis.gitsched.overlap_config import OverlapConfig
from gitsched.decide.overlap.copy_findings import make_lacking_finding, make_unplaced_finding, make_waiting_finding
from gitsched.decide.overlap.preserved_copies import preserve_copies
from gitsched.decide.renames import find_renamed
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.run_once_kinds import RUN_ONCE_KINDS
from gitsched.model.changes import CopyRetention, RetainedCopy
from gitsched.model.document import Key
from gitsched.model.finding import Finding
from gitsched.model.mistakes import CLUSTER_GONE, RESCHEDULE_DISPLACED
from gitsched.model.scheduling import AtLeast, Outcome, weigh_replicas
from gitsched.model.time import add_duration, choose_start
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.decide.overlap.retention_input import RetentionInput


def find_end(copy: RetainedCopy, config: OverlapConfig) -> datetime | None:
    """Return when a copy goes; None while it has no replacement."""
    if copy.start is None or copy.preserved:
        return copy.until
    latest = add_duration(copy.start, config.maximum)
    return latest if copy.counted_from is None else min(add_duration(copy.counted_from, config.duration), latest)


Followers = Mapping[Key, Iterable[RetainedCopy]]
"""Copies of workloads that follow others, by the workload that they follow."""


def retain_copies(given: RetentionInput) -> CopyRetention:
    """Return the retained copies of a plan: those that are preserved, and those that stay for an overlap."""
    preserved = preserve_copies(given)
    kept = frozenset((copy.workload, copy.cluster) for copy in preserved.copies)
    others = tuple(copy for copy in given.retained if not copy.preserved)
    found = _Retention(given._replace(retained=others), kept).retain()
    own = (copy for copy in found.copies if (copy.workload, copy.cluster) not in kept)
    return CopyRetention(
        tuple(sorted((*preserved.copies, *own), key=lambda copy: (copy.workload, copy.cluster))),
        (*preserved.ended, *found.ended),
        (*preserved.findings, *found.findings),
        is_settled=found.is_settled and preserved.is_settled,
    )


class _Placement(NamedTuple):
    """The delivered copies of a workload before this run with their replicas, and the replicas that are delivered by cluster after it,
    without copies that are evicted. `wanted` are those of the decision: a cluster whose manifest does not change may have fewer. `decided`
    are those of the previous decision, whether they were delivered or not."""

    copies: Mapping[str, RetainedCopy]
    before: Mapping[str, int]
    after: Mapping[str, int]
    wanted: Mapping[str, int]
    decided: Mapping[str, int]

    @property
    def grows(self) -> bool:
        return any(count > self.before.get(cluster, 0) for cluster, count in self.after.items())

    @property
    def losses(self) -> list[RetainedCopy]:
        return [copy for cluster, copy in self.copies.items() if self.before[cluster] > self.after.get(cluster, 0)]

    @property
    def lacking(self) -> dict[str, int]:
        """The replicas of clusters that have fewer than decided because their manifest does not change; {} if others can lose theirs."""
        if sum(self.after.values()) >= min(sum(self.before.values()), sum(self.wanted.values())):
            return {}
        return {name: self.after.get(name, 0) for name, count in self.wanted.items() if self.after.get(name, 0) < count}

    def is_replaced(self, copy: RetainedCopy, lost: Container[str]) -> bool:
        """Return whether a copy of an earlier run is replaced by what was delivered before this run in clusters that are not `lost` now. It
        is not where its cluster loses replicas again."""
        if copy.follows is None and self.decided.get(copy.cluster, 0) > self.after.get(copy.cluster, 0):
            return False
        delivered = sum(min(count, self.before.get(name, 0)) for name, count in self.decided.items() if name not in lost)
        return delivered >= min(sum(self.decided.values()), sum(self.after.values()))

    @property
    def shrinks(self) -> bool:
        """Return whether a cluster loses replicas of the previous decision."""
        return any(count > self.after.get(cluster, 0) for cluster, count in self.decided.items())


class _Retention:
    """One computation of the copies that stay for an overlap. Those that are `preserved` need no replacement."""

    def __init__(self, given: RetentionInput, preserved: frozenset[tuple[Key, str]]) -> None:
        self._preserved = preserved
        self._given, self._times, self._config = given, given.times, given.config.output.overlap
        self._moves = {move.key: move for move in given.moves if move.before}
        self._waiting = {key for key, _ in given.waiting}
        self._is_reported = False
        self._own: dict[Key, dict[str, RetainedCopy]] = {}
        self._followers: dict[Key, list[RetainedCopy]] = {}
        for copy in map(self._correct_times, given.retained):
            if copy.follows is None:
                self._own.setdefault(copy.workload, {})[copy.cluster] = copy
            else:
                self._followers.setdefault(copy.follows, []).append(copy)
        self._copies: dict[tuple[Key, str], RetainedCopy] = {}
        self._requested: set[tuple[Key, str]] = set()
        self._ended: list[RetainedCopy] = []
        self._findings: list[Finding] = []

    def retain(self) -> CopyRetention:
        if self._config.duration:
            self._retain_for_overlap()
        else:
            self._ended += (copy._replace(until=copy.start) for copy in self._given.retained if copy.start is not None)
        self._retain_evicted()
        copies = tuple(self._set_end(self._copies[key]) for key in sorted(self._copies))
        ended = tuple(copy for copy in self._ended if (copy.workload, copy.cluster) not in self._copies)
        is_settled = copies == self._given.retained and not (self._moves or self._given.removed or self._is_reported)
        return CopyRetention(copies, ended, tuple(self._findings), is_settled)

    def _retain_for_overlap(self) -> None:
        self._findings += self._add_renamed()
        for key in sorted({*self._moves, *self._own, *self._followers, *self._given.undelivered, *self._waiting}):
            outcome = self._given.find_outcome(key)
            if outcome is not None:
                self._retain_workload(outcome)
        self._retain_dependents()
        self._retain_companions()

    def _retain_evicted(self) -> None:
        """Add the copies that the API of a workload keeps where it evicts it, also without an overlap, or beyond it."""
        known = {(copy.workload, copy.cluster): copy for copy in map(self._correct_times, self._given.retained)}
        for key in sorted({*self._moves, *(workload for workload, _ in known)}):
            outcome = self._given.find_outcome(key)
            for target in outcome.targets if outcome is not None else ():
                if outcome is None or not target.evicting or (key, target.cluster) in self._preserved:
                    continue
                copy = known.get((key, target.cluster)) or self._given.delivered.find(outcome, target.cluster, target.replicas)
                if copy is not None:
                    start = copy.start or choose_start(self._find_event(outcome), self._times.now, self._config.duration)
                    self._add(copy._replace(start=start, counted_from=copy.counted_from or start))

    def _set_end(self, copy: RetainedCopy) -> RetainedCopy:
        """Return a copy with its end, which is that of its overlap, or that of the eviction from its cluster if this is later; without one
        while it has no replacement, or a withheld move needs it."""
        if (copy.workload, copy.cluster) in self._requested:
            return copy._replace(until=None, release="")
        outcome, end = self._given.find_outcome(copy.follows or copy.workload), find_end(copy, self._config)
        evicted = (one for one in outcome.targets if one.evicting and one.cluster == copy.cluster) if outcome is not None else ()
        target = next(iter(evicted), None)
        if target is None or copy.start is None:
            return copy._replace(until=end, release="")
        if target.release:
            return copy._replace(until=None, release=target.release)
        return copy._replace(until=max((time for time in (end, target.until) if time is not None), default=None), release="")

    def _add_renamed(self) -> Iterable[Finding]:
        """Have the copies of renamed workloads follow those that continue them, with all that followed the former ones."""
        if not self._given.removed:
            return ()
        renamed = find_renamed(self._given.list_renames(), self._given.removed, self._followers)
        for old, new in sorted(renamed.successors.items()):
            former = [copy._replace(follows=new) for copy in self._followers.pop(old, ())]
            self._followers.setdefault(new, []).extend((*self._list_removed_copies(old, new), *former))
        return renamed.findings

    def _correct_times(self, copy: RetainedCopy) -> RetainedCopy:
        """Return the copy without times in the future, which a wrong clock has written."""
        known, now = self._times
        start, counted = (known if time is not None and time > now else time for time in (copy.start, copy.counted_from))
        return copy._replace(start=start, counted_from=counted)

    def _retain_workload(self, outcome: Outcome) -> None:
        """Retain the copies that a workload would lose, and those of other objects that follow it."""
        placement, known = self._read_placement(outcome), self._own.get(outcome.key, {})
        lacking = placement.lacking if placement.after or self._is_waiting(outcome) else {}
        if not placement.after and not self._wants_copies(outcome):
            return
        evicted = self._list_evicted(outcome)
        losses = [copy for copy in placement.losses if copy.cluster not in outcome.released]
        if not placement.grows and placement.after and not lacking:
            losses = _exclude_evicted(losses, outcome, known.keys() | evicted)
        followers = [copy for copy in self._followers.get(outcome.key, ()) if not self._is_live(copy)]
        start = choose_start(self._find_event(outcome), self._times.now, self._config.duration)
        requested = self._given.requested.get(outcome.key, ())
        unplaced = losses if lacking else self._list_unplaced(outcome, placement, losses)
        kept = {copy.cluster for copy in unplaced}
        for copy in (*losses, *followers):
            is_new = copy.follows is None and copy.cluster not in known
            if not placement.after or copy.cluster in kept:
                self._add(copy._replace(start=None, counted_from=None, until=None))
            elif outcome.key[:2] in RUN_ONCE_KINDS:
                continue  # two copies at once would do the same work
            elif copy.cluster in requested:
                self._requested.add((copy.workload, copy.cluster))
                self._add(copy)
            elif placement.grows or (is_new and (copy.cluster in evicted or not self._given.is_cluster(copy.cluster))):
                self._prolong(copy, start, outcome, placement)
            elif not is_new:
                self._continue(copy._replace(start=copy.start or start), outcome, placement)
        if not unplaced and not (followers and not placement.after):
            return
        template = self._given.templates[outcome.key]
        if not placement.after:  # it may have clusters all the same, none of which gets its manifest
            lacking = dict.fromkeys(placement.wanted, 0)
        if unplaced and lacking:
            waits = self._is_waiting(outcome)
            self._findings.append(make_lacking_finding(outcome.key, template, unplaced, lacking, placement.wanted, waits=waits))
        elif unplaced:
            wanted = outcome.replicas or 0
            placed = wanted - (outcome.unassigned or 0) if placement.after else 0
            if not self._is_reported_gone(outcome, unplaced):
                self._findings.append(make_unplaced_finding(outcome.key, template, unplaced, placed, wanted))
        else:
            self._findings.append(make_waiting_finding(outcome.key, template, followers))

    def _is_reported_gone(self, outcome: Outcome, copies: Iterable[RetainedCopy]) -> bool:
        """Return whether a finding says of copies in clusters without a document that they stay, and what places them elsewhere."""
        is_said = any(one.code == CLUSTER_GONE and RESCHEDULE_DISPLACED in one.message for one in outcome.findings)
        return is_said and not any(self._given.is_cluster(copy.cluster) for copy in copies)

    def _list_evicted(self, outcome: Outcome) -> frozenset[str]:
        """Return the clusters from which a workload is evicted from this run on. What it has there stays, although nothing is added where
        an earlier copy already is the replacement."""
        move = self._moves.get(outcome.key)
        before = () if move is None else move.before
        return frozenset(target.cluster for target in outcome.targets if target.evicting and target.cluster in before)

    def _is_waiting(self, outcome: Outcome) -> bool:
        """Return whether a cluster has less of a workload than was decided until its turn in a rollout."""
        return bool(outcome.waiting) or outcome.key in self._waiting

    def _find_event(self, outcome: Outcome) -> datetime:
        """Return the time of the event that led to an outcome: the commit, or a later deadline or observation."""
        deadlines = (engine.time for engine in self._given.engines if engine.name == outcome.api and engine.time is not None)
        return max((outcome.time, self._times.source_time, *deadlines))

    def _wants_copies(self, outcome: Outcome) -> bool:
        """Return whether a workload should be somewhere: not if it has 0 replicas, or comes along with another one that has no cluster."""
        return outcome.key in self._given.quarantined or bool(outcome.policy and outcome.replicas != 0)

    def _list_unplaced(self, outcome: Outcome, placement: _Placement, losses: list[RetainedCopy]) -> list[RetainedCopy]:
        """Return the copies that nothing replaces: all of a workload that has no cluster, or fewer replicas than it should have."""
        return losses if outcome.unassigned or not placement.after else []

    def _is_live(self, copy: RetainedCopy) -> bool:
        """Return whether a workload that follows another one is placed again in the cluster of its copy."""
        outcome = self._given.find_outcome(copy.workload)
        return outcome is not None and copy.cluster in outcome.replicas_by_cluster

    def _prolong(self, copy: RetainedCopy, start: datetime, outcome: Outcome, placement: _Placement) -> None:
        """Add a copy whose overlap counts from the start of another one. One that was over before that goes, as it would have gone if a
        run had been in between, but not while what replaces it moves, until the maximum, nor where it is replaced only now."""
        end = find_end(self._count_from(copy, outcome, placement), self._config)
        is_over = end is not None and end <= start
        if is_over and not placement.is_replaced(copy, self._list_lost(outcome, placement)):
            copy = copy._replace(start=None)
        longer = self._count_from(copy._replace(start=copy.start or start, counted_from=start), outcome, placement)
        latest = find_end(longer, self._config)
        if is_over and copy.start is not None and (not placement.shrinks or (latest is not None and latest <= start)):
            self._end(copy, end, outcome)
        else:
            self._add(longer)

    def _list_lost(self, outcome: Outcome, placement: _Placement) -> set[str]:
        """Return the clusters of the previous decision that no longer exist, or from which the workload is evicted."""
        evicting = {target.cluster for target in outcome.targets if target.evicting}
        return {name for name in placement.decided if not self._given.is_cluster(name)} | evicting | set(outcome.released)

    def _continue(self, copy: RetainedCopy, outcome: Outcome, placement: _Placement) -> None:
        """Add a copy of an earlier run unless it is over."""
        copy = self._count_from(copy, outcome, placement)
        end = find_end(copy, self._config)
        if end is None or end > self._times.now:
            self._add(copy)
        else:
            self._end(copy, end, outcome)

    def _end(self, copy: RetainedCopy, end: datetime | None, outcome: Outcome) -> None:
        """Have a copy go. What the API itself still delivers does not go, so its end is no event."""
        if copy.follows is not None or not _is_evicting(outcome, copy.cluster):
            self._ended.append(copy._replace(until=end))

    def _count_from(self, copy: RetainedCopy, outcome: Outcome, placement: _Placement) -> RetainedCopy:
        """Return a copy with the time from which its overlap counts: that of the delivery or, where clusters report health, that of the
        last report about the replacement if all are good.

        A report is made after the delivery that it is about, so its own time counts, however late the run is.
        """
        reports = self._list_reports(outcome)
        if not reports or copy.start is None:
            return copy._replace(counted_from=copy.counted_from or copy.start)
        about = [reports.get(cluster) for cluster in placement.after]
        times = [report.time for report in about if report is not None and report.is_healthy and report.time >= copy.start]
        if len(times) < len(about):
            return copy._replace(counted_from=None)
        return copy._replace(counted_from=copy.counted_from or max(times))

    def _list_reports(self, outcome: Outcome) -> Mapping[str, HealthReport]:
        """Return what clusters report about a workload."""
        for engine in self._given.engines:
            if engine.name == outcome.api and isinstance(engine, HealthReporting):
                reports = engine.list_health_reports(outcome.key)
                self._is_reported |= bool(reports)
                return reports
        return {}

    def _list_removed_copies(self, key: Key, follows: Key) -> Iterator[RetainedCopy]:
        """Yield the copies that the previous output has of a workload that is no longer in the source."""
        return self._given.delivered.list_removed(self._given.removed[key].workload, self._own.get(key, {}), follows)

    def _add(self, copy: RetainedCopy) -> None:
        self._copies.setdefault((copy.workload, copy.cluster), copy)

    def _read_placement(self, outcome: Outcome) -> _Placement:
        is_waiting = self._is_waiting(outcome)
        copies = dict(self._own.get(outcome.key, {}))
        move = self._moves.get(outcome.key)
        decided = outcome.replicas_by_cluster if move is None else move.before
        replicas = dict(decided)
        may_lack = is_waiting or outcome.key in self._given.undelivered
        for target in outcome.previous_targets:
            if target.evicting and (may_lack or move is not None):
                replicas.setdefault(target.cluster, target.replicas)
        unknown = {
            name: count for name, count in replicas.items() if name not in copies and (outcome.key, name) not in self._preserved
        }
        for cluster, count in unknown.items():
            if (copy := self._given.delivered.find(outcome, cluster, count)) is not None:
                copies[cluster] = copy
        is_quarantined = outcome.key in self._given.quarantined
        is_counted = outcome.replicas is not None and (is_quarantined or _has_counts(outcome))
        if is_counted and may_lack:
            copies = {name: self._given.delivered.count_replicas(copy, self._given.config) for name, copy in copies.items()}
        known = (*outcome.targets, *outcome.previous_targets)
        scaled = {one.cluster: one.wanted for one in known if isinstance(one.replicas, AtLeast)}
        before = {cluster: weigh_replicas(scaled.get(cluster) or copy.replicas) for cluster, copy in copies.items()}
        after: dict[str, int] = {}
        wanted: dict[str, int] = {name: outcome.replicas or 1 for name in outcome.waiting if self._given.is_cluster(name)}
        for target in outcome.targets:
            is_cluster = self._given.is_cluster(target.cluster)
            if target.evicting or not (is_cluster or (target.keeps_manifest and not is_quarantined)):
                continue
            if is_cluster:
                wanted[target.cluster] = weigh_replicas(target.replicas if target.wanted is None else target.wanted)
            waiting = self._given.waiting.get((outcome.key, target.cluster)) if is_waiting else None
            if waiting is not None:
                after |= {target.cluster: waiting} if waiting else {}
            elif not (target.keeps_manifest or is_quarantined) or (is_cluster and target.copied_from):
                after[target.cluster] = wanted[target.cluster]
            elif target.cluster in before:
                after[target.cluster] = before[target.cluster]
        counted = {name: weigh_replicas(scaled.get(name) or count) for name, count in decided.items()}
        return _Placement(copies, before, after, wanted, counted)

    def _retain_dependents(self) -> None:
        """Retain objects that retained copies brought along, such as their ConfigMaps, and that would leave the cluster."""
        owners = {
            (record.namespace, record.name): copy.workload
            for copy in self._copies.values()
            if (outcome := self._given.find_outcome(copy.workload)) is not None
            for record, _ in outcome.records
        }
        if not owners:
            return
        for key, entry in self._given.removed.items():
            for owner in sorted({owners[name] for name in entry.workload.required_by & owners.keys()}):
                self._retain_with(owner, self._list_removed_copies(key, owner))
        for outcome in self._list_moved().values():
            if outcome.key[:2] in RUN_ONCE_KINDS:
                continue
            workload = self._given.delivered.read_previous(outcome)
            for owner in sorted({owners[name] for name in (workload.required_by if workload else frozenset()) & owners.keys()}):
                losses = self._read_placement(outcome).losses
                self._retain_with(owner, (copy._replace(follows=owner) for copy in losses))

    def _retain_companions(self) -> None:
        """Retain companions of retained copies, such as their Services, that would leave the cluster."""
        moved = {key: outcome for key, outcome in self._list_moved().items() if key[:2] in COMPANION_KINDS}
        if not moved or not self._copies:
            return
        retained = {copy.workload for copy in self._copies.values()}
        companions = CompanionFollowers(self._given.list_companions(moved.keys(), retained), self._given.config)
        for key, outcome in moved.items():
            losses = self._read_placement(outcome).losses
            for owner in retained.intersection(companions.list_workloads(key)) if losses else ():
                self._retain_with(owner, (copy._replace(follows=owner) for copy in losses))

    def _list_moved(self) -> dict[Key, Outcome]:
        """Return the placed workloads that move in this run, or have copies of an earlier move, sorted."""
        found = ((key, self._given.find_outcome(key)) for key in sorted(self._moves.keys() | self._own.keys()))
        return {key: outcome for key, outcome in found if outcome is not None}

    def _retain_with(self, owner: Key, copies: Iterable[RetainedCopy]) -> None:
        """Retain copies for as long as those of another workload in the same clusters."""
        for copy in copies:
            other = self._copies.get((owner, copy.cluster))
            if other is not None:
                self._add(copy._replace(start=other.start, counted_from=other.counted_from))


def _has_counts(outcome: Outcome) -> bool:
    """Return whether manifests of a workload have its replicas: those of one that an autoscaler scales have the number of the source. What
    a quarantined one has is not planned."""
    return all(target.edits or target.body is not None or target.replicas in (None, outcome.replicas) for target in outcome.targets)


def _exclude_evicted(copies: Iterable[RetainedCopy], outcome: Outcome, included: Container[str]) -> list[RetainedCopy]:
    """Return the copies without those that only an earlier eviction still keeps, which is no loss; those in `included` clusters stay."""
    return [copy for copy in copies if copy.cluster in included or not _is_evicting(outcome, copy.cluster)]


def _is_evicting(outcome: Outcome, cluster: str) -> bool:
    return any(target.evicting and target.cluster == cluster for target in outcome.targets)
