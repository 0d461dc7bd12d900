"""What queries read about one object: its facts, the clusters that it goes to, and what requires it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from gitsched.apis.gitsched.config import AssumedObject
from gitsched.decide.relations.assumed_objects import Assumptions
from gitsched.decide.relations.delivered_manifests import NO_CLUSTERS, Clusters
from gitsched.decide.relations.object_facts import (
    DELIVERED_BY_DEFINITION,
    NO_FACTS,
    ObjectFacts,
    PartFacts,
    PlacementFacts,
    ReferenceFacts,
)
from gitsched.decide.relations.schema import (
    BOUND,
    CONTAINS,
    CUSTOM,
    DEFINITIONS,
    FACTS,
    FAR,
    MAKES,
    SETTINGS,
    WRITES,
)
from gitsched.model.document import Key, is_known_group

if TYPE_CHECKING:
    from gitsched.query.canonical import Key as QueryKey
    from gitsched.query.reader import Reader


class RelationReader(Protocol):
    """What reads results and rows: a query's reader, or a database."""

    def read(self, name: str, key: QueryKey, /) -> Any: ...

    def rows_of(self, name: str, group: QueryKey, first: int | None = None, /) -> tuple[QueryKey, ...]: ...


def read_assumptions(db: Reader, key: QueryKey) -> Assumptions:
    """Return what clusters have by themselves."""
    listed, protected = db.input(SETTINGS, key)
    return Assumptions([AssumedObject(*one) for one in listed], protected)


def read_facts(db: RelationReader, key: QueryKey) -> ObjectFacts:
    """Return the facts of an object, without what only rows have; NO_FACTS of one that the source does not have."""
    plain = db.read(FACTS, tuple(key))
    return ObjectFacts(*plain) if plain is not None else NO_FACTS


def read_placement(facts: ObjectFacts) -> PlacementFacts | None:
    """Return the placement of a workload; None if no policy selects it."""
    return PlacementFacts(*facts.placement) if facts.placement is not None else None


def list_owners(db: RelationReader, key: QueryKey) -> list[Key]:
    """Return the workloads that deliver an object as a part of theirs, by (namespace, name)."""
    return sorted((Key(*row) for row in db.rows_of(CONTAINS, tuple(key))), key=lambda one: (one.namespace, one.name, one))


def is_delivered(db: RelationReader, key: QueryKey) -> bool:
    """Return whether a workload is, or contains, an object, and goes to some cluster."""
    placement = read_facts(db, key).placement
    return bool(placement and placement[3] and _is_whole(read_facts(db, key))) or bool(db.rows_of(CONTAINS, tuple(key), 1))


def find_own_clusters(db: RelationReader, key: QueryKey) -> Clusters:
    """Return the clusters that an object goes to."""
    facts = read_facts(db, key)
    found: Clusters = facts.placement[3] if facts.placement is not None and _is_whole(facts) else NO_CLUSTERS
    for row in db.rows_of(CONTAINS, tuple(key)):
        found = found.union(*(plain[1] for plain in read_facts(db, row).parts if plain[0] == key))
    return found


def find_clusters(db: RelationReader, key: QueryKey) -> Clusters:
    """Return the clusters that an object goes to, or where a controller writes it."""
    found = find_own_clusters(db, key)
    for written in _list_written_keys(key):
        for row in db.rows_of(WRITES, written):
            found = found.union(*_list_written_clusters(read_facts(db, row), written))
    return found


def find_maker(db: RelationReader, key: Key) -> Key | None:
    """Return the object of the source whose controller writes an object; None if there is none."""
    if key.group or key.kind not in ("ConfigMap", "Secret"):
        return None
    for written in _list_written_keys(key):
        makers = [Key(*row) for row in db.rows_of(MAKES, written)]
        if makers:
            return max(makers, key=lambda one: (one.namespace, one.name, one))
    return None


def _list_written_keys(key: QueryKey) -> Iterable[QueryKey]:
    """Return the keys by which a controller says that it writes an object: its own, and that of an object in every namespace."""
    group, kind, namespace, name = key
    own = group, kind, namespace, name
    return (own, (group, kind, "", name)) if namespace else (own,)


def _list_written_clusters(facts: ObjectFacts, written: QueryKey) -> Iterable[Clusters]:
    return (plain[3] for plain in facts.references if written in plain[1])


def _is_whole(facts: ObjectFacts) -> bool:
    """Return whether an object is delivered itself, in place of parts."""
    return len(facts.parts) == 1 and facts.parts[0][0] is None


def list_requirements(
    db: RelationReader, required: QueryKey, referrer: QueryKey
) -> Iterator[tuple[Key, bool, Clusters, PartFacts | None]]:
    """Yield who requires an object because of a row, whether it must be in the source, in which clusters, and the part that requires it."""
    facts = read_facts(db, required)
    if referrer == DELIVERED_BY_DEFINITION and facts.definition is not None:
        for row in db.rows_of(CUSTOM, facts.definition):
            yield Key(*row), False, find_own_clusters(db, row), None
        return
    if referrer in facts.subjects:
        yield Key(*referrer), False, find_own_clusters(db, referrer), None
    own = read_facts(db, referrer)
    for plain in own.references:
        reference = ReferenceFacts(*plain)
        part = PartFacts(*own.parts[reference.part]) if reference.part >= 0 else None
        for key, expected in reference.requires:
            if key == required:
                yield Key(*referrer), expected, reference.clusters, part


def list_implied(db: RelationReader, key: Key) -> list[Key]:
    """Return what an object requires without a field that says so: the bindings of a ServiceAccount, or the definition of its kind."""
    if key[:2] == ("", "ServiceAccount"):
        return [Key(*row) for row in db.rows_of(BOUND, tuple(key))]
    return [] if is_known_group(key.group) else [Key(*row) for row in db.rows_of(DEFINITIONS, key[:2])]


def has_far_companions(db: RelationReader) -> bool:
    """Return whether an object may be the companion of objects in other namespaces."""
    return bool(db.rows_of(FAR, ("",), 1))
