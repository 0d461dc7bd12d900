"""Krake's scheduler over one snapshot: Clusters to clouds, Applications to clusters, created Clusters to clouds, MagnumClusters to
projects."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from gitsched.apis.krake.applications import (
    FINAL_APPLICATION_STATES,
    Application,
    ApplicationAttempt,
    ApplicationContext,
    parse_application,
    schedule_application,
)
from gitsched.apis.krake.candidates import (
    CandidateReader,
    ClusterCandidate,
    RankingSettings,
    ResourceCandidate,
    ScoredCandidates,
    make_project_candidate,
)
from gitsched.apis.krake.clusters import (
    FINAL_CLUSTER_STATES,
    CloudBinding,
    bind_cluster,
    bind_magnum_cluster,
    evaluate_clouds,
    evaluate_projects,
    find_skip_reason,
    generate_cluster_name,
    make_cluster_document,
)
from gitsched.apis.krake.names import APPLICATION, CLUSTER, MAGNUM_CLUSTER
from gitsched.apis.krake.scheduling_status import SchedulingStatus, read_previous
from gitsched.apis.krake.settings import SETTINGS
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import CandidateResult
from gitsched.named_tuples import NamedTuple

_MAX_DEADLINES = 64
"""Maximum number of missed deadlines that one run processes for one application."""


class ApplicationDecision(NamedTuple):
    """An application with its previous status and the attempts of this run: one at the source's time, one at each deadline up to now."""

    app: Application
    previous: SchedulingStatus
    attempts: tuple[ApplicationAttempt, ...]
    context: ApplicationContext

    @property
    def decisive_attempt(self) -> ApplicationAttempt:
        """The last attempt that changed the status, else the last attempt."""
        return next((attempt for attempt in reversed(self.attempts) if attempt.changes_status), self.attempts[-1])


