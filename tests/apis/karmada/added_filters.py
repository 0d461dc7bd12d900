"""Filters that gitsched does not have, as a program adds them: each reads something else of the fleet or of the request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gitsched.model.labels import Requirement, Selector
from gitsched.model.scheduling import Affinity, AffinityGroup, Request
from gitsched.schedule.fleet import Candidate, Fleet

Mask = Callable[[Request, AffinityGroup, Fleet, int], int]
NOT_TIER_B = Affinity(labels=Selector((Requirement("tier", "NotIn", ("b",)),)))


class AddedFilter:
    """A filter of one function; its reason names the candidate that is first by name, which is not the rejected one."""

    def __init__(self, name: str, mask: Mask) -> None:
        self.name, self._mask = name, mask

    def mask(self, request: Request, group: AffinityGroup, fleet: Fleet, previous: int) -> int:
        return self._mask(request, group, fleet, previous)

    def reason(self, request: Request, fleet: Fleet, index: int) -> str:
        return f"cluster(s) were rejected by {self.name}, unlike {fleet.candidates[0].name} with {dict(fleet.candidates[0].labels)}"


def select(fleet: Fleet, passes: Callable[[Candidate], bool]) -> int:
    return fleet.mask(candidate.name for candidate in fleet.candidates if passes(candidate))


def _select_largest(fleet: Fleet, amount: Callable[[Candidate], int]) -> int:
    largest = max(map(amount, fleet.candidates), default=0)
    return select(fleet, lambda candidate: amount(candidate) == largest)


def _count_cpu(candidate: Candidate) -> int:
    return candidate.capacity.free.get("cpu", 0) if candidate.capacity is not None else 0


def _list_regions(candidates: Iterable[Candidate]) -> set[str]:
    return {region for candidate in candidates for region in candidate.fields.get("region", ())}


def _stay_in_region(_request: Request, _group: AffinityGroup, fleet: Fleet, previous: int) -> int:
    regions = _list_regions(fleet.candidates[index] for index in fleet.members(previous))
    return select(fleet, lambda one: not regions or not regions.isdisjoint(one.fields.get("region", ()))) if previous else fleet.all


def _leave_first_region(_request: Request, _group: AffinityGroup, fleet: Fleet, previous: int) -> int:
    regions = sorted(_list_regions(fleet.candidates))
    return previous | select(fleet, lambda one: not regions or regions[0] not in one.fields.get("region", ()))


MASKS: Mapping[str, Mask] = {
    "Label": lambda _, __, fleet, previous: previous | fleet.matching(NOT_TIER_B),
    "LabelAlsoOfPrevious": lambda _, __, fleet, ___: fleet.matching(NOT_TIER_B),
    "UnreadLabel": lambda _, __, fleet, previous: previous | select(fleet, lambda one: one.labels.get("unread") != "b"),
    "Taint": lambda _, __, fleet, ___: select(fleet, lambda one: not any(taint.key == "full" for taint in one.taints)),
    "Region": lambda _, __, fleet, previous: previous | select(fleet, lambda one: "r2" not in one.fields.get("region", ())),
    "Provider": lambda _, __, fleet, ___: fleet.with_field("provider"),
    "Capacity": lambda _, __, fleet, previous: previous | select(fleet, lambda one: _count_cpu(one) > 1000),
    "Apis": lambda _, __, fleet, previous: previous | select(fleet, lambda one: one.enabled_apis is not None),
    "MostCpuAlways": lambda _, __, fleet, ___: _select_largest(fleet, _count_cpu),
    "MostLabels": lambda _, __, fleet, ___: _select_largest(fleet, lambda one: len(one.labels)),
    "FirstByName": lambda _, __, fleet, previous: previous | fleet.mask(fleet.names[:2]),
    "LastByName": lambda _, __, fleet, ___: fleet.mask(fleet.names[-2:]),
    "OtherRegion": _leave_first_region,
    "StayInRegion": _stay_in_region,
    "OnlyPrevious": lambda _, __, fleet, previous: previous or fleet.mask(fleet.names[:1]),
    "Replicas": lambda request, _, fleet, previous: previous | (fleet.matching(NOT_TIER_B) if request.replicas > 2 else fleet.all),
    "Requests": lambda request, _, fleet, ___: fleet.all if request.resource_request else fleet.matching(NOT_TIER_B),
    "Division": lambda request, _, fleet, ___: (
        fleet.matching(NOT_TIER_B) if request.division in ("duplicated", "everywhere") else fleet.all
    ),
    "Kind": lambda request, _, fleet, ___: fleet.matching(NOT_TIER_B) if request.required_api == ("v1", "ConfigMap") else fleet.all,
    "LaterGroup": lambda request, group, fleet, ___: fleet.matching(NOT_TIER_B) if group is not request.groups[0] else fleet.all,
    "WholeRequest": lambda request, _, fleet, ___: fleet.all if len([*request]) > 3 and request[1] else fleet.matching(NOT_TIER_B),
    "HashedRequest": lambda request, _, fleet, ___: fleet.get_or_compute(
        ("by request", request), lambda: fleet.matching(NOT_TIER_B) if request.replicas % 2 else fleet.all
    ),
    "Targets": lambda request, _, fleet, ___: fleet.matching(NOT_TIER_B) if len(request.previous) > 1 else fleet.all,
}
"""What each filter lets pass, by its name."""
