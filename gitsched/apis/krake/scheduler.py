"""Krake's scheduler over one snapshot: Clusters to clouds, Applications to clusters, created Clusters to clouds, MagnumClusters to
projects.
to be made for applications onto clouds, Magnum clusters onto projects.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from gitsched.apis.engine import Snapshot
from gitsched.apis.krake import applications, clusters, names
from gitsched.apis.krake.applications import (
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
    CloudBinding,
    bind_cluster,
    bind_magnum_cluster,
    evaluate_clouds,
    evaluate_projects,
    find_skip_reason,
    generate_cluster_name,
    make_cluster_document,
)
from gitsched.apis.krake.scheduling_status import SchedulingStatus, read_previous
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import CandidateResult

_MAX_DEADLINES = 64
"""Deadlines that one run makes up for at most, for one application."""


class ApplicationDecision(NamedTuple):
    """An application with what was known of it, and every look at it in this run: the first, and one at each deadline up to now."""

    app: Application
    previous: SchedulingStatus
    attempts: tuple[ApplicationAttempt, ...]
    context: ApplicationContext

    @property
    def decisive_attempt(self) -> ApplicationAttempt:
        """The look that says most: the last one that changed something, else the last."""
        return next((step for step in reversed(self.attempts) if step.changes_status), self.attempts[-1])


class KrakeScheduler:
    """`applications`, `bindings` (of clusters) and `magnum` are by key, in its order; `created` are clusters without a document."""

    def __init__(self, world: Snapshot) -> None:
        settings = world.config.krake
        self.snapshot = world
        self.candidate_reader = CandidateReader(world)
        self.hold_on_failure = world.config.observations.on_failure == "hold"
        self._reschedule_after = settings.reschedule_after
        self._ranking_settings = RankingSettings(
            settings.stickiness, settings.stickiness_formula == "document", settings.metric_constraints
        )
        self._observed_at: datetime | None = getattr(world.observations, "time", None)
        self._cloud_sets: dict[str, ScoredCandidates] = {}
        self.quarantined_clusters = frozenset(key for key in world.quarantined if (key.group, key.kind) == names.CLUSTER)
        documents = world.documents.get(names.CLUSTER, ())
        self.bindings = {document.key: (document, self._bind_cluster(document)) for document in documents}
        bound = {key: binding.status.target for key, (_, binding) in self.bindings.items()}
        self.clusters: Mapping[Key, ClusterCandidate] = {
            cluster.document.key: cluster for cluster in self.candidate_reader.read_clusters(documents, bound)
        }
        unsure = (key for key, cluster in self.clusters.items() if cluster.cloud_quarantined)
        self._uncertain_clusters = self.quarantined_clusters.union(unsure)
        self.cluster_sets = self._group_clusters()
        self.created_clusters: dict[Key, Document] = {}
        self.applications = {
            document.key: self._schedule_application(parse_application(document))
            for document in world.documents.get(names.APPLICATION, ())
        }
        self.bindings |= {key: (document, self._bind_cluster(document)) for key, document in self.created_clusters.items()}
        magnum = world.documents.get(names.MAGNUM_CLUSTER, ())
        self.magnum_bindings = {document.key: (document, self._bind_magnum_cluster(document)) for document in magnum}

    @cached_property
    def clouds_and_projects(self) -> tuple[ResourceCandidate, ...]:
        """All clouds and projects of the world, whether anybody asked for them or not."""
        spaces = sorted({"", *self.candidate_reader.cloud_namespaces})
        clouds = (site for space in spaces for site in self._get_cloud_set(space).candidates)
        projects = (make_project_candidate(document, readings, "") for document, readings in self.candidate_reader.read_projects())
        return (*clouds, *projects)

    def get_cloud_sets(self, namespace: str) -> tuple[ScoredCandidates, ScoredCandidates]:
        """The clouds of a namespace, and the global ones."""
        return self._get_cloud_set(namespace), self._get_cloud_set("")

    def _get_cloud_set(self, namespace: str) -> ScoredCandidates:
        arena = self._cloud_sets.get(namespace)
        if arena is None:
            arena = self._cloud_sets[namespace] = ScoredCandidates(
                self.candidate_reader.read_clouds(namespace),
                RankingSettings(constraint_mode=self._ranking_settings.constraint_mode),
            )
        return arena

    def evaluate_backends(self, key: Key) -> list[CandidateResult] | None:
        """How every cloud or project fares for a cluster or Magnum cluster, in name order; None where there is no such document."""
        if key in self.bindings:
            return evaluate_clouds(self.bindings[key][0], self.get_cloud_sets(key.namespace))
        if key in self.magnum_bindings:
            return evaluate_projects(self.magnum_bindings[key][0], self._get_project_set(key.namespace))
        return None

    def _group_clusters(self) -> dict[str, ScoredCandidates]:
        sites: dict[str, list[ResourceCandidate]] = {}
        for key, cluster in self.clusters.items():
            sites.setdefault(key.namespace, []).append(cluster.candidate)
        return {namespace: ScoredCandidates(found, self._ranking_settings) for namespace, found in sites.items()}

    def _bind_cluster(self, document: Document) -> CloudBinding:
        memory = read_previous(document, self.snapshot.previous.get(document.key), self.snapshot.at, clusters.FINAL_STATES)
        why = find_skip_reason(document, memory)
        if why:
            return CloudBinding("ignored", memory, why)
        arenas = self.get_cloud_sets(document.key.namespace)
        return bind_cluster(document, memory, arenas, self._decision_time(*arenas), hold=self.hold_on_failure)

    def _bind_magnum_cluster(self, document: Document) -> CloudBinding:
        memory = read_previous(document, self.snapshot.previous.get(document.key), self.snapshot.at, clusters.FINAL_STATES)
        arena = self._get_project_set(document.key.namespace)
        return bind_magnum_cluster(document, memory, arena, hold=self.hold_on_failure)

    def _get_project_set(self, namespace: str) -> ScoredCandidates:
        if namespace not in self._project_sets:
            found = self.candidate_reader.read_projects()
            sites = (make_project_candidate(document, readings, namespace) for document, readings in found)
            self._project_sets[namespace] = ScoredCandidates(
                sites, RankingSettings(constraint_mode=self._ranking_settings.constraint_mode)
            )
        return self._project_sets[namespace]

    @cached_property
    def _project_sets(self) -> dict[str, ScoredCandidates]:
        return {}

    def _schedule_application(self, app: Application) -> ApplicationDecision:
        key = app.key
        before = read_previous(app.document, self.snapshot.previous.get(key), self.snapshot.at, applications.FINAL_STATES)
        clusters = self.cluster_sets.get(key.namespace) or ScoredCandidates((), self._ranking_settings)
        around = ApplicationContext(
            clusters,
            self._merge_clouds(key.namespace) if app.creates_cluster else None,
            self._uncertain_clusters,
            self._reschedule_after,
            self.hold_on_failure,
        )
        moment = self._decision_time(clusters, *((around.clouds,) if around.clouds else ()))
        steps = [schedule_application(app, before, around, moment, self.snapshot.at)]
        for _ in range(_MAX_DEADLINES):
            last = steps[-1]
            if last.next_change is None or not last.time < last.next_change <= self.snapshot.now:
                break
            steps.append(schedule_application(app, last.status, around, last.next_change, self.snapshot.at))
        if steps[-1].action == "create" or (steps[-1].status.awaited_cluster and steps[-1].status.target is None):
            steps[-1] = self._create_cluster(app, steps[-1])
        return ApplicationDecision(app, before, tuple(steps), around)

    def _create_cluster(self, app: Application, step: ApplicationAttempt) -> ApplicationAttempt:
        """The look with the name of the cluster that is to be made, whose document is kept as long as nobody commits one."""
        taken = {
            key.name
            for key in (*self.clusters, *self.created_clusters, *self.quarantined_clusters)
            if key.namespace == app.key.namespace
        }
        name = step.status.awaited_cluster or generate_cluster_name(app.identity, taken)
        document = make_cluster_document(app.document, name)
        if document.key not in self.clusters:
            self.created_clusters[document.key] = document
        return step._replace(
            status=step.status._replace(awaited_cluster=name), reason=step.reason or f"it waits for the cluster {name}"
        )

    def _merge_clouds(self, namespace: str) -> ScoredCandidates:
        """The clouds of a namespace and the global ones together, each with its kind in its name.

        As in Krake an application does not ask whether a cloud is being deleted; only a cluster does that is to be bound to it.
        """
        sites = (
            site._replace(name=f"{site.ref.kind}/{site.name}", eligible=True, reason="")
            for arena in self.get_cloud_sets(namespace)
            for site in arena.candidates
        )
        # Where stickiness stands in every denominator, a cloud has to be as far from it as a cluster.
        return ScoredCandidates(sites, self._ranking_settings)

    def _decision_time(self, *arenas: ScoredCandidates) -> datetime:
        """When a decision is made: at the source's moment, or when the metrics that it rests upon were observed, if that was later."""
        at, seen = self.snapshot.at, self._observed_at
        return max(at, seen) if seen is not None and any(arena.has_live_metrics for arena in arenas) else at


def evaluate_application(decided: ApplicationDecision) -> list[CandidateResult]:
    """How every cluster fared in the look that counts, and every cloud where one might have been made."""
    app, step, around = decided.app, decided.decisive_attempt, decided.context
    mask, held = step.matching, step.current
    if not mask and not step.status.awaited_cluster:  # a look that ended before the clusters were looked at says nothing of them
        mask, held = (
            around.clusters.match_constraints(app.constraints),
            around.clusters.find_index(step.status.target) if held is None else held,
        )
    verdicts = around.clusters.evaluate(app.constraints, held, mask)
    if around.clouds is not None:
        offered = around.clouds.match_constraints(app.constraints)
        verdicts += around.clouds.evaluate(app.constraints, None, offered, around.clouds.select_comparable(offered))
    return sorted(verdicts)
