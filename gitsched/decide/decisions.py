"""Decide the placement of every workload with the policy engines, and reuse cached decisions whose inputs did not change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from gitsched.apis.capabilities import ReferenceReading
from gitsched.apis.policy_api import PolicyEngine
from gitsched.apis.registered import Registered
from gitsched.apis.replicas import AUTOSCALER_KINDS
from gitsched.apis.snapshot import Snapshot
from gitsched.decide.catalog import (
    DEFINITION_KINDS,
    Catalog,
    KustomizedDocument,
    RawDocument,
    build_catalog,
    make_duplicate_finding,
    make_duplicate_findings,
    make_scope_finding,
)
from gitsched.decide.engines import (
    EngineRecords,
    collect_cluster_facts,
    create_engines,
    list_dependency_trackers,
    list_engine_records,
)
from gitsched.decide.recorded_decisions import describe_records
from gitsched.decide.registry import reserved_groups
from gitsched.decide.variants.kustomized_parts import describe_part, make_part_finding, resolve_parts
from gitsched.decide.workload_decision import (
    DecidedAlone,
    DecisionCache,
    adapt_outcome,
    adapt_own_outcome,
    decide_or_reuse,
    make_two_claims_finding,
)
from gitsched.model.capacity_use import NO_PLACEMENTS, EarlierPlacements
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import Body, Document, Key, workload_sort_key
from gitsched.model.errors import DocumentFault
from gitsched.model.finding import Finding
from gitsched.model.progress import Progress, follow
from gitsched.model.system_errors import is_bug
from gitsched.model.variants import TemplateVariants
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.gitsched.tenancy import Tenancy
    from gitsched.apis.stateful_holds import Holds
    from gitsched.decide.capacity.shared_decisions import CapacityDecisions, SharedOutcomes
    from gitsched.decide.tenants.tenant_decisions import SettledOutcomes
    from gitsched.model.holds import Releases
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.model.scheduling import Outcome, RecordedDecision

_FIND_UNUSED = Registered("gitsched.decide.variants.unplaced_parts", "find_unused_copies")
_FIND_UNBUILT = Registered("gitsched.decide.variants.unplaced_parts", "find_unbuilt")
_LIST_POSTPONED = Registered("gitsched.decide.capacity.shared_decisions", "list_postponed")
_SHARE = Registered("gitsched.decide.capacity.shared_decisions", "share_outcomes")
_LEAVE = Registered("gitsched.decide.variants.unbuilt_parts", "leave_to_bundles")
_SETTLE = Registered("gitsched.decide.tenants.tenant_decisions", "settle_outcomes")


class DecisionInput(NamedTuple):
    """Everything that decisions are made from.

    `parts` are the documents that kustomizations and charts change, which are not placed. With `alone` workloads do not share capacity. The
    other members are as those of a `Snapshot`.
    """

    catalog: Catalog
    previous: Mapping[Key, Body]
    config: Config
    source_time: datetime
    now: datetime
    observations: Mapping[Any, Any] = {}
    once: bool = False
    parts: Sequence[tuple[Document, KustomizedDocument]] = ()
    variants: TemplateVariants = {}
    releases: Releases | None = None
    adopted: Mapping[str, str] = {}
    fixed: bool = False
    tenancy: Tenancy | None = None
    earlier: EarlierPlacements = NO_PLACEMENTS
    alone: bool = False

    def make_snapshot(self) -> Snapshot:
        """Return the input as the policy engines read it."""
        catalog = self.catalog
        return Snapshot(
            catalog.api_documents,
            catalog.templates,
            frozenset((*catalog.broken, *catalog.duplicate_templates, *(document.key for document, _ in self.parts))),
            self.previous,
            self.config,
            self.source_time,
            self.now,
            self.observations,
            catalog.duplicate_api_documents,
            catalog.read_order,
            self.once,
            duplicate_templates=catalog.duplicate_templates,
            variants=self.variants,
            load_holds=make_holds_loader(
                catalog.templates, self.variants, self.releases, self.adopted, holds_data=self.config.guard.hold_stateful
            )
            if self.config.guard.hold_stateful or self.adopted
            else None,
            fixed=self.fixed,
            has_adopted=bool(self.adopted),
            tenancy=self.tenancy,
            broken={} if self.once else catalog.broken,
            placed=self.earlier.placed,
        )


class DecisionSet(NamedTuple):
    """All decisions about a commit.

    `quarantined` are workloads whose document is broken or defined more than once: their manifests do not change. `unstable` are workloads
    that may be decided differently next time. `own_workloads` are those that an API creates and decides itself.
    `kustomized` are objects that only kustomizations and charts have, and that are not placed, with the reason. `variants` are what
    clusters get in place of templates. `withheld` are workloads that keep their previous placement because the guard withholds its change,
    and `withheld_wakeups` the times at which the withheld decisions about them may change without a commit. `followers` are those that were
    decided again because they depend on these, and `kept_records` the keys of records of engines that stay as they were.
    `replaced` are the documents of files that builds read, as the files have them: what is built takes their place.
    `input` is what the decisions were made from. `refused` are workloads that a policy selects and a Tenant does not allow.
    `tenancy` says which tenant owns which document. `depend_on_others`: an autoscaler of one workload sets the replicas of another.
    `shared` is what was decided otherwise because workloads share capacity, None if no engine knows any.
    """

    catalog: Catalog
    engines: tuple[PolicyEngine, ...]
    outcomes: Mapping[Key, Outcome]
    templates: Mapping[Key, Document]
    quarantined: frozenset[Key]
    findings: tuple[Finding, ...]
    unstable: frozenset[Key]
    own_workloads: frozenset[Key] = frozenset()
    kustomized: Mapping[Key, str] = {}
    variants: TemplateVariants = {}
    withheld: frozenset[Key] = frozenset()
    withheld_wakeups: Mapping[Key, datetime] = {}
    followers: frozenset[Key] = frozenset()
    kept_records: frozenset[Key] = frozenset()
    replaced: tuple[KustomizedDocument, ...] = ()
    input: DecisionInput | None = None
    engine_records: EngineRecords = ()
    cluster_facts: Mapping[str, ClusterInfo] = {}
    refused: frozenset[Key] = frozenset()
    tenancy: Tenancy | None = None
    depend_on_others: bool = False
    shared: CapacityDecisions | None = None

    @property
    def recorded(self) -> tuple[RecordedDecision, ...]:
        """The decisions that only records show, by namespace and name of their subjects."""
        return describe_recorded(self.engine_records, (self.outcomes[key] for key in self.own_workloads))

    @property
    def withheld_settled(self) -> frozenset[Key]:
        """The workloads with withheld changes that are decided alike as long as nothing they depend on changes: holds depend on others."""
        return frozenset(key for key in self.withheld if self.outcomes[key].held is None)

    @property
    def unclaimed(self) -> int:
        """The number of objects that no policy selects and no API records or reads."""
        return len(self.list_unclaimed())

    def list_unclaimed(self) -> tuple[Key, ...]:
        """Return the objects that no policy selects and no API records or reads."""
        claimed = self.outcomes.keys() | self.refused | {key for key, _ in self.engine_records}
        claimed |= {key for engine in self.engines if isinstance(engine, ReferenceReading) for key in engine.referenced_keys()}
        return tuple(key for key in self.catalog.templates if key not in claimed)

    @property
    def wakeups(self) -> list[datetime]:
        """The times at which a decision may change without a commit."""
        wakeups = [outcome.wakeup for outcome in self.outcomes.values()] + [engine.wakeup for engine in self.engines]
        return [wakeup for wakeup in wakeups if wakeup is not None]


def decide(
    documents: Iterable[RawDocument],
    previous: Mapping[Key, Body],
    config: Config,
    source_time: datetime,
    now: datetime,
    cache: DecisionCache | None = None,
    observations: Mapping[Any, Any] | None = None,
    once: bool = False,
    kustomized: Collection[KustomizedDocument] = (),
    variants: TemplateVariants | None = None,
    releases: Releases | None = None,
    adopted: Mapping[str, str] | None = None,
    fixed: bool = False,
    tenancy: Tenancy | None = None,
    progress: Progress | None = None,
    earlier: EarlierPlacements = NO_PLACEMENTS,
    alone: bool = False,
) -> DecisionSet:
    """Decide every workload, `once` or until deciding again changes nothing. The order is (namespace, name); no decision depends on it.

    The documents of `kustomized` are not placed: a policy that selects one is a finding. `variants` are what clusters get in place of some
    templates. `adopted` says why objects that gitsched took over keep their placement; with `fixed` all do (see `Snapshot`).
    `tenancy` says which tenant owns which document. With `alone` what is placed does not count for what is placed next.
    """
    catalog = build_catalog(documents, config.kinds, reserved_groups)
    parts = resolve_parts(kustomized, catalog) if kustomized else []
    given = (catalog, previous, config, source_time, now, observations or {}, once, parts)
    source = DecisionInput(*given, variants or {}, releases, adopted or {}, fixed, tenancy, earlier, alone)
    return decide_input(source, cache or DecisionCache(), progress)


def decide_input(source: DecisionInput, cache: DecisionCache, progress: Progress | None = None) -> DecisionSet:
    """Decide every workload of an input as `decide` does. Raise DocumentFault about workloads that cannot be decided because of a bug."""
    catalog, parts, snapshot = source.catalog, source.parts, source.make_snapshot()
    tenancy = source.tenancy
    context: tuple[object, ...] = (
        catalog.api_documents,
        snapshot.quarantined,
        source.config,
        catalog.duplicate_api_documents,
        source.releases,
        source.adopted,
        source.fixed,
        [document for key, document in catalog.templates.items() if key.kind in DEFINITION_KINDS],
        None if tenancy is None else (tenancy.owners, tenancy.paths.list_rules_by_owner()),
    )
    if cache.context != context:
        cache.context = context
        cache.decisions.clear()
    engines = create_engines(snapshot)
    trackers = list_dependency_trackers(engines)
    templates = dict(catalog.templates)
    outcomes: dict[Key, Outcome] = {}
    faults: dict[Key, Exception] = {}
    entries = catalog.templates.items()
    shares = not source.alone and any(engine.shares_capacity for engine in engines)
    postponed: frozenset[Key] = _LIST_POSTPONED(engines, snapshot, source.earlier) if shares else frozenset()
    for key, document in entries if progress is None else follow(entries, "deciding workloads", progress):
        if key in postponed:
            continue
        try:
            outcome = decide_or_reuse(document, engines, trackers, snapshot, cache)
        except Exception as error:
            if not is_bug(error):
                raise
            # Raised at the end, with those of all other documents.
            faults[key] = error
            continue
        if outcome is not None:
            outcomes[key] = outcome
    if faults:
        raise DocumentFault(faults)
    findings = [*catalog.findings, *(finding for engine in engines for finding in engine.findings)]
    quarantined: set[Key] = set()
    duplicates: list[tuple[Document, ...]] = []
    unselected: list[tuple[Document, ...]] = []
    for key, document, why, make_finding in list_quarantined(catalog, parts):
        kept = _keep_previous(document, why, engines, snapshot)
        copies = catalog.duplicate_templates.get(key)
        if make_finding is not None and (kept is not None or any(engine.selects(document) for engine in engines)):
            if copies is None:
                findings.append(make_finding())
            else:
                duplicates.append(copies)
        elif copies is not None:
            unselected.append(copies)
        if kept is not None and key not in outcomes:
            outcomes[key], templates[key] = kept, document
            quarantined.add(key)
    findings += make_duplicate_findings(duplicates) if duplicates else ()
    if unselected:
        findings += _FIND_UNUSED(unselected, source.config)
    if parts:
        findings += _FIND_UNBUILT(
            parts, lambda document: document.key in outcomes or any(engine.selects(document) for engine in engines), source.config
        )
    own: set[Key] = set()
    for document, outcome in list_own_workloads(engines, snapshot):
        other = outcomes.get(document.key)
        if other is not None:
            findings.append(make_two_claims_finding(document, other, outcome))
        if other is None or not other.previous_targets:
            outcomes[document.key], templates[document.key] = outcome, document
            own.add(document.key)
    if own:
        outcomes = dict(sorted(outcomes.items(), key=lambda entry: workload_sort_key(entry[0])))
    engine_records = list_engine_records(engines)
    refused: frozenset[Key] = frozenset()
    shared: CapacityDecisions | None = None
    alone = DecidedAlone(outcomes, templates, engines, snapshot, frozenset((*quarantined, *own)), source.earlier, postponed)
    if source.tenancy is not None:
        settled: SettledOutcomes = _SETTLE(alone, findings, engine_records, shares)
        outcomes, findings, engine_records, shared = settled.shared
        quarantined |= settled.kept
        own &= outcomes.keys()
        refused = settled.refused
    elif shares:
        made: SharedOutcomes = _SHARE(alone, findings, engine_records)
        outcomes, findings, engine_records, shared = made
    for key in (*shared.outcomes, *shared.limited) if shared is not None else ():
        cache.decisions.pop(key, None)
    cluster_facts = collect_cluster_facts(engines)
    if CLUSTER_REPORT in catalog.api_documents:
        from gitsched.decide.rollouts.cluster_reports import find_unknown_reports  # few sources have reports of clusters

        findings += find_unknown_reports(catalog.api_documents[CLUSTER_REPORT], cluster_facts)
    chosen = {(key.group, key.kind) for key in outcomes}
    findings += [make_scope_finding(document) for kind, document in sorted(catalog.guessed_scopes.items()) if kind in chosen]
    depend_on_others = False
    if any(outcome.manifests is not None or outcome.bundles or key[:2] in AUTOSCALER_KINDS for key, outcome in outcomes.items()):
        from gitsched.decide.scaled_workloads import count_scaled  # many sources have single objects without autoscalers

        outcomes, depend_on_others = count_scaled(outcomes, templates, snapshot)
    unstable = frozenset(key for key in outcomes if key not in cache.decisions)
    decided = DecisionSet(
        catalog,
        engines,
        outcomes,
        templates,
        frozenset(quarantined),
        tuple(findings),
        unstable,
        frozenset(own),
        {document.key: describe_part(part) for document, part in parts},
        source.variants,
        input=source,
        engine_records=engine_records,
        cluster_facts=cluster_facts,
        refused=refused,
        tenancy=source.tenancy,
        depend_on_others=depend_on_others,
        shared=shared,
    )
    return _LEAVE(decided) if parts and source.variants else decided


def _keep_previous(document: Document, why: str, engines: Iterable[PolicyEngine], snapshot: Snapshot) -> Outcome | None:
    """Return the previous decision about a document that is not used; None if there is none."""
    try:
        kept = next((kept for engine in engines if (kept := engine.keep_previous(document, why))), None)
        return adapt_outcome(document, kept, snapshot, keeps=True) if kept is not None else None
    except Exception as error:
        if not is_bug(error):
            raise
        raise DocumentFault({document.key: error}) from error


def list_own_workloads(engines: Iterable[PolicyEngine], snapshot: Snapshot) -> Iterator[tuple[Document, Outcome]]:
    """Yield the workloads that APIs create themselves, with their outcomes."""
    return (
        (document, adapt_own_outcome(document, decided, snapshot))
        for engine in engines
        for document, decided in engine.own_workloads()
    )


def make_holds_loader(
    templates: Mapping[Key, Document],
    variants: TemplateVariants | None = None,
    releases: Releases | None = None,
    adopted: Mapping[str, str] | None = None,
    *,
    holds_data: bool = True,
) -> Callable[[], Holds]:
    """Return a function that returns the holds of a snapshot, always the same object."""

    @cache
    def load_holds() -> Holds:
        from gitsched.apis.stateful_holds import Holds  # most runs move no workload

        return Holds(templates, variants, releases, adopted, holds_data=holds_data)

    return load_holds


def describe_recorded(engine_records: EngineRecords, own: Iterable[Outcome]) -> tuple[RecordedDecision, ...]:
    """Return the decisions that only records show: records that belong to no workload, or to one that an API creates itself (`own`).

    The records of other workloads describe clusters, which outcomes have.
    """
    records = [*engine_records, *(record for outcome in own for record in outcome.records)]
    return describe_records(records) if records else ()


Quarantined = tuple[Key, Document, str, Callable[[], Finding] | None]
"""A workload whose document is not used: its key, the document, the reason, and the finding for a workload that a policy selects."""


def list_quarantined(catalog: Catalog, parts: Iterable[tuple[Document, KustomizedDocument]]) -> Iterator[Quarantined]:
    """Yield the workloads that keep their previous placement, if they have one."""
    for key, copies in sorted(catalog.duplicate_templates.items()):
        yield key, copies[0], "it is defined more than once", partial(make_duplicate_finding, copies)
    for key, document in sorted(catalog.broken.items()):
        if key.group in reserved_groups:  # an API may place its own documents
            yield key, document, "its document is broken or defined more than once", None
        elif key not in catalog.duplicate_templates:
            yield key, document, "its document is broken", None
    for document, part in parts:
        yield document.key, document, describe_part(part), partial(make_part_finding, document, part) if part.is_reported else None
