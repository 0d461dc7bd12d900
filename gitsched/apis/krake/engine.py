"""Krake's PolicyEngine: convert the scheduler's decisions over one snapshot to outcomes and records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import ChangeProposal, Continuation, ExpiredDocument, SnapshotChanges
from gitsched.apis.continuation import is_plain
from gitsched.apis.krake.adoption import adopt
from gitsched.apis.krake.applications import FINAL_APPLICATION_STATES, list_manifests
from gitsched.apis.krake.candidates import ResourceCandidate, is_deleted
from gitsched.apis.krake.cluster_states import OBSERVED_FAILURES
from gitsched.apis.krake.explanation import explain_application, explain_binding, propose_change
from gitsched.apis.krake.generated_clusters import find_unused_clusters
from gitsched.apis.krake.held_applications import fix_application, hold_application
from gitsched.apis.krake.metrics import NO_METRICS
from gitsched.apis.krake.names import APPLICATION, GROUPS, ResourceRef, cluster_directory
from gitsched.apis.krake.scheduler import ApplicationDecision, KrakeScheduler, evaluate_application
from gitsched.apis.krake.scheduling_status import read_previous
from gitsched.apis.krake.status import (
    index_clouds_and_projects,
    make_application_record,
    make_cluster_record,
    make_failing_metrics_records,
    make_magnum_cluster_record,
    report_application,
    report_resources,
)
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.replicas import count_copy_replicas
from gitsched.apis.snapshot import EMPTY_SNAPSHOT, Snapshot
from gitsched.kinds.table import is_namespaced
from gitsched.model.adoption import AdoptedRecord, RunningObjects
from gitsched.model.document import Body, Document, Key, as_object, parse_api_group
from gitsched.model.explanation import Explanation
from gitsched.model.finding import Finding, locate_document
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome, TargetCluster

if TYPE_CHECKING:
    from gitsched.model.source_edits import SourceEdits

PLACED_REASON = "best by its constraints and metrics"
"""Reason of a placement. It is committed, so it is constant while the application stays."""


class KrakeEngine(PolicyEngine):
    """Implementation of `gitsched.apis.policy_api.PolicyEngine` for Krake."""

    name = "krake"
    decides_templates = False
    wakeup: datetime | None = None  # every deadline belongs to an application and is part of its outcome

    def __init__(self, snapshot: Snapshot) -> None:
        self._schedule(snapshot)

    def _schedule(self, snapshot: Snapshot) -> None:
        """Decide all documents of Krake, whatever was decided before."""
        self.snapshot = snapshot
        self._stored_clusters: Mapping[str, ClusterInfo] | None = None
        self.scheduler = KrakeScheduler(snapshot)
        self.findings: tuple[Finding, ...] = tuple(report_resources(self.scheduler))
        binding_times = (binding.status.scheduled for _, binding in self.scheduler.bindings.values() if binding.action == "bind")
        self.time: datetime | None = max((time for time in binding_times if time and time > snapshot.at), default=None)

    def __getstate__(self) -> dict[str, object]:
        """Return what is stored: what is compared with the next engine. Every run decides all applications again."""
        return {"findings": self.findings, "_stored_clusters": self.clusters(), "time": self.time}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        self.__dict__.update(state, snapshot=EMPTY_SNAPSHOT)

    def keep_outcomes(self, kept: Mapping[Key, Outcome], /) -> frozenset[Key]:
        """Decide all documents of Krake again: the clusters that applications request and use are those of their records."""
        if not kept.keys().isdisjoint(self.scheduler.applications):
            self._schedule(self.snapshot._replace(kept={**self.snapshot.kept, **kept}))
        return frozenset()

    def list_observed_decisions(self, document: Document, edits: SourceEdits, /) -> frozenset[Key]:
        decision = self.scheduler.applications.get(document.key)
        if decision is None or not decision.previous.recorded or edits.has(document):
            return frozenset()
        if edits.may_change_rules(GROUPS, (APPLICATION,)):
            return frozenset()
        return frozenset((document.key,))

    def update(self, snapshot: Snapshot, /) -> bool:
        """Decide all documents of Krake again, which reads no template."""
        self._schedule(snapshot)
        return True

    def continue_with(self, snapshot: Snapshot, _changes: SnapshotChanges, /) -> Continuation | None:
        """Decide all documents of Krake again. No template depends on them, and `own_workloads` has their outcomes."""
        return Continuation(KrakeEngine(snapshot), frozenset()) if is_plain(snapshot) else None

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        return [(decision.app.document, self._make_outcome(decision)) for decision in self.scheduler.applications.values()]

    def clusters(self) -> Mapping[str, ClusterInfo]:
        if self._stored_clusters is not None:
            return self._stored_clusters
        read = ((key, cluster.candidate.labels) for key, cluster in self.scheduler.clusters.items())
        quarantined: list[tuple[Key, Mapping[str, str]]] = [(key, {}) for key in sorted(self.scheduler.quarantined_clusters)]
        infos = (ClusterInfo(cluster_directory(key.namespace, key.name), labels) for key, labels in (*read, *quarantined))
        return {info.name: info for info in infos}

    def may_place(self, template: Document, cluster: str, /) -> bool:
        decision = self.scheduler.applications.get(template.key)
        if decision is None:
            return False
        scored = decision.context.clusters
        matching = scored.fleet.matching(decision.app.constraints.affinity)
        refs = ((index, candidate.ref) for index, candidate in enumerate(scored.candidates))
        found = (index for index, ref in refs if cluster_directory(ref.namespace, ref.name) == cluster)
        return any(matching >> index & 1 for index in found)

    def unavailable_clusters(self) -> Mapping[str, str]:
        """Return the clusters that are not online, or are being deleted."""
        return {
            cluster_directory(key.namespace, key.name): f"its state is {cluster.candidate.state or 'unknown'}"
            for key, cluster in self.scheduler.clusters.items()
            if not cluster.candidate.online
        }

    def clusters_reported_unready(self) -> frozenset[str]:
        """Return the clusters in a state that Krake's observer of clusters reports."""
        return frozenset(
            cluster_directory(key.namespace, key.name)
            for key, cluster in self.scheduler.clusters.items()
            if not cluster.candidate.online and cluster.candidate.state in OBSERVED_FAILURES
        )

    def records(self) -> Iterable[tuple[Key, Body]]:
        scheduler = self.scheduler
        owners = index_clouds_and_projects(self.snapshot.documents)
        unused = {entry.document.key: entry.since for entry in find_unused_clusters(scheduler)}
        for key, (document, binding) in scheduler.bindings.items():
            cluster = scheduler.clusters.get(key)
            spec = document.body["spec"] if key in scheduler.created_clusters else None
            candidate = self._hide_provider_failure(cluster.candidate) if cluster else None
            body = make_cluster_record(document, binding, candidate, spec, unused.get(key))
            if body is not None:
                yield key, body
        for key, (document, binding) in scheduler.magnum_bindings.items():
            yield key, make_magnum_cluster_record(document, binding, owners)
        yield from make_failing_metrics_records(map(self._hide_provider_failure, scheduler.clouds_and_projects), owners)

    def expired_documents(self) -> Iterable[ExpiredDocument]:
        """Return the generated clusters that an earlier run has recorded as unused."""
        unused = find_unused_clusters(self.scheduler)
        return [ExpiredDocument(entry.document, entry.since) for entry in unused if entry.recorded]

    def decide(self, _template: Document, /) -> Outcome | None:
        return None

    def selects(self, _template: Document, /) -> bool:
        return False

    def keep_previous(self, template: Document, reason: str) -> Outcome | None:
        key = template.key
        previous = self.snapshot.previous.get(key)
        if (key.group, key.kind) != APPLICATION or previous is None:
            return None
        status = read_previous(template, previous, self.snapshot.at, FINAL_APPLICATION_STATES)
        targets = self._list_targets(status.target)
        message = f"{key} keeps its previous placement: {reason}"
        return Outcome(
            key=key,
            api=self.name,
            state="stale",
            policy="",
            group="",
            targets=targets,
            replicas=count_copy_replicas(list_manifests(template), self.snapshot.config),
            records=((key, previous),),
            reason=reason,
            time=status.scheduled or self.snapshot.at,
            findings=(Finding("warning", "stale-decision", message, locate_document(template), key.resource),),
            previous_targets=targets,
            manifests=_index_manifests(template),
        )

    def evaluate_candidates(self, _template: Document, /) -> list[CandidateResult]:
        return []

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        wanted = (kind, name, namespace)
        for key, decision in self.scheduler.applications.items():
            if (key.kind, key.name, key.namespace) == wanted:
                return evaluate_application(decision)
        known = (*self.scheduler.bindings, *self.scheduler.magnum_bindings)
        found = next((key for key in known if (key.kind, key.name, key.namespace) == wanted), None)
        return self.scheduler.evaluate_backends(found) if found else None

    def propose(self, template: Document, cluster: str) -> ChangeProposal | None:
        decision = self.scheduler.applications.get(template.key)
        return propose_change(decision, self.snapshot.documents, cluster) if decision is not None else None

    def explain(self, template: Document) -> Explanation | None:
        decision = self.scheduler.applications.get(template.key)
        observed = getattr(self.snapshot.observations, "time", None)
        return explain_application(decision, observed) if decision is not None else explain_binding(self.scheduler, template)

    def adopt(self, workloads: Iterable[Document], running: RunningObjects, /) -> Iterable[AdoptedRecord]:
        bound = (*self.scheduler.bindings, *self.scheduler.magnum_bindings)
        return adopt(workloads, bound, self.scheduler.clusters, running)

    def _make_outcome(self, decision: ApplicationDecision) -> Outcome:
        document, attempt = decision.app.document, decision.attempts[-1]
        key, status = document.key, attempt.status
        targets = () if is_deleted(document.body) else self._list_targets(status.target)
        missing = None if targets or is_deleted(document.body) else status.target
        was_deleted = is_deleted(self.snapshot.previous.get(key, {}))
        previous = None if was_deleted else decision.previous.target  # the objects of a deleted application have left its cluster
        last, manifests = decision.decisive_attempt, _index_manifests(document)
        outcome = Outcome(
            key=key,
            api=self.name,
            state="pending" if not targets else "stale" if attempt.action == "hold" else "placed",
            policy="",
            group="",
            targets=targets,
            replicas=count_copy_replicas(list_manifests(document), self.snapshot.config),
            records=((key, make_application_record(document, status, dict(manifests) if targets else ())),),
            reason=PLACED_REASON if targets else attempt.reason or "it has no cluster",
            time=last.time if last.changes_status else self.snapshot.at,
            wakeup=attempt.next_change,
            findings=tuple(report_application(decision, Key(*missing) if missing else None, bool(targets))),
            previous_targets=tuple(TargetCluster(cluster_directory(ref.namespace, ref.name)) for ref in (previous,) if ref),
            manifests=manifests,
            trigger=_describe_move(decision) if targets else "",
        )
        return outcome if is_deleted(document.body) else self._keep_clusters(decision, outcome)

    def _keep_clusters(self, decision: ApplicationDecision, outcome: Outcome) -> Outcome:
        """Return the outcome of an application that stays in its clusters where everything is fixed, or it is held for its data."""
        before, after = ({target.cluster for target in each} for each in (outcome.previous_targets, outcome.targets))
        if before <= after or (self.snapshot.load_holds is None and not self.snapshot.fixed):
            return outcome
        if self.snapshot.fixed:
            return fix_application(self.snapshot, decision, outcome)
        return hold_application(self.snapshot, decision, outcome, self.clusters(), self.unavailable_clusters())

    def _hide_provider_failure(self, candidate: ResourceCandidate) -> ResourceCandidate:
        """Return the candidate for its record. With `onFailure: hold`, a failed provider must not change records, so it is left out."""
        if self.scheduler.hold_on_failure and candidate.metrics.provider_failed:
            return candidate._replace(metrics=NO_METRICS, state="ONLINE" if candidate.awaits_metrics else candidate.reported_state)
        return candidate

    def _list_targets(self, target: ResourceRef | None) -> tuple[TargetCluster, ...]:
        if target is None or not (Key(*target) in self.scheduler.clusters or Key(*target) in self.scheduler.quarantined_clusters):
            return ()
        return (TargetCluster(cluster_directory(target.namespace, target.name)),)


