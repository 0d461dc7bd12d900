"""Candidates of a decision: clusters, clouds and projects with their labels (inherited ones too), metrics and state, and sets of
them that are filtered and ranked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import attrgetter

from gitsched.apis.krake.cluster_facts import has_stale_facts
from gitsched.apis.krake.cluster_states import FAILING_METRICS, ONLINE, read_cluster_state, read_state
from gitsched.apis.krake.constraints import CUSTOM_RESOURCES, ConstraintSet, describe_mismatch, match_metric_constraint
from gitsched.apis.krake.metrics import MetricReader, MetricResult, MetricResults, combine_results
from gitsched.apis.krake.names import CLOUD, GLOBAL_CLOUD, PROJECT, ResourceRef, cluster_directory, make_ref
from gitsched.apis.krake.scheduling_status import DELETION_STATES
from gitsched.apis.snapshot import Snapshot
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, read_labels
from gitsched.model.scheduling import CandidateResult
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Candidate, Fleet, pack_mask
from gitsched.schedule.scores import WeightedMeanScores, WeightedSum
from gitsched.schedule.tie_breaking import break_tie


class ResourceCandidate(NamedTuple):
    """A cluster, cloud or project that a resource can be scheduled to.

    `name` is unique among the candidates of a decision. `labels` include inherited ones. `state` is the state after the metrics were read.
    Only `eligible` candidates are filtered and ranked; `reason` says why a candidate is not eligible.
    """

    name: str
    ref: ResourceRef
    labels: Mapping[str, str]
    metrics: MetricResults
    eligible: bool
    reason: str = ""
    custom_resources: tuple[str, ...] = ()
    state: str = ""
    online: bool = False
    """Clusters only: the document reports a running cluster, whether or not its metrics can be read."""
    reported_state: str = ""
    """Clusters only: the state in the document, before the metrics were read."""

    @property
    def display_name(self) -> str:
        """The name, with the kind if the resource is global, because a cloud of a namespace may have the same name."""
        return self.name if self.ref.namespace else f"{self.ref.kind}/{self.name}"

    @property
    def awaits_metrics(self) -> bool:
        """Whether the candidate is ineligible only because a metrics provider failed."""
        return self.online and self.metrics.provider_failed


class RankingSettings(NamedTuple):
    """Ranking options: the weight of stickiness, whether every mean is divided by it, and which values metric constraints compare."""

    stickiness: float = 0.0
    stickiness_in_every_mean: bool = False
    constraint_mode: str = "raw"


class ScoredCandidates:
    """Candidates in name order with their scores. A set of candidates is a bit mask of their indexes, as in a Fleet."""

    def __init__(self, candidates: Iterable[ResourceCandidate], settings: RankingSettings) -> None:
        self.candidates = tuple(sorted(candidates, key=attrgetter("name")))
        self.fleet = Fleet(
            Candidate(
                candidate.name,
                candidate.labels,
                {CUSTOM_RESOURCES: candidate.custom_resources} if candidate.custom_resources else {},
            )
            for candidate in self.candidates
        )
        self.settings = settings
        sums: list[WeightedSum | None] = [candidate.metrics.weighted_sum for candidate in self.candidates]
        self.ranking = WeightedMeanScores(self.fleet, sums, settings.stickiness, settings.stickiness_in_every_mean)
        self.eligible = pack_mask(candidate.eligible for candidate in self.candidates)
        self.awaiting_metrics = pack_mask(candidate.awaits_metrics for candidate in self.candidates)
        self.provider_failed = pack_mask(candidate.metrics.provider_failed for candidate in self.candidates)
        self.with_metrics = pack_mask(candidate.metrics.declared for candidate in self.candidates)
        self.has_live_metrics = any(candidate.metrics.live for candidate in self.candidates)

    @cached_property
    def constraint_values(self) -> list[dict[str, float]]:
        """Metric values that metric constraints compare, by candidate index."""
        return [candidate.metrics.constraint_values(self.settings.constraint_mode) for candidate in self.candidates]

    @cached_property
    def has_unread_metrics(self) -> bool:
        """Whether any metric of any candidate has no value."""
        return any(candidate.metrics.reasons for candidate in self.candidates)

    def find_index(self, ref: ResourceRef | None) -> int | None:
        """Return the index of the candidate with this reference, or None."""
        return self._index_by_ref.get(ref) if ref is not None else None

    def find_named(self, name: str, namespace: str) -> int | None:
        """Return the index of a cluster by its name, if it is in a namespace, or by <namespace>.<name> for any namespace."""
        for index, candidate in enumerate(self.candidates):
            ref = candidate.ref
            if cluster_directory(ref.namespace, ref.name) == name or (ref.namespace, ref.name) == (namespace, name):
                return index
        return None

    def find_preferred(self, names: Iterable[str], namespace: str, matching: int) -> int | None:
        """Return the first of these clusters that is in a set, as `find_named` finds them; None without any."""
        found = (self.find_named(name, namespace) for name in names)
        return next((index for index in found if index is not None and matching >> index & 1), None)

    @cached_property
    def _index_by_ref(self) -> dict[ResourceRef, int]:
        return {candidate.ref: index for index, candidate in enumerate(self.candidates)}

    def match_affinity(self, constraints: ConstraintSet) -> int:
        """Return the candidates, eligible or not, that satisfy the label and custom resource constraints."""
        return self.fleet.matching(constraints.affinity)

    def match_constraints(self, constraints: ConstraintSet) -> int:
        """Return the eligible candidates that satisfy all constraints."""
        matching = self.eligible & self.match_affinity(constraints)
        for constraint in constraints.metrics:
            matching &= match_metric_constraint(constraint, self.fleet, self.constraint_values)
        return matching

    def select_comparable(self, matching: int) -> int:
        """Return the candidates to compare: if any candidate of the set declares metrics, only those with readable metrics."""
        return matching & self.ranking.measured if matching & self.with_metrics else matching

    def choose_best(self, matching: int, current: int | None, identity: str) -> tuple[int, float]:
        """Return the index and the score of the best candidate of a non-empty set; a hash of the identity breaks ties."""
        best = self.ranking.find_best(matching, current)
        if best.mask & (best.mask - 1):
            return self.fleet.index[break_tie(identity, (self.fleet.names[i] for i in self.fleet.members(best.mask)))], best.score
        return best.mask.bit_length() - 1, best.score

    def evaluate(
        self, constraints: ConstraintSet, current: int | None, matching: int, ranked: int | None = None
    ) -> list[CandidateResult]:
        """Return the result of each candidate. `matching` satisfy all constraints; `ranked` are compared (default: all matching)."""
        comparable = matching if ranked is None else ranked
        return [self._evaluate_one(i, constraints, current, matching, comparable) for i in range(len(self.candidates))]

    def _evaluate_one(
        self, index: int, constraints: ConstraintSet, current: int | None, matching: int, comparable: int
    ) -> CandidateResult:
        candidate = self.candidates[index]
        if not matching >> index & 1:
            return CandidateResult(candidate.name, False, self.describe_rejection(index, constraints) or "not compared", {}, None)
        total = self.ranking.score_among(index, comparable, current) if comparable >> index & 1 else None
        scores = {ref.name: value.normalized * ref.weight for ref, value in candidate.metrics.values}
        if current is not None and total is not None and self.settings.stickiness:
            scores["stickiness"] = self.settings.stickiness if index == current else 0.0
        return CandidateResult(candidate.name, True, "" if total is not None else self._describe_unranked(candidate), scores, total)

    def describe_rejection(self, index: int, constraints: ConstraintSet) -> str:
        """Return why a candidate is not eligible, or the first constraint that it violates; "" if it matches."""
        candidate = self.candidates[index]
        return candidate.reason or describe_mismatch(
            constraints,
            candidate.labels,
            candidate.custom_resources,
            self.constraint_values[index],
            lambda metric: candidate.metrics.describe_constraint_value(metric, self.settings.constraint_mode),
        )

    def _describe_unranked(self, candidate: ResourceCandidate) -> str:
        """Return why a matching candidate has no score."""
        if not candidate.metrics.declared:
            return "not ranked: it has no metrics, but other candidates have some"
        return (
            "not ranked: its metrics cannot be read"
            if candidate.metrics.reasons
            else "not ranked: the weighted mean of its metrics is undefined"
        )


class ClusterCandidate(NamedTuple):
    """A cluster and the cloud that it is bound to.

    `cloud_quarantined` means that the cloud's document is invalid, so the labels and metrics that the cluster inherits are unknown.
    """

    document: Document
    candidate: ResourceCandidate
    cloud: ResourceRef | None
    cloud_missing: bool
    cloud_quarantined: bool

    @property
    def is_uncertain(self) -> bool:
        """Whether applications stay in the cluster without comparison: its cloud is quarantined, or its facts are stale."""
        return self.cloud_quarantined or has_stale_facts(self.document.body)


class CandidateReader:
    """Read the candidates of a snapshot: clusters, clouds and projects with their metrics."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.metrics = MetricReader(snapshot)
        self._clouds = {document.key: document for kind in (CLOUD, GLOBAL_CLOUD) for document in snapshot.documents.get(kind, ())}

    @property
    def cloud_namespaces(self) -> set[str]:
        """Namespaces that contain clouds; "" means global clouds."""
        return {key.namespace for key in self._clouds}

    def read_clouds(self, namespace: str) -> Iterator[ResourceCandidate]:
        """Yield the clouds of a namespace, or the global clouds for "". The state of a cloud is ignored, as in Krake."""
        for key, document in self._clouds.items():
            if key.namespace == namespace:
                results = self.metrics.read(get_field(document.body, "spec", "openstack", "metrics"), key.namespace, key.name)
                yield _make_candidate(document, key.name, combine_results(results))

    def read_projects(self) -> Iterator[tuple[Document, MetricResults]]:
        """Yield the projects of all namespaces with their metrics."""
        for document in self._snapshot.documents.get(PROJECT, ()):
            key = document.key
            yield document, combine_results(self.metrics.read(get_field(document.body, "spec", "metrics"), key.namespace, key.name))

    def read_clusters(self, documents: Iterable[Document], bound: Mapping[Key, ResourceRef | None]) -> Iterator[ClusterCandidate]:
        """Yield the clusters with the labels and metrics that they inherit; `bound` maps clusters to their clouds."""
        for document in documents:
            key, body = document.key, document.body
            metadata, spec = body["metadata"], body["spec"]
            labels, results = (
                as_string_map(metadata.get("labels")),
                self.metrics.read(spec.get("metrics"), key.namespace, key.name),
            )
            ref = bound.get(key)
            if ref is None:
                yield ClusterCandidate(
                    document, _make_cluster_candidate(document, labels, combine_results(results)), None, False, False
                )
            else:
                yield self._read_bound_cluster(document, ref, labels, results)

    def _read_bound_cluster(
        self, document: Document, ref: ResourceRef, labels: Mapping[str, str], results: tuple[MetricResult, ...]
    ) -> ClusterCandidate:
        key, body, cloud = document.key, document.body, self._clouds.get(Key(*ref))
        inherits = body["metadata"].get("inherit_labels") is True, body["spec"].get("inherit_metrics") is True
        if cloud is not None and inherits[0]:
            labels = {**labels, **read_labels(cloud.body)}
        if cloud is not None and inherits[1]:
            inherited = self.metrics.read(get_field(cloud.body, "spec", "openstack", "metrics"), key.namespace, key.name)
            results = (*results, *(reading for reading in dict.fromkeys(inherited) if reading not in results))
        cloud_quarantined = cloud is None and True in inherits and Key(*ref) in self._snapshot.quarantined
        candidate = _make_cluster_candidate(document, labels, combine_results(results))
        if cloud_quarantined and candidate.eligible:
            candidate = candidate._replace(eligible=False, reason="the document of its cloud is invalid")
        return ClusterCandidate(document, candidate, ref, cloud is None, cloud_quarantined)


