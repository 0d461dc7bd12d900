"""Engines for sources with tenants: an API decides the workloads of each owner with an engine of its own, which sees only what may have an
effect on them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from gitsched.apis.adoption import Adopting
from gitsched.apis.capabilities import (
    AvailabilityReporting,
    CapacityReporting,
    ChangeProposal,
    ChangeProposing,
    Companions,
    CompanionSelecting,
    DependencyDelivering,
    DependencyTracking,
    ExpiredDocument,
    ExpiryReporting,
    HealthReport,
    HealthReporting,
    InnerPlacement,
    InnerPlacementReporting,
    ReferenceReading,
    Rescheduling,
    SharedDecisions,
)
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy
from gitsched.apis.policy_api import PolicyAPI, PolicyEngine, Snapshot
from gitsched.decide.tenant_admission import Violation
from gitsched.decide.tenant_views import TenantViews
from gitsched.model.adoption import AdoptedRecord, RunningObjects
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import ExplainedCandidate, Explanation
from gitsched.model.finding import Finding, format_count, locate_document
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome


class TenantEngine(PolicyEngine):
    """The engines of one API by owner. Each decides the documents of its owner; the platform's engine comes first."""

    def __init__(self, api: PolicyAPI, engines: Mapping[str, PolicyEngine], tenancy: Tenancy, views: TenantViews) -> None:
        self.name = api.name
        self._engines, self._tenancy, self._views = engines, tenancy, views
        self.findings = tuple(self._list_findings(api.absence_codes))
        self.wakeup = min((engine.wakeup for engine in engines.values() if engine.wakeup is not None), default=None)
        self.time = max((engine.time for engine in engines.values() if engine.time is not None), default=None)

    def _list_findings(self, absence_codes: frozenset[str]) -> Iterator[Finding]:
        """Yield what each engine says about the documents of its owner. That a document of the platform selects nothing is only said if
        it selects nothing of any tenant either."""
        known = [{(found.code, found.location, found.resource) for found in engine.findings} for engine in self._engines.values()]
        for owner, engine in self._engines.items():
            for finding in engine.findings:
                if self._find_subject(finding) != owner:
                    continue
                if (
                    finding.code not in absence_codes
                    or owner != PLATFORM
                    or all((finding.code, finding.location, finding.resource) in found for found in known)
                ):
                    yield finding

    def _find_subject(self, finding: Finding) -> str:
        """Return the owner of the document that a finding is about."""
        if finding.location is not None:
            return self._tenancy.paths.find_owner(finding.location.path)
        return PLATFORM

    def find(self, document: Document) -> PolicyEngine | None:
        """Return the engine that decides a document; None if its owner has no document of this API."""
        return self.find_by_key(document.key)

    def find_by_key(self, key: Key) -> PolicyEngine | None:
        """Return the engine that decides the document with a key."""
        return self._engines.get(self._tenancy.find_owner(key))

    def list_engines(self) -> Iterable[PolicyEngine]:
        """Return the engines of all owners."""
        return self._engines.values()

    def get_platform(self) -> Any:
        """Return the engine of the platform, else that of the first tenant."""
        return next(iter(self._engines.values()))

    def decide(self, template: Document, /) -> Outcome | None:
        engine = self.find(template)
        return None if engine is None else engine.decide(template)

    def clusters(self) -> Mapping[str, ClusterInfo]:
        found: dict[str, ClusterInfo] = {}
        for name, cluster in (entry for engine in self._engines.values() for entry in engine.clusters().items()):
            found.setdefault(name, cluster)
        return found

    def records(self) -> Iterable[tuple[Key, Body]]:
        found: dict[Key, Body] = {}
        for owner, engine in self._engines.items():
            rules = self._tenancy.list_rules(owner)
            for key, body in engine.records():
                if owner == PLATFORM or all(tenant.allows_namespace(key.namespace) for tenant in rules) or self._owns(owner, key):
                    found.setdefault(key, body)
        return tuple(found.items())

    def _owns(self, owner: str, key: Key) -> bool:
        return self._tenancy.find_owner(key) == owner

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        return tuple(
            (document, outcome)
            for owner, engine in self._engines.items()
            for document, outcome in engine.own_workloads()
            if self._owns(owner, document.key)
        )

    def selects(self, template: Document, /) -> bool:
        engine = self.find(template)
        return engine is not None and engine.selects(template)

    def keep_previous(self, template: Document, why: str, /) -> Outcome | None:
        engine = self.find(template)
        return None if engine is None else engine.keep_previous(template, why)

    def evaluate_candidates(self, template: Document, /) -> list[CandidateResult]:
        engine = self.find(template)
        found = [] if engine is None else engine.evaluate_candidates(template)
        return sorted([*found, *self._list_forbidden(template, found)], key=lambda result: result.name) if found else []

    def _list_forbidden(self, template: Document, found: Iterable[CandidateResult]) -> Iterator[CandidateResult]:
        """Yield the clusters that the Tenant of a workload does not allow."""
        owner, names = self._tenancy.find_owner(template.key), {result.name for result in found}
        for name in self._views.clusters.platform if owner != PLATFORM else ():
            tenant = self._views.clusters.find_forbidding(owner, name)
            if tenant is not None and name not in names:
                yield CandidateResult(name, False, f"{tenant.title} does not allow it", {}, None)

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        for owner, engine in self._engines.items():
            found = engine.evaluate_own(kind, name, namespace)
            owned = {holder for key, holder in self._tenancy.owners.items() if key[1:] == (kind, namespace, name)}
            if found is not None and owner == next(iter(owned), PLATFORM):
                return found
        return None

    def explain(self, template: Document, /) -> Explanation | None:
        engine = self.find(template)
        explanation = None if engine is None else engine.explain(template)
        if explanation is None:
            return None
        forbidden = self._list_forbidden(template, (candidate.result for candidate in explanation.candidates))
        return explanation._replace(candidates=(*explanation.candidates, *map(ExplainedCandidate, forbidden)))


