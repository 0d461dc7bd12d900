"""What workloads of an incremental plan refer to, where that goes, and their companions, for explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.decide.incremental.plan_state import workload_sort_key
from gitsched.decide.named_templates import NamedTemplates
from gitsched.decide.plan_result import PlanDetails
from gitsched.decide.relations.assumed_objects import is_assumed
from gitsched.decide.relations.companion_placement import CompanionPlacement, CompanionPlacements, describe_delivery
from gitsched.decide.relations.delivered_objects import NO_CLUSTERS, DeliveredObjects, ReferenceRequirement, list_manifests
from gitsched.decide.relations.missing_references import MissingReference
from gitsched.decide.rendered_tree import RenderedTree
from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.companion_targets import NO_FEATURES, read_features
from gitsched.kinds.written_objects import list_written_objects, may_write
from gitsched.model.references import RequiredObject
from gitsched.model.variants import BUNDLE_KIND
from gitsched.reconcile.incremental.state_plan import NeedsCompletePlan

if TYPE_CHECKING:
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.own_workloads import OwnWorkload
    from gitsched.decide.incremental.plan_state import Totals, WorkloadRow
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateIndex
    from gitsched.model.variants import TemplateVariants

NOTHING_RENDERED = RenderedTree({}, {}, {}, {}, {}, (), {})
"""The tree of a plan of which no file is needed."""

ReadRow = Callable[["Key"], "WorkloadRow | None"]


class PlannedRelations:
    """Collects what workloads refer to, and their companions."""

    def __init__(
        self,
        totals: Totals,
        index: TemplateIndex,
        templates: Mapping[Key, Document],
        own: Mapping[Key, OwnWorkload],
        read_row: ReadRow,
    ) -> None:
        self._totals, self._index, self._templates, self._own, self._read_row = totals, index, templates, own, read_row
        self._delivered = DeliveredObjects()
        self._missing: dict[Key, MissingReference] = {}
        self._placements: dict[Key, CompanionPlacement] = {}
        self._outcomes: dict[Key, Outcome] = {}
        self._variants: TemplateVariants = {}
        for owner, (document, outcome) in own.items():
            for manifest in list_manifests(outcome, document, {}):
                self._delivered.add(manifest.document.key, owner, manifest.clusters)

    def describe(self, keys: Iterable[Key], decisions: DecisionSet) -> PlanDetails:
        """Return what a complete plan has about some workloads. Raise NeedsCompletePlan if only that one can tell."""
        self._outcomes |= decisions.outcomes
        self._variants = decisions.variants
        for key in keys:
            row = self._read_row(key)
            if row is not None:
                self._add_references(key, row)
                self._add_companions(key, row)
            elif self._totals.has_companions and key in self._index and self._has_features(key):
                raise NeedsCompletePlan(f"no policy selects {key}, which may be a companion")
        outcomes, ordered = self._outcomes, sorted(self._placements, key=workload_sort_key)
        named = decisions._replace(outcomes=outcomes, templates=NamedTemplates(decisions.templates, listed=tuple(outcomes)))
        companions = CompanionPlacements(tuple(self._placements[key] for key in ordered))
        return PlanDetails(named, NOTHING_RENDERED, self._delivered, tuple(self._missing.values()), companions)

    def _add_references(self, key: Key, row: WorkloadRow) -> None:
        """Add what a workload refers to, where that goes, and where it is missing."""
        targets = row.outcome.clusters
        required = [(one, where) for references, where in row.references.manifests for one in references.requires]
        # Nothing is required of a cluster where nothing is delivered.
        implied = [(RequiredObject(one, False), targets) for one in row.references.implied] if targets else []
        delivered = self._delivered
        for one, where in (*required, *implied):
            delivered.requirements.append(ReferenceRequirement(one, key, where))
            if not one.expected and one.key not in self._index:
                continue
            if one.key not in delivered.clusters:
                other = self._read_row(one.key)
                if other is not None:
                    self._outcomes[one.key] = other.outcome
                    delivered.add(one.key, one.key, other.outcome.clusters)
            if not where <= delivered.find_clusters(one.key):
                self._add_missing(one.key, where)

    def _add_missing(self, key: Key, clusters: frozenset[str]) -> None:
        """Add an object that does not go to all of some clusters, unless they have it otherwise."""
        totals, built = self._totals, self._built_objects
        if key[:2] in totals.part_kinds or any(map(may_write, self._delivered.clusters.keys() - self._index.keys())):
            raise NeedsCompletePlan(f"{key} may be a part of something")
        written, by_controllers = self._written_objects
        self._delivered.written |= by_controllers
        absent = clusters - self._delivered.find_clusters(key)
        absent = frozenset(name for name in absent if not is_assumed(key, name, totals.config))
        in_source = key in self._index or key in totals.unused or key in self._delivered.clusters
        in_source = in_source or key in built or key in written or key._replace(namespace="") in written
        if absent and (in_source or key in totals.creators):
            before = self._missing[key].clusters if key in self._missing else NO_CLUSTERS
            creators = () if in_source else tuple(sorted(totals.creators[key]))
            self._missing[key] = MissingReference(key, before | absent, (), in_source, creators=creators)

    @cached_property
    def _built_objects(self) -> frozenset[Key]:
        """The objects of all variants, which count as delivered from then on."""
        for owner in sorted(self._variants):
            row = self._read_row(owner)
            if row is not None:
                for manifest in list_manifests(row.outcome, self._templates[owner], self._variants):
                    self._delivered.add(manifest.document.key, owner, manifest.clusters)
        return frozenset(one.key for entry in self._variants.values() for variant in entry.variants for one in variant.objects)

    @cached_property
    def _written_objects(self) -> tuple[frozenset[Key], Mapping[Key, frozenset[str]]]:
        """The objects that controllers write for templates of the source, and the clusters where they write them."""
        delivered = DeliveredObjects()
        written: set[Key] = set()
        for key in sorted(key for key in self._index if may_write(key)):
            written.update(list_written_objects(key, self._templates[key].body))
            row = self._read_row(key)
            clusters = row.outcome.clusters if row is not None else NO_CLUSTERS
            for references, _ in row.references.manifests if row is not None else ():
                delivered.add_written(references, clusters)
        return frozenset(key for key in written if not key.group and key.kind in ("ConfigMap", "Secret")), delivered.written

    def _add_companions(self, key: Key, row: WorkloadRow) -> None:
        """Add the targets of a workload and its companions, with those of these."""
        if key[:2] == BUNDLE_KIND:
            return  # its objects have companions, and are explained as parts of it
        if row.companions.is_reported and (self._own or self._has_unselected_companions):
            raise NeedsCompletePlan("a companion may have no policy, or be a part of something")
        for companion in (key, *row.companions.companions):
            if companion in self._placements:
                continue
            targets = self._get_row(companion).companions.targets
            if not self._totals.varied.isdisjoint((companion, *targets)):
                raise NeedsCompletePlan("a companion may be a part of what is built for clusters")
            self._outcomes |= {one: self._get_row(one).outcome for one in (companion, *targets) if one not in self._outcomes}
            found = tuple(describe_delivery(one, one, self._outcomes[one]) for one in targets)
            described = describe_delivery(companion, companion, self._outcomes[companion])
            self._placements[companion] = CompanionPlacement(described, found, NO_CLUSTERS, NO_CLUSTERS)

    def _has_features(self, key: Key) -> bool:
        """Return whether a template may be a companion, or have one."""
        return read_features(key, self._templates[key].body, self._totals.config.pod_paths) != NO_FEATURES

    @cached_property
    def _has_unselected_companions(self) -> bool:
        return any(entry.placement is None and key[:2] in COMPANION_KINDS for key, entry in self._index.items())

    def _get_row(self, key: Key) -> WorkloadRow:
        row = self._read_row(key)
        if row is None:
            raise NeedsCompletePlan(f"{key} has no placement")
        return row