def make_project_candidate(document: Document, results: MetricResults, namespace: str) -> ResourceCandidate:
    """Return the candidate of a project. A project outside `namespace` is named <namespace>/<name>."""
    key = document.key
    return _make_candidate(document, key.name if key.namespace == namespace else f"{key.namespace}/{key.name}", results)


def _make_candidate(document: Document, name: str, results: MetricResults) -> ResourceCandidate:
    labels = read_labels(document.body)
    return ResourceCandidate(name, make_ref(document.key), labels, results, *_check_deletion(document))


def is_deleted(body: Body) -> bool:
    """Return whether the resource is being deleted or has been deleted."""
    return bool(get_field(body, "metadata", "deleted")) or read_state(body) in DELETION_STATES


def _check_deletion(document: Document) -> tuple[bool, str]:
    return (False, "it is being deleted") if is_deleted(document.body) else (True, "")


def _make_cluster_candidate(document: Document, labels: Mapping[str, str], results: MetricResults) -> ResourceCandidate:
    reported_state, observation = read_cluster_state(document.body)
    is_failing, is_serving = bool(results.reasons), reported_state in (ONLINE, FAILING_METRICS)
    state = reported_state
    if is_failing and (is_serving or get_field(document.body, "spec", "kubeconfig")):
        state = FAILING_METRICS
    elif results.declared and is_serving:
        state = ONLINE
    exists, reason = _check_deletion(document)
    stale = exists and has_stale_facts(document.body)
    if exists:
        reason = _explain_ineligibility(state, observation, results) or ("its facts are stale" if stale else reason)
    resources = document.body["spec"].get("custom_resources")
    return ResourceCandidate(
        document.key.name,
        make_ref(document.key),
        labels,
        results,
        eligible=exists and state == ONLINE and not stale,
        reason=reason,
        custom_resources=tuple(map(str, resources)) if resources else (),
        state=state,
        # Each run reads the metrics again, so the document of an online cluster may report either of the two states.
        online=exists and (state == ONLINE or (is_failing and is_serving)),
        reported_state=reported_state,
    )


def _explain_ineligibility(state: str, observation: str, results: MetricResults) -> str:
    """Return why a Cluster in a state takes no applications; "" if it does."""
    if results.reasons:
        metric, failure = results.reasons[0]
        return f"its metric {metric} cannot be used: {failure.description or failure.message}"
    if state == ONLINE:
        return ""
    return f"its state is {state}, not {ONLINE}" + (f": {observation}" if observation else "")
