"""The policy engine of Open Cluster Management: schedule all Placements of a snapshot, decide workloads from their decisions,
report findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import ChangeProposal, Continuation, HealthReport, SnapshotChanges
from gitsched.apis.gitsched.config import GROUP as CONFIG_GROUP
from gitsched.apis.ocm import explanation, names, score_findings
from gitsched.apis.ocm.adoption import OcmAdoption
from gitsched.apis.ocm.availability import find_availability_findings, find_reported_unready, find_unavailable, write_cluster_record
from gitsched.apis.ocm.cel.cluster_expressions import ExpressionCompiler
from gitsched.apis.ocm.change_proposals import ProposalInputs, propose_change
from gitsched.apis.ocm.continuation import can_continue, find_affected, find_selectable
from gitsched.apis.ocm.decisions import list_decision_clusters
from gitsched.apis.ocm.explanation import evaluate_clusters
from gitsched.apis.ocm.followers import find_record, read_annotated, read_followers
from gitsched.apis.ocm.held_workloads import hold_workload
from gitsched.apis.ocm.lost_clusters import find_lost, may_choose
from gitsched.apis.ocm.managed_clusters import ClusterSets, read_managed_clusters
from gitsched.apis.ocm.manifestworkreplicaset import make_outcome, make_stale_outcome
from gitsched.apis.ocm.missing_placements import PlacementNames
from gitsched.apis.ocm.placement import parse_placement
from gitsched.apis.ocm.placement_findings import list_findings
from gitsched.apis.ocm.placement_states import list_placement_states
from gitsched.apis.ocm.previous_decisions import BASIS_KEY, DecisionIndex, digest_documents, merge_decisions, write_basis
from gitsched.apis.ocm.prioritizers import PrioritizerScores
from gitsched.apis.ocm.rollout import read_previous_rollout, read_reports
from gitsched.apis.ocm.scheduling import schedule_placements
from gitsched.apis.ocm.workload_rollout import roll_out_workload
from gitsched.apis.ocm.workloads import OcmWorkload, list_manifests, read_placement_annotation, read_replica_set, read_template
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.replicas import count_copy_replicas
from gitsched.apis.snapshot import EMPTY_SNAPSHOT, Snapshot, list_previous_records
from gitsched.model.adoption import AdoptedRecord, RunningObjects
from gitsched.model.document import Body, Document, Key, read_labels
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome
from gitsched.schedule.rollout import SUCCESS
from gitsched.schedule.selection import list_selection_filters

if TYPE_CHECKING:
    from gitsched.apis.companions import CompanionFollowers
    from gitsched.apis.ocm.continuation import Results
    from gitsched.model.source_edits import SourceEdits


_OWN_KINDS = (
    (names.GROUP, names.PLACEMENT),
    (names.GROUP, names.PLACEMENT_DECISION),
    (names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET),
)
"""Kinds of documents on each of which only its own decision depends."""


class OcmEngine(PolicyEngine):
    """See `gitsched.apis.policy_api.PolicyEngine`."""

    name = "ocm"

    def __init__(self, snapshot: Snapshot, before: OcmEngine | None = None) -> None:
        """Schedule all Placements. An engine that continues another one (`before`) takes over which companions follow workloads, and reads
        no template."""
        self._schedule(snapshot)
        self._followers: CompanionFollowers | None = (
            read_followers(snapshot, self._placements) if before is None else before._followers
        )

    def _schedule(self, snapshot: Snapshot) -> None:
        """Schedule all Placements, whatever was scheduled before. This reads no template."""
        self.snapshot = snapshot
        self._recorded_decisions: dict[Key, list[Key]] | None = None
        self._clusters = read_managed_clusters(self._documents(names.MANAGED_CLUSTER), snapshot.previous, snapshot.at)
        self.fleet, self._facts, self._is_stored = self._clusters.fleet, self._clusters.facts, False
        placements = [parse_placement(document) for document in self._documents(names.PLACEMENT)]
        self._placements = {document.key: document for document in self._documents(names.PLACEMENT)}
        self._broken = sorted(key for key in snapshot.quarantined if (key.group, key.kind) == (names.GROUP, names.PLACEMENT))
        placement_names = frozenset(
            (key.namespace, key.name) for key in (*(placement.key for placement in placements), *self._broken)
        )
        previous_decisions = list_previous_records(snapshot.previous, names.GROUP, names.PLACEMENT_DECISION)
        self._decision_index = DecisionIndex(
            merge_decisions(previous_decisions, self._documents(names.PLACEMENT_DECISION)), placement_names
        )
        scores = PrioritizerScores(self._documents(names.ADDON_SCORE), self.fleet.names, self._clusters.bodies)
        sets, bindings = self._documents(names.CLUSTER_SET), self._documents(names.CLUSTER_SET_BINDING)
        self.cluster_sets = ClusterSets(sets, bindings, self.fleet, snapshot.quarantined)
        self._compiler = ExpressionCompiler(self._clusters.bodies, scores.list_addon_scores)
        self.run = schedule_placements(
            placements,
            self.cluster_sets,
            self.fleet,
            scores,
            self._compiler.compile,
            self._decision_index,
            snapshot.previous.get,
            digest_documents(snapshot.documents, snapshot.quarantined, list_selection_filters()),
            snapshot.at,
            snapshot.now,
            self._keeps_decisions,
        )
        self.findings = (
            *find_availability_findings(self._clusters.tainted.values()),
            *list_findings(self.run, self.fleet, self._compiler),
            *self._list_score_findings(scores),
        )
        self._placement_states = dict(list_placement_states(self.run, self._broken, self.fleet, self._decision_index))
        self._placement_names = PlacementNames(self._placement_states)
        self._results = self._list_results()
        reports = snapshot.documents.get((CONFIG_GROUP, names.ROLLOUT_REPORT), ())
        self._reports = read_reports(reports, snapshot.observations)
        self.wakeup, self.time = self.run.wakeup, self.run.time

    def __getstate__(self) -> dict[str, object]:
        """Return what is stored: the results of Placements, and what is known of templates. Scheduling again gives the rest."""
        stored = ("_followers", "_results", "findings", "wakeup", "time")
        return {name: getattr(self, name) for name in stored} | {"_facts": self.clusters(), "_is_stored": True}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state, snapshot=EMPTY_SNAPSHOT)

    def _restore(self, snapshot: Snapshot) -> bool:
        """Schedule the Placements of a stored engine again. Return whether their results are the same."""
        results = self._results
        self._schedule(snapshot)
        return results == self._results

    def update(self, snapshot: Snapshot, /) -> bool:
        """Keep the decisions while no deadline has passed. ManifestWorkReplicaSets are not templates, so they need a new engine."""
        due = self.wakeup is not None and self.wakeup <= snapshot.now
        if (
            due
            or (names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET) in snapshot.documents
            or snapshot.observations != self.snapshot.observations
        ):
            return False
        if self._is_stored:
            return self._restore(snapshot)
        self.snapshot, self.time = snapshot, None
        self._recorded_decisions = None
        return True

    def continue_with(self, snapshot: Snapshot, changes: SnapshotChanges, /) -> Continuation | None:
        """Schedule all Placements again, which reads no template. A change affects the workloads of Placements with another result."""
        has_reports = snapshot.observations != self.snapshot.observations
        if has_reports or not can_continue(snapshot, changes, has_followers=self._followers is not None):
            return None
        engine = OcmEngine(snapshot, self)
        return Continuation(engine, frozenset(find_affected(self._results, engine._results, changes)))

    @property
    def reads_other_templates(self) -> bool:
        return self._followers is not None

    def list_inputs(self) -> Iterable[Key]:
        return self._followers.list_related() if self._followers is not None else ()

    def list_selectable(self, before: PolicyEngine, after: PolicyEngine, changes: SnapshotChanges, /) -> frozenset[Key] | None:
        assert isinstance(before, OcmEngine), "both are engines of this API"
        assert isinstance(after, OcmEngine), "both are engines of this API"
        return None if self.reads_other_templates else find_selectable(before._results, after._results, changes)

    def _list_results(self) -> Results:
        """Return for each Placement its state, and which of its clusters exist."""
        return {
            key: (state, tuple(name for _, body in state.decisions for name in list_decision_clusters(body) if name in self._facts))
            for key, state in self._placement_states.items()
        }

    def own_workloads(self) -> Iterator[tuple[Document, Outcome]]:
        for document in self.snapshot.documents.get((names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET), ()):
            yield document, self._make_outcome(read_replica_set(document))

    def clusters(self) -> Mapping[str, ClusterInfo]:
        return self._facts

    def records(self) -> Iterator[tuple[Key, Body]]:
        for document, added in self._clusters.tainted.values():
            yield write_cluster_record(document, added)
        for key, state in self._placement_states.items():
            result = self.run.results.get(key)
            record = self.snapshot.previous.get(key) if result is None else result.record
            if record is not None:
                yield key, record
            yield from state.decisions
        if self.run.basis is not None:
            yield write_basis(self.run.basis)

    def adopt(self, _workloads: Iterable[Document], running: RunningObjects, /) -> Iterable[AdoptedRecord]:
        own = map(read_replica_set, self.snapshot.documents.get((names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET), ()))
        annotated = (self._read_annotated(template) for template in self.snapshot.templates.values())
        workloads = [workload for workload in (*own, *annotated) if workload is not None]
        return OcmAdoption(self._placements, workloads, running, self.snapshot.at).adopt()

    def _keeps_decisions(self, placement: Document, clusters: Sequence[str]) -> bool:
        """Return whether a Placement keeps its decisions because gitsched took it over with them, unless it would leave a cluster that is
        not available."""
        snapshot = self.snapshot
        if snapshot.fixed or snapshot.load_holds is None:
            return snapshot.fixed
        adopted = snapshot.load_holds().find_adopted(placement, clusters)
        return bool(adopted) and self.unavailable_clusters().keys().isdisjoint(clusters)

    def may_place(self, template: Document, cluster: str, /) -> bool:
        workload, results = self._read_workload(template), self.run.results
        references = workload.references if workload is not None else ()
        return any(key in results and may_choose(results[key], self.fleet, cluster) for key, _ in references)

    def unavailable_clusters(self) -> Mapping[str, str]:
        return find_unavailable(self.fleet)

    def list_health_reports(self, _workload: Key, /) -> Mapping[str, HealthReport]:
        """Return the reports of clusters about their deliveries; they have none about a single workload."""
        reports = self._reports.known_at(self.snapshot.now)
        return {cluster: HealthReport(report.state == SUCCESS, report.time) for cluster, report in reports.items()}

    def clusters_reported_unready(self) -> frozenset[str]:
        """Return the clusters whose taints against selection are only those of a condition."""
        return find_reported_unready(self.fleet)

    def selects(self, template: Document, /) -> bool:
        return self._read_annotated(template) is not None

    def decide(self, template: Document, /) -> Outcome | None:
        workload = self._read_annotated(template)
        if workload is None:
            return None
        outcome = self._make_outcome(workload)
        # What is wrong with the Placements of the workloads that it follows is a finding about these.
        return outcome if read_placement_annotation(template) is not None else outcome._replace(findings=())

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        """Return the Placements of the template, their decisions, and why they have none; for a missing one what may be meant."""
        workload = self._read_annotated(template)
        inputs: list[object] = []
        for placement, _ in workload.references if workload is not None else ():
            state = self._placement_states.get(placement)
            missing = self._placement_names.suggest(placement, in_annotation=True) if state is None else ""
            inputs += (placement, missing) if state is None else (placement, state.decisions, state.reason)
        return tuple(inputs)

    @property
    def revision(self) -> int:
        return self._followers.revision if self._followers is not None else 0

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        if self._followers is None:
            return frozenset()
        return frozenset(self._followers.update(dirty, self.snapshot.templates)) - dirty

    def list_shared_records(self, document: Document, /) -> Mapping[Key, frozenset[Key]]:
        """Return the Placements of a workload, each with its records and the record of what all decisions were made from."""
        workload = self._read_workload(document)
        found: dict[Key, frozenset[Key]] = {}
        for placement, _ in workload.references if workload is not None else ():
            state = self._placement_states.get(placement)
            decisions = (key for key, _ in state.decisions) if state is not None else ()
            found[placement] = frozenset({placement, BASIS_KEY, *decisions, *self._list_recorded_decisions(placement)})
        return found

    def list_observed_decisions(self, document: Document, edits: SourceEdits, /) -> frozenset[Key]:
        workload = self._read_workload(document)
        references = [placement for placement, _ in workload.references] if workload is not None else []
        documents = [self._placements.get(placement) for placement in references]
        if workload is None or edits.has(document) or not all(one is not None and not edits.has(one) for one in documents):
            return frozenset()
        return frozenset() if edits.may_change_rules(names.GROUPS, _OWN_KINDS) else frozenset(references)

    def _list_recorded_decisions(self, placement: Key) -> list[Key]:
        """Return the PlacementDecisions of a Placement in the previous output, also if the Placement is no longer in the source."""
        if self._recorded_decisions is None:
            recorded: dict[Key, list[Key]] = {}
            for key, body in list_previous_records(self.snapshot.previous, names.GROUP, names.PLACEMENT_DECISION):
                name = read_labels(body).get(names.PLACEMENT_LABEL, "")
                recorded.setdefault(names.placement_key(key.namespace, name), []).append(key)
            self._recorded_decisions = recorded
        return self._recorded_decisions.get(placement, [])

    def keep_previous(self, template: Document, reason: str) -> Outcome | None:
        is_replica_set = (template.key.group, template.key.kind) == (names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET)
        workload = None if is_replica_set else read_template(template)
        record = (
            template.key
            if is_replica_set
            else workload.record
            if workload is not None
            else find_record(self._followers, template.key, self._placement_states, self.snapshot.previous)
        )
        previous = None if record is None else self.snapshot.previous.get(record)
        if record is None or previous is None:
            return None
        manifests = list_manifests(template.body) if is_replica_set else [template.body]
        outcome = make_stale_outcome(template, record, read_previous_rollout(previous), previous, reason, self.snapshot.at)
        return outcome._replace(replicas=count_copy_replicas(manifests, self.snapshot.config))

    def describe_selection(self, template: Document, companions: Iterable[Document], /) -> str:
        placement = read_placement_annotation(template)
        several = len(list(companions)) > 1
        return (
            f"annotate {'them' if several else 'it'} with {names.PLACEMENT_LABEL}: {_format_placement(placement)}"
            if placement
            else ""
        )

    def evaluate_candidates(self, template: Document, /) -> list[CandidateResult]:
        workload = self._read_workload(template)
        if workload is None:
            return []
        placement = workload.references[0][0]
        return self.evaluate_own(names.PLACEMENT, placement.name, placement.namespace) or []

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        key = names.placement_key(namespace or "default", name)
        result = self.run.results.get(key)
        if kind != names.PLACEMENT or result is None:
            return None
        return evaluate_clusters(result, self.fleet, self._clusters.tainted)

    def propose(self, template: Document, cluster: str, /) -> ChangeProposal | None:
        workload = self._read_workload(template)
        result = None if workload is None else self.run.results.get(workload.references[0][0])
        inputs = ProposalInputs(self.fleet, self.cluster_sets, self.snapshot.documents)
        return None if result is None else propose_change(inputs, result, cluster)

    def explain(self, template: Document) -> Explanation | None:
        def explain_key(key: Key) -> Explanation | None:
            if (skipped := self.run.skipped.get(key)) is not None:
                return explanation.explain_skipped_placement(skipped, self._placement_states[key].decisions, self.findings)
            result = self.run.results.get(key)
            if result is None:
                return None
            document = result.placement.document
            return explanation.explain_placement(document, result, self.fleet, self._clusters.tainted, self.findings)

        if (template.key.group, template.key.kind) == (names.GROUP, names.PLACEMENT):
            return explain_key(template.key)
        workload = self._read_workload(template)
        if workload is None:
            return None
        placement = workload.references[0][0]
        return explanation.explain_workload(workload, self._make_outcome(workload), explain_key(placement))

    def _read_workload(self, document: Document) -> OcmWorkload | None:
        is_replica_set = (document.key.group, document.key.kind) == (names.WORK_GROUP, names.MANIFEST_WORK_REPLICA_SET)
        workload = read_replica_set(document) if is_replica_set else self._read_annotated(document)
        return workload if workload is not None and workload.references else None

    def _read_annotated(self, template: Document) -> OcmWorkload | None:
        return read_annotated(self._followers, template, self.snapshot.templates, self._placements)

    def _make_outcome(self, workload: OcmWorkload) -> Outcome:
        snapshot, previous = self.snapshot, self.snapshot.previous.get(workload.record)
        previous_rollout = read_previous_rollout(previous)
        times = snapshot.at, snapshot.now
        lost = find_lost(workload, previous_rollout, self.run.results, self.fleet, self._reports, snapshot.at)
        rollout = roll_out_workload(
            workload, self._placement_states, previous_rollout, self._reports, self._clusters.facts, *times, lost
        )
        manifests = [workload.document.body] if workload.manifests is None else [body for _, body in workload.manifests]
        replicas = count_copy_replicas(manifests, snapshot.config)
        outcome = make_outcome(
            workload, rollout, previous_rollout, self._placement_states, previous, self._placement_names
        )._replace(replicas=replicas)
        if not snapshot.fixed and (
            snapshot.load_holds is None or not previous_rollout.revisions.keys() - rollout.progress.revisions.keys()
        ):
            return outcome
        facts, unavailable = self._clusters.facts, self.unavailable_clusters()
        return hold_workload(snapshot, workload, outcome, previous_rollout, self._reports, facts, unavailable, previous)

    def _list_score_findings(self, scores: PrioritizerScores) -> Iterator[Finding]:
        documents = self._documents(names.ADDON_SCORE)
        if not documents and not any(result.add_ons for result in self.run.results.values()):
            return
        broken = (key.name for key in self.snapshot.quarantined if (key.group, key.kind) == (names.GROUP, names.MANAGED_CLUSTER))
        yield from score_findings.list_placement_findings(self.run.results.values(), scores, self.fleet.names)
        yield from score_findings.list_unknown_clusters(documents, {*self.fleet.names, *broken})

    def _documents(self, kind: str) -> tuple[Document, ...]:
        return self.snapshot.documents.get((names.GROUP, kind), ())


def _format_placement(placement: Key) -> str:
    return f"{placement.namespace}/{placement.name}"
