"""Which candidates pass the filters otherwise after some of them changed, or rank otherwise: for all requests of a class."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from gitsched.model.scheduling import Affinity, AffinityGroup
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.fleet import Candidate, ClusterAffinityFilter, Fleet
from gitsched.schedule.plugins import compare_candidates
from gitsched.schedule.request_classes import RequestClass, find_feasible_of_class


class DifferingCandidates(NamedTuple):
    """The candidates by which a decision may differ from the one before: `new` of requests whose previous result does not have them, `held`
    of the others."""

    new: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()

    def __or__(self, other: DifferingCandidates) -> DifferingCandidates:
        return DifferingCandidates(self.new | other.new, self.held | other.held)

    def concern(self, previous: Collection[str]) -> bool:
        """Return whether the decision may differ for a previous result."""
        return not (self.held.isdisjoint(previous) and self.new.issubset(previous))


class ChangedSets(NamedTuple):
    """The changed candidates as sets of the fleets before and after, and whether affinities match each of them as before. Those that the
    affinity of a group matches in neither fleet make no difference for it."""

    before: int
    after: int
    same_affinities: bool

    def concern(self, before: int, find_after: Callable[[], int]) -> bool:
        """Return whether one of them is in a set of matching candidates: that of the fleet before, or that of the other one."""
        return bool(before & self.before or (not self.same_affinities and find_after() & self.after))


_AFFINITY, _NOTHING = ClusterAffinityFilter(), DifferingCandidates()


class FleetChanges:
    """A fleet before and after a change. `changed` are the names of the candidates that come, go or differ in anything.

    A filter may compare candidates, so that another one than these passes or fails. What comes after the filters ranks each candidate by
    itself: by the affinities that match it, and where capacity or regions count by everything but its labels, taints and APIs.
    """

    def __init__(self, before: Fleet, after: Fleet, changed: Iterable[str]) -> None:
        self._before, self._after, self._has_same_names = before, after, before.names == after.names
        names = sorted(changed)
        self._changed = [name for name in names if name in before.index and name in after.index]
        self.sets = self._find_sets(names)

    def _find_sets(self, names: Sequence[str]) -> ChangedSets | None:
        """Return the changed candidates as sets; None if one comes or goes, or a filter compares candidates."""
        before, after = self._before, self._after
        if len(names) != len(self._changed) or before.frozen or after.frozen or compare_candidates():
            return None
        pairs = ((before.candidates[before.index[name]], after.candidates[after.index[name]]) for name in names)
        same = all(one.labels == two.labels and one.fields == two.fields for one, two in pairs)
        return ChangedSets(before.mask(names), after.mask(names), same)

    def compare(self, request: RequestClass, group: AffinityGroup, otherwise: Collection[str] = ()) -> DifferingCandidates | None:
        """Return the differing candidates for a class of requests in one group; None if filters need more of a request than its class has.

        Changed candidates that differ `otherwise` count where they pass the filters.
        """
        sides = (self._before, self._after)
        matching, present_matching = (partial(_AFFINITY.mask, request, group, fleet, 0) for fleet in sides)
        if self.sets is not None and not self.sets.concern(matching(), present_matching):
            return _NOTHING
        former, present = (find_feasible_of_class(request, group, fleet) for fleet in sides)
        if former is None or present is None:
            return None
        ranked = [name for name in self._changed if name in otherwise or not self._rank_alike(request, group, name)]
        return DifferingCandidates(
            frozenset((*self._list_differing(former.new, present.new), *self._select(ranked, present.new))),
            frozenset((*self._list_differing(former.held, present.held), *self._select(ranked, present.held))),
        )

    def _list_differing(self, former: int, present: int) -> Collection[str]:
        """Return the names that are in one of two sets, before and after the change."""
        before, after = self._before, self._after
        if self._has_same_names:
            return [before.names[index] for index in before.members(former ^ present)]
        return {before.names[index] for index in before.members(former)} ^ {after.names[index] for index in after.members(present)}

    def _select(self, names: Iterable[str], present: int) -> Iterable[str]:
        return (name for name in names if present >> self._after.index[name] & 1)

    def _rank_alike(self, request: RequestClass, group: AffinityGroup, name: str) -> bool:
        candidates = [fleet.candidates[fleet.index[name]] for fleet in (self._before, self._after)]
        if request.spread_constraints or request.division in ("dynamic", "aggregated"):
            former, present = map(_forget_filtered, candidates)
            if former != present:
                return False
        affinities = [weight.affinity for weight in request.weights]
        if group.overflow and group.affinity is not None:
            affinities += (group.affinity, *group.overflow)
        return all(self._matches(self._before, one, name) == self._matches(self._after, one, name) for one in affinities)

    @staticmethod
    def _matches(fleet: Fleet, affinity: Affinity, name: str) -> bool:
        return bool(fleet.matching(affinity) >> fleet.index[name] & 1)


def _forget_filtered(candidate: Candidate) -> Candidate:
    """Return a candidate without what only filters and affinities read."""
    return candidate._replace(labels={}, taints=(), enabled_apis=None)
