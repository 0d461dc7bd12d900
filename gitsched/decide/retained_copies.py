"""Decide which copies of a workload stay where it leaves a cluster or gets fewer replicas there, until its replacement had its time.

Decisions and records are those of the policy APIs; this concerns only what the directories of clusters have. A run that gives a workload
more replicas somewhere takes none away elsewhere: those that it would lose are retained for `output.overlap`, counted from this commit. A
run that adds nothing removes at once what is no longer wanted and not retained.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from gitsched.apis.capabilities import HealthReport, HealthReporting
from gitsched.apis.gitsched.overlap_config import OverlapConfig
from gitsched.apis.policy_api import RemovedWorkload
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.plan_state import PlanTimes, PreviousOutput
from gitsched.decide.registry import policy_apis
from gitsched.decide.removals import RemovedPlacement
from gitsched.decide.renames import find_renamed
from gitsched.decide.variant_outcomes import read_kept_paths
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.model.changes import CopyRetention, Move, RetainedCopy
from gitsched.model.document import Key
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.scheduling import Outcome
from gitsched.model.time import add_duration
from gitsched.render.output_files import cluster_path, escape_segment, relative_path

RUN_ONCE_KINDS = frozenset(
    (
        ("", "Pod"),
        ("argoproj.io", "CronWorkflow"),
        ("argoproj.io", "Workflow"),
        ("batch", "CronJob"),
        ("batch", "Job"),
        ("batch.volcano.sh", "Job"),
        ("kubeflow.org", "MPIJob"),
        ("kubeflow.org", "PyTorchJob"),
        ("kubeflow.org", "TFJob"),
        ("ray.io", "RayJob"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        ("tekton.dev", "PipelineRun"),
        ("tekton.dev", "TaskRun"),
    )
)
"""Group and kind of workloads that would run twice: their copies are removed at once."""
_PUNCTUAL_PART = 10
"""A run counts as punctual if it is late by at most this part of the duration."""


def choose_start(event: datetime, now: datetime, duration: timedelta) -> datetime:
    """Return when a duration starts: at its event if the run is punctual, so that all punctual runs write the same, else now.

    A run's time has a fraction; the start has whole seconds.
    """
    return event if now - event <= duration / _PUNCTUAL_PART else now.replace(microsecond=0)


def find_end(copy: RetainedCopy, config: OverlapConfig) -> datetime | None:
    """Return when a copy goes; None while it has no replacement."""
    if copy.start is None:
        return None
    latest = add_duration(copy.start, config.maximum)
    return latest if copy.counted_from is None else min(add_duration(copy.counted_from, config.duration), latest)


def may_retain(move: Move) -> bool:
    """Return whether a move may leave a copy behind: replicas go somewhere, and come elsewhere or nowhere."""
    full = move.copy_replicas or 1
    before, after = (
        {cluster: full if count is None else count for cluster, count in part.items()} for part in (move.before, move.after)
    )
    loses = any(count > after.get(cluster, 0) for cluster, count in before.items())
    return loses and (not after or any(count > before.get(cluster, 0) for cluster, count in after.items()))


def retain_copies(
    decisions: DecisionSet,
    moves: Iterable[Move],
    removed: Mapping[Key, RemovedPlacement],
    previous: PreviousOutput,
    times: PlanTimes,
    config: OverlapConfig,
) -> CopyRetention:
    """Return the retained copies of a plan, given its decisions, the `moves` of placed workloads and the `removed` workloads."""
    if not config.duration:
        return CopyRetention(ended=tuple(copy._replace(until=copy.start) for copy in previous.retained if copy.start is not None))
    return _Retention(decisions, moves, removed, previous, times, config).retain()


class _Placement(NamedTuple):
    """The delivered copies of a workload before this run, and the replicas that it gets by cluster without copies that are evicted."""

    before: Mapping[str, RetainedCopy]
    after: Mapping[str, int]
    full: int

    def count(self, copy: RetainedCopy) -> int:
        return self.full if copy.replicas is None else copy.replicas

    @property
    def grows(self) -> bool:
        return any(cluster not in self.before or count > self.count(self.before[cluster]) for cluster, count in self.after.items())

    @property
    def losses(self) -> list[RetainedCopy]:
        return [copy for cluster, copy in self.before.items() if self.count(copy) > self.after.get(cluster, 0)]


class _Retention:
    """One computation of the retained copies."""

    def __init__(
        self,
        decisions: DecisionSet,
        moves: Iterable[Move],
        removed: Mapping[Key, RemovedPlacement],
        previous: PreviousOutput,
        times: PlanTimes,
        config: OverlapConfig,
    ) -> None:
        self._decisions, self._removed, self._previous = decisions, removed, previous
        self._times, self._config = times, config
        self._moves = {move.key: move for move in moves if move.before}
        self._known = decisions.cluster_facts.keys()
        self._own: dict[Key, dict[str, RetainedCopy]] = {}
        self._followers: dict[Key, list[RetainedCopy]] = {}
        for copy in map(self._correct_times, previous.retained):
            if copy.follows is None:
                self._own.setdefault(copy.workload, {})[copy.cluster] = copy
            else:
                self._followers.setdefault(copy.follows, []).append(copy)
        self._copies: dict[tuple[Key, str], RetainedCopy] = {}
        self._ended: list[RetainedCopy] = []
        self._findings: list[Finding] = []

    def retain(self) -> CopyRetention:
        self._findings += self._add_renamed()
        for key in sorted(self._moves.keys() | self._own.keys() | self._followers.keys()):
            outcome = self._decisions.outcomes.get(key)
            if outcome is not None and (key.group, key.kind) not in RUN_ONCE_KINDS:
                self._retain_workload(outcome)
        self._retain_dependents()
        self._retain_companions()
        copies = (self._copies[key]._replace(until=find_end(self._copies[key], self._config)) for key in sorted(self._copies))
        ended = (copy for copy in self._ended if (copy.workload, copy.cluster) not in self._copies)
        return CopyRetention(tuple(copies), tuple(ended), tuple(self._findings))

    def _add_renamed(self) -> Iterable[Finding]:
        """Have the copies of renamed workloads follow those that continue them, with all that followed the former ones."""
        if not self._removed:
            return ()
        renamed = find_renamed(self._decisions, self._removed, self._followers)
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
        if not placement.after and not self._wants_copies(outcome):
            return
        losses = [copy for copy in placement.losses if copy.cluster not in outcome.released]
        if not placement.grows and placement.after:  # what an eviction still keeps is no loss
            losses = [copy for copy in losses if copy.cluster in known or not _is_evicting(outcome, copy.cluster)]
        followers = [copy for copy in self._followers.get(outcome.key, ()) if not self._is_live(copy)]
        start = choose_start(self._find_event(outcome), self._times.now, self._config.duration)
        unplaced = self._list_unplaced(outcome, placement, losses)
        kept = {copy.cluster for copy in unplaced}
        for copy in (*losses, *followers):
            is_new = copy.follows is None and copy.cluster not in known
            if not placement.after or copy.cluster in kept:
                self._add(copy._replace(start=None, counted_from=None))
            elif placement.grows or (is_new and copy.cluster not in self._known):
                self._add(self._count_from(copy._replace(start=copy.start or start, counted_from=start), outcome, placement))
            elif not is_new:
                self._continue(copy._replace(start=copy.start or start), outcome, placement)
        if unplaced:
            self._findings.append(self._make_unplaced_finding(outcome, unplaced, is_partial=bool(placement.after)))
        elif followers and not placement.after:
            self._findings.append(self._make_waiting_finding(outcome, followers))

    def _find_event(self, outcome: Outcome) -> datetime:
        """Return the time of the event that led to an outcome: the commit, or a later deadline or observation."""
        deadlines = (engine.time for engine in self._decisions.engines if engine.name == outcome.api and engine.time is not None)
        return max((outcome.time, self._times.source_time, *deadlines))

    def _wants_copies(self, outcome: Outcome) -> bool:
        """Return whether a workload should be somewhere: not if it has 0 replicas, or comes along with another one that has no cluster."""
        return outcome.key in self._decisions.quarantined or bool(outcome.policy and outcome.replicas != 0)

    def _list_unplaced(self, outcome: Outcome, placement: _Placement, losses: list[RetainedCopy]) -> list[RetainedCopy]:
        """Return the copies that nothing replaces: all of a workload without a cluster, and those in removed clusters of a workload
        that has fewer replicas elsewhere than it should have, because its API does not schedule the others again."""
        if not placement.after:
            return losses
        if sum(placement.after.values()) >= (outcome.replicas or 0):
            return []
        return [copy for copy in losses if copy.cluster not in self._known]

    def _is_live(self, copy: RetainedCopy) -> bool:
        """Return whether a workload that follows another one is placed again in the cluster of its copy."""
        outcome = self._decisions.outcomes.get(copy.workload)
        return outcome is not None and copy.cluster in outcome.replicas_by_cluster

    def _continue(self, copy: RetainedCopy, outcome: Outcome, placement: _Placement) -> None:
        """Add a copy of an earlier run unless it is over. What the API itself still delivers does not go, so its end is no event."""
        copy = self._count_from(copy, outcome, placement)
        end = find_end(copy, self._config)
        if end is None or end > self._times.now:
            self._add(copy)
        elif copy.follows is not None or not _is_evicting(outcome, copy.cluster):
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
        template = self._decisions.templates[outcome.key]
        for engine in self._decisions.engines:
            if engine.name == outcome.api and isinstance(engine, HealthReporting):
                return engine.list_health_reports(template)
        return {}

    def _add(self, copy: RetainedCopy) -> None:
        self._copies.setdefault((copy.workload, copy.cluster), copy)

    def _read_placement(self, outcome: Outcome) -> _Placement:
        full = outcome.replicas or 1
        before = dict(self._own.get(outcome.key, {}))
        move = self._moves.get(outcome.key)
        replicas = dict(outcome.replicas_by_cluster if move is None else move.before)
        for target in outcome.previous_targets if move is not None else ():
            if target.evicting:
                replicas.setdefault(target.cluster, target.replicas)
        for cluster, count in replicas.items():
            if cluster not in before and (paths := self._list_delivered(self._list_paths(outcome, cluster))):
                before[cluster] = RetainedCopy(outcome.key, cluster, count, paths)
        after: dict[str, int] = {}
        for target in outcome.targets:
            if target.evicting or target.cluster not in self._known:
                continue
            if not (target.keeps_manifest or outcome.key in self._decisions.quarantined):
                after[target.cluster] = full if target.replicas is None else target.replicas
            elif target.cluster in before:
                kept = before[target.cluster].replicas
                after[target.cluster] = full if kept is None else kept
        return _Placement(before, after, full)

    def _list_paths(self, outcome: Outcome, cluster: str) -> Iterator[str]:
        """Yield the paths that the previous output may have of a workload in a cluster."""
        yield from (cluster_path(cluster, path) for path in outcome.kept_paths.get(cluster, ()) if not _is_run_once(path))
        if outcome.bundles:
            from gitsched.decide.bundle_delivery import find_application_path  # few workloads have Bundles

            yield from (find_application_path(key, cluster) for key in outcome.bundles)
        if outcome.manifests is not None:
            yield from _list_object_paths((*self._list_recorded_objects(outcome), *outcome.previous_objects), cluster)
        elif not outcome.bundles:
            yield from _list_object_paths((outcome.key,), cluster)

    def _list_recorded_objects(self, outcome: Outcome) -> Iterator[Key]:
        """Yield the objects that a workload consisted of in the previous output."""
        workload = self._read_previous(outcome)
        yield from (workload.objects or ()) if workload is not None else ()

    def _read_previous(self, outcome: Outcome) -> RemovedWorkload | None:
        """Return what the previous records say about a workload; None if they say nothing."""
        read = policy_apis[outcome.api].read_removed_workload
        records = (self._previous.records.get(key) for key, _ in outcome.records)
        return next((found for record in records if read and record is not None and (found := read(record)) is not None), None)

    def _list_delivered(self, paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(path for path in dict.fromkeys(paths) if self._previous.find_blob(path) is not None)

    def _list_removed_copies(self, key: Key, follows: Key) -> Iterator[RetainedCopy]:
        """Yield the copies that the previous output has of a workload that is no longer in the source."""
        workload, copies = self._removed[key].workload, self._own.get(key, {})
        if (key.group, key.kind) in RUN_ONCE_KINDS:
            return
        kept = read_kept_paths(self._previous.records.get(key))
        objects = (key,) if workload.objects is None else workload.objects
        yield from (copy._replace(follows=follows) for copy in copies.values())
        for cluster, count in workload.replicas.items():
            if cluster not in copies and escape_segment(cluster) in self._previous.clusters:
                parts = (cluster_path(cluster, path) for path in kept.get(cluster, ()) if not _is_run_once(path))
                paths = (*parts, *_list_object_paths(objects, cluster))
                if delivered := self._list_delivered(paths):
                    yield RetainedCopy(key, cluster, count, delivered, follows=follows)

    def _retain_dependents(self) -> None:
        """Retain objects that retained copies brought along, such as their ConfigMaps, and that would leave the cluster."""
        owners = {
            (record.namespace, record.name): copy.workload
            for copy in self._copies.values()
            if copy.workload in self._decisions.outcomes
            for record, _ in self._decisions.outcomes[copy.workload].records
        }
        if not owners:
            return
        for key, entry in self._removed.items():
            for owner in sorted({owners[name] for name in entry.workload.required_by & owners.keys()}):
                self._retain_with(owner, self._list_removed_copies(key, owner))
        for key in self._list_moved():
            workload = self._read_previous(self._decisions.outcomes[key])
            for owner in sorted({owners[name] for name in (workload.required_by if workload else frozenset()) & owners.keys()}):
                losses = self._read_placement(self._decisions.outcomes[key]).losses
                self._retain_with(owner, (copy._replace(follows=owner) for copy in losses))

    def _retain_companions(self) -> None:
        """Retain companions of retained copies, such as their Services, that would leave the cluster."""
        moved = sorted(key for key in self._list_moved() if key[:2] in COMPANION_KINDS)
        given = self._decisions.input
        if not moved or not self._copies or given is None:
            return
        from gitsched.apis.companions import CompanionFollowers  # few companions move

        companions = CompanionFollowers(given.catalog.templates, given.config)
        retained = {copy.workload for copy in self._copies.values()}
        for key in moved:
            losses = self._read_placement(self._decisions.outcomes[key]).losses
            for owner in retained.intersection(companions.list_workloads(key)) if losses else ():
                self._retain_with(owner, (copy._replace(follows=owner) for copy in losses))

    def _list_moved(self) -> set[Key]:
        """Return the placed workloads that move in this run, or have copies of an earlier move."""
        return (self._moves.keys() | self._own.keys()) & self._decisions.outcomes.keys()

    def _retain_with(self, owner: Key, copies: Iterable[RetainedCopy]) -> None:
        """Retain copies for as long as those of another workload in the same clusters."""
        for copy in copies:
            other = self._copies.get((owner, copy.cluster))
            if other is not None:
                self._add(copy._replace(start=other.start, counted_from=other.counted_from))

    def _make_unplaced_finding(self, outcome: Outcome, copies: Iterable[RetainedCopy], is_partial: bool) -> Finding:
        clusters = format_names(sorted(copy.cluster for copy in copies))
        lacking = "no cluster any more" if not is_partial else f"no cluster in place of {clusters}"
        message = (
            f"{outcome.key} has {lacking}, and keeps its copy in {clusters} until another cluster has one; to remove it, "
            "delete the workload, or have no policy select it"
        )
        template = self._decisions.templates[outcome.key]
        return Finding("warning", "copy-retained", message, locate_document(template), outcome.key.resource)

    def _make_waiting_finding(self, outcome: Outcome, followers: Iterable[RetainedCopy]) -> Finding:
        former = format_names(sorted({f"{copy.workload} in {copy.cluster}" for copy in followers}))
        message = (
            f"{outcome.key} has no cluster yet, so what it continues stays: {former}; have its policy match a cluster, or delete it"
        )
        template = self._decisions.templates[outcome.key]
        return Finding("warning", "copy-retained", message, locate_document(template), outcome.key.resource)


def _is_evicting(outcome: Outcome, cluster: str) -> bool:
    return any(target.evicting and target.cluster == cluster for target in outcome.targets)


def _is_run_once(path: str) -> bool:
    """Return whether a path of a manifest is that of an object that would run twice."""
    name = path.rpartition("/")[2]
    return any(name.startswith(relative_path(Key(group, kind, "", "-")).rpartition("/")[2][:-6]) for group, kind in RUN_ONCE_KINDS)


def _list_object_paths(keys: Iterable[Key], cluster: str) -> Iterator[str]:
    """Yield the paths of objects on the output branch, without those that would run twice."""
    return (cluster_path(cluster, relative_path(key)) for key in keys if (key.group, key.kind) not in RUN_ONCE_KINDS)
