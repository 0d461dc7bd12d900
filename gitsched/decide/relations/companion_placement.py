"""Compare where companions and their targets go: a Service and the pods that it selects, an autoscaler and what it scales."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.relations.assumed_objects import is_assumed
from gitsched.decide.relations.delivered_objects import NO_CLUSTERS, Clusters, DeliveredObjects, list_manifests
from gitsched.kinds.companion_index import CompanionIndex
from gitsched.kinds.companion_kinds import COMPANION_KINDS, SHARED_SERVICE_KINDS
from gitsched.kinds.companion_targets import NO_FEATURES, CompanionFeatures, read_features

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.relations.missing_references import MissingReference
    from gitsched.kinds.requirements import PodPaths
    from gitsched.model.document import Body, Document, Key
    from gitsched.model.scheduling import Outcome


class DeliveredCompanion(NamedTuple):
    """An object of the source with the clusters that it goes to; it counts as running only in the `active` ones, from which it is not being
    evicted. `owner` is the workload that contains it, or the object itself. `state` is that of the owner's placement; "" if no policy
    selects it."""

    key: Key
    owner: Key
    clusters: Clusters = NO_CLUSTERS
    active: Clusters = NO_CLUSTERS
    state: str = ""


class CompanionPlacement(NamedTuple):
    """A companion that is selected and its direct targets.

    It is `lacking` in clusters that have a target, and `idle` in those of its own clusters that have none.
    """

    companion: DeliveredCompanion
    targets: tuple[DeliveredCompanion, ...]
    lacking: Clusters
    idle: Clusters

    @property
    def is_separated(self) -> bool:
        """Whether a finding is about it."""
        return bool(self.lacking or self.idle)

    @property
    def is_whole(self) -> bool:
        """Whether the companion and its targets are workloads of their own, which none contains."""
        return all(one.key == one.owner for one in (self.companion, *self.targets))

    @property
    def is_apart(self) -> bool:
        """Whether the companion and its targets have no cluster in common."""
        return self.idle == self.companion.active and bool(self.idle)


class UnselectedCompanion(NamedTuple):
    """A companion that no policy selects, the selected workloads that it belongs to, and the clusters of these that should have it."""

    companion: DeliveredCompanion
    workloads: tuple[DeliveredCompanion, ...]
    clusters: Clusters


class CompanionPlacements(NamedTuple):
    """The companions of a plan. `features` are those of the objects that are not part of a Bundle, Application or the like."""

    placements: tuple[CompanionPlacement, ...] = ()
    unselected: tuple[UnselectedCompanion, ...] = ()
    features: dict[Key, CompanionFeatures] = {}


NO_COMPANIONS = CompanionPlacements()


class FeatureCache:
    """The features of manifests, as long as their bodies stay the same."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Body, PodPaths, CompanionFeatures]] = {}

    def read(self, document: Document, pod_paths: PodPaths) -> CompanionFeatures:
        """Return the features of a template."""
        known = self._known.get(document.key)
        if known is None or known[0] is not document.body or known[1] != pod_paths:
            known = document.body, pod_paths, read_features(document.key, document.body, pod_paths)
            self._known[document.key] = known
        return known[2]


def compare_companions(
    decisions: DecisionSet,
    delivered: DeliveredObjects,
    missing: Iterable[MissingReference],
    config: Config,
    cache: FeatureCache | None = None,
) -> CompanionPlacements:
    """Return where the companions of a plan and their targets go.

    Left out are companions that are where they are on purpose: their annotation says so, or other clusters reach the Service. What a
    missing reference tells does not count as lacking.
    """
    index: CompanionIndex[int] = CompanionIndex()
    objects: list[DeliveredCompanion] = []
    cache, pod_paths = cache or FeatureCache(), config.pod_paths
    found: dict[Key, CompanionFeatures] = {}
    for one, document in _list_objects(decisions):
        whole = one.key == one.owner
        features = cache.read(document, pod_paths) if whole else read_features(document.key, document.body, pod_paths)
        if features is not NO_FEATURES:
            index.add(len(objects), one.key, features)
            objects.append(one)
            if whole:
                found[one.key] = features
    told = {one.key: one.reported for one in missing}
    comparison = _Comparison(index, objects, delivered, told, config, _list_shared_services(decisions))
    placements: list[CompanionPlacement] = []
    unselected: list[UnselectedCompanion] = []
    for number in index.list_companions():
        compared = comparison.compare(number)
        if isinstance(compared, UnselectedCompanion):
            if compared.companion.key not in decisions.refused:  # another finding says why no cluster gets it
                unselected.append(compared)
        elif compared is not None:
            placements.append(compared)
    return CompanionPlacements(tuple(placements), tuple(unselected), found)


