"""The candidates of a scheduling run and the filter plug-ins: ClusterAffinity, TaintToleration, APIEnablement, SpreadConstraint and
ClusterEviction.

A fleet is indexed by label, field, taint and API; a set of candidates is a bit mask. A candidate is its index in the sorted names, and
bit i of a mask is candidate i. Results are cached by the arguments of the query, so ten thousand workloads under forty policies evaluate
forty selectors. A filter is a class with a name, a mask (the candidates that pass) and a reason for a rejected candidate, and an entry in
FILTERS.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Protocol, TypeVar

from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import Affinity, AffinityGroup, CandidateVariant, CapacityEstimates, Estimates, Request
from gitsched.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, TolerationIndex
from gitsched.schedule.candidate import Candidate as Candidate
from gitsched.schedule.estimator import UNLIMITED, Capacity, Estimator, ResourceRequest

K = TypeVar("K")
T = TypeVar("T")
_Estimate = Callable[[ResourceRequest | None], Estimates]
_SMALL_SET = 8
_SHARED_RESULTS = 2_000
"""Results about capacities that fleets share; a fleet after one with more computes its own."""
_BOOL_TO_DIGIT = bytes(ord("1") if byte else ord("0") for byte in range(256))
_DIGIT_TO_BOOL = bytes(byte == ord("1") for byte in range(256))


class FleetCapacities:
    """What depends on the names and capacities of candidates alone, computed on demand: fleets that have these in common share it."""

    __slots__ = ("_estimates", "_estimator", "_known", "_unlimited", "capacities", "has_capacity")

    def __init__(self, capacities: tuple[Capacity | None, ...]) -> None:
        self.capacities = capacities
        self.has_capacity = any(capacity is not None for capacity in capacities)
        self._unlimited = None if self.has_capacity else (UNLIMITED,) * len(capacities)
        self._estimator: Estimator | None = None
        self._estimates: dict[ResourceRequest | None, Sequence[int]] = {}
        self._known: dict[Any, tuple[object, Any]] = {}

    @property
    def size(self) -> int:
        """The number of results that are kept."""
        return len(self._estimates) + len(self._known)

    def estimate_replicas(self, resource_request: ResourceRequest | None) -> Sequence[int]:
        """Return how many replicas with a resource request fit on each candidate; estimated once for equal requests."""
        if self._unlimited is not None:
            return self._unlimited
        estimates = self._estimates.get(resource_request)
        if estimates is None:
            self._estimator = self._estimator or Estimator(self.capacities)
            estimates = self._estimates[resource_request] = self._estimator.estimate_replicas(resource_request)
        return estimates

    def get_or_compute(self, key: Any, given: object, compute: Callable[[], T]) -> T:
        """Return the cached value of a hashable key, computed for the same `given` object."""
        known = self._known.get(key)
        if known is None or known[0] is not given:
            known = self._known[key] = given, compute()
        found: T = known[1]
        return found


class Fleet:
    """Candidates sorted by name, indexed by label, field, taint and API.

    It takes over what it has in common with an `earlier` fleet, if that has the same names.
    """

    __slots__ = (
        "_cache",
        "_enabled_apis",
        "_fields",
        "_labels",
        "_taints",
        "all",
        "candidates",
        "capacities",
        "deleting",
        "frozen",
        "has_capacity",
        "index",
        "names",
    )

    def __init__(self, candidates: Iterable[Candidate], earlier: Fleet | None = None) -> None:
        self.candidates: tuple[Candidate, ...] = tuple(sorted(candidates))
        self.names = tuple(candidate.name for candidate in self.candidates)
        self._cache: dict[Any, Any] = {}
        pairs = earlier.pair_changed(self) if earlier is not None else None
        if earlier is not None and pairs is not None:
            self._take_over(earlier, pairs)
            return
        self.index = {name: i for i, name in enumerate(self.names)}
        self.all = (1 << len(self.names)) - 1
        self.deleting = self._mask_where(lambda candidate: candidate.deleting)
        self.frozen = self._mask_where(lambda candidate: candidate.frozen)
        self._labels: dict[str, dict[str, int]] = {}
        self._fields: dict[str, dict[str, int]] = {}
        self._taints: dict[Taint, int] = {}
        self._enabled_apis: dict[frozenset[tuple[str, str]] | None, int] = {}
        self.capacities = FleetCapacities(tuple(candidate.capacity for candidate in self.candidates))
        self.has_capacity = self.capacities.has_capacity
        for i, candidate in enumerate(self.candidates):
            bit = 1 << i
            for key, texts in candidate.fields.items():
                for text in texts:
                    _add_to_index(self._fields, key, text, bit)
            for taint in _list_filtering(candidate):
                self._taints[taint] = self._taints.get(taint, 0) | bit
            self._enabled_apis[candidate.enabled_apis] = self._enabled_apis.get(candidate.enabled_apis, 0) | bit

    def pair_changed(self, later: Fleet) -> list[tuple[int, Candidate, Candidate]] | None:
        """Return the candidates that a later fleet has with the same name and another content, by index; None if the names differ, or
        more is different than a copy of the indices is worth."""
        if self.names != later.names:
            return None
        pairs = enumerate(zip(self.candidates, later.candidates, strict=True))
        found = [(index, former, present) for index, (former, present) in pairs if former is not present]
        is_alike = all(one.fields == two.fields and one.labels == two.labels for _, one, two in found)
        return found if is_alike and len(found) <= _SMALL_SET else None

    def _take_over(self, earlier: Fleet, pairs: Iterable[tuple[int, Candidate, Candidate]]) -> None:
        """Copy the indices of a fleet in which some candidates have the same labels and fields, and other taints, APIs or capacities."""
        self.names, self.index, self.all = earlier.names, earlier.index, earlier.all
        self._labels, self._fields = earlier._labels, earlier._fields
        self.deleting, self.frozen = earlier.deleting, earlier.frozen
        self._taints, self._enabled_apis = dict(earlier._taints), dict(earlier._enabled_apis)
        has_same = earlier.capacities.size < _SHARED_RESULTS
        for index, former, present in pairs:
            bit = 1 << index
            self.deleting = self.deleting | bit if present.deleting else self.deleting & ~bit
            self.frozen = self.frozen | bit if present.frozen else self.frozen & ~bit
            _move_bit(self._taints, _list_filtering(former), _list_filtering(present), bit)
            _move_bit(self._enabled_apis, (former.enabled_apis,), (present.enabled_apis,), bit)
            has_same = has_same and former.capacity == present.capacity
        shared = earlier.capacities
        self.capacities = shared if has_same else FleetCapacities(tuple(candidate.capacity for candidate in self.candidates))
        self.has_capacity = self.capacities.has_capacity

    def __len__(self) -> int:
        return len(self.names)

    def estimate_replicas(self, resource_request: ResourceRequest | None) -> Sequence[int]:
        """Return how many replicas with a resource request fit on each candidate; estimated once for equal requests."""
        return self.capacities.estimate_replicas(resource_request)

    def estimate_for(self, request: Request) -> Sequence[int]:
        """Return how many replicas of a workload fit on each candidate by its facts, where it may have a variant of its own."""
        variants = request.variants
        if variants is None:
            return self.estimate_replicas(request.resource_request)
        return self.get_or_compute(("estimates", variants), lambda: self._estimate_variants(variants, self.estimate_replicas))

    def estimate_allocatable(self, request: Request) -> Sequence[int]:
        """Return how many more replicas of a workload can be assigned to each candidate: all of them where nothing limits these."""
        key = ("allocatable", request.resource_request, request.replicas, request.variants)
        return self.get_or_compute(key, lambda: self._limit_estimates(request))

    def _limit_estimates(self, request: Request) -> Sequence[int]:
        if not request.replicas:
            return [UNLIMITED] * len(self)
        estimates = self.estimate_for(request)
        key = ("unlimited", request.resource_request, request.variants)
        if not self.get_or_compute(key, lambda: UNLIMITED in estimates):
            return estimates
        return [request.replicas if capacity == UNLIMITED else capacity for capacity in estimates]

    def estimate_remaining(self, request: Request, remaining: CapacityEstimates) -> Estimates:
        """Return how many replicas of a workload fit on each candidate in what is left, or how many sets of one that is placed whole."""
        if request.variants is not None:
            return self._estimate_variants(request.variants, remaining.estimate_replicas)
        if request.sets is None:
            return remaining.estimate_replicas(request.resource_request)
        return remaining.estimate_sets(request.sets.pods) if request.sets.estimated else remaining.estimate_replicas(None)

    def _estimate_variants(self, variants: Iterable[CandidateVariant], estimate: _Estimate) -> Sequence[int]:
        estimates = [0] * len(self.names)
        for variant in variants:
            found = estimate(variant.resource_request)
            for index in self.members(self.mask(variant.names)):
                estimates[index] = found[index]
        return estimates

    def get_or_compute(self, key: Any, compute: Callable[[], T]) -> T:
        """Return the cached value of a hashable key, computed on first use. It is stored with the fleet, so it can be pickled."""
        try:
            cached: T = self._cache[key]
        except KeyError:
            cached = self._cache[key] = compute()
        return cached

    def mask(self, names: Iterable[str]) -> int:
        """Return the set of the named candidates; unknown names are ignored."""
        index, mask = self.index, 0
        for name in filter(index.__contains__, names):
            mask |= 1 << index[name]
        return mask

    def members(self, mask: int) -> list[int]:
        """Return the indices in a set, ascending."""
        if mask == self.all:
            return list(range(len(self.names)))
        if mask.bit_count() > _SMALL_SET:
            # One byte per candidate, which a loop in C reads: testing each bit of a large set in Python would dominate the cost.
            return list(compress(range(mask.bit_length()), bin(mask)[:1:-1].encode().translate(_DIGIT_TO_BOOL)))
        found = []
        while mask:
            low = mask & -mask
            found.append(low.bit_length() - 1)
            mask ^= low
        return found

    def cached_members(self, mask: int) -> Sequence[int]:
        """Return the indices in a set that many workloads have, ascending; always the same list."""
        return self.get_or_compute(("members", mask), lambda: self.members(mask))

    def sort_members(self, mask: int, estimates: Estimates, ranking: Hashable) -> list[int]:
        """Return the indices in a set, the largest estimate first, else ascending; sorted once for equal rankings."""
        return self.get_or_compute(ranking, lambda: sorted(self.cached_members(mask), key=estimates.__getitem__, reverse=True))

    def matching(self, affinity: Affinity) -> int:
        """Return the candidates of an affinity."""
        return self.get_or_compute(affinity, lambda: self._match_affinity(affinity))

    def untolerated(self, tolerations: tuple[Toleration, ...]) -> int:
        """Return the candidates with a NoSchedule or NoExecute taint that no toleration tolerates."""
        return self.get_or_compute(("untolerated", tolerations), lambda: self._find_untolerated(tolerations))

    def serving(self, api: tuple[str, str]) -> int:
        """Return the candidates that serve an API."""
        return self.get_or_compute(("serving", api), lambda: self._find_serving(api))

    def with_field(self, field: str) -> int:
        """Return the candidates with a value in a field."""
        return _unite_masks(self._fields.get(field, {}).values())

    def field_values(self, field: str) -> dict[str, int]:
        """Return the values of a field, each with its candidates."""
        return self._fields.get(field, {})

    def _mask_where(self, holds: Callable[[Candidate], bool]) -> int:
        return pack_mask(map(holds, self.candidates))

    def _match_affinity(self, affinity: Affinity) -> int:
        if affinity.invalid:
            return 0
        mask = self.mask(affinity.names) if affinity.names else self.all
        mask &= ~self.mask(affinity.exclude)
        if affinity.labels is not None:
            mask &= self._match_labels(affinity.labels)
        for requirement in affinity.fields:
            mask &= _match_requirement(self._fields, requirement, self.all)
        return mask

    def _match_labels(self, selector: Selector) -> int:
        mask = self.all
        for requirement in selector.requirements:
            if requirement.key not in self._labels:  # lazy: few of the labels of a fleet are queried
                self._index_label(requirement.key)
            mask &= _match_requirement(self._labels, requirement, self.all)
        return mask

    def _index_label(self, key: str) -> None:
        self._labels[key] = {}
        for i, candidate in enumerate(self.candidates):
            text = candidate.labels.get(key)
            if text is not None:
                _add_to_index(self._labels, key, text, 1 << i)

    def _find_untolerated(self, tolerations: Sequence[Toleration]) -> int:
        if not self._taints:
            return 0
        index = TolerationIndex(tolerations)
        return _unite_masks(mask for taint, mask in self._taints.items() if index.find_first(taint) is None)

    def _find_serving(self, api: tuple[str, str]) -> int:
        return _unite_masks(
            mask for enabled_apis, mask in self._enabled_apis.items() if enabled_apis is None or api in enabled_apis
        )


def pack_mask(flags: Iterable[bool]) -> int:
    """Return the bit mask of the indices whose flag is true."""
    return int(b"0" + bytes(flags)[::-1].translate(_BOOL_TO_DIGIT), 2)


def _list_filtering(candidate: Candidate) -> list[Taint]:
    """Return the taints of a candidate that a filter reads, without their times."""
    taints = (taint._replace(since=None) for taint in candidate.taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE))
    return list(dict.fromkeys(taints))


def _move_bit(index: dict[K, int], former: Iterable[K], present: Iterable[K], bit: int) -> None:
    """Change for which values of an index a candidate counts. A value that no candidate has any more is not in the index."""
    for value in former:
        index[value] &= ~bit
    for value in present:
        index[value] = index.get(value, 0) | bit
    for value in former:
        if not index[value]:
            del index[value]


def _add_to_index(index: dict[str, dict[str, int]], key: str, text: str, bit: int) -> None:
    values = index.setdefault(key, {})
    values[text] = values.get(text, 0) | bit


def _unite_masks(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _match_requirement(index: Mapping[str, Mapping[str, int]], requirement: Requirement, all_candidates: int) -> int:
    values = index.get(requirement.key, {})
    match requirement.operator:
        case "In":
            return _unite_masks(values.get(value, 0) for value in requirement.values)
        case "NotIn":
            return all_candidates & ~_unite_masks(values.get(value, 0) for value in requirement.values)
        case "Exists":
            return _unite_masks(values.values())
        case "DoesNotExist":
            return all_candidates & ~_unite_masks(values.values())
    return 0


class FilterPlugin(Protocol):
    """The interface of a filter. `previous` are the candidates of the previous result. Filters without `per_candidate = True` may compare
    candidates with each other."""

    name: str

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        """Return the candidates that pass."""
        ...

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        """Return why a rejected candidate did not pass."""
        ...


class _CandidateFilter:
    per_candidate = True


class ClusterAffinityFilter(_CandidateFilter):
    """The candidate matches the affinity of the group, or one of its overflow affinities when replicas are divided."""

    name = "ClusterAffinity"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        if group.affinity is None:
            return fleet.all
        mask = fleet.matching(group.affinity)
        if request.division != "everywhere":
            for affinity in group.overflow:
                mask |= fleet.matching(affinity)
        return mask

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        return "cluster(s) did not match the placement cluster affinity constraint"


class TaintTolerationFilter(_CandidateFilter):
    """The request tolerates every NoSchedule and NoExecute taint of the candidate, or the candidate is a previous one."""

    name = "TaintToleration"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        return previous | fleet.all & ~fleet.untolerated(request.tolerations)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        for taint in fleet.candidates[index].taints:
            if taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in request.tolerations):
                return f"cluster(s) had untolerated taint {{{taint}}}"
        return "cluster(s) had untolerated taint"


class APIEnablementFilter(_CandidateFilter):
    """The candidate serves the API of the workload, or is a previous one."""

    name = "APIEnablement"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        if request.variants is not None:
            return previous | fleet.get_or_compute(("served", request.variants), lambda: self._match_variants(request, fleet))
        return fleet.all if request.required_api is None else previous | fleet.serving(request.required_api)

    def _match_variants(self, request: Request, fleet: Fleet) -> int:
        """Return the candidates that serve all APIs of their variant. Those without a variant pass: another filter rejects them."""
        mask = fleet.all
        for variant in request.variants or ():
            names = fleet.mask(variant.names)
            for api in variant.required_apis:
                mask &= ~names | fleet.serving(api)
        return mask

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        return "cluster(s) did not have the API resource"


class SpreadConstraintFilter(_CandidateFilter):
    """The candidate has every field that the spread constraints use, such as a region."""

    name = "SpreadConstraint"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        mask = fleet.all
        for field in request.required_fields:
            mask &= fleet.with_field(field)
        return mask

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        fields = fleet.candidates[index].fields
        missing = next((field for field in request.required_fields if not fields.get(field)), "spread")
        return f"cluster(s) did not have {missing} property"


class ClusterEvictionFilter(_CandidateFilter):
    """The workload is not under graceful eviction from the candidate."""

    name = "ClusterEviction"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        return fleet.all & ~fleet.mask(request.evicted)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        return "cluster(s) is in the process of eviction"


class WorkloadAffinityFilter(_CandidateFilter):
    """The candidate is a previous one, or all workloads of the affinity group have it and none of the anti-affinity group."""

    name = "WorkloadAffinity"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        peers = request.peers
        if peers is None:
            return fleet.all
        shared = fleet.all if peers.shared is None else fleet.mask(peers.shared)
        return previous | shared & ~fleet.mask(peers.taken)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        if request.peers is not None and fleet.names[index] in request.peers.taken:
            return "cluster already has workload with the same anti-affinity group"
        return "ResourceBinding with the same affinity group does not target this cluster"


class VariantFilter(_CandidateFilter):
    """The candidate has a variant of the workload, where that differs between candidates. A variant that cannot be built stays where it
    is."""

    name = "Variant"

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        if request.variants is None:
            return fleet.all
        whole, broken = (
            fleet.mask(name for variant in request.variants or () if variant.broken == wanted for name in variant.names)
            for wanted in (False, True)
        )
        return whole | broken & previous

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        broken = next((variant for variant in request.variants or () if fleet.names[index] in variant.names), None)
        if broken is None:
            return "cluster(s) did not have a variant of the workload"
        return f"cluster(s) had {broken.reason or 'a variant that cannot be built'}"


FILTERS: tuple[FilterPlugin, ...] = (
    ClusterAffinityFilter(),
    TaintTolerationFilter(),
    APIEnablementFilter(),
    SpreadConstraintFilter(),
    ClusterEvictionFilter(),
    VariantFilter(),
    WorkloadAffinityFilter(),
)
BUILT_IN_FILTERS = FILTERS


def list_filters() -> tuple[FilterPlugin, ...]:
    """Return the filters, with those that `gitsched.schedule.plugins` has added."""
    return FILTERS


def find_feasible(request: Request, group: AffinityGroup, fleet: Fleet) -> int:
    """Return the candidates that pass every filter. Deleting candidates are excluded; frozen ones keep their workloads and get no
    new ones."""
    previous = fleet.mask(target.name for target in request.previous) if request.previous else 0
    mask = fleet.all & ~fleet.deleting & ~fleet.frozen
    for rule in FILTERS:
        mask &= rule.mask(request, group, fleet, previous)
    return mask | previous & fleet.frozen & ~fleet.mask(request.evicted)
