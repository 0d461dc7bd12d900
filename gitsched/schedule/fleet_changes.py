"""Which candidates pass the filters otherwise after some of them changed, or rank otherwise: for all requests of a class."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

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
        self.same_affinities = self._find_same_affinities(names)

    def _find_same_affinities(self, names: Sequence[str]) -> int | None:
        """Return the set of all changed candidates if affinities match each of them as before, and no filter compares candidates: then
        those that the affinity of a group does not match make no difference for it. None otherwise."""
        before, after = self._before, self._after
        if len(names) != len(self._changed) or before.frozen or after.frozen or compare_candidates():
            return None
        pairs = ((before.candidates[before.index[name]], after.candidates[after.index[name]]) for name in names)
        return before.mask(names) if all(one.labels == two.labels and one.fields == two.fields for one, two in pairs) else None

    def compare(self, request: RequestClass, group: AffinityGroup, otherwise: Collection[str] = ()) -> DifferingCandidates | None:
        """Return the differing candidates for a class of requests in one group; None if filters need more of a request than its class has.

        Changed candidates that differ `otherwise` count where they pass the filters.
        """
        same = self.same_affinities
        if same is not None and not same & _AFFINITY.mask(request, group, self._before, 0):
            return _NOTHING
        former = find_feasible_of_class(request, group, self._before)
        present = find_feasible_of_class(request, group, self._after)
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
