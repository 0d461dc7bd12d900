"""The facts about relations that the changes of an incremental plan concern."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.relations.located_findings import KnownFindings, LocatedFinding
from gitsched.decide.relations.object_facts import NO_FACTS, FactReader, ObjectFacts, find_source, read_api_facts
from gitsched.decide.relations.plan_relations import FactChanges
from gitsched.decide.relations.schema import DIRECT, FACTS, PLACED_FACTS, ROLLOUT, TARGETS
from gitsched.model.finding import locate_document

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.relations.plan_relations import PlanRelations
    from gitsched.model.document import Document, Key
    from gitsched.model.finding import Location


def list_changed_facts(changes: IncrementalChanges) -> FactChanges:
    """Return the facts of all objects whose documents or placements may have changed."""
    snapshot, totals, diff = changes.snapshot, changes.totals, changes.diff
    reader, duplicates = FactReader(snapshot.variants, totals.config), totals.source.unused & totals.source.repeated
    found: dict[Key, ObjectFacts | None] = {}
    for key in (*changes.documents, *changes.removed, *diff.templates, *diff.parts.changed):
        if key in found:
            continue
        outcome = changes.outcomes.get(key)
        if key in snapshot.templates:
            found[key] = reader.read_template(changes.documents.get(key) or snapshot.templates[key], outcome)
        else:
            facts = reader.read_placed(changes.documents[key], outcome) if outcome is not None else NO_FACTS
            facts = facts._replace(source=find_source(key, duplicates, totals.source.unused, diff.parts.present))
            found[key] = None if facts == NO_FACTS else facts
    for key, api_facts in _list_api_facts(changes):
        facts = found.get(key) or NO_FACTS
        facts = facts._replace(annotation=api_facts.annotation if api_facts is not None else "")
        found[key] = None if facts == NO_FACTS and api_facts is None else facts
    return FactChanges(found)


def _list_api_facts(changes: IncrementalChanges) -> Iterator[tuple[Key, ObjectFacts | None]]:
    """Yield the facts of the documents of policy APIs that have or had any."""
    for key, pair in changes.diff.api_documents.items():
        before, after = (read_api_facts(one) if one is not None else None for one in pair)
        if before is not None or after is not None:
            yield key, after


_WITHOUT_FINDINGS = frozenset((FACTS, TARGETS, PLACED_FACTS, DIRECT, ROLLOUT))
"""The queries whose results no finding is about."""


def continue_findings(
    relations: PlanRelations, facts: FactChanges, findings: tuple[LocatedFinding, ...], changes: IncrementalChanges
) -> tuple[LocatedFinding, ...]:
    """Return the findings of a plan from those of the last one, of which only those that the changes concern are made again. `facts` are
    those that have changed."""
    changed, diff = relations.update(), changes.diff
    names_policies = any(key[:2] not in list_cluster_kinds() for key in diff.api_documents)
    documents = frozenset((*changes.documents, *diff.api_documents, *diff.templates))
    if (
        changed.keys() <= _WITHOUT_FINDINGS
        and not (names_policies and findings)
        and not any(one is not None and one.annotation for one in facts.objects.values())
        and not any(key in documents for one in findings for key in one.concerned)
    ):
        return findings

    from gitsched.decide.relations.plan_relations import list_relation_findings, make_finding_sources

    own, locations = changes.continued.own, {one.key: one.finding.location for one in findings if one.key is not None}
    sources = make_finding_sources(changes.continued.engines, changes.snapshot.templates, changes.totals.config)

    def find_template(key: Key) -> Document | None:
        return changes.documents.get(key) or (own[key].document if key in own else None) or sources.find_template(key)

    def locate(key: Key) -> Location | None:
        document = find_template(key)
        if document is None and key in diff.api_documents:
            document = diff.api_documents[key][1]
        return locate_document(document) if document is not None else locations.get(key)

    known = KnownFindings(() if names_policies else findings, changed, documents)
    return list_relation_findings(relations, sources._replace(locate=locate, find_template=find_template), known)
