"""Update the totals of a plan for an incremental one: counts, findings, deadlines and the first rows of README.md."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest
from typing import TYPE_CHECKING, TypeVar

from gitsched.decide.continued_engines import update_selector_findings
from gitsched.decide.plan_state import strip_outcome, workload_sort_key
from gitsched.render.run_metadata import MAX_ROWS

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.policy_api import Snapshot
    from gitsched.decide.changed_documents import SourceDiff
    from gitsched.decide.continued_engines import ContinuedEngines
    from gitsched.decide.plan_state import ClusterRow, PlanRows, Totals, WorkloadRow
    from gitsched.model.document import Document, Key
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.model.scheduling import Outcome

K = TypeVar("K")
V = TypeVar("V")


def update_totals(
    totals: Totals,
    rows: PlanRows,
    diff: SourceDiff,
    snapshot: Snapshot,
    continued: ContinuedEngines,
    documents: Mapping[Key, Document],
    outcomes: Mapping[Key, Outcome],
    removed: Mapping[Key, WorkloadRow],
    cluster_rows: Mapping[str, ClusterRow],
) -> Totals:
    """Return the totals with what was decided again: `outcomes`, and `removed` workloads."""
    states, wakeups = dict(totals.state_counts), dict(totals.wakeups)
    by_workload, by_file = dict(totals.findings_by_workload), dict(totals.findings_by_file)
    held = dict(totals.held)
    for path, findings in diff.findings.items():
        _set_or_remove(by_file, path, findings)
    for key, outcome in {**dict.fromkeys(removed), **outcomes}.items():
        before = removed.get(key) or rows.read_workload(key)
        if before is not None:
            states[before.outcome.state] -= 1
        if outcome is not None:
            states[outcome.state] = states.get(outcome.state, 0) + 1
        _set_or_remove(wakeups, key, outcome.wakeup if outcome is not None else None)
        _set_or_remove(by_workload, key, outcome.findings if outcome is not None else ())
        _set_or_remove(held, key, outcome.held if outcome is not None else None)
    new_clusters = sum(rows.read_cluster(name) is None for name in cluster_rows)
    unclaimed = _list_unclaimed(totals, rows, diff, continued, documents, outcomes)
    return totals._replace(
        source_time=snapshot.at,
        now=snapshot.now,
        state_counts=states,
        unclaimed=totals.unclaimed + sum(after - before for before, after in unclaimed.values()),
        wakeups=wakeups,
        findings_by_workload=by_workload,
        findings_by_file=by_file,
        first_outcomes=_update_first_outcomes(totals, rows, outcomes, removed),
        first_clusters=_update_first_clusters(totals.first_clusters, cluster_rows),
        cluster_count=totals.cluster_count + new_clusters,
        held=held if held == totals.held else dict(sorted(held.items(), key=lambda entry: workload_sort_key(entry[0]))),
        engine_findings=continued.findings,
        other_findings=_update_other_findings(totals, diff, snapshot, continued, documents, unclaimed),
        records=continued.records,
        recorded=continued.recorded,
        document_count=totals.document_count + _count_new(diff.api_documents),
        template_count=totals.template_count + _count_new(diff.templates),
        has_new_records=continued.records != totals.records,
    )


def _count_new(changes: Mapping[Key, DocumentPair]) -> int:
    """Return how many more documents there are."""
    return sum((before is None) - (after is None) for before, after in changes.values())


def _list_unclaimed(
    totals: Totals,
    rows: PlanRows,
    diff: SourceDiff,
    continued: ContinuedEngines,
    documents: Mapping[Key, Document],
    outcomes: Mapping[Key, Outcome],
) -> dict[Key, tuple[bool, bool]]:
    """Return which of the changed templates no API claims: before and now."""
    old, new = {key for key, _ in totals.records}, {key for key, _ in continued.records}
    found = {}
    for key in {**documents, **diff.templates, **dict.fromkeys(old ^ new)}:
        existed = diff.templates[key][0] is not None if key in diff.templates else key in rows.template_index
        exists = diff.templates[key][1] is not None if key in diff.templates else existed
        before = existed and key not in old and rows.read_workload(key) is None
        is_decided = key in outcomes or (key not in documents and rows.read_workload(key) is not None)
        found[key] = before, exists and key not in new and not is_decided
    return found


def _update_other_findings(
    totals: Totals,
    diff: SourceDiff,
    snapshot: Snapshot,
    continued: ContinuedEngines,
    documents: Mapping[Key, Document],
    unclaimed: Mapping[Key, tuple[bool, bool]],
) -> tuple[Finding, ...]:
    """Return the findings that belong to no file or workload. Those about selectors and annotations are updated."""
    findings = totals.other_findings
    if diff.api_documents:
        findings = update_selector_findings(findings, snapshot.documents, continued.engines, continued.findings)
    if not unclaimed:
        return findings
    from gitsched.decide.unread_annotations import UNREAD_CODE, find_unread_annotations, list_selecting_annotations

    wanted = list_selecting_annotations(continued.engines)
    if not wanted:
        return findings
    resources = {key.resource for key in unclaimed}
    kept = (finding for finding in findings if finding.code != UNREAD_CODE or finding.resource not in resources)
    objects = ((key, documents.get(key) or snapshot.templates[key]) for key, (_, after) in unclaimed.items() if after)
    return (*kept, *(finding for _, document in objects for finding in find_unread_annotations(document, wanted)))


def _update_first_outcomes(
    totals: Totals, rows: PlanRows, outcomes: Mapping[Key, Outcome], removed: Mapping[Key, WorkloadRow]
) -> dict[Key, Outcome]:
    """Return the outcomes that README.md shows: the first ones by (namespace, name)."""
    before = totals.first_outcomes
    first = {key: outcome for key, outcome in before.items() if key not in removed}
    if len(first) < len(before) and totals.workload_count > len(before):
        stored = (key for key, entry in rows.template_index.items() if entry.placement is not None and key not in removed)
        for key in nsmallest(MAX_ROWS, stored, key=workload_sort_key):
            row = rows.read_workload(key)
            if row is not None:
                first[key] = row.outcome
    last = max(map(workload_sort_key, first), default=None)
    for key, outcome in outcomes.items():
        if key in first or len(first) < MAX_ROWS or (last is not None and workload_sort_key(key) < last):
            first[key] = strip_outcome(outcome)
    return {key: first[key] for key in sorted(first, key=workload_sort_key)[:MAX_ROWS]}


def _update_first_clusters(before: Mapping[str, ClusterInfo], cluster_rows: Mapping[str, ClusterRow]) -> dict[str, ClusterInfo]:
    """Return the clusters that README.md shows: the first ones by name. None is ever removed."""
    last = max(before, default="")
    new = {name: row.facts for name, row in cluster_rows.items() if name in before or name < last or len(before) < MAX_ROWS}
    return dict(sorted({**before, **new}.items())[:MAX_ROWS])


def _set_or_remove(entries: dict[K, V], key: K, value: V | None) -> None:
    """Set an entry, or remove it where the value is empty."""
    if value:
        entries[key] = value
    else:
        entries.pop(key, None)
