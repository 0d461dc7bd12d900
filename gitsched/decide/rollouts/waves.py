"""Deliver changes in waves: clusters of later waves keep the files of the previous output until those before are healthy.

Decisions and records are those of the policy APIs; this concerns only what the directories of clusters have. What a policy takes away, and
what replaces it elsewhere, is delivered at once: overlaps, holds and the guard are for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.gitsched.rollout import RolloutSpec, parse_rollout
from gitsched.apis.gitsched.tenancy import PLATFORM
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.guard.held_files import FileComparison
from gitsched.decide.plan_input import PlanInput
from gitsched.decide.registry import policy_apis
from gitsched.decide.rollouts.cluster_reports import KnownReports
from gitsched.decide.rollouts.rollout_findings import list_rollout_findings, make_overlap_finding
from gitsched.decide.rollouts.rollout_progress import RolloutStep, advance
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.changes import Move, RetainedCopy
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding
from gitsched.model.rollouts import ROLLOUT_KIND, HeldFiles, RolloutInput, RolloutRecord, RolloutResult

UNGATED = "All"


class RolloutGate:
    """Holds files back while a plan is rendered; `result` has what came of it."""

    def __init__(
        self,
        source: PlanInput,
        given: RolloutInput,
        decisions: DecisionSet,
        moves: Iterable[Move],
        retained: Iterable[RetainedCopy],
    ) -> None:
        self._retained = {(copy.workload, copy.cluster) for copy in retained}
        self.result = RolloutResult()
        self._source, self._given, self._decisions = source, given, decisions
        self._specs = [parse_rollout(document) for document in decisions.catalog.api_documents.get(ROLLOUT_KIND, ())]
        if any(key[:2] == ROLLOUT_KIND for key in decisions.catalog.broken):
            from gitsched.decide.rollouts.broken_rollouts import list_broken_rollouts  # most Rollouts are valid

            self._specs += list_broken_rollouts(decisions.catalog)
        self._findings: list[Finding] = []
        self._moves = {move.key: move for move in moves}
        self._labels = {name: facts.labels for name, facts in decisions.cluster_facts.items()}
        self._comparison = FileComparison(source.previous, given)

    def __call__(self, rendered: Mapping[Key, WorkloadFiles]) -> dict[Key, WorkloadFiles]:
        """Return the files with those of the previous output where a cluster waits."""
        files = dict(rendered)
        members = self._select(rendered)
        reports = KnownReports(self._decisions.catalog, self._source.observations, self._given.list_commits())
        records = {record.name: record for record in self._given.records}
        steps: list[tuple[RolloutSpec, RolloutStep]] = []
        for spec in self._specs:
            if spec.strategy.type == UNGATED:
                continue
            record = records.get(spec.name, RolloutRecord(spec.name, ()))
            step = self._advance(spec, record, [rendered[key] for key in members[spec.name]], reports)
            for held in step.record.held:
                files[held.workload] = self._comparison.keep(files[held.workload], held)
            if spec.broken:
                from gitsched.decide.rollouts.broken_rollouts import make_broken_finding  # most Rollouts are valid

                tenancy = self._decisions.tenancy
                owner = tenancy.find_owner(spec.document.key) if tenancy is not None else PLATFORM
                self._findings.append(make_broken_finding(spec, step, owner))
            steps.append((spec, step))
        has_reports = reports.exist or self._is_reporting()
        findings = list_rollout_findings([entry for entry in steps if not entry[0].broken], members, has_reports)
        self.result = RolloutResult(
            tuple(step.status for _, step in steps if step.status.clusters),
            tuple(step.record for _, step in steps if step.record.changed or step.record.held),
            tuple(time for _, step in steps for time in step.wakeups),
            tuple(time for _, step in steps for time in step.events),
            (*self._findings, *findings),
        )
        return files

    def _is_reporting(self) -> bool:
        config = self._source.source.config
        facts = config.source.facts
        return config.observations.statuses is not None or bool(facts.branch or facts.cluster_branches)

    def _advance(
        self, spec: RolloutSpec, record: RolloutRecord, members: list[WorkloadFiles], reports: KnownReports
    ) -> RolloutStep:
        """Compare what the members of a rollout should have with what they have, and take the next step."""
        known = {(held.workload, held.cluster): held.paths for held in record.held}
        changes: dict[str, list[HeldFiles]] = {}
        kept: list[HeldFiles] = []
        urgent: set[str] = set()
        clusters: set[str] = set()
        for files in members:
            targets = [target.cluster for target in files.outcome.targets]
            clusters.update(targets)
            exempt = self._list_exempt(files, targets, known)
            stays = {target.cluster for target in files.outcome.targets if target.keeps_manifest}
            if files.outcome.key in self._decisions.quarantined:
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
        groups = spec.divide(clusters, self._labels)
        head = next(iter(self._given.list_commits()), "")
        step = advance(spec, groups, record, changes, frozenset(urgent), reports, self._source.times, head)
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

    def _select(self, rendered: Mapping[Key, WorkloadFiles]) -> dict[str, list[Key]]:
        """Return the workloads of each rollout: of several that select a workload, the first by name has it."""
        members: dict[str, list[Key]] = {spec.name: [] for spec in self._specs}
        policies = [self._list_policies(spec) for spec in self._specs]
        shared: dict[tuple[str, str], list[Key]] = {}
        tenancy = self._decisions.tenancy
        for key, files in rendered.items():
            template = self._decisions.templates[key]
            found = [
                spec
                for spec, names in zip(self._specs, policies, strict=True)
                if spec.selectors is None or spec.selects(template) or names.intersection(files.outcome.policy.split(", "))
            ]
            if tenancy is not None and found:
                found = [spec for spec in found if tenancy.may_act(spec.document.key, key)]
                found.sort(key=lambda spec: (spec.broken, tenancy.find_owner(spec.document.key) != PLATFORM))
            if found:
                members[found[0].name].append(key)
            for other in (spec for spec in found[1:] if not spec.broken):
                shared.setdefault((found[0].name, other.name), []).append(key)
        self._add_dependents(members, rendered)
        by_name = {spec.name: spec for spec in self._specs}
        self._findings += [make_overlap_finding(by_name[other], first, keys) for (first, other), keys in sorted(shared.items())]
        return members

    def _add_dependents(self, members: dict[str, list[Key]], rendered: Mapping[Key, WorkloadFiles]) -> None:
        """Add the objects that workloads bring along, such as their ConfigMaps, unless a rollout selects them themselves."""
        selected = {key for keys in members.values() for key in keys}
        owners = {
            (record.namespace, record.name): name
            for name, keys in members.items()
            for key in keys
            for record, _ in rendered[key].outcome.records
        }
        for key, files in rendered.items():
            outcome = files.outcome
            read = policy_apis[outcome.api].read_removed_workload
            if key in selected or read is None:
                continue
            found = [workload for _, body in outcome.records if (workload := read(body)) is not None]
            names = sorted(owners[owner] for workload in found for owner in workload.required_by & owners.keys())
            if names:
                members[names[0]].append(key)

    def _list_policies(self, spec: RolloutSpec) -> frozenset[str]:
        """Return the names, as outcomes have them, of the policies that a rollout selects."""
        wanted = {selector.kind for selector in spec.selectors or ()}
        documents: Iterator[Document] = (
            document
            for kind, found in self._decisions.catalog.api_documents.items()
            if kind[1] in wanted
            for document in found
            if spec.selects(document)
        )
        return frozenset(name for document in documents for name in (document.key.title, str(document.key)))
