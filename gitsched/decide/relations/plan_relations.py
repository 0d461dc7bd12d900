"""The relations of a plan: a database of the facts of all objects, and the findings that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import CompanionSelecting, DependencyDelivering
from gitsched.apis.registered import Registered
from gitsched.decide.relations.companion_findings import list_companion_findings
from gitsched.decide.relations.located_findings import FindingSources, LocatedFinding
from gitsched.decide.relations.missing_objects import LackingObject
from gitsched.decide.relations.object_facts import NO_FACTS, FactReader, ManifestCache, ObjectFacts, find_source, list_api_facts
from gitsched.decide.relations.placement_texts import MAX_NAMES
from gitsched.decide.relations.reference_findings import list_reference_findings
from gitsched.decide.relations.relation_database import FactChanges, PlanRelations
from gitsched.decide.relations.schema import ANNOTATIONS, REPORTED_COUNT, SEPARATED_COUNT, UNSELECTED_COUNT, UNTARGETED_COUNT
from gitsched.model.document import Key
from gitsched.model.finding import locate_document
from gitsched.model.rollouts import ROLLOUT_KIND

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.relations.located_findings import KnownFindings
    from gitsched.model.document import Document
    from gitsched.model.finding import Location

_ADD_ROLLOUT_FACTS = Registered("gitsched.decide.rollouts.waves", "add_rollout_facts")


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
    sources = make_finding_sources(decisions.engines, decisions.templates, api_documents)
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
    engines: Iterable[PolicyEngine], templates: Mapping[Key, Document], api_documents: Mapping[Key, Document] | None = None
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

    return FindingSources(locate, list_delivery_options, describe_selection)


def list_relation_findings(
    relations: PlanRelations, sources: FindingSources, known: KnownFindings | None = None
) -> tuple[LocatedFinding, ...]:
    """Return the findings about what the objects refer to and where their companions go."""
    database = relations.database
    found: list[LocatedFinding] = []
    if database.list_keys(REPORTED_COUNT):
        found += list_reference_findings(database, sources, known)
    counts = (SEPARATED_COUNT, UNSELECTED_COUNT, UNTARGETED_COUNT)
    if any(map(database.list_keys, counts)) or database.rows_of(ANNOTATIONS, ("",), 1):
        found += list_companion_findings(database, sources, known)
    return tuple(found)
