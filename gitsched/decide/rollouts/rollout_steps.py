"""Take the steps of the rollouts of a plan: compare files of workloads with those of the previous output, and hold back what waits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gitsched.apis.gitsched.config import Config
from gitsched.apis.gitsched.rollout import RolloutSpec
from gitsched.decide.guard.held_files import FileComparison
from gitsched.decide.incremental.plan_state import PlanTimes, PreviousOutput
from gitsched.decide.rollouts.cluster_reports import KnownReports
from gitsched.decide.rollouts.rollout_findings import list_rollout_findings
from gitsched.decide.rollouts.rollout_progress import RolloutStep, advance
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.changes import Move, RetainedCopy
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding
from gitsched.model.rollouts import HeldFiles, RolloutInput, RolloutRecord, RolloutResult, RolloutTargets

UNGATED = "All"


class RolloutSource(NamedTuple):
    """What rollouts take their steps from besides the files of a plan.

    `reports` are the ClusterReports, `labels` those of the clusters by name. `moves` are the moves of the plan, `retained` the copies that
    stay for an overlap, and `quarantined` the workloads that keep what they have in all clusters.
    """

    given: RolloutInput
    previous: PreviousOutput
    reports: Iterable[Document]
    observations: Mapping[Any, Any]
    config: Config
    times: PlanTimes
    labels: Mapping[str, Mapping[str, str]]
    moves: Iterable[Move]
    retained: Iterable[RetainedCopy]
    quarantined: Collection[Key] = ()


class RolloutMembers(NamedTuple):
    """The workloads that a rollout selects: the files of those whose files may differ from those of the previous output, and the targets of
    all."""

    files: Sequence[WorkloadFiles]
    targets: RolloutTargets


class RolloutSteps:
    """Takes the steps of rollouts, and holds files back."""

    def __init__(self, source: RolloutSource) -> None:
        self._source = source
        self._retained = {(copy.workload, copy.cluster) for copy in source.retained}
        self._moves = {move.key: move for move in source.moves}
        self._comparison = FileComparison(source.previous, source.given)
        self._reports = KnownReports(source.reports, source.observations, source.given.list_commits())
        self._records = {record.name: record for record in source.given.records}

    def take(
        self, specs: Iterable[RolloutSpec], members: Mapping[str, RolloutMembers], files: dict[Key, WorkloadFiles]
    ) -> list[tuple[RolloutSpec, RolloutStep]]:
        """Take the step of each rollout, and set in `files` those of the previous output where a cluster waits."""
        steps = []
        for spec in specs:
            if spec.strategy.type == UNGATED:
                continue
            step = self._advance(spec, self._records.get(spec.name, RolloutRecord(spec.name, ())), members[spec.name])
            for held in step.record.held:
                files[held.workload] = self._comparison.keep(files[held.workload], held)
            steps.append((spec, step))
        return steps

    def summarize(
        self, steps: Sequence[tuple[RolloutSpec, RolloutStep]], members: Mapping[str, RolloutMembers], findings: Iterable[Finding]
    ) -> RolloutResult:
        """Return what came of all steps. `findings` are others about the rollouts."""
        facts = self._source.config.source.facts
        is_reporting = self._source.config.observations.statuses is not None or bool(facts.branch or facts.cluster_branches)
        selecting = {name for name, found in members.items() if found.targets.workloads}
        valid = [entry for entry in steps if not entry[0].broken]
        return RolloutResult(
            tuple(step.status for _, step in steps if step.status.clusters),
            tuple(step.record for _, step in steps if step.record.changed or step.record.held),
            tuple(time for _, step in steps for time in step.wakeups),
            tuple(time for _, step in steps for time in step.events),
            (*findings, *list_rollout_findings(valid, selecting, self._reports.exist or is_reporting)),
            {spec.name: members[spec.name].targets for spec, _ in steps},
        )

    def _advance(self, spec: RolloutSpec, record: RolloutRecord, members: RolloutMembers) -> RolloutStep:
        """Compare what the members of a rollout should have with what they have, and take the next step."""
        known = {(held.workload, held.cluster): held.paths for held in record.held}
        changes: dict[str, list[HeldFiles]] = {}
        kept: list[HeldFiles] = []
        urgent: set[str] = set()
        for files in members.files:
            targets = [target.cluster for target in files.outcome.targets]
            exempt = self._list_exempt(files, targets, known)
            stays = {target.cluster for target in files.outcome.targets if target.keeps_manifest}
            if files.outcome.key in self._source.quarantined:
                stays.update(targets)
            for cluster in targets:
                if (files.outcome.key, cluster) in self._retained:
                    continue  # its files stay for the overlap
                if cluster in stays:  # it keeps what it has, which may be what an earlier run has held back
                    paths = known.get((files.outcome.key, cluster))
                    kept += [HeldFiles(files.outcome.key, cluster, paths)] if paths is not None else []
                    continue
                held = self._comparison.find_change(files, cluster, known.get((files.outcome.key, cluster), ()))
                if held is None:
                    continue
                if cluster in exempt or (not held.paths and exempt):
                    urgent.add(cluster)
                else:
                    changes.setdefault(cluster, []).append(held)
        if spec.broken:
            from gitsched.decide.rollouts.broken_rollouts import hold_changes  # most Rollouts are valid

            step = hold_changes(spec, record, changes)
            return step._replace(record=step.record._replace(held=(*step.record.held, *kept)))
        groups = spec.divide(members.targets.clusters, self._source.labels)
        head = next(iter(self._source.given.list_commits()), "")
        step = advance(spec, groups, record, changes, frozenset(urgent), self._reports, self._source.times, head)
        return step._replace(record=step.record._replace(held=(*step.record.held, *kept)))

    def _list_exempt(
        self, files: WorkloadFiles, targets: Iterable[str], known: Mapping[tuple[Key, str], tuple[str, ...]]
    ) -> frozenset[str]:
        """Return the clusters that get a workload or more of it because it leaves another one or has less there: they do not wait."""
        outcome = files.outcome
        move = self._moves.get(outcome.key)
        if move is None or not move.before:
            return frozenset()
        full = move.copy_replicas or 1
        before, after = (
            {name: full if count is None else count for name, count in part.items()} for part in (move.before, move.after)
        )
        if all(count <= after.get(name, 0) for name, count in before.items()):
            return frozenset()
        waiting = {name for name in targets if known.get((outcome.key, name)) == ()}
        return frozenset(waiting | {name for name, count in after.items() if count > before.get(name, 0)})
