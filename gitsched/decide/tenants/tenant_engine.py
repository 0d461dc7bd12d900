"""The engine of an API for a source with tenants: it consists of an engine for each owner, which sees only what may have an effect on the
workloads of that owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gitsched.apis.capabilities import (
    Continuation,
    Continuing,
    ReferenceReading,
    SnapshotChanges,
)
from gitsched.apis.continuation import changes_followers, changes_selection
from gitsched.apis.gitsched.tenancy import PLATFORM, Tenancy, TenantPaths
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.snapshot import EMPTY_SNAPSHOT, Snapshot
from gitsched.decide.incremental.continued_views import ContinuedViews, DividedChanges, OwnedEntries
from gitsched.decide.registry import is_active, policy_apis
from gitsched.decide.tenants.tenant_views import TenantViews
from gitsched.model.document import Body, Document, Key
from gitsched.model.explanation import ExplainedCandidate, Explanation
from gitsched.model.finding import FieldOrigin, Finding
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.scheduling import CandidateResult, Outcome, TargetCluster
from gitsched.model.template_index import TemplateIndex

NO_TENANCY = Tenancy(TenantPaths((), ()))
NO_VIEWS = TenantViews(EMPTY_SNAPSHOT, NO_TENANCY)


class TenantEngine(PolicyEngine):
    """The engines of one API by owner. Each decides the documents of its owner; the platform's engine comes first."""

    def __init__(self, name: str, engines: Mapping[str, PolicyEngine]) -> None:
        """Take the engines of an API with a `name`. Only one that is attached knows whose documents are whose."""
        self.name, self.engines = name, engines
        self.tenancy, self.views = NO_TENANCY, NO_VIEWS
        self._entries = OwnedEntries({}, NO_TENANCY.paths)

    def attach(self, tenancy: Tenancy, views: TenantViews) -> None:
        """Set the owners and what they see, and combine what the engines say."""
        self.tenancy, self.views = tenancy, views
        engines = self.engines.values()
        self.findings = tuple(self._list_findings(policy_apis[self.name].absence_codes))
        self.shares_capacity = any(engine.shares_capacity for engine in engines)
        self.wakeup = min((engine.wakeup for engine in engines if engine.wakeup is not None), default=None)
        self.time = max((engine.time for engine in engines if engine.time is not None), default=None)

    def keep_outcomes(self, kept: Mapping[Key, Outcome], /) -> frozenset[Key]:
        """Let the engines of all owners know, because the platform may request something for the workload of a tenant."""
        followers = frozenset[Key]().union(*(engine.keep_outcomes(kept) for engine in self.engines.values()))
        self.attach(self.tenancy, self.views)
        return followers

    def update(self, snapshot: Snapshot, /) -> bool:
        if snapshot.tenancy is None:
            return False
        views = ContinuedViews(snapshot, snapshot.tenancy)
        if not all(engine.update(views.make_view(owner)) for owner, engine in self.engines.items()):
            return False
        self.attach(snapshot.tenancy, views)
        return True

    def continue_with(self, snapshot: Snapshot, changes: SnapshotChanges, /) -> Continuation | None:
        """Continue the engines of the owners that see a change, and update the others."""
        tenancy, api = snapshot.tenancy, policy_apis[self.name]
        if tenancy is None:
            return None
        views = ContinuedViews(snapshot, tenancy)
        divided = DividedChanges(views, changes, tenancy, self.divide(changes.template_index, tenancy))
        if divided.concern_others:
            return None
        engines, affected = dict[str, PolicyEngine](), frozenset[Key]()
        for owner in dict.fromkeys((*self.engines, *tenancy.paths.list_owners())):
            seen, engine = divided.select(owner), self.engines.get(owner)
            came_or_went = [pair for key, pair in seen.api_documents.items() if key.group in api.groups and None in pair]
            if came_or_went and is_active(api, views.make_view(owner).documents.keys()) != (engine is not None):
                return None  # only a complete plan creates or removes engines
            if engine is None:
                continue
            found = _continue(engine, views.make_view(owner), seen)
            if found is None:
                return None
            engines[owner], affected = found.engine, affected | found.affected
        made = type(self)(self.name, engines)
        made.attach(tenancy, views)
        return Continuation(made, affected)

    def divide(self, index: TemplateIndex, tenancy: Tenancy) -> OwnedEntries:
        """Return the entries of a template index by owner. Those of the last index are kept, because events are simulated on one."""
        if self._entries.index is not index or self._entries.paths is not tenancy.paths:
            self._entries = OwnedEntries(index, tenancy.paths)
        return self._entries

    def _list_findings(self, absence_codes: frozenset[str]) -> Iterator[Finding]:
        """Yield what each engine says about the documents of its owner. That a document of the platform selects nothing is only said if
        it selects nothing of any tenant either."""
        known = [{(found.code, found.location, found.resource) for found in engine.findings} for engine in self.engines.values()]
        for owner, engine in self.engines.items():
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
            return self.tenancy.paths.find_owner(finding.location.path)
        return PLATFORM

    def find(self, document: Document) -> PolicyEngine | None:
        """Return the engine that decides a document; None if its owner has no document of this API."""
        return self.find_by_key(document.key)

    def find_by_key(self, key: Key) -> PolicyEngine | None:
        """Return the engine that decides the document with a key."""
        return self.engines.get(self.tenancy.find_owner(key))

    def list_engines(self) -> Iterable[PolicyEngine]:
        """Return the engines of all owners."""
        return self.engines.values()

    def get_platform(self) -> Any:
        """Return the engine of the platform, else that of the first tenant."""
        return next(iter(self.engines.values()))

    def decide(self, template: Document, /) -> Outcome | None:
        engine = self.find(template)
        return None if engine is None else engine.decide(template)

    def may_place(self, template: Document, cluster: str, /) -> bool:
        engine = self.find(template)
        return engine is not None and engine.may_place(template, cluster)

    def customize(self, template: Document, target: TargetCluster, /) -> TargetCluster:
        engine = self.find(template)
        return target if engine is None else engine.customize(template, target)

    def find_overrider(self, template: Document, cluster: str, path: Sequence[str], /) -> FieldOrigin | None:
        engine = self.find(template)
        return None if engine is None else engine.find_overrider(template, cluster, path)

    def clusters(self) -> Mapping[str, ClusterInfo]:
        found: dict[str, ClusterInfo] = {}
        for name, cluster in (entry for engine in self.engines.values() for entry in engine.clusters().items()):
            found.setdefault(name, cluster)
        return found

    def records(self) -> Iterable[tuple[Key, Body]]:
        found: dict[Key, Body] = {}
        for owner, engine in self.engines.items():
            rules = self.tenancy.list_rules(owner)
            for key, body in engine.records():
                if owner == PLATFORM or all(tenant.allows_namespace(key.namespace) for tenant in rules) or self.owns(owner, key):
                    found.setdefault(key, body)
        return tuple(found.items())

    def owns(self, owner: str, key: Key) -> bool:
        """Return whether an object belongs to an owner."""
        return self.tenancy.find_owner(key) == owner

    def own_workloads(self) -> Iterable[tuple[Document, Outcome]]:
        return tuple(
            (document, outcome)
            for owner, engine in self.engines.items()
            for document, outcome in engine.own_workloads()
            if self.owns(owner, document.key)
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
        owner, names = self.tenancy.find_owner(template.key), {result.name for result in found}
        for name in self.views.clusters.platform if owner != PLATFORM else ():
            tenant = self.views.clusters.find_forbidding(owner, name)
            if tenant is not None and name not in names:
                yield CandidateResult(name, False, f"{tenant.title} does not allow it", {}, None)

    def evaluate_own(self, kind: str, name: str, namespace: str, /) -> list[CandidateResult] | None:
        for owner, engine in self.engines.items():
            found = engine.evaluate_own(kind, name, namespace)
            owned = {holder for key, holder in self.tenancy.owners.items() if key[1:] == (kind, namespace, name)}
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


def _continue(engine: PolicyEngine, snapshot: Snapshot, changes: SnapshotChanges) -> Continuation | None:
    """Return the engine of an owner for a new snapshot; None if it cannot continue."""
    is_new = bool(changes.api_documents or changes.concerns_all)
    is_new = is_new or changes_selection(changes.templates) or changes_followers(changes.templates)
    if is_new or (changes.templates and isinstance(engine, ReferenceReading)):
        return engine.continue_with(snapshot, changes) if isinstance(engine, Continuing) else None
    return Continuation(engine, frozenset()) if engine.update(snapshot) else None
