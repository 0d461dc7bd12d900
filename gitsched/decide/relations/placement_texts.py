"""Say where the policies place an object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitsched.decide.relations.object_facts import BROKEN, DOCUMENT, DUPLICATE, PART
from gitsched.decide.relations.object_queries import find_own_clusters, list_owners, read_facts, read_placement
from gitsched.model.finding import join_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitsched.decide.relations.object_queries import RelationReader
    from gitsched.model.document import Key

MAX_NAMES = 5
"""Clusters or objects that one message names."""


def describe_placement(db: RelationReader, key: Key) -> str:
    """Return where the policies place an object of the source."""
    owners = list_owners(db, key)
    if owners:
        return f"it is part of {join_names(list(map(str, owners)))}, which goes to {join_clusters(find_own_clusters(db, key))}"
    facts = read_facts(db, key)
    if facts.source == DUPLICATE:
        return "it is defined more than once"
    if facts.source != DOCUMENT:
        reason = facts.source.removeprefix(PART) if facts.source.startswith(PART) else ""
        return reason or ("its document is broken" if facts.source == BROKEN else "no cluster gets it")
    placement = read_placement(facts)
    if placement is None:
        return "a Tenant does not allow it" if facts.is_refused else "no policy selects it"
    assigned = placement.clusters | placement.undelivered
    text = f"{placement.policy or 'its policy'} places it on {join_clusters(assigned) if assigned else 'no cluster'}"
    return f"{text}, and its manifest is not delivered to {join_clusters(placement.undelivered)}" if placement.undelivered else text


def join_clusters(clusters: Iterable[str]) -> str:
    """Return the first names of clusters as text, with the number of all others."""
    return join_names(sorted(clusters))


def join_names(names: list[str], limit: int = MAX_NAMES, count: int = 0) -> str:
    """Return the first names as text, with the number of all others. `count` is that of all names where only the first are given."""
    if max(count, len(names)) > limit:
        return f"{', '.join(names[:limit])} and {max(count, len(names)) - limit} more"
    return join_all(names)
