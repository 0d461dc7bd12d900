"""Queries about objects that delivered manifests refer to and that do not go to the same cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gitsched.decide.relations.delivered_manifests import NO_CLUSTERS, Clusters
from gitsched.decide.relations.object_facts import DOCUMENT, PART, PlainKey, read_text
from gitsched.decide.relations.object_queries import (
    RelationReader,
    find_clusters,
    find_maker,
    find_own_clusters,
    is_delivered,
    list_requirements,
    read_facts,
    read_placement,
)
from gitsched.decide.relations.placement_texts import describe_placement
from gitsched.decide.relations.schema import (
    ALONE,
    ANY_NAMESPACE,
    ASSUMPTIONS,
    BUILT,
    CHARTS,
    CLAIMS,
    CONTAINS,
    MISSING,
    OF_KIND,
    REPORTED,
    REQUIRES,
    RESOURCES,
    WORD_INDEX,
    WORDS,
)
from gitsched.kinds.possible_creators import list_chart_namespaces, list_prefixes, may_be_mentioned
from gitsched.model.document import Key
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.query.canonical import Key as QueryKey
    from gitsched.query.reader import Reader

PartOf = tuple[PlainKey, tuple[Any, ...] | None]
"""The key and the location of an object that is a part of a workload."""
NEEDED_KINDS = frozenset({"ConfigMap", "PersistentVolumeClaim", "Role", "Service", "ServiceAccount"})
"""Kinds that clusters do not have by themselves; others are often made by an operator or together with the cluster."""


class LackingObject(NamedTuple):
    """An object that does not go to `clusters`, where the `referrers` need it.

    `in_source` says that the source has it, or the `maker` whose controller writes it; `is_part` that the source has it only as a part of a
    kustomization or chart. `creators` are delivered objects that may create it then, and `uncertain` the clusters that they go to: there it
    is not reported. `parts` are the objects that refer to it, by the referrer that they are a part of, each as key and location.
    `placement` says where the policies place its `source`, which is itself or its maker; `is_delivered` that a cluster gets that,
    `is_contained` that it is a part of a workload, and `is_assigned` that its policy places it where it is reported.
    """

    key: Key
    clusters: Clusters
    referrers: tuple[Key, ...]
    in_source: bool
    maker: Key | None = None
    is_part: bool = False
    creators: tuple[Key, ...] = ()
    uncertain: Clusters = NO_CLUSTERS
    parts: Mapping[Key, PartOf] = {}
    source: Key | None = None
    placement: str = ""
    is_delivered: bool = False
    is_contained: bool = False
    is_assigned: bool = False

    @property
    def reported(self) -> Clusters:
        """The clusters in which a finding reports it."""
        return self.clusters - self.uncertain

    @property
    def group(self) -> tuple[str, str, str]:
        """The group of REPORTED that it belongs to."""
        is_alone = self.in_source or self.key.kind in NEEDED_KINDS
        return ALONE if is_alone else (OF_KIND, self.key.group, self.key.kind)


def find_missing(db: Reader, key: QueryKey) -> object:
    """Return where an object is missing; None if nothing that refers to it lacks it, or if the source need not have it."""
    wanted, lacking = Key(*key), _find_lacking(db, key)
    if not lacking.clusters:
        return None
    maker, facts = find_maker(db, wanted), read_facts(db, key)
    in_source = bool(facts.source) or maker is not None or is_delivered(db, key) or bool(db.rows_of(BUILT, tuple(key), 1))
    if not in_source and (not lacking.is_expected or db.read(ASSUMPTIONS, ()).is_preinstalled(wanted)):
        return None
    is_part = facts.source.startswith(PART) and maker is None
    creators: dict[Key, Clusters] = {}
    if is_part or not in_source:
        creators = _find_creators(db, wanted, lacking)
    source = maker if maker is not None and facts.source != DOCUMENT else wanted
    missing = LackingObject(
        wanted,
        lacking.clusters,
        tuple(sorted(lacking.referrers)),
        in_source,
        maker,
        is_part,
        tuple(creators),
        NO_CLUSTERS.union(*creators.values()),
        {one: part for one, part in lacking.referrers.items() if part is not None},
        source,
        describe_placement(db, source) if in_source else "",
        is_delivered(db, source),
        bool(db.rows_of(CONTAINS, tuple(source), 1)),
    )
    placement = read_placement(read_facts(db, source))
    missing = missing._replace(is_assigned=placement is not None and missing.reported <= placement.undelivered)
    if missing.reported:
        db.emit(REPORTED, (*missing.group, *key))
    plain_parts = tuple((tuple(one), part) for one, part in missing.parts.items())
    return (
        *(tuple(wanted), missing.clusters, tuple(map(tuple, missing.referrers)), in_source, maker and tuple(maker), is_part),
        *(tuple(map(tuple, missing.creators)), missing.uncertain, plain_parts, tuple(source), *missing[-4:]),
    )


def read_missing(db: RelationReader, key: QueryKey) -> LackingObject | None:
    """Return where an object is missing; None if it is not."""
    plain = db.read(MISSING, tuple(key))
    if plain is None:
        return None
    wanted, clusters, referrers, in_source, maker, is_part, creators, uncertain, parts, source, *rest = plain
    return LackingObject(
        Key(*wanted),
        clusters,
        tuple(Key(*one) for one in referrers),
        in_source,
        maker and Key(*maker),
        is_part,
        tuple(Key(*one) for one in creators),
        uncertain,
        {Key(*one): part for one, part in parts},
        Key(*source),
        *rest,
    )


class _Lacking(NamedTuple):
    """The clusters that lack an object, what refers to it there, with the part that does, and whether it must be in the source."""

    clusters: Clusters
    referrers: Mapping[Key, PartOf | None]
    is_expected: bool


def _find_lacking(db: Reader, key: QueryKey) -> _Lacking:
    wanted, known = Key(*key), dict[Clusters, Clusters]()
    delivered: Clusters | None = None
    lacking, is_expected = NO_CLUSTERS, False
    referrers: dict[Key, PartOf | None] = {}
    for row in db.rows_of(REQUIRES, tuple(key)):
        for referrer, expected, clusters, part in list_requirements(db, key, row):
            absent = known.get(clusters)
            if absent is None:
                delivered = find_clusters(db, key) if delivered is None else delivered
                absent = clusters - delivered
                if absent:
                    assumptions = db.read(ASSUMPTIONS, ())
                    absent = frozenset(one for one in absent if not assumptions.has(wanted, one))
                known[clusters] = absent
            if absent:
                lacking, is_expected = lacking | absent, is_expected or expected
                if referrer not in referrers:
                    referrers[referrer] = (part.key, part.location) if part is not None and part.key is not None else None
    return _Lacking(lacking, referrers, is_expected)


def _find_creators(db: Reader, wanted: Key, lacking: _Lacking) -> dict[Key, Clusters]:
    """Return the delivered objects that may create another one, each with the clusters that lack it otherwise."""
    others = sorted(set(_list_creators(db, wanted)).difference(lacking.referrers))
    return {one: found for one in others if (found := find_own_clusters(db, one) & lacking.clusters)}


def _list_creators(db: Reader, wanted: Key) -> Iterator[Key]:
    """Yield the delivered objects that may create another one."""
    namespaces = list_chart_namespaces(wanted)
    for namespace in (ANY_NAMESPACE,) if namespaces is None else namespaces:
        yield from (Key(*row) for row in db.rows_of(CHARTS, (namespace,)))
    if namespaces is None:
        return
    for prefix in list_prefixes(wanted.name):
        yield from (Key(*row) for row in db.rows_of(RESOURCES, (wanted.namespace, prefix)))
        if wanted.kind == "PersistentVolumeClaim":
            yield from (Key(*row) for row in db.rows_of(CLAIMS, (wanted.namespace, prefix)))
    if may_be_mentioned(wanted):
        yield from db.read(WORD_INDEX, (wanted.namespace,)).get(wanted.name, ())


def index_words(db: Reader, key: QueryKey) -> Mapping[str, list[Key]]:
    """Return the delivered objects of a namespace by the words of their manifests."""
    found: dict[str, list[Key]] = {}
    for *plain, text in db.rows_of(WORDS, tuple(key)):
        for word in read_text(text):
            found.setdefault(word, []).append(Key(*plain))
    return found


def count_reported(db: Reader, key: QueryKey) -> int:
    """Return the number of missing objects of a group."""
    return len(db.rows_of(REPORTED, tuple(key)))
