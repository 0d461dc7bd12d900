"""Find the objects that delivered manifests refer to and that do not go to the same cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.relations.assumed_objects import is_assumed, is_preinstalled
from gitsched.decide.relations.delivered_objects import (
    NO_CLUSTERS,
    Clusters,
    DeliveredObjects,
    ReferenceRequirement,
    list_manifests,
)
from gitsched.kinds.possible_creators import PossibleCreators
from gitsched.kinds.written_objects import list_written_objects, may_write

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.document import Document, Key


class MissingReference(NamedTuple):
    """An object that does not go to `clusters`, where the `referrers` need it.

    `in_source` says that the source has it, or the `maker` whose controller writes it. Otherwise `creators` are delivered objects that
    may create it, and `uncertain` the clusters that they go to: there it is not reported. The same holds for an object that the source has
    only as `part` of a kustomization or chart, which says so. `parts` are the objects that refer to it, by the referrer that they are a
    part of.
    """

    key: Key
    clusters: Clusters
    referrers: tuple[Key, ...]
    in_source: bool
    maker: Key | None = None
    part: str = ""
    creators: tuple[Key, ...] = ()
    uncertain: Clusters = NO_CLUSTERS
    parts: Mapping[Key, Document] = {}

    @property
    def reported(self) -> Clusters:
        """The clusters in which a finding reports it."""
        return self.clusters - self.uncertain

    @property
    def may_be_created(self) -> bool:
        """Whether other objects may create it."""
        return not self.in_source or bool(self.part)


def find_missing_references(
    decisions: DecisionSet,
    delivered: DeliveredObjects,
    config: Config,
) -> tuple[MissingReference, ...]:
    """Return what delivered manifests refer to and what does not go to their clusters."""
    lacking = _list_lacking(delivered.requirements, delivered, config)
    if not lacking:
        return ()
    source = _SourceObjects(decisions)
    missing: list[MissingReference] = []
    for key, (clusters, referrers, expected) in sorted(lacking.items(), key=lambda entry: entry[0]):
        maker = source.find_maker(key)
        in_source = source.has(key) or maker is not None or key in delivered.clusters
        if in_source or (expected and not is_preinstalled(key, config)):
            part = decisions.kustomized.get(key, "") if maker is None else ""
            parts = {referrer: document for referrer, document in referrers.items() if document is not None}
            missing.append(MissingReference(key, clusters, tuple(sorted(referrers)), in_source, maker, part, parts=parts))
    return tuple(_find_creators(missing, decisions, delivered))


def list_creators(missing: Iterable[MissingReference]) -> dict[Key, frozenset[Key]]:
    """Return for each object that others may create those of them that are delivered."""
    return {one.key: frozenset(one.creators) for one in missing if one.may_be_created}


def _find_creators(missing: list[MissingReference], decisions: DecisionSet, delivered: DeliveredObjects) -> list[MissingReference]:
    """Add to each object the delivered ones that may create it, unless the source has it."""
    wanted = [one.key for one in missing if one.may_be_created]
    if not wanted:
        return missing
    creators = PossibleCreators(wanted)
    for key, outcome in decisions.outcomes.items():
        for manifest in list_manifests(outcome, decisions.templates[key], decisions.variants):
            creators.add(manifest.document.key, manifest.document.body)
    return [_add_creators(one, creators.find(one.key), delivered) if one.may_be_created else one for one in missing]


def _add_creators(missing: MissingReference, found: Iterable[Key], delivered: DeliveredObjects) -> MissingReference:
    others = (key for key in set(found).difference(missing.referrers) if key in delivered.clusters)
    creators = tuple(sorted(key for key in others if not delivered.clusters[key].isdisjoint(missing.clusters)))
    reached = NO_CLUSTERS.union(*(delivered.clusters[key] for key in creators))
    return missing._replace(creators=creators, uncertain=missing.clusters & reached)


def _list_lacking(
    requirements: Iterable[ReferenceRequirement], delivered: DeliveredObjects, config: Config
) -> dict[Key, tuple[Clusters, dict[Key, Document | None], bool]]:
    """Return for each object the clusters that lack it, the workloads that refer to it there, with the part that does, and whether it must
    be in the source."""
    known: dict[tuple[Key, Clusters], Clusters] = {}
    found: dict[Key, tuple[Clusters, dict[Key, Document | None], bool]] = {}
    for (key, expected), referrer, clusters, _, part in requirements:
        absent = known.get((key, clusters))
        if absent is None:
            absent = clusters - delivered.find_clusters(key)
            if absent:
                absent = frozenset([name for name in absent if not is_assumed(key, name, config)])
            known[key, clusters] = absent
        if absent:
            before, referrers, needed = found.get(key) or (NO_CLUSTERS, {}, False)
            referrers.setdefault(referrer, part)
            found[key] = (before if absent <= before else before | absent), referrers, needed or expected
    return found


class _SourceObjects:
    """What the source has, whether a policy selects it or not."""

    def __init__(self, decisions: DecisionSet) -> None:
        objects = (one.key for entry in decisions.variants.values() for variant in entry.variants for one in variant.objects)
        self._catalog, self._others = decisions.catalog, frozenset((*decisions.kustomized, *objects))
        self._makers: dict[Key, Key] | None = None

    def has(self, key: Key) -> bool:
        catalog = self._catalog
        return key in catalog.templates or key in catalog.duplicate_templates or key in catalog.broken or key in self._others

    def find_maker(self, key: Key) -> Key | None:
        """Return the object whose controller writes an object; None if there is none."""
        if key.group or key.kind not in ("ConfigMap", "Secret"):
            return None
        if self._makers is None:
            templates = (template for template in self._catalog.templates.values() if may_write(template.key))
            self._makers = {
                written: template.key for template in templates for written in list_written_objects(template.key, template.body)
            }
        return self._makers.get(key) or self._makers.get(key._replace(namespace=""))
