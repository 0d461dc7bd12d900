"""Which candidates pass the filters for all requests of a class: what is known of such requests is the same, and the rest is not known.

The filters are applied to a request and a previous result of which the unknown parts cannot be read. So a result holds for every request
of the class, whatever a filter reads of the fleet; there is none if a filter needs more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, cast

from gitsched.model.scheduling import AffinityGroup, Request
from gitsched.model.system_errors import is_bug
from gitsched.schedule.fleet import ClusterEvictionFilter, FilterPlugin, Fleet, list_filters

UNKNOWN_FIELDS = ("identity", "replicas", "resource_request", "evicted", "previous", "preferred")
"""The fields of a request that differ within a class."""
_ACCESS = (
    *("__iter__", "__getitem__", "__contains__", "__add__", "__radd__", "__mul__", "__rmul__", "index", "count"),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__repr__"),
)
"""The members of a tuple that read its fields without their names."""


class UnknownInputError(Exception):
    """A filter reads what is not the same for all requests of a class."""


def _refuse(*_: object) -> NoReturn:
    raise UnknownInputError


class RequestClass(Request):
    """A request whose UNKNOWN_FIELDS cannot be read: UnknownInputError is raised. `variants` is None: workloads with variants are in no
    class."""

    __slots__ = ()


for _name in UNKNOWN_FIELDS:
    setattr(RequestClass, _name, property(_refuse))
for _name in _ACCESS:
    setattr(RequestClass, _name, _refuse)


class ConditionalSet:
    """A set of candidates that depends on an unknown one, the previous result, by set operations alone: it has the candidates of `new` that
    are not in the previous result, and those of `held` that are. Anything but a set operation raises UnknownInputError."""

    __slots__ = ("held", "new")

    def __init__(self, new: int, held: int) -> None:
        self.new, self.held = new, held

    def select(self, previous: int) -> int:
        """Return the set for a known previous result."""
        return self.new & ~previous | self.held & previous

    def __and__(self, other: int | ConditionalSet) -> ConditionalSet:
        new, held = _split(other)
        return ConditionalSet(self.new & new, self.held & held)

    def __or__(self, other: int | ConditionalSet) -> ConditionalSet:
        new, held = _split(other)
        return ConditionalSet(self.new | new, self.held | held)

    def __xor__(self, other: int | ConditionalSet) -> ConditionalSet:
        new, held = _split(other)
        return ConditionalSet(self.new ^ new, self.held ^ held)

    def __invert__(self) -> ConditionalSet:
        return ConditionalSet(~self.new, ~self.held)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __bool__ = __index__ = __eq__ = __ne__ = __hash__ = __repr__ = __format__ = _refuse


_PREVIOUS = ConditionalSet(0, -1)
"""The previous result itself."""


def find_feasible_of_class(request: RequestClass, group: AffinityGroup, fleet: Fleet) -> ConditionalSet | None:
    """Return the candidates that pass every filter for each request of a class, also those from which the workload is evicted; None if that
    depends on what is not known, or if candidates are frozen."""
    if fleet.frozen:
        return None
    passing = fleet.all & ~fleet.deleting
    found = ConditionalSet(passing, passing)
    try:
        for _, mask in _apply_filters(request, group, fleet):
            found &= mask
    except Exception as error:
        if not is_bug(error):
            raise
        return None  # a filter that fails does so again for each request
    return found


def is_verdict_shared(request: RequestClass, group: AffinityGroup, fleet: Fleet, index: int) -> bool:
    """Return whether all requests of a class get the same verdict about a candidate that is not in their previous result, with the same
    reason."""
    try:
        for rule, mask in _apply_filters(request, group, fleet):
            if not _split(mask)[0] >> index & 1:
                rule.reason(request, fleet, index)
                break
    except Exception as error:
        if not is_bug(error):
            raise
        return False
    return True


def _apply_filters(
    request: RequestClass, group: AffinityGroup, fleet: Fleet
) -> Iterator[tuple[FilterPlugin, int | ConditionalSet]]:
    """Yield each filter with the candidates that pass it. An eviction depends on the request alone, and on no fact about a candidate."""
    for rule in list_filters():
        if not isinstance(rule, ClusterEvictionFilter):
            yield rule, rule.mask(request, group, fleet, cast("Any", _PREVIOUS))


def _split(mask: int | ConditionalSet) -> tuple[int, int]:
    """Return the candidates of a set that are not in the previous result, and those that are."""
    if isinstance(mask, ConditionalSet):
        return mask.new, mask.held
    if not isinstance(mask, int):
        raise UnknownInputError
    return mask, mask
