"""Explain the placement of a workload, or a recorded decision, by the policy API that decides about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import NearSelecting
from gitsched.apis.policy_api import PolicyEngine
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.variants.variant_tables import add_variants
from gitsched.model.document import Document, Key
from gitsched.model.explanation import ExplainedCandidate, Explanation, ExplanationTable, NearSelection, ReplicaShare
from gitsched.model.finding import count_shown, format_names, format_part
from gitsched.model.template_index import TemplateIndex, make_selectable

if TYPE_CHECKING:
    from gitsched.decide.capacity.capacity_explanation import ExplainedCapacity
    from gitsched.model.scheduling import Outcome

ROWS_SHOWN = 10
"""Objects, clusters or other policies that are listed of a policy."""


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


def explain_policy(engines: Iterable[PolicyEngine], document: Document, index: TemplateIndex) -> Explanation | None:
    """Explain to which objects a policy applies and where these run, and which policies apply to others that it selects; None for a
    document that is no policy of such objects."""
    title = document.key.title
    applied = {key: entry.placement.clusters for key, entry in index.items() if entry.placement and entry.policy == title}

    def list_workloads() -> Iterator[tuple[Document, str]]:
        return ((make_selectable(key, entry), entry.policy) for key, entry in index.items())

    listed = (engine.list_rivals(document.key, list_workloads) for engine in engines if isinstance(engine, NearSelecting))
    rivals = next((found for found in listed if found is not None), None)
    if rivals is None:
        return None
    groups: dict[tuple[str, str], list[str]] = {}
    for key, other, reason in sorted(rivals):
        groups.setdefault((other or "-", reason or "-"), []).append(key.title)
    tables = (
        _make_table(
            "Applies to", ("OBJECT", "CLUSTERS"), [(key.title, format_names(applied[key]) or "-") for key in sorted(applied)]
        ),
        _make_table(
            "Others apply to", ("OBJECTS", "POLICY", "BECAUSE"), [(format_names(keys, 1), *group) for group, keys in groups.items()]
        ),
    )
    where = _count_by_cluster(applied.values())
    part = format_part(len(applied), len(applied) + len(rivals), "object")
    text = f"It applies to {part} that it selects{f', in {where}' if where else ''}."
    origin = document.origin
    location = f"{origin.path}:{origin.line}" if origin is not None else ""
    return Explanation(str(document.key), location, trigger=text, tables=tables)


def _count_by_cluster(placements: Iterable[tuple[str, ...]]) -> str:
    """Return in which clusters objects are, with their numbers; "" if there are none."""
    counts = Counter(cluster for clusters in placements for cluster in clusters)
    return format_names([f"{cluster} ({count:,})" for cluster, count in sorted(counts.items())], ROWS_SHOWN)


def _make_table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> ExplanationTable:
    """Return a table with the first rows, and how many more there are."""
    shown = count_shown(len(rows), ROWS_SHOWN)
    more = [(f"and {len(rows) - shown:,} more", *[""] * (len(columns) - 1))] if shown < len(rows) else []
    return ExplanationTable(title, columns, (*rows[:shown], *more))


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
