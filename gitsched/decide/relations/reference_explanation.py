"""Describe for `explain` what each workload refers to: what goes to its clusters as well, and what is missing there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.decide.relations.delivered_manifests import NO_CLUSTERS, NO_MOVES, Clusters
from gitsched.decide.relations.missing_objects import LackingObject, read_missing
from gitsched.decide.relations.object_facts import DOCUMENT, ReferenceFacts
from gitsched.decide.relations.object_queries import (
    RelationReader,
    find_clusters,
    find_own_clusters,
    is_delivered,
    list_implied,
    list_owners,
    read_facts,
)
from gitsched.decide.relations.placement_texts import join_names
from gitsched.model.document import Key
from gitsched.model.explanation import ExplainedReference

if TYPE_CHECKING:
    from gitsched.model.scheduling import Outcome


def explain_references(
    db: RelationReader, outcomes: Mapping[Key, Outcome], key: Key, before: Mapping[Key, Clusters] = NO_MOVES
) -> tuple[ExplainedReference, ...]:
    """Return the references of a workload, without those to objects that the source need not have. Workloads that move are in the clusters
    `before` the move, if these are given."""
    found: dict[tuple[Key, bool], Clusters] = {}
    for required, is_expected, clusters in _list_requirements(db, key):
        found[required, is_expected] = found.get((required, is_expected), NO_CLUSTERS) | clusters
    return tuple(
        _explain(db, outcomes, required, before.get(key, clusters), before.get(required))
        for (required, is_expected), clusters in found.items()
        if is_expected or (facts := read_facts(db, required)).source == DOCUMENT or facts.placement is not None
    )


def _list_requirements(db: RelationReader, key: Key) -> Iterator[tuple[Key, bool, Clusters]]:
    """Yield what a workload requires, whether the source must have it, and the clusters."""
    for plain in read_facts(db, key).references:
        reference = ReferenceFacts(*plain)
        yield from ((Key(*required), is_expected, reference.clusters) for required, is_expected in reference.requires)
    if is_delivered(db, key):
        own = find_own_clusters(db, key)
        yield from ((required, False, own) for required in list_implied(db, key))


def _explain(
    db: RelationReader, outcomes: Mapping[Key, Outcome], key: Key, clusters: Clusters, before: Clusters | None
) -> ExplainedReference:
    missing, there = read_missing(db, key), clusters & (find_clusters(db, key) if before is None else before)
    absent = clusters & missing.clusters - there if missing is not None else NO_CLUSTERS
    return ExplainedReference(
        str(key), tuple(sorted(there)), tuple(sorted(absent)), _describe_reason(db, outcomes.get(key), key, there, absent, missing)
    )


def _describe_reason(
    db: RelationReader, outcome: Outcome | None, key: Key, there: Clusters, absent: Clusters, missing: LackingObject | None
) -> str:
    if not there and not absent:
        return "assumed to be in its clusters"
    if missing is not None and absent and not missing.in_source:
        creators = f"; {join_names(list(map(str, missing.creators)))} may create it" if missing.creators else ""
        return f"not in the source{creators}"
    if outcome is not None:
        return (outcome.policy or outcome.reason) if there else ""
    owners = list_owners(db, key) if there else []
    return f"part of {join_names(list(map(str, owners)))}" if owners else "a controller writes it" if there else ""
