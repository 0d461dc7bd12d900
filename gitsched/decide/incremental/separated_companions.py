"""Compare companions and their targets again for an incremental plan, and update the findings about those that are separated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.incremental.plan_state import CompanionRow, ReferenceRow
from gitsched.decide.relations.assumed_objects import is_assumed
from gitsched.decide.relations.companion_findings import (
    NOT_SELECTED,
    SEPARATED,
    count_separated,
    make_separated_finding,
    rate_separation,
)
from gitsched.decide.relations.companion_placement import CompanionPlacement, DeliveredCompanion, describe_delivery, place_companion
from gitsched.decide.relations.delivered_objects import Clusters
from gitsched.decide.relations.reference_findings import MAX_FINDINGS, LocatedFinding, describe_outcome
from gitsched.kinds.companion_kinds import COMPANION_KINDS, SHARED_SERVICE_KINDS
from gitsched.model.document import Key
from gitsched.model.finding import Finding, Location, locate_document

if TYPE_CHECKING:
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.model.scheduling import Outcome


class NeedsAllCompanions(Exception):
    """Only a complete plan can compare these companions and their targets."""


class CompanionComparison:
    """Compares companions with their targets, which are all workloads of their own: none is contained in another one.

    `kept` are the rows of changed companions and targets, `references` those of changed references.
    """

    def __init__(
        self, changes: IncrementalChanges, kept: Mapping[Key, CompanionRow], references: Mapping[Key, ReferenceRow]
    ) -> None:
        self._changes, self._kept, self._references = changes, kept, references

    def read_row(self, key: Key) -> CompanionRow | None:
        """Return what a workload has to do with companions; None for one without a row."""
        if key in self._kept:
            return self._kept[key]
        row = self._changes.rows.read_workload(key)
        return row.companions if row is not None else None

    def compare(self, key: Key) -> CompanionPlacement | None:
        """Return where a companion and its targets go if these are not the same clusters; None if they are. Raise NeedsAllCompanions if it
        is not known where they go."""
        row = self.read_row(key)
        if row is None:
            raise NeedsAllCompanions
        if not row.targets:
            return None
        companion, targets = self._describe(key), tuple(sorted(map(self._describe, row.targets)))
        wanted = frozenset[str]().union(*(target.clusters for target in targets))
        if (companion.clusters, companion.active) == (wanted, wanted):
            return None
        if self._changes.totals.varied or row.features is None or self._is_missed(key):
            raise NeedsAllCompanions
        is_bound = self._are_referenced(key, row.targets) or all(not target.clusters for target in targets)
        is_shared = row.features.is_shared or (key.namespace, key.name) in self._shared
        config = self._changes.totals.config

        def without_known(clusters: Clusters) -> Clusters:
            return frozenset(name for name in clusters if not is_assumed(key, name, config))

        return place_companion(
            companion, targets, wanted, companion.clusters, without_known, may_be_idle=not (is_bound or is_shared)
        )

    def _describe(self, key: Key) -> DeliveredCompanion:
        outcome = self._changes.find_outcome(key)
        if outcome is None:
            raise NeedsAllCompanions
        return describe_delivery(key, key, outcome)

    def _is_missed(self, key: Key) -> bool:
        """Return whether a finding about a missing reference may name the companion."""
        rows = self._changes.rows
        referrers = map(rows.read_workload, rows.list_referrers(key))
        return any(row is not None and row.references.misses for row in referrers)

    def _are_referenced(self, key: Key, targets: Iterable[Key]) -> bool:
        references = self._references.get(key)
        if references is None:
            row = self._changes.rows.read_workload(key)
            if row is None:
                return False
            references = row.references
        required = {one.key for found, _ in references.manifests for one in found.requires}
        return required.union(references.implied).issuperset(targets)

    @cached_property
    def _shared(self) -> frozenset[tuple[str, str]]:
        documents = self._changes.snapshot.documents
        keys = [document.key for kind in SHARED_SERVICE_KINDS for document in documents.get(kind, ())]
        keys += [key for key in self._changes.rows.template_index if key[:2] in SHARED_SERVICE_KINDS]
        return frozenset((key.namespace, key.name) for key in keys)


def list_clusters(outcome: Outcome) -> tuple[Clusters, Clusters]:
    """Return the clusters of a workload, and those from which it is not being evicted."""
    return (
        outcome.clusters,
        frozenset(target.cluster for target in outcome.targets if not target.evicting),
    )


class SeparatedFindings(NamedTuple):
    """The findings about references and companions of a plan, and how many companions are separated from their targets."""

    findings: tuple[LocatedFinding, ...]
    separated_count: int


def update_separated(
    changes: IncrementalChanges,
    comparison: CompanionComparison,
    compared: Mapping[Key, CompanionPlacement | None],
    before: Mapping[Key, bool],
) -> SeparatedFindings:
    """Return the findings with those about companions that were compared again, None for one that is not separated or is gone.

    `before` says which of them were separated. Raise NeedsAllCompanions if a finding is needed that only a complete plan has.
    """
    totals = changes.totals
    if not any(before.values()) and not any(compared.values()):
        return SeparatedFindings(totals.reference_findings, totals.separated_count)
    shown = {key: finding for key, finding in totals.reference_findings if key is not None and finding.code == SEPARATED}
    if any(key[:2] not in COMPANION_KINDS for key in shown):
        raise NeedsAllCompanions  # a workload contains it
    others = totals.separated_count - len(shown)
    last = max(map(_get_order, shown.items()), default=None) if others else None
    for key, placement in compared.items():
        known = shown.pop(key, None)
        others -= known is None and before[key]
        if placement is not None:
            shown[key] = _make_finding(changes, placement, known)
    ordered = sorted(shown.items(), key=_get_order)
    count, first = len(ordered) + others, ordered[:MAX_FINDINGS]
    if others and (len(first) < MAX_FINDINGS or last is None or _get_order(first[-1]) > last):
        first = _list_first(changes, comparison, ordered, compared.keys())
    counted = [(None, count_separated(count - len(first)))] if count > len(first) else []
    rest = [entry for entry in totals.reference_findings if entry[1].code != SEPARATED]
    selected = [entry for entry in rest if entry[1].code != NOT_SELECTED]
    unselected = [entry for entry in rest if entry[1].code == NOT_SELECTED]
    return SeparatedFindings((*selected, *first, *counted, *unselected), count)


def _list_first(
    changes: IncrementalChanges, comparison: CompanionComparison, known: list[tuple[Key, Finding]], compared: Collection[Key]
) -> list[tuple[Key, Finding]]:
    """Return the first findings, also about companions that had none of their own in the last plan."""
    passed = {*compared, *(key for key, _ in known)}
    found: list[tuple[bool, Key, Finding | CompanionPlacement]] = [(*_get_order(entry), entry[1]) for entry in known]
    for key, entry in changes.rows.template_index.items():
        if key[:2] not in COMPANION_KINDS or entry.placement is None or key in passed:
            continue
        row = comparison.read_row(key)
        placement = comparison.compare(key) if row is not None and row.is_separated else None
        if placement is not None and placement.is_separated:
            found.append((rate_separation(placement) != "warning", key, placement))
    first = sorted(found, key=lambda one: one[:2])[:MAX_FINDINGS]
    return [(key, one if isinstance(one, Finding) else _make_finding(changes, one, None)) for _, key, one in first]


def _get_order(entry: tuple[Key, Finding]) -> tuple[bool, Key]:
    key, finding = entry
    return finding.severity != "warning", key


def _make_finding(changes: IncrementalChanges, placement: CompanionPlacement, known: Finding | None) -> Finding:
    key, totals = placement.companion.key, changes.totals
    if any(
        one.key in totals.unused or one.key not in changes.snapshot.templates for one in (placement.companion, *placement.targets)
    ):
        raise NeedsAllCompanions  # its document is broken, or there are two
    outcomes = {one.key: changes.find_outcome(one.key) for one in (placement.companion, *placement.targets)}

    def describe(about: Key) -> str:
        outcome = outcomes[about]
        assert outcome is not None, "all of them are placed"
        return describe_outcome(outcome)

    return make_separated_finding(placement, describe, _locate(changes, key, known))


def _locate(changes: IncrementalChanges, key: Key, known: Finding | None) -> Location | None:
    if key in changes.documents:
        return locate_document(changes.documents[key])
    return known.location if known is not None else locate_document(changes.snapshot.templates[key])
