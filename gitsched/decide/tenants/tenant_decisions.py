"""Decide what the workloads of tenants get: what their Tenants allow, of what they share with all others.

What a Tenant does not allow takes nothing from others. What it allows while each workload is decided alone may be more than its limits
together with what workloads get in their turns: then the last ones in the order of turns keep what they have, and all others are decided
once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import CapacitySharing
from gitsched.decide.capacity.shared_decisions import SharedOutcomes, share_outcomes
from gitsched.decide.engines import list_engine_findings
from gitsched.decide.kept_outcomes import keep_outcomes
from gitsched.decide.tenants.tenant_outcomes import enforce_rules, find_excess
from gitsched.decide.workload_decision import DecidedAlone
from gitsched.model.document import Document, Key
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.engines import EngineRecords
    from gitsched.decide.tenants.tenant_admission import Violation
    from gitsched.decide.tenants.tenant_outcomes import FindTurn
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome


class SettledOutcomes(NamedTuple):
    """The outcomes with what Tenants do not allow: the workloads that are `kept` as they are, and the `refused` ones."""

    shared: SharedOutcomes
    kept: frozenset[Key]
    refused: frozenset[Key]


def settle_outcomes(decided: DecidedAlone, findings: Iterable[Finding], records: EngineRecords, shares: bool) -> SettledOutcomes:
    """Return the outcomes that Tenants allow. With `shares` workloads share capacity, groups of clusters or quotas."""
    outcomes, templates, engines, snapshot = decided[:4]
    find_turn = make_turn_lookup(engines, templates)
    known = frozenset(list_engine_findings(engines))
    excess: dict[Key, Violation] = {}
    while True:
        enforced = enforce_rules(outcomes, templates, snapshot, snapshot.documents, records, find_turn, excess)
        allowed, found, made = dict(enforced.outcomes), [*findings, *enforced.findings], records
        if enforced.kept or enforced.refused:
            after = keep_outcomes({**enforced.kept, **enforced.refused}, engines, snapshot.templates, snapshot, found)
            changed = {key: after.outcomes[key] for key in after.followers if key in allowed}
            allowed = {key: one for key, one in {**allowed, **changed}.items() if one is not None}
            found, made = list(after.findings), after.records
        stopped = enforced.kept.keys() | enforced.refused.keys()
        shared = SharedOutcomes(allowed, found, made, None)
        if shares:
            before = known if excess else None
            shared = share_outcomes(decided._replace(outcomes=allowed, fixed=decided.fixed | stopped), found, made, before)
        more = find_excess(shared.outcomes, templates, snapshot, find_turn, stopped) if shares else {}
        if not more:
            return SettledOutcomes(shared, frozenset(enforced.kept), frozenset(enforced.refused))
        excess |= more


def list_allowed(
    outcomes: Mapping[Key, Outcome], templates: Mapping[Key, Document], engines: tuple[PolicyEngine, ...], snapshot: Snapshot
) -> dict[Key, Outcome]:
    """Return the outcomes of workloads that are decided alone, without what Tenants do not allow."""
    find_turn = make_turn_lookup(engines, templates)
    return dict(enforce_rules(outcomes, templates, snapshot, snapshot.documents, find_turn=find_turn).outcomes)


def make_turn_lookup(engines: Iterable[PolicyEngine], templates: Mapping[Key, Document]) -> FindTurn:
    """Return a function that returns when a workload is decided, as values that sort; () where no queue has it."""
    sharing = [engine for engine in engines if isinstance(engine, CapacitySharing)]

    def find_turn(key: Key) -> tuple[object, ...]:
        positions = (engine.find_queue_position(templates[key]) for engine in sharing if key in templates)
        return next((position.order for position in positions if position is not None), ())

    return find_turn
