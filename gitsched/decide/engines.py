"""The policy engines of a snapshot: which ones it needs, and what they have together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import AvailabilityReporting, DependencyTracking
from gitsched.apis.policy_api import PolicyAPI, PolicyEngine
from gitsched.apis.snapshot import RecordsByKind, Snapshot
from gitsched.decide.registry import policy_apis
from gitsched.model.document import Body, Key

if TYPE_CHECKING:
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import ClusterInfo

EngineRecords = tuple[tuple[Key, Body], ...]
"""Records of policy engines that belong to no workload."""


def collect_cluster_facts(engines: Iterable[PolicyEngine]) -> dict[str, ClusterInfo]:
    """Return every cluster by name. Its facts come from the first API that has it."""
    facts: dict[str, ClusterInfo] = {}
    for name, cluster in (entry for engine in engines for entry in engine.clusters().items()):
        facts.setdefault(name, cluster)
    return facts


def collect_unavailable_clusters(engines: Iterable[PolicyEngine]) -> dict[str, str]:
    """Return why clusters are not available, by name."""
    found: dict[str, str] = {}
    for engine in engines:
        if isinstance(engine, AvailabilityReporting):
            found |= engine.unavailable_clusters()
    return found


def list_engine_records(engines: Iterable[PolicyEngine]) -> EngineRecords:
    """Return the records of all engines that belong to no workload."""
    return tuple(record for engine in engines for record in engine.records())


def keep_records(records: EngineRecords, kept: Collection[Key], previous: Mapping[Key, Body]) -> EngineRecords:
    """Return records of engines, those with `kept` keys as they were before."""
    if not kept:
        return records
    others = (entry for entry in records if entry[0] not in kept)
    return (*others, *((key, previous[key]) for key in sorted(kept) if key in previous))


def list_engine_findings(engines: Iterable[PolicyEngine]) -> tuple[Finding, ...]:
    """Return the findings of all engines."""
    return tuple(finding for engine in engines for finding in engine.findings)


def replace_engine_findings(
    findings: Iterable[Finding], before: Collection[Finding], engines: Iterable[PolicyEngine]
) -> list[Finding]:
    """Return findings with those that engines have now in place of those that they had `before`."""
    now = dict.fromkeys(list_engine_findings(engines))
    kept = (one for one in findings if one in now or one not in before)
    return [*kept, *(one for one in now if one not in before)]


def create_engines(snapshot: Snapshot) -> tuple[PolicyEngine, ...]:
    """Create the engines of the APIs that a snapshot needs."""
    if snapshot.tenancy is not None:
        from gitsched.decide.tenants.tenant_engines import create_tenant_engine  # few sources have tenants
        from gitsched.decide.tenants.tenant_views import TenantViews

        views = TenantViews(snapshot, snapshot.tenancy)
        found = (create_tenant_engine(api, views, snapshot, _needs_engine) for api in policy_apis.values())
        return tuple(engine for engine in found if engine is not None)
    return tuple(api.create_engine(snapshot) for api in policy_apis.values() if _needs_engine(api, snapshot))


def create_engine(api: PolicyAPI, snapshot: Snapshot) -> PolicyEngine | None:
    """Create the engine of one API for a snapshot whose templates are read one by one; None if no tenant needs it."""
    if snapshot.tenancy is None:
        return api.create_engine(snapshot)
    from gitsched.decide.incremental.continued_views import ContinuedViews  # few sources have tenants
    from gitsched.decide.tenants.tenant_engines import create_tenant_engine

    return create_tenant_engine(api, ContinuedViews(snapshot, snapshot.tenancy), snapshot, _needs_engine)


def list_needed(snapshot: Snapshot) -> list[str]:
    """Return the names of the APIs that a snapshot without tenants needs."""
    return [api.name for api in policy_apis.values() if _needs_engine(api, snapshot)]


def _needs_engine(api: PolicyAPI, snapshot: Snapshot) -> bool:
    """Return whether a snapshot has documents, records or settings for which the engine of an API is needed."""
    kinds, broken, active = snapshot.documents.keys(), snapshot.quarantined, api.active_kinds
    if active is None:
        if any(group in api.groups for group, _ in kinds) or any(key.group in api.groups for key in broken):
            return True
    elif not active.isdisjoint(kinds) or any(key[:2] in active for key in broken):
        return True
    if api.settings is not None and api.settings.name in snapshot.config.api_settings:
        return True
    if api.active_objects and (_has_object(api, snapshot.templates) or _has_object(api, broken)):
        return True
    if api.active_templates and any(key[:2] in api.active_templates for key in snapshot.templates):
        return True
    return any(_has_records(snapshot.previous, *kind) for kind in api.active_records)


def _has_object(api: PolicyAPI, keys: Iterable[Key]) -> bool:
    names = {name for _, _, name in api.active_objects}
    return any(key.name in names and (key.group, key.kind, key.name) in api.active_objects for key in keys)


def _has_records(previous: Mapping[Key, Body], group: str, kind: str) -> bool:
    if isinstance(previous, RecordsByKind):
        return next(previous.of_kind(group, kind), None) is not None
    return any(key[:2] == (group, kind) for key in previous)


def list_dependency_trackers(engines: Iterable[PolicyEngine]) -> tuple[DependencyTracking, ...]:
    """Return the engines whose decisions can depend on other documents."""
    return tuple(engine for engine in engines if isinstance(engine, DependencyTracking))
