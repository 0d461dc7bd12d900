"""Candidates of a decision: clusters, clouds and projects with their labels (inherited ones too), metrics and state, and sets of
them that are filtered and ranked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from gitsched.apis.engine import Snapshot
from gitsched.apis.krake import names
from gitsched.apis.krake.constraints import CUSTOM_RESOURCES, ConstraintSet, describe_mismatch, match_metric_constraint
from gitsched.apis.krake.metrics import MetricReader, MetricResult, MetricResults, combine_results
from gitsched.apis.krake.names import ResourceRef, make_ref
from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.model.scheduling import CandidateResult
from gitsched.schedule.fleet import Candidate, Fleet, pack_mask
from gitsched.schedule.scores import WeightedMeanScores, WeightedSum
from gitsched.schedule.tie_breaking import break_tie


class ResourceCandidate(NamedTuple):
    """One candidate. `name` is unique among its rivals. `labels` are the effective ones, `state` is after its metrics were read.

    `open` says that it takes part at all, `why` why not.
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
    """Of a cluster: it is there, as its document says, whatever its metrics say."""
    reported_state: str = ""
    """Of a cluster: its state as its document says it, before its metrics were read."""

    @property
    def awaits_metrics(self) -> bool:
        """Not open, but only because a provider of metrics does not answer."""
        return self.online and self.metrics.provider_failed


class RankingSettings(NamedTuple):
    """How a kind of decision ranks: the weight of staying, whether it stands in every denominator, what metric constraints look at."""

    stickiness: float = 0.0
    stickiness_in_every_mean: bool = False
    constraint_mode: str = "weighted"


class ScoredCandidates:
    """Sites in name order. A set of sites is an integer, as in a fleet."""

    def __init__(self, sites: Iterable[ResourceCandidate], rules: RankingSettings) -> None:
        self.candidates = tuple(sorted(sites, key=attrgetter("name")))
        self.fleet = Fleet(
            Candidate(site.name, site.labels, {CUSTOM_RESOURCES: site.custom_resources} if site.custom_resources else {})
            for site in self.candidates
        )
        self.settings = rules
        standings: list[WeightedSum | None] = [site.metrics.weighted_sum for site in self.candidates]
        self.ranking = WeightedMeanScores(self.fleet, standings, rules.stickiness, rules.stickiness_in_every_mean)
        self.eligible = pack_mask(site.eligible for site in self.candidates)
        self.awaiting_metrics = pack_mask(site.awaits_metrics for site in self.candidates)
        self.provider_failed = pack_mask(site.metrics.provider_failed for site in self.candidates)
        self.with_metrics = pack_mask(site.metrics.declared for site in self.candidates)
        self.has_live_metrics = any(site.metrics.live for site in self.candidates)

    @cached_property
    def constraint_values(self) -> list[dict[str, float]]:
        """What metric constraints are compared with, by index."""
        return [site.metrics.constraint_values(self.settings.constraint_mode) for site in self.candidates]

    def find_index(self, ref: ResourceRef | None) -> int | None:
        """Where a site is that a reference means."""
        at = self.fleet.index.get(ref.name) if ref is not None else None
        if at is not None and self.candidates[at].ref == ref:
            return at
        return next((i for i, site in enumerate(self.candidates) if site.ref == ref), None) if ref is not None else None

    def match_affinity(self, constraints: ConstraintSet) -> int:
        """The sites, open or not, whose labels and custom resources are as asked."""
        return self.fleet.matching(constraints.affinity)

    def match_constraints(self, constraints: ConstraintSet) -> int:
        """The open sites that satisfy everything."""
        mask = self.eligible & self.match_affinity(constraints)
        for constraint in constraints.metrics:
            mask &= match_metric_constraint(constraint, self.fleet, self.constraint_values)
        return mask

    def select_comparable(self, mask: int) -> int:
        """Those of a set that are compared where nothing takes the place of metrics that cannot be read: if any of them declares
        metrics, only those whose metrics are known."""
        return mask & self.ranking.measured if mask & self.with_metrics else mask

    def choose_best(self, mask: int, held: int | None, identity: str) -> tuple[int, float]:
        """The best of a set that is not empty, and its score; among equals the lot decides."""
        best = self.ranking.find_best(mask, held)
        if best.mask & (best.mask - 1):
            return self.fleet.index[break_tie(identity, (self.fleet.names[i] for i in self.fleet.members(best.mask)))], best.score
        return best.mask.bit_length() - 1, best.score

    def evaluate(self, constraints: ConstraintSet, held: int | None, mask: int, ranked: int | None = None) -> list[CandidateResult]:
        """How every site fares, `mask` being those that satisfy everything and `ranked` those that are compared, where not all of them."""
        pool = mask if ranked is None else ranked
        return [self._evaluate_one(i, constraints, held, mask, pool) for i in range(len(self.candidates))]

    def _evaluate_one(self, index: int, constraints: ConstraintSet, held: int | None, mask: int, pool: int) -> CandidateResult:
        site = self.candidates[index]
        if not mask >> index & 1:
            why = site.reason or describe_mismatch(constraints, site.labels, site.custom_resources, self.constraint_values[index])
            return CandidateResult(site.name, False, why, {}, None)
        total = self.ranking.score_among(index, pool, held) if pool >> index & 1 else None
        scores = {ref.name: value.normalized * ref.weight for ref, value in site.metrics.values}
        if held is not None and total is not None and self.settings.stickiness:
            scores["stickiness"] = self.settings.stickiness if index == held else 0.0
        return CandidateResult(site.name, True, "" if total is not None else self._describe_unranked(site), scores, total)

    def _describe_unranked(self, site: ResourceCandidate) -> str:
        """Why a site that satisfies everything is not compared with the others."""
        if not site.metrics.declared:
            return "left aside: it has no metrics, and others have some"
        return (
            "left aside: its metrics cannot be read"
            if site.metrics.reasons
            else "left aside: the weights of its metrics make no mean"
        )


