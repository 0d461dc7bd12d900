"""Decide and render again the workloads that changed documents affect, for an incremental plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.registered import Registered
from gitsched.apis.replicas import AUTOSCALER_KINDS
from gitsched.decide.engines import list_dependency_trackers
from gitsched.decide.incremental.changed_namespaces import concerns_protected
from gitsched.decide.incremental.incremental_changes import IncrementalChanges
from gitsched.decide.plan_result import list_moves
from gitsched.decide.rendered_tree import BlobLookup, RenderCache, render_workload
from gitsched.decide.scaled_workloads import knows_autoscalers, list_foreign_autoscalers
from gitsched.decide.workload_decision import decide_workload, is_unchanged
from gitsched.decide.workload_files import WorkloadFiles
from gitsched.model.document import workload_sort_key
from gitsched.model.errors import NeedsCompletePlan
from gitsched.model.finding import format_count
from gitsched.render.output_files import STUB_MANIFEST_PATH, relative_path

TAKEN_PATH = "two workloads may have the same path"
_SCOPE = "the first or last workload of a kind has a finding about its scope"
_SHARE_CHANGES = Registered("gitsched.decide.capacity.continued_capacity", "share_changes")

if TYPE_CHECKING:
    from gitsched.apis.snapshot import Snapshot
    from gitsched.decide.incremental.changed_documents import SourceDiff
    from gitsched.decide.incremental.continued_engines import ContinuedEngines
    from gitsched.decide.incremental.plan_state import PlanRows, Totals, WorkloadRow
    from gitsched.decide.plan_result import HadWorkloads
    from gitsched.model.document import Document, Key
    from gitsched.model.scheduling import Outcome


def decide_affected(
    totals: Totals,
    rows: PlanRows,
    diff: SourceDiff,
    snapshot: Snapshot,
    continued: ContinuedEngines,
    limit: int,
    again: Collection[Key] = (),
) -> IncrementalChanges:
    """Decide the affected workloads. Raise NeedsCompletePlan if one of them concerns others, or if there are more than `limit`. Those to
    decide `again` are the ones whose changes the guard withholds no longer or that share capacity, or for which a cluster waits."""
    if again:
        templates = {key: template for key in again if (template := snapshot.templates.get(key)) is not None}
        diff = diff._replace(documents={**templates, **diff.documents})
    documents = _list_affected_documents(totals, rows, diff, snapshot, continued, limit)
    if concerns_protected((*documents, *diff.came_or_went), totals):
        raise NeedsCompletePlan("a protected Namespace changes")
    varied = totals.source.with_variants.intersection(documents)
    if varied:
        from gitsched.decide.incremental.varied_workloads import stays_as_it_is  # few sources have Bundles

        same = not diff.api_documents
        if not varied.isdisjoint(again) or not all(
            stays_as_it_is(documents[key], continued.engines, snapshot, rows, same_documents=same) for key in sorted(varied)
        ):
            raise NeedsCompletePlan("clusters may get other variants of a workload")
        documents = {key: document for key, document in documents.items() if key not in varied}
    unstable = set(totals.unstable - varied)
    outcomes: dict[Key, Outcome] = {}
    gone = [key for key, (_, after) in diff.templates.items() if after is None]
    gone += sorted(key for key in totals.engines.own if key not in continued.own and key not in documents and key not in gone)
    gone += (key for key in again if key not in documents and key not in gone)
    removed = {key: row for key in gone if (row := rows.read_workload(key)) is not None}
    known = rows.known_decisions
    decide = decide_workload if known is None else known.choose(diff, continued.engines, snapshot)
    for key, document in documents.items():
        outcome, row, own = decide(document, continued.engines, snapshot), rows.read_workload(key), continued.own.get(key)
        if own is not None:
            if outcome is not None:
                raise NeedsCompletePlan(f"two policy APIs claim {key}")
            outcome = own.outcome
        if outcome is None:
            if row is not None:
                removed[key] = row
            continue
        if outcome.bundles or (outcome.manifests is not None and own is None):
            raise NeedsCompletePlan("another workload may deliver the same objects as one that consists of several")
        if outcome.held is not None and outcome.held.lost:
            raise NeedsCompletePlan(f"{key} stays in a cluster without a document")
        if row is None and key[:2] in totals.source.guessed_kinds:
            raise NeedsCompletePlan(_SCOPE)
        outcomes[key] = outcome
        (unstable.discard if own is not None or is_unchanged(outcome, snapshot.previous) else unstable.add)(key)
    if any(key[:2] in totals.source.guessed_kinds for key in removed):
        raise NeedsCompletePlan(_SCOPE)
    unstable -= {*removed, *gone}
    new = {key for key, outcome in outcomes.items() if outcome.manifests is None and rows.read_workload(key) is None}
    if have_taken_paths(new, rows.template_index):
        raise NeedsCompletePlan(TAKEN_PATH)
    changes = IncrementalChanges(totals, rows, diff, snapshot, continued, documents, {}, outcomes, removed, frozenset(unstable))
    shared: IncrementalChanges | None = changes
    if shares_capacity(totals, continued):
        shared = _SHARE_CHANGES(changes)
    if shared is None:
        raise NeedsCompletePlan("workloads want capacity that others use")
    if _may_be_scaled_by_others(shared):
        raise NeedsCompletePlan("an autoscaler may set the replicas of a workload whose policy API does not know it")
    return shared


def shares_capacity(totals: Totals, continued: ContinuedEngines) -> bool:
    """Return whether workloads share capacity, groups of clusters or quotas, or did so in the last plan."""
    used = totals.capacity
    return bool(used.requested or used.limited) or any(engine.shares_capacity for engine in continued.engines)


def _may_be_scaled_by_others(changes: IncrementalChanges) -> bool:
    """Return whether an autoscaler may set the replicas of a workload whose API does not know it."""
    rows, documents = changes.rows, changes.documents
    autoscalers = [key for key in changes.outcomes if key[:2] in AUTOSCALER_KINDS]
    for key in autoscalers:
        scaled = list_foreign_autoscalers(changes.outcomes[key], documents[key], {}, changes.find_outcome)
        if next(scaled, None) is not None:
            return True
    new = [key for key in changes.outcomes if rows.read_workload(key) is None]
    if not all(knows_autoscalers(changes.outcomes[key]) for key in new):
        return any(key[:2] in AUTOSCALER_KINDS for key in (*rows.template_index, *documents))
    return False


def render_affected(changes: IncrementalChanges, find_blob: BlobLookup, cache: RenderCache) -> IncrementalChanges:
    """Render the decided workloads, those whose changes the guard withholds as they are. Raise NeedsCompletePlan if one leaves data
    behind."""
    if _may_leave_data(changes.removed, changes.documents, changes.snapshot):
        raise NeedsCompletePlan("a workload that no policy selects any more leaves data behind")
    withheld = {move.key for move in changes.withheld.moves}
    workloads: dict[Key, WorkloadFiles] = {}
    delivery = changes.totals.config.delivery
    for key, decided in changes.outcomes.items():
        document, is_withheld = changes.documents[key], key in withheld
        outcome = decided if is_withheld else _add_move_finding(decided, document, changes.had_workloads, changes.snapshot)
        workloads[key] = render_workload(outcome, document, is_withheld, find_blob, cache, delivery=delivery)
    return changes._replace(workloads=workloads, outcomes={key: files.outcome for key, files in workloads.items()})


def _list_affected_documents(
    totals: Totals, rows: PlanRows, diff: SourceDiff, snapshot: Snapshot, continued: ContinuedEngines, limit: int
) -> dict[Key, Document]:
    """Return the documents to decide, by (namespace, name): changed ones and those that depend on them. Raise NeedsCompletePlan if one is
    missing, or if there are too many.

    Each engine is asked once: its own dependencies are transitive, and none of its decisions depends on a decision of another API.
    """
    gone = {key for key, (_, after) in diff.templates.items() if after is None}
    dirty = frozenset(diff.documents) | continued.affected | gone | frozenset(_list_ending(totals, rows, snapshot))
    dirty |= totals.capacity.limited - totals.engines.own
    for engine in list_dependency_trackers(continued.engines):
        dirty |= engine.affected_by(dirty)
    if continued.own or totals.engines.own:
        from gitsched.decide.incremental.own_workloads import find_changed  # few sources have such workloads

        dirty |= find_changed(continued.own, totals, rows, diff, snapshot)
        gone |= {key for key in totals.engines.own if key not in continued.own and key not in snapshot.templates}
    if not totals.source.with_variants.isdisjoint((*gone, *diff.templates)):
        raise NeedsCompletePlan("a workload with variants changes")
    if len(dirty) > limit:
        raise NeedsCompletePlan(f"{format_count(len(dirty), 'workload')} have to be decided again, more than {limit}")
    found: dict[Key, Document] = {}
    for key in sorted(dirty - gone, key=workload_sort_key):
        own = continued.own.get(key)
        document = diff.documents.get(key) or snapshot.templates.get(key) or (own.document if own is not None else None)
        if document is None:
            raise NeedsCompletePlan(f"{key} depends on a change, and the source does not have it as one document")
        found[key] = document
    return found


def _list_ending(totals: Totals, rows: PlanRows, snapshot: Snapshot) -> Iterable[Key]:
    """Yield the workloads that are placed where a copy of theirs ends now, which their own manifest replaces."""
    for copy in totals.retained:
        if copy.until is not None and copy.until <= snapshot.now:
            row = rows.read_workload(copy.workload)
            if row is not None and copy.cluster in row.manifest_paths:
                yield copy.workload


def have_taken_paths(new: Collection[Key], known: Iterable[Key]) -> bool:
    """Return whether a new object has the path of another one, whose kind differs only in case, or that of the stub."""
    if not new:
        return False
    paths, names = {relative_path(key) for key in new}, {(key.namespace, key.name) for key in new}
    similar = (key for key in known if (key.namespace, key.name) in names and key not in new)
    return len(paths) < len(new) or STUB_MANIFEST_PATH in paths or any(relative_path(key) in paths for key in similar)


def _may_leave_data(removed: Mapping[Key, WorkloadRow], documents: Mapping[Key, Document], snapshot: Snapshot) -> bool:
    """Return whether a workload that no policy selects any more leaves data behind, which is a finding."""
    unselected = [documents[key] for key in removed if key in documents]
    if not unselected:
        return False
    from gitsched.apis.stateful_holds import Holds

    holds = Holds(snapshot.templates)
    return any(holds.list_data(document) for document in unselected)


def _add_move_finding(outcome: Outcome, document: Document, had_workloads: HadWorkloads, snapshot: Snapshot) -> Outcome:
    """Return the outcome with a warning if the workload moves without its data."""
    moves = [move for move in list_moves((outcome,), had_workloads) if move.before]
    if not moves:
        return outcome
    from gitsched.apis.stateful_holds import Holds
    from gitsched.decide.stateful_workloads import find_left_data  # few changes move a workload

    finding = find_left_data(moves[0], document, Holds(snapshot.templates), snapshot.config.guard)
    return outcome if finding is None else outcome._replace(findings=(*outcome.findings, finding))
