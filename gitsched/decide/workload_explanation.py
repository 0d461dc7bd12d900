"""Explain the placement of a workload, or a recorded decision, by the policy API that decides about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import NearSelecting
from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.variants.variant_tables import add_variants
from gitsched.model.document import Document, Key
from gitsched.model.explanation import ExplainedCandidate, Explanation, NearSelection, ReplicaShare

if TYPE_CHECKING:
    from gitsched.decide.capacity.capacity_explanation import ExplainedCapacity
    from gitsched.model.scheduling import Outcome


def explain_workload(decisions: DecisionSet, document: Document, capacity: ExplainedCapacity | None = None) -> Explanation | None:
    """Explain the placement of a workload, or a recorded decision; None if no API decides about the document. `capacity` is that of the
    plan, if workloads share it."""
    outcome = decisions.outcomes.get(document.key)
    if capacity is not None:
        capacity.share(document, outcome)
    found = next((found for engine in decisions.engines if (found := engine.explain(document))), None)
    found = _explain_recorded(decisions, document) if found is None else found
    if found is not None and capacity is not None:
        found = capacity.add(found, outcome)
    if found is not None and outcome is not None and outcome.state == "stale" and _is_kept(decisions, document.key):
        return _explain_kept(found, outcome)
    variants = decisions.variants.get(document.key)
    if found is None or variants is None:
        return found
    return add_variants(found, document, variants, outcome)


def _is_kept(decisions: DecisionSet, key: Key) -> bool:
    return key in decisions.quarantined and key not in decisions.withheld


def _explain_kept(found: Explanation, outcome: Outcome) -> Explanation:
    """Return the explanation of a workload whose document is not used: nothing is scheduled, and it stays where it was."""
    return Explanation(
        found.workload,
        found.location,
        found.policy,
        found.policy_reason,
        found.rejected_policies,
        found.claim,
        trigger=f"Not scheduled: the previous placement is kept, because {outcome.reason}.",
        result=tuple(ReplicaShare(target.cluster, target.replicas) for target in outcome.targets),
        findings=outcome.findings,
        attached_to=found.attached_to,
        candidate_kind=found.candidate_kind,
    )


def _explain_recorded(decisions: DecisionSet, document: Document) -> Explanation | None:
    """Explain a recorded decision by the results of all candidates, for an API that explains only workloads."""
    decision = next((decision for decision in decisions.recorded if decision.subject == document.key), None)
    engine = next((engine for engine in decisions.engines if decision is not None and engine.name == decision.api), None)
    if decision is None or engine is None:
        return None
    key, origin = document.key, document.origin
    return Explanation(
        str(key),
        location=f"{origin.path}:{origin.line}" if origin is not None else "",
        policy=str(key),
        policy_reason=f"decided by {decision.api}",
        candidates=tuple(map(ExplainedCandidate, engine.evaluate_own(key.kind, key.name, key.namespace) or ())),
        result=tuple(ReplicaShare(target.name, None, target.amount) for target in decision.targets),
        candidate_kind=decision.target_kind,
    )


def list_near_selections(decisions: DecisionSet, keys: Iterable[Key]) -> dict[Key, NearSelection]:
    """Return for objects that no policy selects which policy nearly does, for those that have one."""
    templates = [template for key in keys if (template := decisions.catalog.templates.get(key)) is not None]
    return describe_near_selections(decisions.engines, templates)


def describe_near_selections(engines: Iterable[PolicyEngine], templates: Collection[Document]) -> dict[Key, NearSelection]:
    """Return for templates that no policy selects which policy of the engines nearly does, for those that have one."""
    found: dict[Key, NearSelection] = {}
    for engine in engines:
        if isinstance(engine, NearSelecting):
            found = {**engine.describe_near_selections(templates), **found}
    return found
