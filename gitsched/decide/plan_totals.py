"""Compute the totals of a plan from those of the last one: counts, findings, deadlines and the first rows of README.md.

A complete plan starts from totals of no workload and no cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, TypeVar

from gitsched.apis.gitsched.tenancy import PLATFORM
from gitsched.apis.registered import Registered
from gitsched.decide.engines import collect_cluster_facts
from gitsched.decide.incremental.plan_state import EngineTotals, Overview, PlanTimes, SourceTotals, Totals
from gitsched.decide.registry import list_absence_codes
from gitsched.decide.repeated_findings import FOLDED_CODES, fold_findings
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.document import workload_sort_key
from gitsched.model.finding import OVERCOMMITTED, WITHOUT_EFFECT, sort_findings
from gitsched.model.scheduling import strip_outcome
from gitsched.model.variants import BUNDLE_KIND
from gitsched.render.readme import MAX_ROWS

if TYPE_CHECKING:
    from gitsched.apis.capabilities import DocumentPair
    from gitsched.apis.policy_api import PolicyEngine
    from gitsched.decide.decisions import DecisionSet
    from gitsched.decide.incremental.incremental_changes import IncrementalChanges
    from gitsched.decide.incremental.plan_state import ClusterRow
    from gitsched.decide.plan_input import SourceTree
    from gitsched.decide.rendered_tree import RenderedTree
    from gitsched.model.document import Document, Key
    from gitsched.model.finding import Finding
    from gitsched.model.planned_files import ClusterInfo
    from gitsched.model.scheduling import Outcome

SELECTOR_CODES = ("selector-unmatched", "selector-invalid", "cluster-label-misspelled")
_SELECTORS = frozenset(("matchLabels", "matchExpressions", "exclude", "targetCluster", "targetClusters", "clusters"))
"""Members with a selector for clusters, or with names of clusters that no other finding is about."""
COPY_CODES = ("copy-retained", "preserved-left", "preserved-encrypted")
RENAME_CODES = ("renamed-from-unknown", "renamed-from-claimed")
"""Codes of findings about what one run removes, which the next run does not repeat."""
UPDATED_CODES = (
    *SELECTOR_CODES,
    "adopted-held",
    "annotation-unread",
    OVERCOMMITTED,
    "facts-incomplete",
    "report-cluster-unknown",
    WITHOUT_EFFECT,
    *COPY_CODES,
    *RENAME_CODES,
)
"""Codes of findings that belong to no file or workload, and that an incremental plan updates."""
_CAPACITY = "gitsched.decide.capacity.capacity_totals"
_MEASURE_CAPACITY = Registered(_CAPACITY, "measure_capacity")
_UPDATE_CAPACITY = Registered(_CAPACITY, "update_capacity")
_FIND_OVERCOMMITTED = Registered(_CAPACITY, "find_overcommitted")
K = TypeVar("K")
V = TypeVar("V")


def compute_totals(decisions: DecisionSet, rendered: RenderedTree, source: SourceTree, times: PlanTimes) -> Totals:
    """Return what the totals of a complete plan have besides its relations, copies and rollouts."""
    catalog, tenancy = decisions.catalog, decisions.tenancy
    engine_findings = tuple(finding for engine in decisions.engines for finding in engine.findings)
    known = frozenset(engine_findings)
    totals = Totals(
        source.config if decisions.input is None else decisions.input.config,
        *times,
        source=SourceTotals(
            catalog.kind_scopes,
            guessed_kinds=frozenset(catalog.guessed_scopes),
            repeated=catalog.identical | catalog.duplicate_templates.keys(),
            unused=frozenset((*catalog.duplicate_templates, *catalog.broken)),
            with_variants=frozenset(decisions.variants),
            part_kinds=frozenset(key[:2] for key in decisions.kustomized),
            # What documents select and name may be among the objects that are not built.
            hidden_codes=list_absence_codes() if source.incomplete else frozenset(),
            input_counts=(sum(map(len, catalog.api_documents.values())), len(catalog.templates)),
        ),
        engines=EngineTotals(
            engine_findings,
            decisions.engine_records,
            decisions.recorded,
            own=decisions.own_workloads,
            kept=decisions.kept_records,
        ),
        overview=Overview(unclaimed=decisions.unclaimed),
        findings_by_file={path: findings for path, findings in source.file_findings.items() if findings},
        other_findings=(*source.other_findings, *(one for one in decisions.findings if one not in known), *rendered.findings),
        unstable=decisions.unstable - decisions.own_workloads,
        namespace_manifests=rendered.namespace_manifests,
        owners=() if tenancy is None else (PLATFORM, *sorted(set(tenancy.owners.values()))),
        trusted_tenants=None if tenancy is None else tenancy.paths.unsettled,
    )
    if any(engine.shares_capacity for engine in decisions.engines):
        use = _MEASURE_CAPACITY(decisions, times.now)
        short = tuple(_FIND_OVERCOMMITTED(decisions.engines, use, catalog.api_documents))
        totals = totals._replace(capacity=use, other_findings=(*totals.other_findings, *short))
    return _add_clusters(_add_workloads(totals, decisions.outcomes), rendered.cluster_facts)


def update_totals(
    changes: IncrementalChanges,
    cluster_rows: Mapping[str, ClusterRow],
    copy_findings: tuple[Finding, ...] | None,
    part_findings: Iterable[Finding] = (),
) -> Totals:
    """Return the totals with what was decided again. `copy_findings` are those about retained copies; None if they stay as they are.
    `part_findings` are about objects that kustomizations change and that policies select."""
    totals, rows, diff, continued = changes.totals, changes.rows, changes.diff, changes.continued
    by_file = dict(totals.findings_by_file)
    for path, findings in diff.findings.items():
        _set_or_remove(by_file, path, findings)
    known = ((key, changes.removed.get(key) or rows.read_workload(key)) for key in (*changes.removed, *changes.outcomes))
    former = {key: row.outcome for key, row in known if row is not None}
    unclaimed = list_unclaimed(changes)
    new = _add_workloads(totals, changes.outcomes, former, lambda count: _list_first(changes, count))
    more = sum(after - before for before, after in unclaimed.values())
    new = new._replace(overview=new.overview._replace(unclaimed=totals.overview.unclaimed + more))
    clusters = {name: row.facts for name, row in cluster_rows.items()}
    other_findings = (*_update_other_findings(changes, unclaimed, copy_findings), *part_findings)
    if any(engine.shares_capacity for engine in continued.engines):
        use = _UPDATE_CAPACITY(changes)
        short = tuple(_FIND_OVERCOMMITTED(continued.engines, use, changes.snapshot.documents))
        new = new._replace(capacity=use)
        other_findings = (*(one for one in other_findings if one.code != OVERCOMMITTED), *short)
    return _add_clusters(new, clusters, sum(rows.read_cluster(name) is not None for name in clusters))._replace(
        source_time=changes.snapshot.at,
        now=changes.snapshot.now,
        unstable=changes.unstable,
        findings_by_file=by_file,
        other_findings=other_findings,
        source=totals.source._replace(
            input_counts=(
                totals.source.input_counts[0] + _count_new(diff.api_documents),
                totals.source.input_counts[1] + _count_new(diff.templates),
            ),
            part_kinds=changes.snapshot.part_kinds,
        ),
        engines=totals.engines._replace(
            findings=continued.findings,
            records=continued.records,
            recorded=continued.recorded,
            has_new_records=continued.records != totals.engines.records or any(finding.is_change for finding in continued.findings),
            own=changes.own,
            kept=continued.kept,
        ),
    )


def _count_new(changes: Mapping[Key, DocumentPair]) -> int:
    """Return how many more documents there are."""
    return sum((before is None) - (after is None) for before, after in changes.values())


def list_unclaimed(changes: IncrementalChanges) -> dict[Key, tuple[bool, bool]]:
    """Return which of the changed templates no API claims: before, in the last plan, and now."""
    rows, templates = changes.rows, changes.templates
    continued = changes.continued
    old = {key for key, _ in changes.totals.engines.records} | continued.referenced_before
    new = {key for key, _ in continued.records} | continued.referenced
    found = {}
    for key in {**changes.documents, **templates, **dict.fromkeys(old ^ new)}:
        existed = templates[key][0] is not None if key in templates else key in rows.template_index
        exists = templates[key][1] is not None if key in templates else existed
        before = existed and key not in old and rows.read_workload(key) is None
        found[key] = before, exists and key not in new and not _is_decided(changes, key)
    return found


def select_unclaimed(changes: IncrementalChanges, keys: Iterable[Key]) -> frozenset[Key]:
    """Return those of some templates of the source that no API claims."""
    claimed = {key for key, _ in changes.continued.records} | changes.continued.referenced
    return frozenset(key for key in keys if key not in claimed and not _is_decided(changes, key))


def _is_decided(changes: IncrementalChanges, key: Key) -> bool:
    return key in changes.outcomes or (key not in changes.documents and changes.rows.read_workload(key) is not None)


def _update_other_findings(
    changes: IncrementalChanges, unclaimed: Mapping[Key, tuple[bool, bool]], copy_findings: tuple[Finding, ...] | None
) -> tuple[Finding, ...]:
    """Return the findings that belong to no file or workload. Those about selectors, annotations and retained copies are updated."""
    continued, snapshot = changes.continued, changes.snapshot
    passed = RENAME_CODES if copy_findings is None else (*RENAME_CODES, *COPY_CODES)
    reported = changes.diff.parts.reported
    known = (finding for finding in changes.totals.other_findings if finding.code not in passed and finding not in reported)
    findings = (*known, *(copy_findings or ()))
    if changes.diff.api_documents:
        varied = (
            snapshot.templates.get(key)
            for key in sorted(changes.totals.source.with_variants, key=workload_sort_key)
            if key[:2] == BUNDLE_KIND
        )
        bundles = tuple(one for one in varied if one is not None)
        unmatched = find_unmatched(snapshot.documents, bundles, (), continued.engines, continued.findings)
        findings = (*(finding for finding in findings if finding.code not in SELECTOR_CODES), *unmatched)
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


def _list_first(changes: IncrementalChanges, count: int) -> Iterator[Outcome]:
    """Yield the first outcomes of the last plan, without the removed ones, by (namespace, name)."""
    placed = {key for key, entry in changes.rows.template_index.items() if entry.placement is not None}
    stored = (placed | changes.restored).difference(changes.removed)
    rows = (changes.rows.read_workload(key) for key in nsmallest(count, stored, key=workload_sort_key))
    return (row.outcome for row in rows if row is not None)


def _add_workloads(
    totals: Totals,
    outcomes: Mapping[Key, Outcome],
    former: Mapping[Key, Outcome] | None = None,
    list_first: Callable[[int], Iterable[Outcome]] = lambda _: (),
) -> Totals:
    """Return the totals with the outcomes of decided workloads. `former` are those of the last plan of these and of removed ones.
    `list_first` returns as many of the first ones of all that are not removed, as the last plan has them."""
    former = former or {}
    states, wakeups, held = dict(totals.overview.state_counts), dict(totals.wakeups), dict(totals.held)
    findings = dict(totals.findings_by_workload)
    for key in {**dict.fromkeys(former), **outcomes}:
        before, outcome = former.get(key), outcomes.get(key)
        if before is not None:
            states[_choose_state(before)] -= 1
        if outcome is not None:
            state = _choose_state(outcome)
            states[state] = states.get(state, 0) + 1
        _set_or_remove(wakeups, key, outcome.wakeup if outcome is not None else None)
        _set_or_remove(findings, key, outcome.findings if outcome is not None else ())
        _set_or_remove(held, key, outcome.held if outcome is not None else None)
    return totals._replace(
        overview=totals.overview._replace(
            state_counts=states,
            first_outcomes=_choose_first(totals, outcomes, former, list_first),
            workload_count=sum(states.values()),
        ),
        wakeups=wakeups,
        findings_by_workload=findings,
        held=held if held == totals.held else dict(sorted(held.items(), key=lambda entry: workload_sort_key(entry[0]))),
    )


def _choose_state(outcome: Outcome) -> str:
    """Return the state that an outcome counts as; almost none is stale."""
    return outcome.counted_state if outcome.state == "stale" else outcome.state


def _choose_first(
    totals: Totals, outcomes: Mapping[Key, Outcome], former: Mapping[Key, Outcome], list_first: Callable[[int], Iterable[Outcome]]
) -> dict[Key, Outcome]:
    """Return the outcomes that README.md shows: the first ones by (namespace, name)."""
    before = totals.overview.first_outcomes
    first = {key: outcome for key, outcome in before.items() if key not in former or key in outcomes}
    if len(first) < len(before) and totals.overview.workload_count > len(before):
        first |= {outcome.key: outcome for outcome in list_first(MAX_ROWS)}
    last = max(map(workload_sort_key, first), default=None)
    for key, outcome in outcomes.items():
        if key in first or len(first) < MAX_ROWS or (last is not None and workload_sort_key(key) < last):
            first[key] = strip_outcome(outcome)
    order = sorted(first, key=workload_sort_key) if before else tuple(first)
    return {key: first[key] for key in order[:MAX_ROWS]}


def _add_clusters(totals: Totals, clusters: Mapping[str, ClusterInfo], known: int = 0) -> Totals:
    """Return the totals with the facts of some clusters, of which so many are `known` already. None is ever removed: README.md shows the
    first ones by name."""
    before = totals.overview.first_clusters
    last = max(before, default="")
    new = {name: facts for name, facts in clusters.items() if name in before or name < last or len(before) < MAX_ROWS}
    overview = totals.overview._replace(
        first_clusters=dict(sorted({**before, **new}.items())[:MAX_ROWS]),
        cluster_count=totals.overview.cluster_count + len(clusters) - known,
    )
    return totals._replace(overview=overview)


def _set_or_remove(entries: dict[K, V], key: K, value: V | None) -> None:
    """Set an entry, or remove it where the value is empty."""
    if value:
        entries[key] = value
    else:
        entries.pop(key, None)


def find_unmatched(
    documents: Mapping[tuple[str, str], tuple[Document, ...]],
    bundles: tuple[Document, ...],
    broken: Iterable[Key],
    engines: tuple[PolicyEngine, ...],
    found: Iterable[Finding],
) -> tuple[Finding, ...]:
    """Return the findings about selectors in documents of policy APIs and in Bundles, besides those that are `found` already. `broken` are
    the keys of broken documents."""
    by_count = sorted(documents.values(), key=len)  # a selector is found soon, because there are fewer policies than clusters
    if not (bundles or len(engines) > 1 or any(_has_selector(one.body.get("spec")) for listed in by_count for one in listed)):
        return ()
    from gitsched.decide.unmatched_selectors import list_unmatched  # many sources have no selectors

    known, selecting = frozenset(found), {**documents, BUNDLE_KIND: bundles} if bundles else documents
    return tuple(one for one in list_unmatched(selecting, broken, known, engines) if one not in known)


def _has_selector(value: Any) -> bool:
    """Return whether a part of a policy may have a selector for clusters."""
    if isinstance(value, list):
        return any(map(_has_selector, value))
    return isinstance(value, dict) and (not _SELECTORS.isdisjoint(value) or any(map(_has_selector, value.values())))


def list_plan_findings(totals: Totals) -> tuple[Finding, ...]:
    """Return all findings of a plan in the order in which reports show them."""
    groups = (*totals.findings_by_file.values(), *totals.findings_by_workload.values())
    relations = (located.finding for located in totals.relation_findings)
    engines = (finding for finding in totals.engines.findings if finding.code not in totals.source.hidden_codes)
    findings = {*totals.other_findings, *engines, *relations, *(finding for group in groups for finding in group)}
    if not FOLDED_CODES.isdisjoint({finding.code for finding in findings}):
        findings = fold_findings(findings)
    return sort_findings(findings)
