"""Describe for `explain` which companions a workload has, and which targets a companion has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.decide.relations.companion_placement import CompanionPlacement, DeliveredCompanion, read_companion
from gitsched.decide.relations.delivered_manifests import NO_MOVES, Clusters
from gitsched.decide.relations.schema import RELATED
from gitsched.model.document import workload_sort_key
from gitsched.model.explanation import ExplainedReference
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.decide.relations.object_queries import RelationReader
    from gitsched.model.document import Key
    from gitsched.model.scheduling import Outcome


class ExplainedCompanions(NamedTuple):
    """The `targets` of an object, and the companions that it is `targeted_by`."""

    targets: tuple[ExplainedReference, ...] = ()
    targeted_by: tuple[ExplainedReference, ...] = ()


def explain_companions(
    db: RelationReader, outcomes: Mapping[Key, Outcome], key: Key, before: Mapping[Key, Clusters] = NO_MOVES
) -> ExplainedCompanions:
    """Return the companions and targets of an object. Workloads that move are in the clusters `before` the move, if these are given."""
    targets: list[ExplainedReference] = []
    targeted_by: list[ExplainedReference] = []
    found = [one for entry in db.rows_of(RELATED, tuple(key)) if (one := read_companion(db, entry)) is not None]
    for one in sorted(found, key=lambda one: (not isinstance(one, CompanionPlacement), workload_sort_key(one.companion.owner))):
        for other in one.targets if isinstance(one, CompanionPlacement) else one.workloads:
            if one.companion.key == key:
                targets.append(_explain(one.companion, other, outcomes, before))
            if other.key == key:
                targeted_by.append(_explain(other, one.companion, outcomes, before))
    return ExplainedCompanions(tuple(targets), tuple(targeted_by))


def _explain(
    one: DeliveredCompanion, other: DeliveredCompanion, outcomes: Mapping[Key, Outcome], before: Mapping[Key, Clusters]
) -> ExplainedReference:
    """Describe an object from the other one's side: in which of its clusters the other one is."""
    outcome = outcomes.get(other.owner)
    reason = "no policy selects it" if outcome is None else f"part of {other.owner}" if other.key != other.owner else outcome.reason
    own, others = before.get(one.owner, one.active), before.get(other.owner, other.clusters)
    together, apart = own & others, own - others
    return ExplainedReference(str(other.key), tuple(sorted(together)), tuple(sorted(apart)), reason)