ONLINE, FAILING_METRICS = "ONLINE", "FAILING_METRICS"
CLUSTER_STATES = (
    *("PENDING", ONLINE, "CONNECTING", "OFFLINE", "UNHEALTHY", "NOTREADY", FAILING_METRICS),
    *("CREATING", "RECONCILING", "DELETING", "FAILING_RECONCILIATION", "FAILED", "DEGRADED"),
)
"""Of clusters; what is not ONLINE takes no application."""


class ClusterCandidate(NamedTuple):
    """A cluster with the cloud that it is bound to. `missing` says that this cloud is not there, `unsure` that nobody knows what the
    cluster inherits, because the document of its cloud is broken."""

    document: Document
    candidate: ResourceCandidate
    cloud: ResourceRef | None
    cloud_missing: bool
    cloud_quarantined: bool


class CandidateReader:
    """All candidates of a world. `bound` are the clouds of clusters: from an earlier run, or decided in this one."""

    def __init__(self, world: Snapshot) -> None:
        self._snapshot = world
        self.metrics = MetricReader(world)
        self._clouds = {
            document.key: document for kind in (names.CLOUD, names.GLOBAL_CLOUD) for document in world.documents.get(kind, ())
        }

    @property
    def cloud_namespaces(self) -> set[str]:
        """The namespaces in which there are clouds, "" for the global ones."""
        return {key.namespace for key in self._clouds}

    def read_clouds(self, namespace: str) -> Iterator[ResourceCandidate]:
        """The clouds of a namespace; the global ones for "". A cloud's state is not looked at."""
        for key, document in self._clouds.items():
            if key.namespace == namespace:
                readings = self.metrics.read(get_field(document.body, "spec", "openstack", "metrics"), key.namespace, key.name)
                yield _make_candidate(document, key.name, combine_results(readings))

    def read_projects(self) -> Iterator[tuple[Document, MetricResults]]:
        """The projects of all namespaces, with their metrics."""
        for document in self._snapshot.documents.get(names.PROJECT, ()):
            key = document.key
            yield document, combine_results(self.metrics.read(get_field(document.body, "spec", "metrics"), key.namespace, key.name))

    def read_clusters(self, documents: Iterable[Document], bound: Mapping[Key, ResourceRef | None]) -> Iterator[ClusterCandidate]:
        """Clusters as applications see them."""
        for document in documents:
            key, body = document.key, document.body
            metadata, spec = body["metadata"], body["spec"]
            labels, readings = (
                as_string_map(metadata.get("labels")),
                self.metrics.read(spec.get("metrics"), key.namespace, key.name),
            )
            ref = bound.get(key)
            if ref is None:
                yield ClusterCandidate(
                    document, _make_cluster_candidate(document, labels, combine_results(readings)), None, False, False
                )
            else:
                yield self._read_bound_cluster(document, ref, labels, readings)

    def _read_bound_cluster(
        self, document: Document, ref: ResourceRef, labels: Mapping[str, str], readings: tuple[MetricResult, ...]
    ) -> ClusterCandidate:
        key, body, cloud = document.key, document.body, self._clouds.get(Key(*ref))
        heir = body["metadata"].get("inherit_labels") is True, body["spec"].get("inherit_metrics") is True
        if cloud is not None and heir[0]:
            labels = {**labels, **as_string_map(get_field(cloud.body, "metadata", "labels"))}
        if cloud is not None and heir[1]:
            inherited = self.metrics.read(get_field(cloud.body, "spec", "openstack", "metrics"), key.namespace, key.name)
            readings = (*readings, *(reading for reading in dict.fromkeys(inherited) if reading not in readings))
        unsure = cloud is None and True in heir and Key(*ref) in self._snapshot.quarantined
        site = _make_cluster_candidate(document, labels, combine_results(readings))
        if unsure and site.eligible:
            site = site._replace(eligible=False, reason="the document of its cloud is broken")
        return ClusterCandidate(document, site, ref, cloud is None, unsure)