class KrakeScheduler:
    """The decisions over one snapshot, by key and in key order: `applications`, `bindings` of Clusters, and `magnum_bindings`.

    `created_clusters` are clusters that an application requested and that have no document in the source yet.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        settings = snapshot.config.settings_of(SETTINGS)
        self.snapshot = snapshot
        self.candidate_reader = CandidateReader(snapshot)
        self.hold_on_failure = snapshot.config.observations.on_failure == "hold"
        self._reschedule_after = settings.reschedule_after
        self.shares_clusters = settings.application_clusters == "all"
        self._ranking_settings = RankingSettings(
            settings.stickiness, settings.stickiness_formula == "document", settings.metric_constraints
        )
        self._observed_at: datetime | None = getattr(snapshot.observations, "time", None)
        self._cloud_sets: dict[str, ScoredCandidates] = {}
        self.quarantined_clusters = frozenset(key for key in snapshot.quarantined if (key.group, key.kind) == CLUSTER)
        documents = snapshot.documents.get(CLUSTER, ())
        self.bindings = {document.key: (document, self._bind_cluster(document)) for document in documents}
        bound = {key: binding.status.target for key, (_, binding) in self.bindings.items()}
        self.clusters: Mapping[Key, ClusterCandidate] = {
            cluster.document.key: cluster for cluster in self.candidate_reader.read_clusters(documents, bound)
        }
        uncertain = (key for key, cluster in self.clusters.items() if cluster.is_uncertain)
        self._uncertain_clusters = self.quarantined_clusters.union(uncertain)
        self.cluster_sets = self._group_clusters()
        self.created_clusters: dict[Key, Document] = {}
        self.applications = {
            document.key: self._schedule_application(parse_application(document))
            for document in snapshot.documents.get(APPLICATION, ())
        }
        self.bindings |= {key: (document, self._bind_cluster(document)) for key, document in self.created_clusters.items()}
        magnum = snapshot.documents.get(MAGNUM_CLUSTER, ())
        self.magnum_bindings = {document.key: (document, self._bind_magnum_cluster(document)) for document in magnum}

    @cached_property
    def clouds_and_projects(self) -> tuple[ResourceCandidate, ...]:
        """All clouds and projects of the snapshot, including those that no decision used."""
        namespaces = sorted({"", *self.candidate_reader.cloud_namespaces})
        clouds = (candidate for namespace in namespaces for candidate in self._get_cloud_set(namespace).candidates)
        projects = (make_project_candidate(document, results, "") for document, results in self.candidate_reader.read_projects())
        return (*clouds, *projects)

    def get_cloud_sets(self, namespace: str) -> tuple[ScoredCandidates, ScoredCandidates]:
        """Return the clouds of a namespace and the global clouds."""
        return self._get_cloud_set(namespace), self._get_cloud_set("")

    def _get_cloud_set(self, namespace: str) -> ScoredCandidates:
        scored = self._cloud_sets.get(namespace)
        if scored is None:
            scored = self._cloud_sets[namespace] = ScoredCandidates(
                self.candidate_reader.read_clouds(namespace),
                RankingSettings(constraint_mode=self._ranking_settings.constraint_mode),
            )
        return scored

    def get_backend_sets(self, key: Key) -> tuple[ScoredCandidates, ...]:
        """Return the clouds or projects that a Cluster or MagnumCluster can be bound to."""
        return (self._get_project_set(key.namespace),) if key in self.magnum_bindings else self.get_cloud_sets(key.namespace)

    def evaluate_backends(self, key: Key) -> list[CandidateResult] | None:
        """Return the results of all clouds or projects for a Cluster or MagnumCluster; None if there is no such document."""
        if key in self.bindings:
            return evaluate_clouds(self.bindings[key][0], self.get_cloud_sets(key.namespace))
        if key in self.magnum_bindings:
            return evaluate_projects(self.magnum_bindings[key][0], self._get_project_set(key.namespace))
        return None

    def _group_clusters(self) -> dict[str, ScoredCandidates]:
        """Return the candidates of applications by namespace, or under "" those of all namespaces, named <namespace>/<name>."""
        candidates: dict[str, list[ResourceCandidate]] = {}
        for key, cluster in self.clusters.items():
            if self.shares_clusters:
                named = cluster.candidate._replace(name=f"{key.namespace}/{key.name}")
                candidates.setdefault("", []).append(named)
            else:
                candidates.setdefault(key.namespace, []).append(cluster.candidate)
        return {namespace: ScoredCandidates(found, self._ranking_settings) for namespace, found in candidates.items()}

    def _bind_cluster(self, document: Document) -> CloudBinding:
        status = read_previous(document, self.snapshot.previous.get(document.key), self.snapshot.at, FINAL_CLUSTER_STATES)
        skip_reason = find_skip_reason(document, status)
        if skip_reason:
            return CloudBinding("ignored", status, skip_reason)
        candidate_sets = self.get_cloud_sets(document.key.namespace)
        return bind_cluster(document, status, candidate_sets, self._decision_time(*candidate_sets), hold=self.hold_on_failure)

    def _bind_magnum_cluster(self, document: Document) -> CloudBinding:
        status = read_previous(document, self.snapshot.previous.get(document.key), self.snapshot.at, FINAL_CLUSTER_STATES)
        scored = self._get_project_set(document.key.namespace)
        return bind_magnum_cluster(document, status, scored, hold=self.hold_on_failure)

    def _get_project_set(self, namespace: str) -> ScoredCandidates:
        if namespace not in self._project_sets:
            found = self.candidate_reader.read_projects()
            candidates = (make_project_candidate(document, results, namespace) for document, results in found)
            self._project_sets[namespace] = ScoredCandidates(
                candidates, RankingSettings(constraint_mode=self._ranking_settings.constraint_mode)
            )
        return self._project_sets[namespace]

    @cached_property
    def _project_sets(self) -> dict[str, ScoredCandidates]:
        return {}

    def _schedule_application(self, app: Application) -> ApplicationDecision:
        key = app.key
        previous = read_previous(app.document, self.snapshot.previous.get(key), self.snapshot.at, FINAL_APPLICATION_STATES)
        clusters = self.cluster_sets.get("" if self.shares_clusters else key.namespace) or ScoredCandidates(
            (), self._ranking_settings
        )
        context = ApplicationContext(
            clusters,
            self._merge_clouds(key.namespace) if app.creates_cluster else None,
            self._uncertain_clusters,
            self._reschedule_after,
            self.hold_on_failure,
            self.shares_clusters,
            self.cluster_sets.keys(),
        )
        time = self._decision_time(clusters, *((context.clouds,) if context.clouds else ()))
        if key in self.snapshot.kept:  # it requests and leaves no cluster
            return ApplicationDecision(app, previous, (ApplicationAttempt(time, "none", previous),), context)
        attempts = [schedule_application(app, previous, context, time, self.snapshot.at)]
        for _ in range(_MAX_DEADLINES):
            last = attempts[-1]
            if last.next_change is None or not last.time < last.next_change <= self.snapshot.now:
                break
            attempts.append(schedule_application(app, last.status, context, last.next_change, self.snapshot.at))
        if attempts[-1].action == "create" or attempts[-1].status.waits_for_cluster:
            attempts[-1] = self._create_cluster(app, attempts[-1])
        return ApplicationDecision(app, previous, tuple(attempts), context)

    def _create_cluster(self, app: Application, attempt: ApplicationAttempt) -> ApplicationAttempt:
        """Add the name of the requested cluster to the attempt; its document is kept until the source contains one."""
        taken = {
            key.name
            for key in (*self.clusters, *self.created_clusters, *self.quarantined_clusters)
            if key.namespace == app.key.namespace
        }
        name = attempt.status.awaited_cluster or generate_cluster_name(app.identity, taken)
        document = make_cluster_document(app.document, name)
        if document.key not in self.clusters:
            self.created_clusters[document.key] = document
        return attempt._replace(
            status=attempt.status._replace(awaited_cluster=name), reason=attempt.reason or f"it is waiting for the cluster {name}"
        )

    def _merge_clouds(self, namespace: str) -> ScoredCandidates:
        """Return the clouds of a namespace and the global clouds as one set, with the kind in each name.

        Like Krake, this ignores that a cloud is being deleted: only the binding of a cluster checks it.
        """
        candidates = (
            candidate._replace(name=f"{candidate.ref.kind}/{candidate.name}", eligible=True, reason="")
            for scored in self.get_cloud_sets(namespace)
            for candidate in scored.candidates
        )
        # The stickiness settings apply to clouds too, so that their scores compare with those of clusters.
        return ScoredCandidates(candidates, self._ranking_settings)

    def _decision_time(self, *candidate_sets: ScoredCandidates) -> datetime:
        """Return the time of a decision: the source's time, or the time of the observed metrics that it uses, if that is later."""
        at, observed_at = self.snapshot.at, self._observed_at
        return max(at, observed_at) if observed_at is not None and any(scored.has_live_metrics for scored in candidate_sets) else at


def evaluate_application(decision: ApplicationDecision) -> list[CandidateResult]:
    """Return the results of all clusters in the decisive attempt, and of all clouds if the application can request a cluster."""
    app, attempt, context = decision.app, decision.decisive_attempt, decision.context
    matching, current = attempt.matching, attempt.current
    # The attempt may have ended before it filtered the clusters. An application that waits for its own cluster compares none.
    if not matching and not attempt.status.awaited_cluster and not decision.previous.waits_for_cluster:
        matching, current = (
            context.clusters.match_constraints(app.constraints),
            context.clusters.find_index(attempt.status.target) if current is None else current,
        )
    results = context.clusters.evaluate(app.constraints, current, matching)
    if context.clouds is not None:
        matching_clouds = context.clouds.match_constraints(app.constraints)
        results += context.clouds.evaluate(
            app.constraints, None, matching_clouds, context.clouds.select_comparable(matching_clouds)
        )
    return sorted(results)
