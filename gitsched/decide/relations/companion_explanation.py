"""Describe for `explain` which companions a workload has, and which targets a companion has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gitsched.decide.decisions import DecisionSet
from gitsched.decide.relations.companion_placement import CompanionPlacements, DeliveredCompanion
from gitsched.model.document import Key
from gitsched.model.explanation import ExplainedReference


class ExplainedCompanions(NamedTuple):
    """The `targets` of an object, and the companions that it is `targeted_by`."""

    targets: tuple[ExplainedReference, ...] = ()
    targeted_by: tuple[ExplainedReference, ...] = ()


def explain_companions(
    companions: CompanionPlacements, decisions: DecisionSet, only: Key | None = None
) -> dict[Key, ExplainedCompanions]:
    """Return the companions and targets of every object, or of `only` one."""
    found: dict[Key, ExplainedCompanions] = {}
    for companion, target in _list_pairs(companions):
        if only in (None, companion.key):
            known = found.get(companion.key, ExplainedCompanions())
            found[companion.key] = known._replace(targets=(*known.targets, _explain(companion, target, decisions)))
        if only in (None, target.key):
            known = found.get(target.key, ExplainedCompanions())
            found[target.key] = known._replace(targeted_by=(*known.targeted_by, _explain(target, companion, decisions)))
    return found


def _list_pairs(companions: CompanionPlacements) -> Iterator[tuple[DeliveredCompanion, DeliveredCompanion]]:
    for placement in companions.placements:
        yield from ((placement.companion, target) for target in placement.targets)
    for one in companions.unselected:
        yield from ((one.companion, workload) for workload in one.workloads)


def _explain(one: DeliveredCompanion, other: DeliveredCompanion, decisions: DecisionSet) -> ExplainedReference:
    """Describe an object from the other one's side: in which of its clusters the other one is."""
    outcome = decisions.outcomes.get(other.owner)
    reason = "no policy selects it" if outcome is None else f"part of {other.owner}" if other.key != other.owner else outcome.reason
    together, apart = one.active & other.clusters, one.active - other.clusters
    return ExplainedReference(str(other.key), tuple(sorted(together)), tuple(sorted(apart)), reason)