class _Comparison:
    def __init__(
        self,
        index: CompanionIndex[int],
        objects: list[DeliveredCompanion],
        delivered: DeliveredObjects,
        told: dict[Key, Clusters],
        config: Config,
        shared: frozenset[tuple[str, str]],
    ) -> None:
        self._index, self._objects, self._delivered = index, objects, delivered
        self._told, self._config, self._shared = told, config, shared
        self._references: set[tuple[Key, Key]] | None = None

    def compare(self, number: int) -> CompanionPlacement | UnselectedCompanion | None:
        """Return where a companion and its targets go; None if there is nothing to compare."""
        companion, features = self._objects[number], self._index.find_features(number)
        if features is None or features.follows is False or (companion.state and not companion.clusters):
            return None
        key = companion.key
        direct = [self._objects[target] for target in self._index.list_targets(number)]
        targets = [target for target in direct if not _is_one_set(companion, target)]
        if not targets:
            return None
        if not companion.state:
            behind = (self._objects[workload] for workload in self._index.list_workloads(number))
            workloads = sorted((one for one in behind if one.state), key=_get_key)
            wanted = self._without_known(key, NO_CLUSTERS.union(*(one.active for one in workloads)))
            return UnselectedCompanion(companion, tuple(workloads), wanted) if workloads else None
        present = NO_CLUSTERS.union(*(self._delivered.find_clusters(target.key) for target in targets))
        # A reference that is missing, or a workload that is not placed, is another finding.
        is_bound = self._are_referenced(companion, targets) or all(target.state and not target.clusters for target in targets)
        is_shared = (key.namespace, key.name) in self._shared or features.is_shared
        all_targets, has_own = tuple(sorted(targets, key=_get_key)), len(targets) < len(direct)
        # Variants of one base select each other's pods as well, and each has a companion of its own.
        missed = (target for target in all_targets if not has_own or (key[:2], target.key, target.owner) not in self._served)
        placement = place_companion(
            companion,
            tuple(missed),
            present,
            self._delivered.find_clusters(key),
            lambda clusters: self._without_known(key, clusters),
            may_be_idle=not (is_bound or is_shared or has_own),
        )
        return placement._replace(targets=all_targets)

    @cached_property
    def _served(self) -> frozenset[tuple[tuple[str, str], Key, Key]]:
        """The targets that have a companion in the same workload, such as a Bundle: group and kind of it, the target, and the workload."""
        pairs = (
            (self._objects[one], self._objects[target])
            for one in self._index.list_companions()
            for target in self._index.list_targets(one)
        )
        return frozenset((one.key[:2], target.key, target.owner) for one, target in pairs if _is_one_set(one, target))

    def _are_referenced(self, companion: DeliveredCompanion, targets: Iterable[DeliveredCompanion]) -> bool:
        """Return whether a companion refers to its targets, so that a missing one is a missing reference."""
        if self._references is None:
            self._references = {
                (one.referrer, one.required.key) for one in self._delivered.requirements if one.referrer[:2] in COMPANION_KINDS
            }
        return all((companion.owner, target.key) in self._references for target in targets)

    def _without_known(self, key: Key, clusters: Clusters) -> Clusters:
        """Return the clusters that do not have an object by themselves, and for which no other finding reports it."""
        left = clusters - self._told.get(key, NO_CLUSTERS)
        return frozenset([name for name in left if not is_assumed(key, name, self._config)])


def place_companion(
    companion: DeliveredCompanion,
    targets: tuple[DeliveredCompanion, ...],
    present: Clusters,
    delivered: Clusters,
    without_known: Callable[[Clusters], Clusters],
    *,
    may_be_idle: bool,
) -> CompanionPlacement:
    """Return where a companion and its targets go.

    `present` are the clusters with a target, `delivered` those with the companion, also where something else brings them. `without_known`
    leaves out the clusters where it is not missed.
    """
    idle = companion.active - present if may_be_idle else NO_CLUSTERS
    lacking = NO_CLUSTERS.union(*(target.active for target in targets)) - delivered
    return CompanionPlacement(companion, targets, without_known(lacking), idle)


def _get_key(one: DeliveredCompanion) -> tuple[Key, Key]:
    return one.key, one.owner


def _is_one_set(companion: DeliveredCompanion, target: DeliveredCompanion) -> bool:
    """Return whether two objects are parts of the same workload, such as a Bundle."""
    return companion.owner == target.owner and companion.key != companion.owner


def _list_objects(decisions: DecisionSet) -> Iterator[tuple[DeliveredCompanion, Document]]:
    """Yield what the plan delivers, and the objects that no policy selects."""
    for key, outcome in decisions.outcomes.items():
        template = decisions.templates[key]
        if outcome.manifests is None and not outcome.bundles and key not in decisions.variants:
            yield describe_delivery(key, key, outcome), template
            continue
        for one in list_manifests(outcome, template, decisions.variants):
            yield DeliveredCompanion(one.document.key, key, one.clusters, one.active, outcome.state), one.document
    for key, template in decisions.catalog.templates.items():
        if key not in decisions.outcomes:
            yield DeliveredCompanion(key, key), template


def describe_delivery(key: Key, owner: Key, outcome: Outcome) -> DeliveredCompanion:
    """Return an object that goes where the workload goes which it is, or which contains it."""
    clusters = frozenset([target.cluster for target in outcome.targets])
    evicting = [target.cluster for target in outcome.targets if target.evicting]
    return DeliveredCompanion(key, owner, clusters, clusters.difference(evicting) if evicting else clusters, outcome.state)


def _list_shared_services(decisions: DecisionSet) -> frozenset[tuple[str, str]]:
    """Return namespace and name of the Services that other clusters reach."""
    documents = (*decisions.catalog.templates, *decisions.catalog.api_documents_by_key)
    return frozenset((key.namespace, key.name) for key in documents if key[:2] in SHARED_SERVICE_KINDS)
