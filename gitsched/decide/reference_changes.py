"""Update the references of changed workloads for an incremental plan, where the findings about references stay as they are."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.assumed_objects import is_assumed
from gitsched.decide.delivered_objects import (
    Clusters,
    ManifestReferences,
    ReferenceCache,
    list_manifest_references,
)
from gitsched.kinds.requirements import BINDING_KINDS
from gitsched.kinds.written_objects import may_write
from gitsched.model.finding import locate_document
from gitsched.model.references import RequiredObject

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.plan_state import PlanRows, ReferenceRow, Totals
    from gitsched.decide.reference_findings import LocatedFinding
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome


def move_reference_findings(
    findings: tuple[LocatedFinding, ...], paths: Container[str], documents: Mapping[Key, Document]
) -> tuple[LocatedFinding, ...] | None:
    """Return the findings about references with their locations in changed files; None if one is about a document that is not there."""
    moved: list[LocatedFinding] = []
    for key, finding in findings:
        if key is not None and finding.location is not None and finding.location.path in paths:
            if key not in documents:
                return None
            finding = finding._replace(location=locate_document(documents[key]))
        moved.append((key, finding))
    return tuple(moved)


def update_references(
    rows: PlanRows, documents: Mapping[Key, Document], outcomes: Mapping[Key, Outcome], totals: Totals
) -> dict[Key, ReferenceRow] | None:
    """Return the references of changed workloads, and those of workloads that these refer to now.

    None if something new is missing, something missing may be there now, or only a complete plan can tell. Documents without an outcome are
    objects that no policy selects.
    """
    config, creators = totals.config, totals.creators
    cache, pod_paths = ReferenceCache(), config.pod_paths
    updated: dict[Key, ReferenceRow] = {}
    required: set[Key] = set()
    for key, document in documents.items():
        outcome, row = outcomes.get(key), rows.read_workload(key)
        if outcome is None or row is None:
            if key[:2] in BINDING_KINDS or may_write(key):
                return None
            continue
        targets, before = _list_clusters(outcome), row.references
        manifests = list_manifest_references(outcome, document, targets, pod_paths, cache) if targets else ()
        moved = targets != _list_clusters(row.outcome)
        if moved and (before.is_required or any(references.writes for references, _ in (*before.manifests, *manifests))):
            return None
        if creators and _creates_others(document, manifests, moved, creators):
            return None
        updated[key] = before._replace(manifests=manifests)
        if manifests == before.manifests and not (moved and before.implied):
            continue
        if (
            before.misses
            or key[:2] in BINDING_KINDS
            or may_write(key)
            or _list_written(manifests) != _list_written(before.manifests)
        ):
            return None
        found = _find_required(rows, outcomes, config, before, list(_list_requirements(manifests, before, targets)))
        if found is None:
            return None
        required |= found
    for key in sorted(required):
        row = rows.read_workload(key)
        references = updated.get(key) or (row.references if row is not None else None)
        if references is not None and not references.is_required:
            updated[key] = references._replace(is_required=True)
    return updated


def _creates_others(document: Document, manifests: ManifestReferences, moved: bool, creators: Mapping[Key, frozenset[Key]]) -> bool:
    """Return whether a workload may create other objects than before that the source does not have, or in other clusters."""
    from gitsched.kinds.possible_creators import PossibleCreators  # most sources have what their objects refer to

    required = {required.key for references, _ in manifests for required in references.requires}
    wanted = [key for key in creators if key not in required]
    found = PossibleCreators(wanted)
    found.add(document.key, document.body)
    return any(
        (document.key in creators[key] and moved) or bool(found.find(key)) != (document.key in creators[key]) for key in wanted
    )


def _list_written(manifests: ManifestReferences) -> set[Key]:
    return {key for references, _ in manifests for key in references.writes}


def _list_clusters(outcome: Outcome) -> Clusters:
    return frozenset(target.cluster for target in outcome.targets)


def _list_requirements(
    manifests: ManifestReferences, before: ReferenceRow, targets: Clusters
) -> Iterator[tuple[RequiredObject, Clusters]]:
    yield from ((required, clusters) for references, clusters in manifests for required in references.requires)
    yield from ((RequiredObject(key, False), targets) for key in before.implied)


def _find_required(
    rows: PlanRows,
    outcomes: Mapping[Key, Outcome],
    config: Config,
    before: ReferenceRow,
    requirements: list[tuple[RequiredObject, Clusters]],
) -> set[Key] | None:
    """Return the workloads among what a workload requires, which are all in its clusters; None if one is not, or if it is not known."""
    known = {required for references, _ in before.manifests for required in references.requires}
    found: set[Key] = set()
    for required, clusters in requirements:
        key, row = required.key, rows.read_workload(required.key)
        outcome = outcomes.get(key) or (row.outcome if row is not None else None)
        if outcome is not None:
            if not clusters <= _list_clusters(outcome):
                return None
            found.add(key)
        elif not all(is_assumed(key, cluster, config) for cluster in clusters) and (
            required.expected or required not in known or key.kind in ("ConfigMap", "Secret")
        ):
            return None
    return found
