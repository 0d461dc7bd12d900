"""The relations of a plan: a database of the facts of all objects and of what follows from them, and the findings about that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.apis.capabilities import CompanionSelecting, DependencyDelivering, Rescheduling
from gitsched.apis.registered import Registered
from gitsched.decide.relations.located_findings import FindingSources, LocatedFinding
from gitsched.decide.relations.object_facts import NO_FACTS, FactReader, ManifestCache, ObjectFacts, find_source, list_api_facts
from gitsched.decide.relations.placement_texts import MAX_NAMES
from gitsched.decide.relations.schema import (
    ANNOTATIONS,
    OBJECT,
    PLACED,
    REPORTED_COUNT,
    ROLLOUTS,
    SCHEMA,
    SEPARATED_COUNT,
    SETTINGS,
    UNSELECTED_COUNT,
    UNTARGETED_COUNT,
)
from gitsched.model.document import Key
from gitsched.model.finding import locate_document
from gitsched.model.rollouts import ROLLOUT_KIND
from gitsched.named_tuples import NamedTuple
from gitsched.query import BufferedStore, Database, QueryFailedError, digest_value

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.relations.located_findings import KnownFindings
    from gitsched.decide.relations.missing_objects import LackingObject
    from gitsched.decide.rollouts.rollout_members import PlacedFacts, RolloutRule
    from gitsched.model.document import Document
    from gitsched.model.finding import Location
    from gitsched.query.canonical import Key as QueryKey

_ADD_ROLLOUT_FACTS = Registered("gitsched.decide.rollouts.waves", "add_rollout_facts")
_LIST_COMPANION_FINDINGS = Registered("gitsched.decide.relations.companion_findings", "list_companion_findings")
_LIST_REFERENCE_FINDINGS = Registered("gitsched.decide.relations.reference_findings", "list_reference_findings")
_KEPT = ((SETTINGS, ()), (ROLLOUTS, ()))
"""The inputs that results are computed from again in later plans."""


class FactChanges(NamedTuple):
    """The facts of objects that have changed, and what Rollouts read of placed workloads that have changed; None for what is gone. `rules`
    are what all Rollouts select."""

    objects: Mapping[Key, ObjectFacts | None] = {}
    placed: Mapping[Key, PlacedFacts | None] = {}
    rules: tuple[RolloutRule, ...] = ()


class PlanRelations:
    """The database of relations of one plan, which continues that of the last one if there are rows of it."""

    def __init__(self, read_row: Callable[[str], bytes | None] = lambda _: None) -> None:
        """`read_row` returns the rows that the last plan has left; its own are taken from the `store`. Those of one that `is_stored`
        belong to a plan state."""
        self.is_stored = False
        self.store = BufferedStore(read_row)
        self._values: dict[tuple[str, QueryKey], Any] = {}
        self.database = Database(SCHEMA, self._load, self.store)

    def _load(self, name: str, key: QueryKey) -> Any:
        return self._values[name, key]

    def assign(self, changes: FactChanges, config: Config) -> None:
        """Set the facts that have changed, and the settings."""
        settings = tuple(map(tuple, config.assumed)), config.output.protected_namespaces
        rules = tuple(map(tuple, changes.rules)) or None
        self._assign(SETTINGS, {(): settings})
        self._assign(ROLLOUTS, {(): rules})
        self._assign(OBJECT, changes.objects)
        self._assign(PLACED, changes.placed)

    def _assign(self, name: str, values: Mapping[Any, tuple[Any, ...] | None]) -> None:
        plain = {tuple(key): None if value is None else tuple(value) for key, value in values.items()}
        self._values.update({(name, key): value for key, value in plain.items()})
        self.database.assign_all(name, ((key, None if value is None else digest_value(value)) for key, value in plain.items()))

    def update(self) -> Mapping[str, set[QueryKey]]:
        """Bring everything up to date, and return which results have changed. Raise QueryFailedError after a bug in a query."""
        self.database.update()
        for node, reason in self.database.take_failures().items():
            raise QueryFailedError(node, reason)
        return self.database.take_changes()

    def save(self) -> None:
        """Bring everything up to date and write it to the store. Facts are not read again after that."""
        self.database.save()
        self.is_stored = True
        self._values = {one: self._values[one] for one in _KEPT}

    def fork(self) -> PlanRelations:
        """Return relations that change without an effect on these."""
        fork = PlanRelations.__new__(PlanRelations)
        fork.store, fork._values, fork.is_stored = self.store, self._values.copy(), True
        fork.database = self.database.fork(fork._load)
        return fork


def relate_decisions(
    decisions: DecisionSet, config: Config, cache: ManifestCache | None = None
) -> tuple[PlanRelations, tuple[LocatedFinding, ...], ManifestCache]:
    """Return the relations of all decisions of a complete plan, the findings about them, and the facts of all manifests."""
    relations, cache = PlanRelations(), cache or ManifestCache()
    api_documents = decisions.catalog.api_documents_by_key
    changes = FactChanges(dict(_list_facts(decisions, config, cache, api_documents)))
    if any(key[:2] == ROLLOUT_KIND for key in (*decisions.catalog.api_documents, *decisions.catalog.broken)):
        changes = _ADD_ROLLOUT_FACTS(changes, decisions)
    relations.assign(changes, config)
    relations.update()
    sources = make_finding_sources(decisions.engines, decisions.templates, config, api_documents)
    return relations, list_relation_findings(relations, sources), cache


def _list_facts(
    decisions: DecisionSet, config: Config, cache: ManifestCache, api_documents: Mapping[Key, Document]
) -> Iterator[tuple[Key, ObjectFacts]]:
    """Yield the facts of all objects that the source has or that a plan delivers."""
    reader = FactReader(decisions.variants, config, cache)
    catalog, outcomes, templates = decisions.catalog, decisions.outcomes, decisions.templates
    for key, template in catalog.templates.items():
        yield key, reader.read_template(templates.get(key, template), outcomes.get(key), is_refused=key in decisions.refused)
    others = {key: reader.read_placed(templates[key], one) for key, one in outcomes.items() if key not in catalog.templates}
    duplicates, broken, parts = catalog.duplicate_templates, catalog.broken, decisions.kustomized
    for key in dict.fromkeys((*parts, *broken, *duplicates)):
        if key not in catalog.templates:
            others[key] = others.get(key, NO_FACTS)._replace(source=find_source(key, duplicates, broken, parts))
    for key, found in list_api_facts(api_documents).items():
        others[key] = others.get(key, NO_FACTS)._replace(annotation=found.annotation)
    yield from others.items()


def make_finding_sources(
    engines: Iterable[PolicyEngine],
    templates: Mapping[Key, Document],
    config: Config,
    api_documents: Mapping[Key, Document] | None = None,
) -> FindingSources:
    """Return what findings need of engines and documents."""
    api_documents = api_documents or {}

    def locate(key: Key) -> Location | None:
        document = templates.get(key) or api_documents.get(key)
        return locate_document(document) if document is not None else None

    def list_delivery_options(missing: LackingObject) -> list[str]:
        """Return the settings of the referrers' policies that deliver the object together with them."""
        delivering = [engine for engine in engines if isinstance(engine, DependencyDelivering)]
        for referrer in missing.referrers[:MAX_NAMES]:
            template = templates.get(referrer)
            options = [engine.describe_delivery(template, missing.key) for engine in delivering] if template is not None else []
            if any(options):
                return [option for option in options if option]
        return []

    def describe_selection(api: str, workload: Key, companions: list[Key]) -> str:
        engine = next((engine for engine in engines if engine.name == api and isinstance(engine, CompanionSelecting)), None)
        return engine.describe_selection(templates[workload], [templates[key] for key in companions]) if engine is not None else ""

    def reschedules(api: str) -> bool:
        return any(engine.name == api and isinstance(engine, Rescheduling) for engine in engines)

    return FindingSources(locate, templates.get, config, list_delivery_options, describe_selection, reschedules)


def list_relation_findings(
    relations: PlanRelations, sources: FindingSources, known: KnownFindings | None = None
) -> tuple[LocatedFinding, ...]:
    """Return the findings about what the objects refer to and where their companions go."""
    database = relations.database
    found: list[LocatedFinding] = []
    if database.list_keys(REPORTED_COUNT):
        found += _LIST_REFERENCE_FINDINGS(database, sources, known)
    counts = (SEPARATED_COUNT, UNSELECTED_COUNT, UNTARGETED_COUNT)
    if any(map(database.list_keys, counts)) or database.rows_of(ANNOTATIONS, ("",), 1):
        found += _LIST_COMPANION_FINDINGS(database, sources, known)
    return tuple(found)
