"""Continue the policy engines of the last plan with changed documents, and list what these affect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.capabilities import Continuing, ReferenceReading, SnapshotChanges
from gitsched.decide.decisions import collect_cluster_facts, describe_recorded, list_engine_records
from gitsched.decide.plan import has_selector
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Key

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine, Snapshot
    from gitsched.decide.changed_documents import SourceDiff
    from gitsched.decide.decisions import EngineRecords
    from gitsched.decide.plan_state import PlanRows, Totals
    from gitsched.model.document import Document
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.model.scheduling import Outcome, RecordedDecision

SELECTOR_CODES = ("selector-unmatched", "selector-invalid")


class ContinuedEngines(NamedTuple):
    """The engines for a new snapshot, and what they say now. `clusters` are the changed ones, None for one that is gone. `is_new` says that
    the engines differ from those of the last plan."""

    engines: tuple[PolicyEngine, ...]
    affected: frozenset[Key]
    findings: tuple[Finding, ...]
    records: EngineRecords
    recorded: tuple[RecordedDecision, ...]
    clusters: Mapping[str, ClusterInfo | None] = {}
    is_new: bool = False


def continue_engines(
    totals: Totals, rows: PlanRows, diff: SourceDiff, snapshot: Snapshot, old_kinds: Iterable[tuple[str, str]]
) -> ContinuedEngines | None:
    """Return the engines for a new snapshot; None if only a complete plan can tell what they decide."""
    engines, affected = rows.engines, frozenset[Key]()
    is_new = bool(diff.api_documents or diff.came_or_went) or totals.has_new_records
    facts = collect_cluster_facts(engines) if diff.api_documents else {}
    if not is_new:
        if not all(engine.update(snapshot) for engine in engines):
            return None
    else:
        active = _list_active(snapshot.documents)
        if _list_active(old_kinds) != active or any(isinstance(one, ReferenceReading) for one in engines):
            return None
        if diff.came_or_went and not {engine.name for engine in engines} <= {*active, *snapshot.config.api_settings}:
            return None  # only records of workloads make an engine active

        def read_outcome(key: Key) -> Outcome | None:
            row = rows.read_workload(key)
            return row.outcome if row is not None else None

        changes = SnapshotChanges(diff.api_documents, diff.templates, rows.template_index, read_outcome)
        found = [engine.continue_with(snapshot, changes) if isinstance(engine, Continuing) else None for engine in engines]
        continued = [one for one in found if one is not None]
        if len(continued) < len(engines):
            return None
        engines = tuple(one.engine for one in continued)
        affected = affected.union(*(one.affected for one in continued))
    if any(engine.time is not None or (engine.wakeup is not None and engine.wakeup <= snapshot.now) for engine in engines):
        return None
    if is_new and any(True for engine in engines for _ in engine.own_workloads()):
        return None
    findings = tuple(finding for engine in engines for finding in engine.findings)
    records = list_engine_records(engines)
    if not is_new and (findings, records) != (totals.engine_findings, totals.records):
        return None
    if any(finding.is_change for finding in findings):
        return None
    recorded = totals.recorded if records == totals.records else describe_recorded(records, ())
    clusters: dict[str, ClusterInfo | None] = {}
    if diff.api_documents:
        after = collect_cluster_facts(engines)
        clusters = {name: after.get(name) for name in sorted({*facts, *after}) if facts.get(name) != after.get(name)}
    return ContinuedEngines(engines, affected, findings, records, recorded, clusters, is_new)


def _list_active(kinds: Iterable[tuple[str, str]]) -> list[str]:
    """Return the policy APIs that documents of these kinds make active."""
    kinds = frozenset(kinds)
    groups = {group for group, _ in kinds}
    return [
        api.name
        for api in policy_apis.values()
        if not (api.groups.isdisjoint(groups) if api.active_kinds is None else api.active_kinds.isdisjoint(kinds))
    ]


def update_selector_findings(
    findings: tuple[Finding, ...],
    documents: Mapping[tuple[str, str], tuple[Document, ...]],
    engines: tuple[PolicyEngine, ...],
    engine_findings: tuple[Finding, ...],
) -> tuple[Finding, ...]:
    """Return the findings of a plan, with those about selectors for clusters as the changed documents have them."""
    kept = tuple(finding for finding in findings if finding.code not in SELECTOR_CODES)
    if not (len(engines) > 1 or any(has_selector(one.body.get("spec")) for listed in documents.values() for one in listed)):
        return kept
    from gitsched.decide.unmatched_selectors import list_unmatched  # many sources have no selectors

    known = frozenset(engine_findings)
    return (*kept, *(one for one in list_unmatched(documents, (), engine_findings, engines) if one not in known))
