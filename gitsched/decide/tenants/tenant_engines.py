"""Engines for sources with tenants: an API decides the workloads of each owner with an engine of its own, which sees only what may have an
effect on them. The engine of the API has the capabilities that those of the owners have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any

from gitsched.apis.adoption import Adopting
from gitsched.apis.capabilities import (
    AvailabilityReporting,
    CapacityReporting,
    CapacitySharing,
    ChangeProposal,
    ChangeProposing,
    ClusterCapacity,
    Companions,
    CompanionSelecting,
    Coupling,
    DependencyDelivering,
    DependencyTracking,
    ExpiredDocument,
    ExpiryReporting,
    HealthReport,
    HealthReporting,
    InnerPlacement,
    InnerPlacementReporting,
    InputListing,
    NearSelecting,
    ObservationFollowing,
    QueuePosition,
    ReferenceReading,
    Repeating,
    Rescheduling,
    SelectionTracking,
    SharedDecisions,
    SnapshotChanges,
    TurnPostponing,
)
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy
from gitsched.apis.policy_api import PolicyAPI, PolicyEngine
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.incremental.continued_views import DividedChanges
from gitsched.decide.tenants.shared_excess import find_excess
from gitsched.decide.tenants.tenant_engine import TenantEngine
from gitsched.decide.tenants.tenant_views import TenantViews
from gitsched.model.adoption import AdoptedRecord, RunningObjects
from gitsched.model.changes import Cause
from gitsched.model.document import Document, Key
from gitsched.model.explanation import NearSelection
from gitsched.model.finding import Finding
from gitsched.model.scheduling import EqualPods, Outcome
from gitsched.model.source_edits import SourceEdits
from gitsched.model.template_index import TemplateIndex
from gitsched.schedule.shared_capacity import SharedCapacity


class _Dependencies(TenantEngine):
    @property
    def revision(self) -> int:
        return sum(engine.revision for engine in self.list_engines() if isinstance(engine, DependencyTracking))

    def affected_by(self, dirty: frozenset[Key]) -> frozenset[Key]:
        found, before = frozenset[Key](), [engine.findings for engine in self.list_engines()]
        for owner, engine in self.engines.items():
            own = frozenset(key for key in dirty if self.views.is_own(owner, key))
            found |= engine.affected_by(own) if isinstance(engine, DependencyTracking) else frozenset()
        if before != [engine.findings for engine in self.list_engines()]:
            self.attach(self.tenancy, self.views)
        return found - dirty

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

    def list_concerned(self, index: TemplateIndex, clusters: frozenset[str], /) -> frozenset[Key]:
        found, entries = frozenset[Key](), self.divide(index, self.tenancy)
        for owner, engine in self.engines.items():
            found |= (
                engine.list_concerned(entries.select(owner), clusters) if isinstance(engine, CapacityReporting) else frozenset()
            )
        return found


class _Sharing(TenantEngine):
    def list_capacities(self) -> Mapping[str, ClusterCapacity]:
        found: dict[str, ClusterCapacity] = {}
        for engine in self.list_engines():
            found = {**engine.list_capacities(), **found} if isinstance(engine, CapacitySharing) else found
        return found

    def find_queue_position(self, template: Document, /) -> QueuePosition | None:
        engine = self.find(template)
        return engine.find_queue_position(template) if isinstance(engine, CapacitySharing) else None

    def measure_pods(self, template: Document, replicas: Mapping[str, int | None], /) -> Mapping[str, tuple[EqualPods, ...]]:
        engine = self.find(template) or self.get_platform()
        return engine.measure_pods(template, replicas) if isinstance(engine, CapacitySharing) else {}

    def share_capacity(self, template: Document, shared: SharedCapacity, /) -> None:
        engine = self.find(template)
        if isinstance(engine, CapacitySharing):
            engine.share_capacity(template, shared)

    def attach(self, tenancy: Tenancy, views: TenantViews) -> None:
        super().attach(tenancy, views)
        for engine in self._list_sharing():
            engine.join(tuple(self.list_engines()))

    def _list_sharing(self) -> list[CapacitySharing]:
        return [engine for engine in self.list_engines() if isinstance(engine, CapacitySharing)]

    def join(self, engines: Iterable[PolicyEngine], /) -> None:
        """Nothing: the engines of the owners are joined when they are attached."""

    def find_coupling(self, outcomes: Mapping[Key, Outcome], postponed: frozenset[Key] = frozenset(), /) -> Coupling:
        found = [engine.find_coupling(outcomes, postponed) for engine in self._list_sharing()]
        return Coupling(*(frozenset[Key]().union(*parts) for parts in zip(*found, strict=True)))

    def begin_turns(self, removed: Iterable[Key], /) -> None:
        gone = tuple(removed)
        for engine in self._list_sharing():
            engine.begin_turns(gone)

    def count(self, key: Key, outcome: Outcome | None, /) -> None:
        engine = self.find_by_key(key)
        if isinstance(engine, CapacitySharing):
            engine.count(key, outcome)

    def list_limited(self) -> frozenset[Key]:
        return frozenset[Key]().union(*(engine.list_limited() for engine in self._list_sharing()))

    def follow_shares(self) -> None:
        for engine in self.list_engines():
            if isinstance(engine, CapacitySharing):
                engine.follow_shares()

    def reads_capacity(self, outcome: Outcome, /) -> bool:
        platform = self.get_platform()
        return isinstance(platform, CapacitySharing) and platform.reads_capacity(outcome)


class _Postponing(TenantEngine):
    def list_certain_turns(self) -> frozenset[Key]:
        engines = (engine for engine in self.list_engines() if isinstance(engine, TurnPostponing))
        return frozenset(key for engine in engines for key in engine.list_certain_turns())

    def may_reach(self, template: Document, clusters: Iterable[str], /) -> bool:
        engine = self.find(template)
        return not isinstance(engine, TurnPostponing) or engine.may_reach(template, clusters)

    @contextmanager
    def outside_turns(self) -> Iterator[None]:
        with ExitStack() as stack:
            for engine in self.list_engines():
                if isinstance(engine, TurnPostponing):
                    stack.enter_context(engine.outside_turns())
            yield


class _Inputs(TenantEngine):
    def list_inputs(self) -> Iterable[Key]:
        engines = (engine for engine in self.list_engines() if isinstance(engine, InputListing))
        return frozenset(key for engine in engines for key in engine.list_inputs())


class _Selections(TenantEngine):
    @property
    def reads_other_templates(self) -> bool:
        return any(engine.reads_other_templates for engine in self.list_engines() if isinstance(engine, SelectionTracking))

    def list_selectable(self, before: PolicyEngine, after: PolicyEngine, changes: SnapshotChanges, /) -> frozenset[Key] | None:
        assert isinstance(before, TenantEngine), "both are engines of this API"
        assert isinstance(after, TenantEngine), "both are engines of this API"
        if not self.engines.keys() == before.engines.keys() == after.engines.keys():
            return None
        divided = DividedChanges(after.views, changes, after.tenancy, after.divide(changes.template_index, after.tenancy))
        found = frozenset[Key]()
        for owner, engine in self.engines.items():
            assert isinstance(engine, SelectionTracking), "the engines of all owners have the same capabilities"
            selectable = engine.list_selectable(before.engines[owner], after.engines[owner], divided.select(owner))
            if selectable is None:
                return None
            found |= selectable
        return found


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


class _Observations(TenantEngine):
    def list_observed_decisions(self, document: Document, edits: SourceEdits, /) -> frozenset[Key]:
        engine = self.find(document)
        return engine.list_observed_decisions(document, edits) if isinstance(engine, ObservationFollowing) else frozenset()


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


class _NearSelecting(TenantEngine):
    def describe_near_selections(self, templates: Iterable[Document], /) -> Mapping[Key, NearSelection]:
        by_owner: dict[str, list[Document]] = {}
        for template in templates:
            by_owner.setdefault(self.tenancy.find_owner(template.key), []).append(template)
        found: dict[Key, NearSelection] = {}
        for owner, engine in self.engines.items():
            found |= engine.describe_near_selections(by_owner.get(owner, ())) if isinstance(engine, NearSelecting) else {}
        return found

    def describe_lost_selection(self, policy: Key, workloads: Collection[Key], /) -> Cause | None:
        owners = dict.fromkeys(map(self.tenancy.find_owner, workloads))
        found = [self.engines[owner] for owner in owners if owner in self.engines]
        selecting = (engine for engine in found if isinstance(engine, NearSelecting))
        return next(filter(None, (engine.describe_lost_selection(policy, workloads) for engine in selecting)), None)

    def find_policies_without_effect(
        self, applying: Collection[str], list_workloads: Callable[[], Iterable[tuple[Document, str]]], /
    ) -> Iterable[Finding]:
        """Of a policy of the platform, the objects of the first owner that has any are named."""
        found: dict[object, Finding] = {}
        for engine, owned in self._divide(list_workloads()):
            for finding in engine.find_policies_without_effect(applying, owned):
                found.setdefault(finding.resource, finding)
        return found.values()

    def list_rivals(
        self, policy: Key, list_workloads: Callable[[], Iterable[tuple[Document, str]]], /
    ) -> list[tuple[Key, str, str]] | None:
        found = [engine.list_rivals(policy, owned) for engine, owned in self._divide(list_workloads())]
        known = [rivals for rivals in found if rivals is not None]
        return [one for rivals in known for one in rivals] if known else None

    def _divide(
        self, workloads: Iterable[tuple[Document, str]]
    ) -> Iterator[tuple[NearSelecting, Callable[[], Iterable[tuple[Document, str]]]]]:
        """Yield the engines of the owners, each with the workloads that it decides."""
        by_owner: dict[str, list[tuple[Document, str]]] = {}
        for entry in workloads:
            by_owner.setdefault(self.tenancy.find_owner(entry[0].key), []).append(entry)
        for owner, engine in self.engines.items():
            if isinstance(engine, NearSelecting):
                yield engine, partial(tuple, by_owner.get(owner, []))


class _Repeating(TenantEngine):
    def repeats(self, template: Document, outcome: Outcome, /) -> bool:
        engine = self.find(template)
        return isinstance(engine, Repeating) and engine.repeats(template, outcome)


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

    def make_reschedule_request(self, templates: Iterable[Document], ttl: Any, /, *, only_unavailable: bool = False) -> Document:
        made: Document = self.get_platform().make_reschedule_request(templates, ttl, only_unavailable=only_unavailable)
        return made

    def list_pending_requests(self) -> Iterable[Key]:
        engines = (engine for engine in self.list_engines() if isinstance(engine, Rescheduling))
        return sorted({key for engine in engines for key in engine.list_pending_requests()})

    def list_companions(self, templates: Iterable[Document], among: Mapping[Key, Document] | None = None, /) -> Companions:
        found = list(templates)
        own: list[Document] = []
        shared: list[Document] = []
        for engine in dict.fromkeys(filter(None, map(self.find, found))):
            if isinstance(engine, Rescheduling):
                owned = None if among is None else {key: one for key, one in among.items() if self.find(one) is engine}
                companions = engine.list_companions([template for template in found if self.find(template) is engine], owned)
                own += companions.own
                shared += companions.shared
        return Companions(tuple(own), tuple(shared))

    def list_evictions(self, template: Document, outcome: Outcome, /) -> Mapping[str, Any]:
        engine = self.find(template)
        return engine.list_evictions(template, outcome) if isinstance(engine, Rescheduling) else {}

    def describe_remedy(self, template: Document, kept: Outcome, rescheduled: Outcome | None, expected: Outcome, /) -> str:
        engine = self.find(template)
        return engine.describe_remedy(template, kept, rescheduled, expected) if isinstance(engine, Rescheduling) else ""


class _Adoption(TenantEngine):
    def adopt(self, workloads: Iterable[Document], running: RunningObjects, /) -> Iterable[AdoptedRecord]:
        found = list(workloads)
        records: dict[Key, AdoptedRecord] = {}
        for owner, engine in self.engines.items():
            rules = self.tenancy.list_rules(owner)
            own = [template for template in found if self.owns(owner, template.key)]
            for record in engine.adopt(own, running) if isinstance(engine, Adopting) else ():
                namespace = record.key.namespace
                if owner == PLATFORM or self.owns(owner, record.subject) or all(rule.allows_namespace(namespace) for rule in rules):
                    records.setdefault(record.key, record)
        return tuple(records.values())


_CAPABILITIES: tuple[tuple[Any, type[TenantEngine]], ...] = (
    (DependencyTracking, _Dependencies),
    (CapacityReporting, _Capacity),
    (CapacitySharing, _Sharing),
    (TurnPostponing, _Postponing),
    (InputListing, _Inputs),
    (SelectionTracking, _Selections),
    (AvailabilityReporting, _Availability),
    (HealthReporting, _Health),
    (SharedDecisions, _Shared),
    (ObservationFollowing, _Observations),
    (ReferenceReading, _References),
    (DependencyDelivering, _DependencyDelivering),
    (CompanionSelecting, _CompanionSelecting),
    (NearSelecting, _NearSelecting),
    (Repeating, _Repeating),
    (InnerPlacementReporting, _InnerPlacements),
    (ChangeProposing, _Proposals),
    (ExpiryReporting, _Expiry),
    (Rescheduling, _Rescheduling),
    (Adopting, _Adoption),
)


@cache
def _make_class(bases: tuple[type[TenantEngine], ...]) -> type[TenantEngine]:
    """Return a class of engines with the capabilities of the bases."""
    return type("TenantEngine", bases or (TenantEngine,), {"__reduce__": _store})


def _store(engine: TenantEngine) -> tuple[Any, ...]:
    """Return what is stored in place of an engine: those of the owners, without what they see."""
    return StoredTenantEngine, (engine.name, dict(engine.engines))


def make_tenant_engine(name: str, engines: Mapping[str, PolicyEngine]) -> TenantEngine:
    """Return the engine that consists of those of all owners, with the capabilities that these have. There is at least one."""
    sample = next(iter(engines.values()))
    bases = tuple(mixin for capability, mixin in _CAPABILITIES if isinstance(sample, capability))
    return _make_class(bases)(name, engines)


class StoredTenantEngine:
    """Creates the engine of all owners again when the state of a plan is read."""

    def __new__(cls, name: str, engines: Mapping[str, PolicyEngine]) -> Any:
        return make_tenant_engine(name, engines)


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
    made = make_tenant_engine(api.name, engines)
    made.attach(tenancy, views)
    return made
