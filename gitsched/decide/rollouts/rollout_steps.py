"""Take the steps of the rollouts of a plan: compare files of workloads with those of the previous output, and hold back what waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from gitsched.apis.gitsched.rollout import RolloutSpec
from gitsched.decide.rendered_tree import write_placement
from gitsched.decide.rollouts.approved_content import ContentReader
from gitsched.decide.rollouts.approved_files import ApprovedFilesKeeper
from gitsched.decide.rollouts.broken_rollouts import hold_changes
from gitsched.decide.rollouts.cluster_reports import KnownReports
from gitsched.decide.rollouts.delivered_files import DeliveredFiles, FileSet
from gitsched.decide.rollouts.lost_clusters import Labels, LostClusters, list_first_groups
from gitsched.decide.rollouts.pending_files import Comparison, FileComparison
from gitsched.decide.rollouts.rollout_findings import list_rollout_findings, make_mixed_finding
from gitsched.decide.rollouts.rollout_members import RolloutMembers
from gitsched.decide.rollouts.rollout_progress import RolloutStep, StepInput, advance
from gitsched.decide.rollouts.rollout_source import RolloutSource
from gitsched.decide.rollouts.waiting_replicas import WaitingReplicas
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.document import Key
from gitsched.model.finding import Finding
from gitsched.model.rollouts import RolloutRecord, RolloutResult
from gitsched.model.scheduling import Outcome, TargetCluster, weigh_replicas

_UNGATED = "All"


class RolloutSteps:
    """Takes the steps of rollouts, and holds files back."""

    def __init__(self, source: RolloutSource) -> None:
        self._source = source
        moves = {move.key: move for move in source.moves}
        self._delivered = DeliveredFiles(source.previous, source.given)
        self._reader = ContentReader(self._delivered, source.given, source.policies)
        self._comparison = FileComparison(self._delivered, self._reader, moves, source.retention, source.quarantined)
        self._lost = LostClusters(source.states, source.policies, self._reader, moves, source.times.source_time)
        self._approved = ApprovedFilesKeeper(self._delivered, source.previous.find_blob)
        self._ended = {(copy.workload, copy.cluster): copy.until for copy in source.retention.ended if copy.until is not None}
        self._reports = KnownReports(source.reports, source.observations, source.given.list_commits())
        self._records = {record.name: record for record in source.given.records}
        self._findings: list[Finding] = []
        self._losing = {move.key for move in source.moves if move.before}
        copies = (*source.previous.retained, *source.retention.copies, *source.retention.ended)
        self._losing |= {copy.workload for copy in copies}
        self._waiting: dict[tuple[Key, str], int] = {}
        self._kept: dict[tuple[Key, str], FileSet] = {}
        self._replicas = WaitingReplicas(source, self._delivered, self._reader)
        self._counted: Mapping[Key, Outcome] = {}
        self._former: Mapping[Key, Mapping[str, TargetCluster]] = {}

    def take(
        self, specs: Iterable[RolloutSpec], members: Mapping[str, RolloutMembers], files: dict[Key, WorkloadFiles]
    ) -> list[tuple[RolloutSpec, RolloutStep]]:
        """Take the step of each rollout, and set in `files` those of the previous output where a cluster waits."""
        steps = []
        for spec in specs:
            if spec.strategy.type == _UNGATED:
                continue
            record = self._records.get(spec.name, RolloutRecord(spec.name, ()))
            found = self._comparison.compare(record, members[spec.name].files)
            first = _list_first_clusters(spec, members[spec.name].clusters, self._source.states.labels)
            found = found.block(first, record)
            advance_one = self._hold if spec.broken else self._advance
            step = advance_one(spec, record, members[spec.name], found)
            self._keep(found, step, files)
            steps.append((spec, step))
        self._counted, self._former = self._replicas.count(self._kept, files), self._replicas.list_former(files)
        for key, outcome in self._counted.items():
            placement = write_placement(outcome, self._source.config.delivery)
            files[key] = files[key]._replace(outcome=outcome, records={**files[key].records, **placement})
        return steps

    def summarize(
        self, steps: Sequence[tuple[RolloutSpec, RolloutStep]], members: Mapping[str, RolloutMembers], findings: Iterable[Finding]
    ) -> RolloutResult:
        """Return what came of all steps. `findings` are others about the rollouts."""
        facts = self._source.config.source.facts
        is_reporting = self._source.config.observations.statuses is not None or bool(facts.branch or facts.cluster_branches)
        selecting = {name for name, found in members.items() if found.exist}
        valid = [entry for entry in steps if not entry[0].broken]
        records = tuple(step.record for _, step in steps if step.record.changed or step.record.held)
        return RolloutResult(
            tuple(step.status for _, step in steps if step.status.clusters),
            records,
            tuple(time for _, step in steps for time in step.wakeups),
            tuple(time for _, step in steps for time in step.events),
            (*findings, *self._findings, *list_rollout_findings(valid, selecting, self._reports.exist or is_reporting)),
            self._approved.list_files(self._source.given.records, records),
            self._waiting,
            self._counted,
            self._former,
            self._replicas.concern_autoscalers(self._kept),
        )

    def _hold(self, spec: RolloutSpec, record: RolloutRecord, _members: RolloutMembers, found: Comparison) -> RolloutStep:
        return _add_kept(hold_changes(spec, record, found.changes), found)

    def _advance(self, spec: RolloutSpec, record: RolloutRecord, members: RolloutMembers, found: Comparison) -> RolloutStep:
        """Take the next step of a valid rollout."""
        present, states = members.clusters, self._source.states
        copies = self._lost.find_copies(record, members.files, found.list_waiting())
        known = {(one.workload, one.cluster): one.content for one in record.lost}
        if any(one.content != known.get((one.workload, one.cluster), one.content) for one in copies):
            found = found._replace(is_new=True)
        there = {*present, *(copy.cluster for copy in copies)}
        reached = {one.cluster for one in record.changed if one.cluster in present and one.lost is None and not found.is_new}
        copies |= self._lost.find_absent(spec, there, reached - found.changes.keys(), found.changes, members.files)
        step = advance(
            StepInput(
                spec,
                spec.divide({*present, *(copy.cluster for copy in copies)}, states.labels),
                record,
                found.changes,
                frozenset(one.held.cluster for one in found.kept),
                found.is_new,
                self._find_ends(found),
                self._lost.find_clusters(record, copies),
                self._lost.is_known,
                self._reports,
                self._source.times,
                next(iter(self._source.given.list_commits()), ""),
            )
        )
        step = _add_kept(step, found)
        lost = {one.cluster for one in step.record.changed if one.lost is not None}
        step = step._replace(record=step.record._replace(lost=tuple(sorted(copy for copy in copies if copy.cluster in lost))))
        kept = () if step.is_over else self._approved.keep(record, step.record, members.files, found.changes)
        return step._replace(record=step.record._replace(approved=kept))

    def _find_ends(self, found: Comparison) -> dict[str, datetime]:
        """Return when the overlaps end that have kept copies in clusters with changes until this run."""
        ends: dict[str, datetime] = {}
        for name, changes in found.changes.items():
            known = [end for one in changes if (end := self._ended.get((one.held.workload, name))) is not None]
            ends |= {name: max(known)} if known else {}
        return ends

    def _keep(self, found: Comparison, step: RolloutStep, files: dict[Key, WorkloadFiles]) -> None:
        """Set the files that clusters have until their turn."""
        held = {(one.workload, one.cluster) for one in step.record.held}
        waiting = (one for pending in found.changes.values() for one in pending if (one.held.workload, one.held.cluster) in held)
        for pending in (*waiting, *found.kept, *found.unrecorded):
            key, cluster, *_ = pending.held
            if key in self._losing:
                self._count_waiting(files[key].outcome, cluster, pending.content)
            files[key] = self._delivered.replace(files[key], cluster, pending.content)
            self._kept[key, cluster] = pending.content
            if pending.fields:
                template = self._source.policies.templates[key]
                self._findings.append(make_mixed_finding(files[key].outcome, template, cluster, pending.fields))

    def _count_waiting(self, outcome: Outcome, cluster: str, content: FileSet) -> None:
        """Note what a cluster has until its turn if these are fewer replicas than were decided."""
        target = next(one for one in outcome.targets if one.cluster == cluster)
        wanted = weigh_replicas(target.replicas)
        count = self._reader.count_replicas(content, self._source.config)
        if count is not None and count < wanted and not target.evicting:
            self._waiting[outcome.key, cluster] = count


def _list_first_clusters(spec: RolloutSpec, clusters: Iterable[str], labels: Labels) -> frozenset[str]:
    """Return the clusters of the groups without which a change must not begin."""
    wanted = list_first_groups(spec)
    groups = spec.divide(clusters, labels) if wanted else ()
    return frozenset(name for group in groups if group.name in wanted or group.group_index in wanted for name in group.clusters)


def _add_kept(step: RolloutStep, found: Comparison) -> RolloutStep:
    """Add to a step what clusters keep that take no part in it."""
    return step._replace(record=step.record._replace(held=(*step.record.held, *(one.held for one in found.kept))))