class _Dependencies(TenantEngine):
    @property
    def revision(self) -> int:
        return sum(engine.revision for engine in self.list_engines() if isinstance(engine, DependencyTracking))

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        engines = (engine for engine in self.list_engines() if isinstance(engine, DependencyTracking))
        return frozenset[Key]().union(*(engine.affected_by(dirty) for engine in engines))

    def decision_inputs(self, template: Document) -> tuple[object, ...]:
        engine = self.find(template)
        return engine.decision_inputs(template) if isinstance(engine, DependencyTracking) else ()


class _Capacity(TenantEngine):
    def free_capacity(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for engine in self.list_engines():
            for name, capacity in engine.free_capacity().items() if isinstance(engine, CapacityReporting) else ():
                found.setdefault(name, capacity)
        return found

    def resource_request(self, template: Document, cluster: str, /) -> tuple[tuple[str, int], ...]:
        engine = self.find(template)
        return engine.resource_request(template, cluster) if isinstance(engine, CapacityReporting) else ()

    def relevant_clusters(self, template: Document, /) -> frozenset[str] | None:
        engine = self.find(template)
        return engine.relevant_clusters(template) if isinstance(engine, CapacityReporting) else None


class _Availability(TenantEngine):
    def unavailable_clusters(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.get_platform().unavailable_clusters()
        return found

    def clusters_reported_unready(self) -> Collection[str]:
        found: Collection[str] = self.get_platform().clusters_reported_unready()
        return found


class _Health(TenantEngine):
    def list_health_reports(self, workload: Key, /) -> Mapping[str, HealthReport]:
        engine = self.find_by_key(workload)
        return engine.list_health_reports(workload) if isinstance(engine, HealthReporting) else {}


class _Shared(TenantEngine):
    def list_shared_records(self, document: Document, /) -> Mapping[Key, frozenset[Key]]:
        engine = self.find(document)
        return engine.list_shared_records(document) if isinstance(engine, SharedDecisions) else {}


class _References(TenantEngine):
    def referenced_keys(self) -> Iterable[Key]:
        engines = (engine for engine in self.list_engines() if isinstance(engine, ReferenceReading))
        return frozenset(key for engine in engines for key in engine.referenced_keys())


class _DependencyDelivering(TenantEngine):
    def describe_delivery(self, template: Document, key: Key, /) -> str:
        engine = self.find(template)
        return engine.describe_delivery(template, key) if isinstance(engine, DependencyDelivering) else ""


class _CompanionSelecting(TenantEngine):
    def describe_selection(self, template: Document, companions: Iterable[Document], /) -> str:
        engine = self.find(template)
        return engine.describe_selection(template, companions) if isinstance(engine, CompanionSelecting) else ""


class _InnerPlacements(TenantEngine):
    def inner_placements(self) -> Mapping[Key, InnerPlacement]:
        engines = [engine for engine in self.list_engines() if isinstance(engine, InnerPlacementReporting)]
        return {key: placement for engine in reversed(engines) for key, placement in engine.inner_placements().items()}


class _Proposals(TenantEngine):
    def propose(self, template: Document, cluster: str, /) -> ChangeProposal | None:
        engine = self.find(template)
        return engine.propose(template, cluster) if isinstance(engine, ChangeProposing) else None


class _Expiry(TenantEngine):
    def expired_documents(self) -> Iterable[ExpiredDocument]:
        engines = (engine for engine in self.list_engines() if isinstance(engine, ExpiryReporting))
        found = {expired.document.key: expired for engine in engines for expired in engine.expired_documents()}
        return [found[key] for key in sorted(found)]


class _Rescheduling(TenantEngine):
    def make_rescheduling_document(self, templates: Iterable[Document], /) -> Document:
        made: Document = self.get_platform().make_rescheduling_document(templates)
        return made

    def make_reschedule_request(self, templates: Iterable[Document], ttl: Any, /) -> Document:
        made: Document = self.get_platform().make_reschedule_request(templates, ttl)
        return made

    def list_pending_requests(self) -> Iterable[Key]:
        engines = (engine for engine in self.list_engines() if isinstance(engine, Rescheduling))
        return sorted({key for engine in engines for key in engine.list_pending_requests()})

    def list_companions(self, templates: Iterable[Document], /) -> Companions:
        found = list(templates)
        own: list[Document] = []
        shared: list[Document] = []
        for engine in dict.fromkeys(filter(None, map(self.find, found))):
            if isinstance(engine, Rescheduling):
                companions = engine.list_companions([template for template in found if self.find(template) is engine])
                own += companions.own
                shared += companions.shared
        return Companions(tuple(own), tuple(shared))

    def describe_remedy(self, template: Document, kept: Outcome, rescheduled: Outcome | None, expected: Outcome, /) -> str:
        engine = self.find(template)
        return engine.describe_remedy(template, kept, rescheduled, expected) if isinstance(engine, Rescheduling) else ""


class _Adoption(TenantEngine):
    def adopt(self, workloads: Iterable[Document], running: RunningObjects, /) -> Iterable[AdoptedRecord]:
        found = list(workloads)
        records: dict[Key, AdoptedRecord] = {}
        for owner, engine in self._engines.items():
            rules = self._tenancy.list_rules(owner)
            own = [template for template in found if self._owns(owner, template.key)]
            for record in engine.adopt(own, running) if isinstance(engine, Adopting) else ():
                namespace = record.key.namespace
                if (
                    owner == PLATFORM
                    or self._owns(owner, record.subject)
                    or all(rule.allows_namespace(namespace) for rule in rules)
                ):
                    records.setdefault(record.key, record)
        return tuple(records.values())


_CAPABILITIES: tuple[tuple[Any, type[TenantEngine]], ...] = (
    (DependencyTracking, _Dependencies),
    (CapacityReporting, _Capacity),
    (AvailabilityReporting, _Availability),
    (HealthReporting, _Health),
    (SharedDecisions, _Shared),
    (ReferenceReading, _References),
    (DependencyDelivering, _DependencyDelivering),
    (CompanionSelecting, _CompanionSelecting),
    (InnerPlacementReporting, _InnerPlacements),
    (ChangeProposing, _Proposals),
    (ExpiryReporting, _Expiry),
    (Rescheduling, _Rescheduling),
    (Adopting, _Adoption),
)


@cache
def _make_class(bases: tuple[type[TenantEngine], ...]) -> type[TenantEngine]:
    """Return a class of engines with the capabilities of the bases."""
    return type("TenantEngine", bases or (TenantEngine,), {})


def find_excess(amounts: Mapping[Key, int], shared: Snapshot, tenancy: Tenancy) -> tuple[frozenset[Key], list[Finding]]:
    """Return the workloads of tenants that ask for more of a shared capacity than their Tenants allow, with findings."""
    totals: dict[str, int] = {}
    excess: set[Key] = set()
    findings: list[Finding] = []
    for key in sorted(amounts, key=lambda key: (key not in shared.previous, key)):
        owner = tenancy.find_owner(key)
        limits = ((tenant.limits.replicas, tenant) for tenant in tenancy.list_rules(owner))
        limited = [(limit, tenant) for limit, tenant in limits if limit is not None]
        if owner == PLATFORM or not limited:
            continue
        limit, tenant = min(limited, key=lambda entry: entry[0])
        total = totals.get(owner, 0) + amounts[key]
        if total <= limit:
            totals[owner] = total
            continue
        excess.add(key)
        document = shared.templates[key]
        message = f"{key}: with it the tenant asks for {format_count(total, 'replica')}, more than {limit}"
        violation = Violation(
            "tenant-limit", tenant, message, "request fewer, or raise spec.limits.replicas", "spec.limits.replicas"
        )
        findings.append(Finding("error", violation.code, violation.text, locate_document(document), key.resource))
    return frozenset(excess), findings


def create_tenant_engine(api: PolicyAPI, views: TenantViews, snapshot: Snapshot, needs_engine: Any) -> PolicyEngine | None:
    """Return the engine of an API for a source with tenants; None if no owner has documents that need it."""
    tenancy = snapshot.tenancy
    assert tenancy is not None, "the source has tenants"
    if api.shared_workloads is not None:
        kinds = api.shared_workloads.list_kinds(views.make_shared_view(frozenset()))
        shared = views.make_shared_view(kinds)
        excess, findings = find_excess(api.shared_workloads.measure(shared), shared, tenancy)
        if excess:
            shared = views.make_shared_view(kinds, excess)
        if not needs_engine(api, shared):
            return None
        engine = api.create_engine(shared)
        engine.findings = (*engine.findings, *findings)
        return engine
    engines = {}
    for owner in views.owners:
        view = views.make_view(owner)
        if needs_engine(api, view):
            engines[owner] = api.create_engine(view)
    if not engines:
        return None
    sample = next(iter(engines.values()))
    bases = tuple(mixin for capability, mixin in _CAPABILITIES if isinstance(sample, capability))
    return _make_class(bases)(api, engines, tenancy, views)
