"""Which workloads of a plan an event can affect: the engines of the plan continue with the documents that the event changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from gitsched.apis.capabilities import Continuing, SnapshotChanges
from gitsched.decide.engines import list_dependency_trackers, list_needed
from gitsched.decide.incremental.changed_documents import pair_documents
from gitsched.decide.incremental.plan_contents import make_template_index
from gitsched.decide.named_templates import pair_changed
from gitsched.kinds.persistent_data import is_claim
from gitsched.model.errors import GitschedError
from gitsched.model.placement_groups import PlacementGroups
from gitsched.named_tuples import NamedTuple

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.catalog import Catalog
    from gitsched.decide.decisions import DecisionSet
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateIndex


class NeedsNewEngines(GitschedError):
    """An event needs engines that read all templates."""


class AffectedWorkloads(NamedTuple):
    """The engines for the documents after an event, and the workloads whose decision the event can change."""

    engines: tuple[PolicyEngine, ...]
    keys: frozenset[Key]


class ContinuedPlan:
    """The engines of a plan and what they were made from, prepared for any number of events.

    `unsettled` are the workloads that may be decided otherwise without an event, as time passes or with the records of the plan. Where the
    catalog does not list all templates (`is_partial`), new engines cannot take the place of these.
    """

    def __init__(
        self,
        engines: tuple[PolicyEngine, ...],
        catalog: Catalog,
        unsettled: frozenset[Key],
        list_templates: Callable[[], TemplateIndex],
        read_outcome: Callable[[Key], Outcome | None],
        *,
        is_partial: bool = False,
    ) -> None:
        self._engines, self._catalog, self._unsettled = engines, catalog, unsettled
        self._list_templates, self._read_outcome, self._is_partial = list_templates, read_outcome, is_partial
        self._related: frozenset[Key] = frozenset()
        """What the last change may have related to other objects than in the plan, if it was not of clusters."""

    @cached_property
    def _index(self) -> TemplateIndex:
        return self._list_templates()

    @cached_property
    def _groups(self) -> PlacementGroups:
        return PlacementGroups(self._index)

    def find_affected(self, snapshot: Snapshot, catalog: Catalog, left: Collection[str] | None = None) -> AffectedWorkloads | None:
        """Return the engines for the snapshot of a changed catalog, and what the change can affect; None if only new engines can tell.

        If only documents of clusters change, workloads in the clusters that are `left` are affected in any case. Raise NeedsNewEngines in
        place of None for a partial catalog.
        """
        found = self._continue(snapshot, catalog, left)
        if found is None and self._is_partial:
            raise NeedsNewEngines("only new engines can tell what an event affects")
        return found

    def _continue(self, snapshot: Snapshot, catalog: Catalog, left: Collection[str] | None) -> AffectedWorkloads | None:
        if sorted(engine.name for engine in self._engines) != sorted(list_needed(snapshot)):
            return None
        documents, templates = self._list_changed_documents(catalog), pair_changed(self._catalog.templates, catalog.templates)
        if any(None in pair for pair in templates.values()):
            return None
        self._restore_relations()
        changes = SnapshotChanges(documents, templates, self._index, self._read_outcome, True, self._groups)
        engines: list[PolicyEngine] = []
        affected = {*self._unsettled, *templates}
        for engine in self._engines:
            found = engine.continue_with(snapshot, changes) if isinstance(engine, Continuing) else None
            affected |= found.affected if found is not None else frozenset()
            if found is None or _is_due(found.engine, snapshot):
                self._related = frozenset(affected)
                return None
            engines.append(found.engine)
        affected.update(key for name in left or () for key in self._groups.placed.get(name, ()))
        dirty = frozenset(affected)
        for tracker in list_dependency_trackers(engines):
            dirty |= tracker.affected_by(dirty)
        if self._is_partial and left is not None and any(map(is_claim, dirty)):
            return None  # any workload may mount it
        self._related = dirty if left is None else frozenset()
        return AffectedWorkloads(tuple(engines), dirty)

    def _restore_relations(self) -> None:
        """Let the engines read the relations of the plan again, which those of the last change have in common with them."""
        for tracker in list_dependency_trackers(self._engines) if self._related else ():
            tracker.affected_by(self._related)
        self._related = frozenset()

    def _list_changed_documents(self, catalog: Catalog) -> Mapping[Key, DocumentPair]:
        before, after = self._catalog.api_documents, catalog.api_documents
        found: dict[Key, DocumentPair] = {}
        for kind in {**before, **after}:
            former, present = before.get(kind, ()), after.get(kind, ())
            if former is not present:
                found |= pair_documents(_by_key(former), _by_key(present))
        return found


def _is_due(engine: PolicyEngine, snapshot: Snapshot) -> bool:
    return engine.time is not None or (engine.wakeup is not None and engine.wakeup <= snapshot.now)


def _by_key(documents: Collection[Document]) -> dict[Key, Document]:
    return {document.key: document for document in documents}


def continue_plan(decided: DecisionSet) -> ContinuedPlan | None:
    """Prepare the decisions of a plan for events; None if other decisions than those of its engines are in force."""
    made_from = decided.input
    if decided.quarantined or decided.withheld or decided.variants or made_from is None or made_from.parts:
        return None
    timed = (key for key, outcome in decided.outcomes.items() if outcome.wakeup is not None)
    unsettled = frozenset((*decided.unstable, *timed)) - decided.own_workloads
    return ContinuedPlan(
        decided.engines,
        decided.catalog,
        unsettled,
        lambda: make_template_index(decided.catalog.templates, decided.outcomes),
        decided.outcomes.get,
    )
