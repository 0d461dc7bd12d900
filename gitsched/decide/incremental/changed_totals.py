"""Update the totals of a plan for an incremental one: counts, findings, deadlines and the first rows of README.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import nsmallest
from typing import TYPE_CHECKING, TypeVar

from gitsched.decide.engines import collect_cluster_facts
from gitsched.decide.incremental.continued_engines import SELECTOR_CODES, update_selector_findings
from gitsched.decide.incremental.plan_state import strip_outcome, workload_sort_key
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.variants import BUNDLE_KIND
from gitsched.render.readme import MAX_ROWS

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import ClusterRow, Totals
    from gitsched.model.document import Document, Key
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.model.scheduling import Outcome

COPY_CODE = "copy-retained"
RENAME_CODES = ("renamed-from-unknown", "renamed-from-claimed")
"""Codes of findings about what one run removes, which the next run does not repeat."""
UPDATED_CODES = (
    *SELECTOR_CODES,
    "adopted-held",
    "annotation-unread",
    "facts-incomplete",
    "report-cluster-unknown",
    COPY_CODE,
    *RENAME_CODES,
)
"""Codes of findings that belong to no file or workload, and that an incremental plan updates."""
K = TypeVar("K")
V = TypeVar("V")


def update_totals(
    changes: IncrementalChanges,
    cluster_rows: Mapping[str, ClusterRow],
    copy_findings: tuple[Finding, ...] | None,
    part_findings: Iterable[Finding] = (),
) -> Totals:
    """Return the totals with what was decided again. `copy_findings` are those about retained copies; None if they stay as they are.
    `part_findings` are about objects that kustomizations change and that policies select."""
    totals, rows, diff, continued = changes.totals, changes.rows, changes.diff, changes.continued
    states, wakeups = dict(totals.state_counts), dict(totals.wakeups)
    by_workload, by_file = dict(totals.findings_by_workload), dict(totals.findings_by_file)
    held = dict(totals.held)
    for path, findings in diff.findings.items():
        _set_or_remove(by_file, path, findings)
    for key, outcome in {**dict.fromkeys(changes.removed), **changes.outcomes}.items():
        before = changes.removed.get(key) or rows.read_workload(key)
        if before is not None:
            states[before.outcome.state] -= 1
        if outcome is not None:
            states[outcome.state] = states.get(outcome.state, 0) + 1
        _set_or_remove(wakeups, key, outcome.wakeup if outcome is not None else None)
        _set_or_remove(by_workload, key, outcome.findings if outcome is not None else ())
        _set_or_remove(held, key, outcome.held if outcome is not None else None)
    new_clusters = sum(rows.read_cluster(name) is None for name in cluster_rows)
    unclaimed = _list_unclaimed(changes)
    return totals._replace(
        source_time=changes.snapshot.at,
        now=changes.snapshot.now,
        state_counts=states,
        unclaimed=totals.unclaimed + sum(after - before for before, after in unclaimed.values()),
        wakeups=wakeups,
        unstable=changes.unstable,
        findings_by_workload=by_workload,
        findings_by_file=by_file,
        first_outcomes=_update_first_outcomes(changes),
        first_clusters=_update_first_clusters(totals.first_clusters, cluster_rows),
        cluster_count=totals.cluster_count + new_clusters,
        held=held if held == totals.held else dict(sorted(held.items(), key=lambda entry: workload_sort_key(entry[0]))),
        engine_findings=continued.findings,
        other_findings=(*_update_other_findings(changes, unclaimed, copy_findings), *part_findings),
        records=continued.records,
        recorded=continued.recorded,
        document_count=totals.document_count + _count_new(diff.api_documents),
        template_count=totals.template_count + _count_new(diff.templates),
        has_new_records=continued.records != totals.records or any(finding.is_change for finding in continued.findings),
        own=changes.own,
        part_kinds=changes.snapshot.part_kinds,
    )


def _count_new(changes: Mapping[Key, DocumentPair]) -> int:
    """Return how many more documents there are."""
    return sum((before is None) - (after is None) for before, after in changes.values())


def _list_unclaimed(changes: IncrementalChanges) -> dict[Key, tuple[bool, bool]]:
    """Return which of the changed templates no API claims: before and now."""
    rows, templates = changes.rows, changes.templates
    continued = changes.continued
    old = {key for key, _ in changes.totals.records} | continued.referenced_before
    new = {key for key, _ in continued.records} | continued.referenced
    found = {}
    for key in {**changes.documents, **templates, **dict.fromkeys(old ^ new)}:
        existed = templates[key][0] is not None if key in templates else key in rows.template_index
        exists = templates[key][1] is not None if key in templates else existed
        before = existed and key not in old and rows.read_workload(key) is None
        is_decided = key in changes.outcomes or (key not in changes.documents and rows.read_workload(key) is not None)
        found[key] = before, exists and key not in new and not is_decided
    return found


def _update_other_findings(
    changes: IncrementalChanges, unclaimed: Mapping[Key, tuple[bool, bool]], copy_findings: tuple[Finding, ...] | None
) -> tuple[Finding, ...]:
    """Return the findings that belong to no file or workload. Those about selectors, annotations and retained copies are updated."""
    continued, snapshot = changes.continued, changes.snapshot
    passed = RENAME_CODES if copy_findings is None else (*RENAME_CODES, COPY_CODE)
    reported = changes.diff.parts.reported
    known = (finding for finding in changes.totals.other_findings if finding.code not in passed and finding not in reported)
    findings = (*known, *(copy_findings or ()))
    if changes.diff.api_documents:
        varied = (
            snapshot.templates.get(key) for key in sorted(changes.totals.varied, key=workload_sort_key) if key[:2] == BUNDLE_KIND
        )
        bundles = tuple(one for one in varied if one is not None)
        findings = update_selector_findings(findings, snapshot.documents, continued.engines, continued.findings, bundles)
        findings = _update_unknown_reports(findings, changes)
    if not unclaimed:
        return findings
    from gitsched.decide.unread_annotations import find_unread_annotations, list_selecting_annotations

    wanted = list_selecting_annotations(continued.engines)
    if not wanted:
        return findings

    def find(key: Key, document: Document | None) -> Iterable[Finding]:
        return find_unread_annotations(document or changes.documents.get(key) or snapshot.templates[key], wanted)

    templates = changes.templates
    old = (found for key, (was, _) in unclaimed.items() if was for found in find(key, templates.get(key, (None, None))[0]))
    gone = frozenset(old)
    new = (found for key, (_, is_unclaimed) in unclaimed.items() if is_unclaimed for found in find(key, None))
    return (*(finding for finding in findings if finding not in gone), *new)


def _update_unknown_reports(findings: tuple[Finding, ...], changes: IncrementalChanges) -> tuple[Finding, ...]:
    """Return findings with those about ClusterReports as the clusters and reports are now."""
    reports = changes.snapshot.documents.get(CLUSTER_REPORT, ())
    if not reports and not any(key[:2] == CLUSTER_REPORT for key in changes.diff.api_documents):
        return findings
    from gitsched.decide.rollouts.cluster_reports import (  # few sources have reports of clusters
        UNKNOWN_CLUSTER,
        find_unknown_reports,
    )

    kept = (finding for finding in findings if finding.code != UNKNOWN_CLUSTER)
    return (*kept, *find_unknown_reports(reports, collect_cluster_facts(changes.continued.engines)))


def _update_first_outcomes(changes: IncrementalChanges) -> dict[Key, Outcome]:
    """Return the outcomes that README.md shows: the first ones by (namespace, name)."""
    totals, rows, removed = changes.totals, changes.rows, changes.removed
    before = totals.first_outcomes
    first = {key: outcome for key, outcome in before.items() if key not in removed}
    if len(first) < len(before) and totals.workload_count > len(before):
        placed = {key for key, entry in rows.template_index.items() if entry.placement is not None}
        stored = (placed | changes.restored).difference(removed)
        for key in nsmallest(MAX_ROWS, stored, key=workload_sort_key):
            row = rows.read_workload(key)
            if row is not None:
                first[key] = row.outcome
    last = max(map(workload_sort_key, first), default=None)
    for key, outcome in changes.outcomes.items():
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
