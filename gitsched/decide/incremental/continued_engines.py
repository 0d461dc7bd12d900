"""Continue the policy engines of the last plan with changed documents, and list what these affect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import Continuation, Continuing, ReferenceReading, SnapshotChanges
from gitsched.apis.continuation import changes_followers, changes_selection
from gitsched.decide.decisions import describe_recorded
from gitsched.decide.engines import collect_cluster_facts, keep_records, list_engine_findings, list_engine_records
from gitsched.decide.incremental.changed_documents import creates_engine
from gitsched.decide.incremental.own_workloads import OwnWorkload, read_own_workloads
from gitsched.decide.registry import is_active, policy_apis
from gitsched.model.document import Key
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.engines import EngineRecords
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.plan_state import PlanRows, Totals
    from gitsched.model.document import Body
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.model.scheduling import Outcome, RecordedDecision


class ContinuedEngines(NamedTuple):
    """The engines for a new snapshot, and what they say now. `clusters` are the changed ones, None for one that is gone. `is_new` says that
    the engines differ from those of the last plan. `own` are the workloads that engines decide themselves, `referenced` the templates that
    they read. `kept` are the keys of records that stay as they were, because workloads with withheld changes follow them."""

    engines: tuple[PolicyEngine, ...]
    affected: frozenset[Key]
    findings: tuple[Finding, ...]
    records: EngineRecords
    recorded: tuple[RecordedDecision, ...]
    clusters: Mapping[str, ClusterInfo | None] = {}
    is_new: bool = False
    own: Mapping[Key, OwnWorkload] = {}
    referenced_before: frozenset[Key] = frozenset()
    referenced: frozenset[Key] = frozenset()
    kept: frozenset[Key] = frozenset()

    def read_again(self) -> ContinuedEngines:
        """Return what the engines say after decisions that count for each other."""
        findings = list_engine_findings(self.engines)
        records = list_engine_records(self.engines)
        if (findings, records) == (self.findings, self.records):
            return self
        return self._replace(findings=findings)._replace_records(records)

    def keep_records(self, kept: frozenset[Key], previous: Mapping[Key, Body]) -> ContinuedEngines:
        """Return the engines with the records of these keys as they were in the previous output."""
        if not kept:
            return self
        return self._replace(kept=kept)._replace_records(keep_records(self.records, kept, previous))

    def _replace_records(self, records: EngineRecords) -> ContinuedEngines:
        recorded = describe_recorded(records, (one.outcome for one in self.own.values()))
        return self._replace(records=records, recorded=recorded)


def continue_engines(
    totals: Totals, rows: PlanRows, diff: SourceDiff, snapshot: Snapshot, old_kinds: Iterable[tuple[str, str]]
) -> ContinuedEngines | None:
    """Return the engines for a new snapshot; None if only a complete plan can tell what they decide."""
    before = rows.engines
    # Records that stay as they were get the time of the run that writes them.
    concerns_all = totals.engines.has_new_records or bool(totals.engines.kept)
    concerns_all = concerns_all or snapshot.observations != totals.engines.observations
    concerns_all = concerns_all or snapshot.part_kinds != totals.source.part_kinds
    is_new = bool(diff.api_documents or diff.tenants) or concerns_all
    is_new = is_new or changes_selection(diff.templates) or changes_followers(diff.templates)
    facts = collect_cluster_facts(before) if diff.api_documents else {}
    if is_new and not _are_same_active(before, rows, diff, snapshot, old_kinds):
        return None

    def read_outcome(key: Key) -> Outcome | None:
        row = rows.read_workload(key)
        return row.outcome if row is not None else None

    changes = SnapshotChanges(diff.api_documents, diff.templates, rows.template_index, read_outcome, concerns_all)
    if diff.tenants is not None and snapshot.tenancy is not None:
        changes = changes._replace(former_tenancy=snapshot.tenancy._replace(paths=diff.tenants.before))
    found = [_continue(engine, snapshot, changes, is_new=is_new) for engine in before]
    continued = [one for one in found if one is not None]
    if len(continued) < len(before):
        return None
    engines = tuple(one.engine for one in continued)
    affected = frozenset[Key]().union(*(one.affected for one in continued))
    is_new = is_new or bool(diff.templates and any(isinstance(engine, ReferenceReading) for engine in engines))
    if any(engine.time is not None or (engine.wakeup is not None and engine.wakeup <= snapshot.now) for engine in engines):
        return None
    own = read_own_workloads(engines, snapshot)
    if own is None or (own and totals.source.with_variants):
        return None  # what is built for clusters may be a part of them
    findings = list_engine_findings(engines)
    records = list_engine_records(engines)
    if not is_new and (findings, records) != (totals.engines.findings, totals.engines.records):
        return None
    recorded = totals.engines.recorded
    if own or totals.engines.own or records != totals.engines.records:
        recorded = describe_recorded(records, (one.outcome for one in own.values()))
    clusters: dict[str, ClusterInfo | None] = {}
    if diff.api_documents:
        after = collect_cluster_facts(engines)
        clusters = {name: after.get(name) for name in sorted({*facts, *after}) if facts.get(name) != after.get(name)}
    referenced = [
        frozenset(key for engine in listed if isinstance(engine, ReferenceReading) for key in engine.referenced_keys())
        for listed in (before, engines)
    ]
    return ContinuedEngines(engines, affected, findings, records, recorded, clusters, is_new, own, *referenced)


def _continue(engine: PolicyEngine, snapshot: Snapshot, changes: SnapshotChanges, *, is_new: bool) -> Continuation | None:
    """Return an engine for a new snapshot; None if it cannot continue. One that reads templates has to know which of them changed."""
    if is_new or isinstance(engine, ReferenceReading):
        return engine.continue_with(snapshot, changes) if isinstance(engine, Continuing) else None
    return Continuation(engine, frozenset()) if engine.update(snapshot) else None


def _are_same_active(
    engines: Iterable[PolicyEngine], rows: PlanRows, diff: SourceDiff, snapshot: Snapshot, old_kinds: Iterable[tuple[str, str]]
) -> bool:
    """Return whether the same policy APIs are active as in the last plan."""
    names, active = {engine.name for engine in engines}, _list_active(snapshot.documents)
    if _list_active(old_kinds) != active:
        return False
    if not diff.came_or_went:
        return True
    index, came_or_went = rows.template_index, diff.came_or_went
    present = [key for key in came_or_went if diff.templates[key][1] is not None]
    by_templates = set()
    for api in policy_apis.values():
        if not (api.active_templates or api.active_objects):
            continue
        is_active = api.name in names
        if any(creates_engine(key, api) for key in came_or_went):
            left = (key for key in index if key not in came_or_went)
            is_active = any(creates_engine(key, api) for key in (*present, *left)) or api.name in snapshot.config.api_settings
            if is_active != (api.name in names):
                return False
        by_templates |= {api.name} if is_active and not api.active_records else set()
    # Else only records of workloads make an engine active.
    return names <= {*active, *by_templates, *snapshot.config.api_settings}


def _list_active(kinds: Iterable[tuple[str, str]]) -> list[str]:
    """Return the policy APIs that documents of these kinds make active."""
    kinds = frozenset(kinds)
    return [api.name for api in policy_apis.values() if is_active(api, kinds)]
