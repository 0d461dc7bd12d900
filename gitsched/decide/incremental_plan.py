"""Update the last plan when only the content of known templates changed; anything else requires a complete plan.

A change that could affect anything else (other settings, an added or removed workload, a namespace, a finding that would have to move)
requires a complete plan, which gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gitsched.decide.catalog import DEFINITION_KINDS, RawDocument, resolve_key
from gitsched.decide.companion_changes import keep_companions
from gitsched.decide.decisions import decide_workload, is_unchanged, list_dependency_trackers, list_engine_records
from gitsched.decide.plan import build_plan
from gitsched.decide.plan_result import HadWorkloads, Plan, list_moves
from gitsched.decide.plan_state import (
    NO_COMPANION_ROW,
    ClusterRow,
    PlanRows,
    StoredOutcomes,
    Totals,
    WorkloadRow,
    make_workload_row,
    strip_outcome,
)
from gitsched.decide.reference_changes import move_reference_findings, update_references
from gitsched.decide.registry import reserved_groups
from gitsched.decide.rendered_tree import (
    BlobLookup,
    RenderCache,
    WorkloadFiles,
    add_namespace_manifests,
    count_replicas,
    render_workload,
)
from gitsched.model.document import Document, Key
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.time import add_duration
from gitsched.render.cluster_directory import complete_directory
from gitsched.render.output_files import CLUSTER_JSON, cluster_path, write_cluster_json

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config
    from gitsched.apis.policy_api import PolicyEngine, Snapshot
    from gitsched.model.changes import Move
    from gitsched.model.finding import Finding
    from gitsched.model.scheduling import Outcome

K = TypeVar("K")
V = TypeVar("V")
_UNCHANGED = ExistingBlob("")
"""Placeholder for a file of a cluster directory that does not change."""


class PlanState(NamedTuple):
    """The state that an earlier plan left: its totals, its rows and its engines, which are read on demand."""

    totals: Totals
    rows: PlanRows

    @property
    def engines(self) -> tuple[PolicyEngine, ...]:
        return self.rows.engines


class SourceDiff(NamedTuple):
    """The templates to decide again, by identity, and the findings of each changed file."""

    documents: Mapping[Key, Document]
    findings: Mapping[str, tuple[Finding, ...]]


def match_documents(
    before: Iterable[RawDocument], after: Iterable[RawDocument], kind_scopes: Mapping[tuple[str, str], bool]
) -> dict[Key, Document] | None:
    """Return the documents of a file by identity; None unless all are templates with the same identities as before."""
    old, new = list(before), list(after)
    if [document[3:] for document in old] != [document[3:] for document in new]:
        return None
    found = {}
    for document in new:
        key = resolve_key(document, kind_scopes)
        if key is None or document.group in reserved_groups or document.kind in DEFINITION_KINDS:
            return None
        found[key] = Document(key, document.api_version, document.body, document.origin)
    return found


class IncrementalPlan(NamedTuple):
    """A plan that holds only changes, and the changes of the plan state."""

    plan: Plan
    totals: Totals
    workloads: Mapping[Key, WorkloadRow]
    clusters: Mapping[str, ClusterRow]


def make_incremental_plan(
    state: PlanState, diff: SourceDiff, snapshot: Snapshot, find_blob: BlobLookup, cache: RenderCache
) -> IncrementalPlan | None:
    """Make the next plan from the state of the last one; None if a complete plan is needed."""
    totals, rows = state.totals, state.rows
    findings = (finding for group in (totals.other_findings, totals.engine_findings) for finding in group)
    if any(held.lost for held in totals.held.values()):
        return None
    if totals.retained or snapshot.at < totals.source_time or any(_is_about(finding, diff.findings) for finding in findings):
        return None
    ends = [add_duration(since, totals.config.output.retire_after) for since in totals.retiring.values()]
    if any(end <= snapshot.now for end in ends):
        return None
    is_idle = _is_idle(totals, diff, snapshot)
    if not is_idle and not _update_engines(state, snapshot):
        return None
    documents = {} if is_idle else _list_affected_documents(state, diff, snapshot)
    if documents is None:
        return None
    workloads: dict[Key, WorkloadFiles] = {}
    unstable = set(totals.unstable)
    for key, document in documents.items():
        outcome, row = decide_workload(document, state.engines, snapshot), rows.read_workload(key)
        if (outcome is None) != (row is None) or key.kind == "Namespace":
            return None
        if outcome is None:
            continue
        if outcome.manifests is not None:
            return None  # another workload may render manifests with the same paths
        if outcome.held is not None and outcome.held.lost:
            return None  # it keeps the directory of a cluster without a document
        outcome = _add_move_finding(outcome, document, state, snapshot)
        workloads[key] = render_workload(outcome, document, False, find_blob, cache)
        (unstable.discard if is_unchanged(outcome, snapshot.previous) else unstable.add)(key)
    others = (finding for key, group in totals.findings_by_workload.items() if key not in workloads for finding in group)
    if any(_is_about(finding, diff.findings) for finding in others) or _has_record_conflict(rows, workloads, find_blob):
        return None
    outcomes = {key: files.outcome for key, files in workloads.items()}
    references = update_references(rows, documents, outcomes, totals)
    reference_findings = move_reference_findings(totals.reference_findings, diff.findings, documents)
    companions = keep_companions(rows, documents, outcomes, totals)
    if references is None or reference_findings is None or companions is None:
        return None
    workload_rows = {
        key: make_workload_row(files, _read_source_path(documents[key]), references[key], companions.get(key, NO_COMPANION_ROW))
        for key, files in workloads.items()
    }
    cluster_rows = _update_cluster_rows(rows, workload_rows)
    new = _update_totals(totals, rows, outcomes, cluster_rows, diff, snapshot)
    if not is_idle:
        new = new._replace(engine_wakeups=tuple(engine.wakeup for engine in state.engines if engine.wakeup is not None))
    new = new._replace(unstable=frozenset(unstable), reference_findings=reference_findings)
    moves = tuple(list_moves(outcomes.values(), _find_active_clusters(state)))
    if _needs_guard(state, moves, new) or _may_leave_copies(moves, new.config):
        return None
    plan = build_plan(
        new,
        StoredOutcomes(rows, totals.workload_count, outcomes),
        outcomes.values(),
        moves,
        dict(_list_changed_files(state, workloads, cluster_rows)),
        wakeups=new.engine_wakeups or (),
    )
    required = {
        key: row._replace(references=found) for key, found in references.items() if (row := _read_other(rows, key, workloads))
    }
    return IncrementalPlan(plan, new, {**required, **workload_rows}, cluster_rows)


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


def _needs_guard(state: PlanState, moves: tuple[Move, ...], totals: Totals) -> bool:
    """Return whether moves may exceed a limit of the guard, which only a complete plan can tell."""
    if not any(move.before for move in moves):
        return False
    from gitsched.decide.guard import list_guarded_moves, may_exceed_limit  # most changes move nothing

    replicas = sum(facts.replicas for facts in totals.first_clusters.values())
    return may_exceed_limit(
        list_guarded_moves(moves, state.engines), state.totals.workload_count, replicas, state.totals.config.guard
    )


def _may_leave_copies(moves: tuple[Move, ...], config: Config) -> bool:
    """Return whether moves may leave copies behind for an overlap; only a complete plan retains these."""
    if not config.output.overlap.duration or not any(move.before for move in moves):
        return False
    from gitsched.decide.retained_copies import may_retain  # most changes move nothing

    return any(may_retain(move) for move in moves)


def _is_idle(totals: Totals, diff: SourceDiff, snapshot: Snapshot) -> bool:
    """Return whether the engines have accepted the same documents and output before, and no time has come for them to check again.

    A workload that was decided otherwise than recorded is in `diff`, so the output is the one that the engines know.
    """
    if diff.documents or diff.findings or snapshot.at != totals.source_time or totals.engine_wakeups is None:
        return False
    return all(wakeup > snapshot.now for wakeup in totals.engine_wakeups)


def _update_engines(state: PlanState, snapshot: Snapshot) -> bool:
    """Return whether the engines accept the new snapshot, and their findings and records about anything but workloads stay the same."""
    totals, engines = state.totals, state.engines
    return (
        all(engine.update(snapshot) for engine in engines)
        and tuple(finding for engine in engines for finding in engine.findings) == totals.engine_findings
        and list_engine_records(engines) == totals.records
        and all(engine.time is None and (engine.wakeup is None or engine.wakeup > snapshot.now) for engine in engines)
    )


def _list_affected_documents(state: PlanState, diff: SourceDiff, snapshot: Snapshot) -> dict[Key, Document] | None:
    """Return the documents to decide, by (namespace, name): changed ones and those that depend on them. None if one is missing."""
    dirty = frozenset(diff.documents)
    for engine in list_dependency_trackers(state.engines):
        dirty |= engine.affected_by(dirty)
    if not dirty.isdisjoint(state.totals.varied):
        return None
    found: dict[Key, Document] = {}
    for key in sorted(dirty, key=lambda key: (key.namespace, key.name, key)):
        document = diff.documents.get(key) or snapshot.templates.get(key)
        if document is None:
            return None
        found[key] = document
    return found


def _is_about(finding: Finding, paths: Container[str]) -> bool:
    """Return whether the location of a finding, or of the rule that it is about, is in one of these files."""
    by_rule = finding.field is not None and finding.field.origin.path in paths
    return by_rule or (finding.location is not None and finding.location.path in paths)


def _has_record_conflict(rows: PlanRows, workloads: Mapping[Key, WorkloadFiles], find_blob: BlobLookup) -> bool:
    """Return whether a workload would overwrite a record of another one, or two workloads would write the same record."""
    new: list[str] = []
    for key, files in workloads.items():
        row = rows.read_workload(key)
        new += (path for path in files.records if row is None or path not in row.record_paths)
    return len(set(new)) < len(new) or any(find_blob(path) is not None for path in new)


def _read_other(rows: PlanRows, key: Key, workloads: Container[Key]) -> WorkloadRow | None:
    """Return the row of a workload that has not changed."""
    return rows.read_workload(key) if key not in workloads else None


def _read_source_path(document: Document) -> str:
    return document.origin.path if document.origin else ""


def _update_cluster_rows(rows: PlanRows, workload_rows: Mapping[Key, WorkloadRow]) -> dict[str, ClusterRow]:
    """Return the rows of the clusters where workloads, replicas or manifests change."""
    counts: dict[str, tuple[int, int]] = {}
    removed: dict[str, set[str]] = {}
    added: dict[str, set[str]] = {}
    for key, row in workload_rows.items():
        before = rows.read_workload(key)
        if before is None:
            continue
        count_replicas(counts, before.outcome, -1)
        count_replicas(counts, row.outcome, 1)
        for paths, manifests in ((removed, before.manifest_paths), (added, row.manifest_paths)):
            for cluster, relative_paths in manifests.items():
                paths.setdefault(cluster, set()).update(relative_paths)
    cluster_rows = {}
    for name in sorted({*counts, *removed, *added}):
        cluster_row = rows.read_cluster(name)
        if cluster_row is None:
            continue  # bound to a cluster without a document, which has no directory
        facts, (workloads, replicas) = cluster_row.facts, counts.get(name, (0, 0))
        facts = facts._replace(workloads=facts.workloads + workloads, replicas=facts.replicas + replicas)
        cluster_rows[name] = ClusterRow(facts, cluster_row.manifest_paths - removed.get(name, set()) | added.get(name, set()))
    return cluster_rows


def _list_changed_files(
    state: PlanState, workloads: Mapping[Key, WorkloadFiles], cluster_rows: Mapping[str, ClusterRow]
) -> Iterable[tuple[str, PlannedFile | None]]:
    """Yield the changed files of the output tree by path; None for a removed file."""
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


def _update_totals(
    totals: Totals,
    rows: PlanRows,
    outcomes: Mapping[Key, Outcome],
    cluster_rows: Mapping[str, ClusterRow],
    diff: SourceDiff,
    snapshot: Snapshot,
) -> Totals:
    states, wakeups = dict(totals.state_counts), dict(totals.wakeups)
    by_workload, by_file = dict(totals.findings_by_workload), dict(totals.findings_by_file)
    first_outcomes, first_clusters = dict(totals.first_outcomes), dict(totals.first_clusters)
    held = dict(totals.held)
    for path, findings in diff.findings.items():
        _set_or_remove(by_file, path, findings)
    for key, outcome in outcomes.items():
        before = rows.read_workload(key)
        if before is not None:
            states[before.outcome.state] -= 1
        states[outcome.state] = states.get(outcome.state, 0) + 1
        _set_or_remove(wakeups, key, outcome.wakeup)
        _set_or_remove(by_workload, key, outcome.findings)
        _set_or_remove(held, key, outcome.held)
        if key in first_outcomes:
            first_outcomes[key] = strip_outcome(outcome)
    for name, row in cluster_rows.items():
        if name in first_clusters:
            first_clusters[name] = row.facts
    return totals._replace(
        source_time=snapshot.at,
        now=snapshot.now,
        state_counts=states,
        wakeups=wakeups,
        findings_by_workload=by_workload,
        findings_by_file=by_file,
        first_outcomes=first_outcomes,
        first_clusters=first_clusters,
        held=held
        if held == totals.held
        else dict(sorted(held.items(), key=lambda entry: (entry[0].namespace, entry[0].name, entry[0]))),
    )


def _set_or_remove(entries: dict[K, V], key: K, value: V | None) -> None:
    """Set an entry, or remove it where the value is empty."""
    if value:
        entries[key] = value
    else:
        entries.pop(key, None)
