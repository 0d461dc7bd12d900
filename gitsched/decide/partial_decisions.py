"""Decide some of the workloads of a commit, for comparisons with other inputs of the same commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.registered import Registered
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.decisions import DecisionInput, describe_recorded, list_own_workloads, list_quarantined
from gitsched.decide.engines import create_engines, list_engine_records
from gitsched.decide.workload_decision import DecidedAlone, adapt_outcome, decide_workload
from gitsched.model.document import Document, Key
from gitsched.model.scheduling import Outcome, RecordedDecision
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.decide.capacity.shared_decisions import CapacityDecisions
    from gitsched.decide.decisions import DecisionSet


class PartialDecisions(NamedTuple):
    """The outcomes of some workloads, the same as in the decisions about all of them. `own` are all workloads that APIs create,
    `templates` the documents that the engines read."""

    engines: tuple[PolicyEngine, ...]
    outcomes: Mapping[Key, Outcome]
    own: Mapping[Key, Outcome]
    templates: Mapping[Key, Document]

    @property
    def recorded(self) -> tuple[RecordedDecision, ...]:
        """All decisions that only records show."""
        return describe_recorded(list_engine_records(self.engines), self.own.values())


_SHARE_CAPACITY = Registered("gitsched.decide.capacity.shared_decisions", "share_capacity")


def decide_some(source: DecisionInput, keys: Collection[Key], others: DecisionSet | None = None) -> PartialDecisions:
    """Decide only the workloads with these keys; beside `others`, if they share capacity with what these decisions place."""
    snapshot = source.make_snapshot()
    engines = create_engines(snapshot)
    outcomes: dict[Key, Outcome] = {}
    for key in keys:
        document = source.catalog.templates.get(key)
        outcome = decide_workload(document, engines, snapshot) if document is not None else None
        if outcome is not None:
            outcomes[key] = outcome
    if not snapshot.quarantined.isdisjoint(keys):
        for key, document, why, _ in list_quarantined(source.catalog, source.parts):
            kept = (
                next((kept for engine in engines if (kept := engine.keep_previous(document, why))), None) if key in keys else None
            )
            if kept is not None and key not in outcomes:
                outcomes[key] = adapt_outcome(document, kept, snapshot, keeps=True)
    if others is not None and any(engine.shares_capacity for engine in engines):
        outcomes = _share(source, outcomes, others, engines, snapshot)
    return combine_own(PartialDecisions(engines, outcomes, {}, source.catalog.templates), snapshot, keys)


def _share(
    source: DecisionInput,
    outcomes: Mapping[Key, Outcome],
    others: DecisionSet,
    engines: tuple[PolicyEngine, ...],
    snapshot: Snapshot,
) -> dict[Key, Outcome]:
    """Return the outcomes of some workloads beside all others."""
    templates = {key: others.templates[key] for key in others.own_workloads} | dict(source.catalog.templates)
    known = {key: outcome for key, outcome in others.outcomes.items() if key in templates}
    fixed = (others.own_workloads | others.quarantined) - outcomes.keys()
    made: CapacityDecisions = _SHARE_CAPACITY(
        DecidedAlone({**known, **outcomes}, templates, engines, snapshot, fixed, source.earlier)
    )
    found = {key: made.outcomes.get(key, outcome) for key, outcome in outcomes.items()}
    return {key: outcome for key, outcome in found.items() if outcome is not None}


def combine_own(decided: PartialDecisions, snapshot: Snapshot, keys: Collection[Key]) -> PartialDecisions:
    """Return decisions about templates with those that APIs make about workloads of their own: all in `own`, those with `keys` in
    `outcomes`."""
    own: dict[Key, Outcome] = {}
    for document, outcome in list_own_workloads(decided.engines, snapshot):
        other = decided.outcomes.get(document.key)
        if other is None or not other.previous_targets:
            own[document.key] = outcome
    chosen = {key: outcome for key, outcome in own.items() if key in keys}
    return decided._replace(outcomes={**decided.outcomes, **chosen}, own=own)
