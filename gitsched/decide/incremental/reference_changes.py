"""Update the references of changed workloads for an incremental plan, where the findings about references stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.apis.topology import list_cluster_kinds
from gitsched.decide.incremental.missing_changes import is_absent, is_reported, lacks_source_objects, list_absent
from gitsched.decide.incremental.plan_state import NO_REFERENCE_ROW
from gitsched.decide.incremental.written_changes import list_changed_writes, list_writes
from gitsched.decide.relations.assumed_objects import is_assumed
from gitsched.decide.relations.delivered_objects import (
    Clusters,
    ManifestReferences,
    ReferenceCache,
    list_manifest_references,
)
from gitsched.kinds.requirements import BINDING_KINDS
from gitsched.kinds.written_objects import list_written_objects, may_write
from gitsched.model.document import is_known_group
from gitsched.model.finding import locate_document
from gitsched.model.references import RequiredObject

if TYPE_CHECKING:
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import PlanRows, ReferenceRow, Totals, WorkloadRow
    from gitsched.decide.relations.reference_findings import LocatedFinding
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome

_ACCOUNT = ("", "ServiceAccount")


def move_reference_findings(
    findings: tuple[LocatedFinding, ...], diff: SourceDiff, documents: Mapping[Key, Document]
) -> tuple[LocatedFinding, ...] | None:
    """Return the findings about references with their locations in changed files; None if one is about a document that is not there."""
    moved: list[LocatedFinding] = []
    for key, finding in findings:
        if key is not None and finding.location is not None and finding.location.path in diff.findings:
            if key in documents:
                finding = finding._replace(location=locate_document(documents[key]))
            elif key in diff.templates or key in diff.api_documents:
                return None
            # else it is built from the file, and is what it was
        moved.append((key, finding))
    return tuple(moved)


class ReferenceChanges(NamedTuple):
    """The references of changed workloads, and those of workloads that these refer to now. `absent` are objects that the source does not
    have, and that changed workloads refer to or did."""

    rows: dict[Key, ReferenceRow]
    absent: frozenset[Key] = frozenset()


def update_references(changes: IncrementalChanges) -> ReferenceChanges | None:
    """Return how references change; None if an object of the source is missing somewhere now, may no longer be, or if only a complete plan
    can tell."""
    rows, removed, creators, totals = changes.rows, changes.removed, changes.totals.creators, changes.totals
    cache, pod_paths = ReferenceCache(), changes.totals.config.pod_paths
    updated: dict[Key, ReferenceRow] = {}
    required: set[Key] = set()
    absent = list_changed_writes(changes)
    for key in changes.came_or_went:
        if key[:2] in BINDING_KINDS or (key[:2] == _ACCOUNT and has_bindings(rows)):
            return None
        if not _keeps_referrers(changes, key):
            return None
    for key, before_row in removed.items():
        references = before_row.references
        if key[:2] in BINDING_KINDS or lacks_source_objects(references, totals, rows):
            return None
        written = list_writes(references.manifests)
        if written and not may_write(key):
            return None
        absent |= written
        absent.update(list_absent(references, creators))
        if any(key in found for found in creators.values()) or any(one not in removed for one in rows.list_referrers(key)):
            return None
    for key, document in changes.documents.items():
        outcome, row = changes.outcomes.get(key), rows.read_workload(key)
        if may_write(key) and any(is_reported(one, totals) for one in list_written_objects(key, document.body)):
            return None  # the finding says where it is placed
        if outcome is None:
            if key[:2] in BINDING_KINDS:
                return None
            continue
        targets = outcome.clusters
        before = row.references if row is not None else _make_first_row(key, changes.totals)
        manifests = list_manifest_references(outcome, document, targets, pod_paths, cache) if targets else ()
        if row is None and (key[:2] in BINDING_KINDS or rows.list_referrers(key) or (key[:2] == _ACCOUNT and has_bindings(rows))):
            return None
        moved = row is None or targets != row.outcome.clusters
        writes, wrote = list_writes(manifests), list_writes(before.manifests)
        if moved or writes != wrote:
            if (writes or wrote) and not may_write(key):
                return None
            absent |= writes | wrote
        if moved and not _reach_referrers(changes, key, targets):
            return None
        if creators and _creates_others(document, manifests, moved, creators):
            return None
        if row is not None and _may_word_otherwise(changes, row, outcome):
            return None
        updated[key] = before._replace(manifests=manifests)
        if manifests == before.manifests and not (moved and before.implied):
            continue
        if lacks_source_objects(before, totals, rows) or key[:2] in BINDING_KINDS:
            return None
        found = find_required(changes, before, list(_list_requirements(manifests, before, targets)))
        if found is None:
            return None
        updated[key] = updated[key]._replace(misses=False)
        required |= found.placed
        absent.update(found.absent, list_absent(before, creators))
    for key in sorted(required):
        row = rows.read_workload(key)
        known = updated.get(key) or (row.references if row is not None else None)
        if known is not None and not known.is_required:
            updated[key] = known._replace(is_required=True)
    if any(not key.namespace for key in absent if key.kind in ("ConfigMap", "Secret")):
        return None  # it is written into namespaces that its document does not name
    return ReferenceChanges(updated, frozenset(absent))


def _keeps_referrers(changes: IncrementalChanges, key: Key) -> bool:
    """Return whether nothing that is still delivered may lack an object that came or went, or have it now."""
    restored = changes.restored  # nothing is read of their documents, which are gone
    left = [one for one in changes.rows.list_referrers(key) if one not in changes.removed and one not in restored]
    if key not in restored:
        return not left
    rows = (changes.rows.read_workload(one) for one in left)
    return not any(row is not None and row.references.misses for row in rows)


def _may_word_otherwise(changes: IncrementalChanges, row: WorkloadRow, outcome: Outcome) -> bool:
    """Return whether findings about references name the policy of a workload, which has changed: it misses an object, or others miss it."""
    rows, totals = changes.rows, changes.totals
    if lacks_source_objects(row.references, totals, rows):
        return any(key[:2] not in list_cluster_kinds() for key in changes.diff.api_documents)
    if outcome.policy == row.outcome.policy:
        return False
    referrers = (rows.read_workload(key) for key in rows.list_referrers(outcome.key))
    return any(referrer is not None and lacks_source_objects(referrer.references, totals, rows) for referrer in referrers)


def _make_first_row(key: Key, totals: Totals) -> ReferenceRow:
    """Return what an object requires before its fields are read: a custom resource requires its definition, if the source has it."""
    definition = None if is_known_group(key.group) else totals.definitions.get(key[:2])
    return NO_REFERENCE_ROW if definition is None else NO_REFERENCE_ROW._replace(implied=(definition,))


def update_referrers(rows: PlanRows, workload_rows: Mapping[Key, WorkloadRow | None]) -> dict[Key, tuple[Key, ...] | None]:
    """Return for each object whether other workloads require it now: its new referrers, None for none."""
    changed: dict[Key, set[Key]] = {}
    for referrer, row in workload_rows.items():
        before_row = rows.read_workload(referrer)
        before, after = _list_required(before_row), _list_required(row)
        for key in before ^ after:
            found = changed.setdefault(key, set(rows.list_referrers(key)))
            (found.add if key in after else found.discard)(referrer)
    return {key: tuple(sorted(found)) or None for key, found in changed.items()}


def _list_required(row: WorkloadRow | None) -> set[Key]:
    if row is None:
        return set()
    required = {required.key for references, _ in row.references.manifests for required in references.requires}
    return required | set(row.references.implied)


def concerns_others(key: Key) -> bool:
    """Return whether an object may decide what others require or write."""
    return key[:2] in BINDING_KINDS or may_write(key)


def has_bindings(rows: PlanRows) -> bool:
    return any(key[:2] in BINDING_KINDS for key, _ in rows.template_index.items())


def _reach_referrers(changes: IncrementalChanges, key: Key, targets: Clusters) -> bool:
    """Return whether an object that moves still goes to all clusters of the workloads that refer to it."""
    for referrer in changes.rows.list_referrers(key):
        row, outcome = changes.rows.read_workload(referrer), changes.find_outcome(referrer)
        if row is not None and lacks_source_objects(row.references, changes.totals, changes.rows):
            return False  # it may miss this one
        if outcome is not None and not outcome.clusters <= targets:
            return False
    return True


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


def _list_requirements(
    manifests: ManifestReferences, before: ReferenceRow, targets: Clusters
) -> Iterator[tuple[RequiredObject, Clusters]]:
    yield from ((required, clusters) for references, clusters in manifests for required in references.requires)
    yield from ((RequiredObject(key, False), targets) for key in before.implied)


def _may_be_missing(key: Key, changes: IncrementalChanges) -> bool:
    """Return whether the source may have an object that is not placed."""
    return key[:2] in changes.snapshot.part_kinds or key in changes.totals.unused or key in changes.rows.template_index


class Requirements(NamedTuple):
    """What a workload requires: the workloads among it, which are all in its clusters, and objects that the source does not have."""

    placed: set[Key]
    absent: set[Key]


def find_required(
    changes: IncrementalChanges, before: ReferenceRow, requirements: list[tuple[RequiredObject, Clusters]]
) -> Requirements | None:
    """Return what a workload requires; None if an object of the source is not in its clusters, or if it is not known."""
    known = {required for references, _ in before.manifests for required in references.requires}
    found = Requirements(set(), set())
    for required, clusters in requirements:
        key = required.key
        if key in changes.removed:
            return None
        outcome = changes.find_outcome(key)
        if outcome is not None:
            if not clusters <= outcome.clusters:
                return None
            found.placed.add(key)
        elif not all(is_assumed(key, cluster, changes.totals.config) for cluster in clusters) and (
            required.expected or (required not in known and _may_be_missing(key, changes)) or key.kind in ("ConfigMap", "Secret")
        ):
            if not is_absent(key, changes):
                return None
            found.absent.add(key)
    return found