def make_project_candidate(document: Document, readings: MetricResults, namespace: str) -> ResourceCandidate:
    """A project as a Magnum cluster of `namespace` sees it: one of another namespace is called <namespace>/<name>."""
    key = document.key
    return _make_candidate(document, key.name if key.namespace == namespace else f"{key.namespace}/{key.name}", readings)


def _make_candidate(document: Document, name: str, readings: MetricResults) -> ResourceCandidate:
    labels = as_string_map(get_field(document.body, "metadata", "labels"))
    return ResourceCandidate(name, make_ref(document.key), labels, readings, *_check_deletion(document))


def read_state(body: Body) -> str:
    """The state that a document says its resource is in."""
    status = body.get("status")
    return str(status.get("state") or "PENDING") if isinstance(status, dict) else "PENDING"


def is_deleted(body: Body) -> bool:
    """Whether a resource is on its way out."""
    return bool(body["metadata"].get("deleted"))


def _check_deletion(document: Document) -> tuple[bool, str]:
    return (False, "it is being deleted") if is_deleted(document.body) else (True, "")


def _make_cluster_candidate(document: Document, labels: Mapping[str, str], readings: MetricResults) -> ResourceCandidate:
    said = state = read_state(document.body)
    if readings.reasons and (said in (ONLINE, FAILING_METRICS) or get_field(document.body, "spec", "kubeconfig")):
        state = FAILING_METRICS
    elif readings.declared and said == FAILING_METRICS:
        state = ONLINE
    alive, why = _check_deletion(document)
    if alive and readings.reasons:
        metric, reason = readings.reasons[0]
        why = f"its metric {metric} cannot be used: {reason.description or reason.message}"
    elif alive and state != ONLINE:
        why = f"its state is {state}, not {ONLINE}"
    # That metrics fail is found out anew in each run, so of a cluster that is there a document may say one or the other.
    there = alive and (state == ONLINE or (bool(readings.reasons) and said in (ONLINE, FAILING_METRICS)))
    resources = document.body["spec"].get("custom_resources")
    return ResourceCandidate(
        document.key.name,
        make_ref(document.key),
        labels,
        readings,
        eligible=alive and state == ONLINE,
        reason=why,
        custom_resources=tuple(map(str, resources)) if resources else (),
        state=state,
        online=there,
        reported_state=said,
    )
