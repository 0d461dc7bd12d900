"""Update the last plan where documents changed: decide again, render and record only what they affect.

What only a complete plan can tell (other settings, an object that is defined twice, a finding that others depend on, a limit of the guard)
requires one, which gives the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from gitsched.decide.changed_clusters import update_cluster_rows
from gitsched.decide.changed_documents import creates_engine
from gitsched.decide.changed_totals import update_totals
from gitsched.decide.companion_changes import update_companions
from gitsched.decide.continued_engines import SELECTOR_CODES, ContinuedEngines, continue_engines
from gitsched.decide.decisions import decide_workload, is_unchanged, list_dependency_trackers
from gitsched.decide.plan import build_plan
from gitsched.decide.plan_result import HadWorkloads, Plan, list_moves
from gitsched.decide.plan_state import (
    NO_COMPANION_ROW,
    ClusterRow,
    PlanRows,
    StateChanges,
    StoredOutcomes,
    Totals,
    WorkloadRow,
    make_workload_row,
    workload_sort_key,
)
from gitsched.decide.reference_changes import move_reference_findings, update_references, update_referrers
from gitsched.decide.rendered_tree import (
    BlobLookup,
    RenderCache,
    WorkloadFiles,
    add_namespace_manifests,
    render_workload,
)
from gitsched.model.document import read_annotations
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.time import add_duration
from gitsched.render.cluster_directory import complete_directory
from gitsched.render.output_files import (
    CLUSTER_JSON,
    STUB_MANIFEST_PATH,
    cluster_path,
    escape_segment,
    relative_path,
    status_path,
    write_cluster_json,
    write_record,
)

if TYPE_CHECKING:
    from datetime import datetime

    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import PolicyEngine, Snapshot
    from gitsched.decide.changed_documents import SourceDiff
    from gitsched.model.changes import Move
    from gitsched.model.document import Body, Document, Key
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome
    from gitsched.model.template_index import TemplateEntry, TemplateIndex


_UNCHANGED = ExistingBlob("")
"""Placeholder for a file of a cluster directory that does not change."""
_UPDATED_CODES = (*SELECTOR_CODES, "annotation-unread")
"""Codes of findings that belong to no file or workload, and that an incremental plan updates."""


class PlanState(NamedTuple):
    """The state that an earlier plan left: its totals, its rows and its engines, which are read on demand. `kinds` are the kinds of the
    documents of policy APIs."""

    totals: Totals
    rows: PlanRows
    kinds: tuple[tuple[str, str], ...] = ()

    @property
    def engines(self) -> tuple[PolicyEngine, ...]:
        return self.rows.engines


class IncrementalPlan(NamedTuple):
    """A plan that holds only changes, and the changes of the plan state."""

    plan: Plan
    totals: Totals
    changes: StateChanges


class _Decided(NamedTuple):
    """The workloads that were decided again: their documents, files and outcomes, those without a placement now that had one, and those
    that may be decided differently next time. `documents` includes objects that no policy selects."""

    documents: Mapping[Key, Document]
    workloads: Mapping[Key, WorkloadFiles]
    removed: Mapping[Key, WorkloadRow]
    unstable: frozenset[Key]

    @property
    def outcomes(self) -> dict[Key, Outcome]:
        return {key: files.outcome for key, files in self.workloads.items()}


def make_incremental_plan(
    state: PlanState, diff: SourceDiff, snapshot: Snapshot, find_blob: BlobLookup, cache: RenderCache, limit: int
) -> IncrementalPlan | None:
    """Make the next plan from the state of the last one; None if a complete plan is needed, also to decide more than `limit` workloads."""
    totals, rows = state.totals, state.rows
    if not _may_continue(totals, diff, snapshot):
        return None
    is_idle = _is_idle(totals, diff, snapshot)
    if is_idle:
        continued = ContinuedEngines((), frozenset(), totals.engine_findings, totals.records, totals.recorded)
        decided = _Decided({}, {}, {}, totals.unstable)
    else:
        found = continue_engines(totals, rows, diff, snapshot, state.kinds)
        if found is None or (not found.is_new and any(_is_about(finding, diff.findings) for finding in found.findings)):
            return None
        documents = _list_affected_documents(state, diff, snapshot, found, limit)
        decisions = _decide(state, diff, snapshot, found, documents, find_blob, cache) if documents is not None else None
        if decisions is None:
            return None
        continued, decided = found, decisions
    others = (finding for key, group in totals.findings_by_workload.items() if key not in decided.documents for finding in group)
    if any(_is_about(finding, diff.findings) and finding not in _list_removed_findings(diff, totals) for finding in others):
        return None
    if _has_record_conflict(totals, rows, decided, continued, find_blob):
        return None
    outcomes, changes = decided.outcomes, diff.templates
    references = update_references(rows, decided.documents, outcomes, decided.removed, changes, totals)
    reference_findings = move_reference_findings(totals.reference_findings, diff.findings, decided.documents)
    companions = update_companions(rows, decided.documents, outcomes, decided.removed, changes, totals)
    if references is None or reference_findings is None or companions is None:
        return None
    workload_rows: dict[Key, WorkloadRow | None] = {
        key: row._replace(references=found) for key, found in references.items() if (row := rows.read_workload(key)) is not None
    }
    for key, companion_row in companions.items():
        row = workload_rows.get(key) or rows.read_workload(key)
        workload_rows |= {key: row._replace(companions=companion_row)} if row is not None else {}
    for key, files in decided.workloads.items():
        rest = references[key], companions.get(key, NO_COMPANION_ROW)
        workload_rows[key] = make_workload_row(files, _read_source_path(decided.documents[key]), *rest)
    workload_rows |= dict.fromkeys(decided.removed)
    changed_rows = {**dict.fromkeys(outcomes), **dict.fromkeys(decided.removed)}
    cluster_rows = update_cluster_rows(rows, {key: workload_rows[key] for key in changed_rows}, continued.clusters)
    retiring = _list_retiring(totals, continued, snapshot)
    if retiring is None:
        return None
    new = update_totals(totals, rows, diff, snapshot, continued, decided.documents, outcomes, decided.removed, cluster_rows)
    new = new._replace(unstable=decided.unstable, reference_findings=reference_findings, retiring=retiring)
    if not is_idle:
        new = new._replace(engine_wakeups=tuple(engine.wakeup for engine in continued.engines if engine.wakeup is not None))
    moves = tuple(list_moves(outcomes.values(), _find_active_clusters(state)))
    if _may_leave_copies(moves, continued, new.config):  # no copy stays of a removed workload
        return None
    if decided.removed:
        from gitsched.decide.removed_rows import list_row_removals  # most changes remove nothing

        removals = list_row_removals(decided.removed, totals, continued.records, snapshot)
        if removals is None:
            return None
        moves = (*moves, *removals)
    if _needs_guard(state, continued.engines, moves) or _continue_others(state, decided.documents, moves):
        return None
    changed: dict[Key, Outcome | None] = {**dict.fromkeys(decided.removed), **outcomes}
    plan = build_plan(
        new,
        StoredOutcomes(rows, new.workload_count, changed),
        outcomes.values(),
        moves,
        {
            **dict(_list_changed_files(state, decided, cluster_rows)),
            **_list_changed_records(totals.records, continued.records),
        },
        wakeups=new.engine_wakeups or (),
    )
    state_changes = _list_state_changes(state, diff, snapshot, continued, decided, workload_rows, cluster_rows)
    return IncrementalPlan(plan, new, state_changes)


def _may_continue(totals: Totals, diff: SourceDiff, snapshot: Snapshot) -> bool:
    """Return whether the changed files and the time leave everything in force that an incremental plan keeps."""
    if any(held.lost for held in totals.held.values()) or totals.retained or snapshot.at < totals.source_time:
        return False
    other = (finding for finding in totals.other_findings if finding.code not in _UPDATED_CODES)
    if any(_is_about(finding, diff.findings) for finding in other) or any(map(creates_engine, diff.came_or_went)):
        return False
    ends = (add_duration(since, totals.config.output.retire_after) for since in totals.retiring.values())
    return all(end > snapshot.now for end in ends)


def _list_removed_findings(diff: SourceDiff, totals: Totals) -> frozenset[Finding]:
    """Return the findings about removed templates."""
    removed = (key for key, (_, after) in diff.templates.items() if after is None)
    return frozenset(finding for key in removed for finding in totals.findings_by_workload.get(key, ()))


def _decide(
    state: PlanState,
    diff: SourceDiff,
    snapshot: Snapshot,
    continued: ContinuedEngines,
    documents: Mapping[Key, Document],
    find_blob: BlobLookup,
    cache: RenderCache,
) -> _Decided | None:
    """Decide and render some workloads; None if one of them concerns others."""
    rows, unstable = state.rows, set(state.totals.unstable)
    workloads: dict[Key, WorkloadFiles] = {}
    gone = (key for key, (_, after) in diff.templates.items() if after is None)
    removed = {key: row for key in gone if (row := rows.read_workload(key)) is not None}
    if any(key.kind == "Namespace" for key in (*documents, *diff.came_or_went)):
        return None
    for key, document in documents.items():
        outcome, row = decide_workload(document, continued.engines, snapshot), rows.read_workload(key)
        if outcome is None:
            if row is not None:
                removed[key] = row
            continue
        if outcome.manifests is not None or outcome.bundles:
            return None  # another workload may render manifests with the same paths
        if outcome.held is not None and outcome.held.lost:
            return None  # it keeps the directory of a cluster without a document
        if row is None and key[:2] in state.totals.kind_scopes:
            return None  # the first workload of a kind may have a finding about its scope
        outcome = _add_move_finding(outcome, document, state, snapshot)
        workloads[key] = render_workload(outcome, document, False, find_blob, cache)
        (unstable.discard if is_unchanged(outcome, snapshot.previous) else unstable.add)(key)
    if any(key[:2] in state.totals.kind_scopes for key in removed):
        return None
    unstable -= removed.keys() | {key for key, (_, after) in diff.templates.items() if after is None}
    if _may_leave_data(removed, documents, snapshot) or _have_taken_paths(workloads, rows):
        return None
    return _Decided(documents, workloads, removed, frozenset(unstable))


def _have_taken_paths(workloads: Mapping[Key, WorkloadFiles], rows: PlanRows) -> bool:
    """Return whether a new workload has the path of another one, or that of the stub."""
    new = {key for key in workloads if rows.read_workload(key) is None}
    if not new:
        return False
    paths = {relative_path(key): key for key in new}
    if len(paths) < len(new) or STUB_MANIFEST_PATH in paths:
        return True
    names = {(key.namespace, key.name) for key in new}
    similar = (key for key, _ in rows.template_index.items() if (key.namespace, key.name) in names and key not in new)
    return any(relative_path(key) in paths for key in similar)


def _may_leave_data(removed: Mapping[Key, WorkloadRow], documents: Mapping[Key, Document], snapshot: Snapshot) -> bool:
    """Return whether a workload that no policy selects any more leaves data behind, which is a finding."""
    unselected = [documents[key] for key in removed if key in documents]
    if not unselected:
        return False
    from gitsched.apis.stateful_holds import Holds

    holds = Holds(snapshot.templates)
    return any(holds.list_data(document) for document in unselected)


def _add_move_finding(outcome: Outcome, document: Document, state: PlanState, snapshot: Snapshot) -> Outcome:
    """Return the outcome with a warning if the workload moves without its data."""
    moves = [move for move in list_moves((outcome,), _find_active_clusters(state)) if move.before]
    if not moves:
        return outcome
    from gitsched.apis.stateful_holds import Holds
    from gitsched.decide.stateful_workloads import find_left_data  # few changes move a workload

    finding = find_left_data(moves[0], document, Holds(snapshot.templates), snapshot.config.guard)
    return outcome if finding is None else outcome._replace(findings=(*outcome.findings, finding))


def _find_active_clusters(state: PlanState) -> HadWorkloads:
    return lambda name: name not in state.totals.retiring and state.rows.read_cluster(name) is not None


def _needs_guard(state: PlanState, engines: tuple[PolicyEngine, ...], moves: tuple[Move, ...]) -> bool:
    """Return whether moves may exceed a limit of the guard, which only a complete plan can tell."""
    if not any(move.before for move in moves):
        return False
    from gitsched.decide.guard import list_guarded_moves, may_exceed_limit  # most changes move nothing

    replicas = sum(facts.replicas for facts in state.totals.first_clusters.values())
    guarded = list_guarded_moves(moves, engines)
    sizes = _count_placed(state.rows.template_index)

    def count(scope: str, name: str) -> int:
        return sizes[scope, name]

    return may_exceed_limit(guarded, state.totals.workload_count, replicas, state.totals.config.guard, count)


def _count_placed(index: TemplateIndex) -> Counter[tuple[str, str]]:
    """Return the number of workloads that stay where they are, by scope of the guard and its name."""
    sizes: Counter[tuple[str, str]] = Counter()
    for key, entry in index.items():
        if entry.placement is not None and entry.placement.is_settled and entry.placement.clusters:
            sizes["fleet", ""] += 1
            sizes["namespace", key.namespace] += 1
            sizes.update(("cluster", cluster) for cluster in entry.placement.clusters)
    return sizes


def _continue_others(state: PlanState, documents: Mapping[Key, Document], moves: tuple[Move, ...]) -> bool:
    """Return whether something moves, and a workload may continue another one under a new name."""
    if not any(move.before for move in moves):
        return False
    from gitsched.decide.renames import RENAMED_FROM  # most changes move nothing

    annotated = (entry.annotations for _, entry in state.rows.template_index.items())
    return any(RENAMED_FROM in found for found in (*annotated, *(read_annotations(one.body) for one in documents.values())))


def _may_leave_copies(moves: tuple[Move, ...], continued: ContinuedEngines, config: Config) -> bool:
    """Return whether moves may leave copies behind for an overlap; only a complete plan retains these."""
    if not config.output.overlap.duration or not any(move.before for move in moves):
        return False
    if None in continued.clusters.values():
        return True  # replicas in clusters without a document stay until others replace them
    from gitsched.decide.retained_copies import may_retain  # most changes move nothing

    return any(may_retain(move) for move in moves)


def _is_idle(totals: Totals, diff: SourceDiff, snapshot: Snapshot) -> bool:
    """Return whether the engines have accepted the same documents and output before, and no time has come for them to check again.

    A workload that was decided otherwise than recorded is in `diff`, so the output is the one that the engines know.
    """
    if diff.documents or diff.findings or snapshot.at != totals.source_time or totals.engine_wakeups is None:
        return False
    return all(wakeup > snapshot.now for wakeup in totals.engine_wakeups)


def _list_affected_documents(
    state: PlanState, diff: SourceDiff, snapshot: Snapshot, continued: ContinuedEngines, limit: int
) -> dict[Key, Document] | None:
    """Return the documents to decide, by (namespace, name): changed ones and those that depend on them. None if one is missing, or if there
    are too many."""
    gone = {key for key, (_, after) in diff.templates.items() if after is None}
    dirty = frozenset(diff.documents) | continued.affected | gone
    for engine in list_dependency_trackers(continued.engines):
        dirty |= engine.affected_by(dirty)
    if not dirty.isdisjoint(state.totals.varied) or len(dirty) > limit:
        return None
    found: dict[Key, Document] = {}
    for key in sorted(dirty - gone, key=workload_sort_key):
        document = diff.documents.get(key) or snapshot.templates.get(key)
        if document is None:
            return None
        found[key] = document
    return found


def _is_about(finding: Finding, paths: Container[str]) -> bool:
    """Return whether the location of a finding, or of the rule that it is about, is in one of these files."""
    by_rule = finding.field is not None and finding.field.origin.path in paths
    return by_rule or (finding.location is not None and finding.location.path in paths)


def _has_record_conflict(
    totals: Totals, rows: PlanRows, decided: _Decided, continued: ContinuedEngines, find_blob: BlobLookup
) -> bool:
    """Return whether a workload or an engine would overwrite the record of another one."""
    new: list[str] = []
    for key, files in decided.workloads.items():
        row = rows.read_workload(key)
        new += (path for path in files.records if row is None or path not in row.record_paths)
    if continued.records != totals.records:
        known = {key for key, _ in totals.records}
        new += (status_path(key) for key, _ in continued.records if key not in known)
    return len(set(new)) < len(new) or any(find_blob(path) is not None for path in new)


def _list_changed_records(before: Iterable[tuple[Key, Body]], after: Iterable[tuple[Key, Body]]) -> dict[str, PlannedFile | None]:
    """Return the files of the changed records that belong to no workload; None for a removed one."""
    if before == after:
        return {}
    old, new = dict(before), dict(after)
    gone: dict[str, PlannedFile | None] = {status_path(key): None for key in old if key not in new}
    return {**gone, **{status_path(key): write_record(body) for key, body in new.items() if old.get(key) != body}}


def _list_retiring(totals: Totals, continued: ContinuedEngines, snapshot: Snapshot) -> Mapping[str, datetime] | None:
    """Return the clusters that retire, and since when; None if one of them returns, or goes at once."""
    gone = [name for name, facts in continued.clusters.items() if facts is None]
    if any(name in totals.retiring for name in continued.clusters):
        return None
    if not gone:
        return totals.retiring
    from gitsched.decide.retained_copies import choose_start  # few clusters lose their document

    config = totals.config.output
    since = choose_start(snapshot.at, snapshot.now, config.retire_after)
    if add_duration(since, config.retire_after) <= snapshot.now or any(escape_segment(name) != name for name in gone):
        return None
    return dict(sorted({**totals.retiring, **dict.fromkeys(gone, since)}.items()))


def _list_state_changes(
    state: PlanState,
    diff: SourceDiff,
    snapshot: Snapshot,
    continued: ContinuedEngines,
    decided: _Decided,
    workload_rows: Mapping[Key, WorkloadRow | None],
    cluster_rows: Mapping[str, ClusterRow | None],
) -> StateChanges:
    """Return what changes in the rows of the plan state."""
    from gitsched.decide.template_entries import make_template_entry

    index, outcomes = state.rows.template_index, decided.outcomes
    templates: dict[Key, TemplateEntry | None] = dict.fromkeys(key for key, (_, after) in diff.templates.items() if after is None)
    for key, document in decided.documents.items():
        entry = make_template_entry(document, outcomes.get(key))
        if index.get(key) != entry:
            templates[key] = entry
    kinds = {key[:2] for key in diff.api_documents}
    return StateChanges(
        workload_rows,
        cluster_rows,
        templates,
        update_referrers(state.rows, workload_rows),
        {kind: snapshot.documents.get(kind, ()) for kind in kinds},
        continued.engines if continued.is_new else None,
        diff.added_paths,
        diff.removed_paths,
    )


def _read_source_path(document: Document) -> str:
    return document.origin.path if document.origin else ""


def _list_changed_files(
    state: PlanState, decided: _Decided, cluster_rows: Mapping[str, ClusterRow]
) -> Iterable[tuple[str, PlannedFile | None]]:
    """Yield the changed files of the output tree by path; None for a removed file."""
    workloads = decided.workloads
    for removed in decided.removed.values():
        yield from ((path, None) for path in removed.record_paths)
    for key, files in workloads.items():
        before = state.rows.read_workload(key)
        yield from ((path, None) for path in (before.record_paths if before else ()) if path not in files.records)
        yield from files.records.items()
    for name, row in cluster_rows.items():
        previous = state.rows.read_cluster(name)
        changed = {path: file for files in workloads.values() for path, file in files.manifests.get(name, {}).items()}
        if previous is not None and previous.manifest_paths == row.manifest_paths:
            yield from ((cluster_path(name, path), file) for path, file in changed.items())
            if previous.facts != row.facts:
                yield cluster_path(name, CLUSTER_JSON), write_cluster_json(*row.facts)
            continue
        old = _list_directory_files(previous, {}, state.totals) if previous else {}
        new = _list_directory_files(row, changed, state.totals)
        yield from ((cluster_path(name, path), None) for path in old if path not in new)
        yield from (
            (cluster_path(name, path), file) for path, file in new.items() if file is not _UNCHANGED and old.get(path) != file
        )


def _list_directory_files(row: ClusterRow, changed: Mapping[str, PlannedFile], totals: Totals) -> dict[str, PlannedFile]:
    files: dict[str, PlannedFile] = {path: changed.get(path, _UNCHANGED) for path in row.manifest_paths}
    files_with_namespaces = add_namespace_manifests(files, totals.namespace_manifests)
    return complete_directory(row.facts, files_with_namespaces, totals.config.output.protected_namespaces)