def _describe_move(decision: ApplicationDecision) -> str:
    """Return why an application left its previous cluster; "" if it did not."""
    attempt, scored, previous_target = decision.decisive_attempt, decision.context.clusters, decision.previous.target
    if attempt.action != "bind" or previous_target is None or attempt.status.target is None:
        return ""
    if not attempt.scores_compared:
        return attempt.reason
    if attempt.current is None:
        return f"{previous_target.name} does not exist any more"
    names, current, chosen = scored.fleet.names, attempt.current, scored.find_index(attempt.status.target)
    if not attempt.matching >> current & 1:
        return f"{names[current]} does not match: {scored.describe_rejection(current, decision.app.constraints)}"
    if chosen is None:
        return ""
    score, previous_score = (scored.ranking.score_among(index, attempt.matching, current) for index in (chosen, current))
    if previous_score is None:
        return f"{names[chosen]} has metrics, {names[current]} has none"
    return f"{names[chosen]} scores {score:.4g}, {names[current]} scores {previous_score:.4g} with its stickiness"


def _index_manifests(document: Document) -> tuple[tuple[Key, Body], ...]:
    """Return the Kubernetes objects of an application by key; of duplicates the last one counts."""
    manifests: dict[Key, Body] = {}
    for body in list_manifests(document):
        group, kind = parse_api_group(str(body.get("apiVersion"))), str(body.get("kind"))
        metadata = as_object(body.get("metadata"))
        namespace = str(metadata.get("namespace") or ("" if is_namespaced(group, kind) is False else "default"))
        manifests[Key(group, kind, namespace if is_namespaced(group, kind) is not False else "", str(metadata.get("name")))] = body
    return tuple(manifests.items())
