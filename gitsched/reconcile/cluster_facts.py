"""Add the facts that `gitsched collect` observed to the documents of the clusters, as their status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from gitsched.apis.cluster_reception import ClusterReception, StaleFacts
from gitsched.apis.gitsched.facts_document import read_facts
from gitsched.apis.gitsched.source_config import FactsConfig
from gitsched.decide.catalog import RawDocument, make_raw_document
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.registry import policy_apis
from gitsched.git import FactsBranch
from gitsched.model.cluster_facts import FACTS_KIND, ClusterFacts
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.finding import Finding, Location, format_names, locate_origin
from gitsched.model.time import EPOCH, add_duration, format_time
from gitsched.reconcile.facts import FactsDocuments, list_score_kinds, read_facts_documents
from gitsched.reconcile.run import Facts, RunContext, SourceWithFacts
from gitsched.reconcile.source_reader import SourceReader, make_origin
from gitsched.reconcile.unread_entries import REGULAR_FILE_MODES
from gitsched.report.summary import format_count

MAX_SKEW = timedelta(minutes=5)
"""How far the clock of a collector may be ahead of the time of its commit without a finding."""
_RULES = {
    "keep": "the cluster is treated as before",
    "noNewPlacements": "the cluster gets no new workloads",
    "evict": "workloads leave the cluster",
}


class _Report(NamedTuple):
    """Valid facts, and the document that they are from."""

    facts: ClusterFacts
    document: RawDocument

    @property
    def location(self) -> Location | None:
        return locate_origin(self.document.origin) if self.document.origin else None

    def make_finding(self, code: str, message: str) -> Finding:
        return Finding("warning", code, message, self.location, (FACTS_KIND[1], "", self.facts.cluster))


def add_all_facts(
    context: RunContext, facts: Facts, source: SourceTree, now: datetime, recorded: Mapping[str, str]
) -> SourceWithFacts:
    """Add the documents of the facts branches to the source: scores and reports as documents, facts of clusters as the status of these.

    `recorded` are the commits of the branches that the last run read: their facts count where a file is broken now.
    """
    found = read_facts_documents(context, facts, source)
    others = tuple(document for document, _ in found.list_kinds(*list_score_kinds(), CLUSTER_REPORT))
    findings = list(found.findings)
    reports = list(_read_reports(found.list_kinds(FACTS_KIND), now, findings))
    known = {report.facts.cluster for report in reports}
    restored = [one for one in _restore_facts(context, facts, source, found, recorded) if one[0].name not in known]
    findings += (_report_restored(document) for document, _ in restored)
    reports += _read_reports(restored, now, findings)
    source = source._replace(documents=(*source.documents, *others))
    if not reports:
        return SourceWithFacts(source._replace(other_findings=(*source.other_findings, *findings)))
    settings = source.config.source.facts
    documents, unknown = _apply_all(source.documents, reports, settings, now)
    findings += (_report_unknown(report) for report in unknown)
    findings += _report_stale(reports, settings, now)
    findings += _report_clusters_without(documents, reports)
    decides = settings.stale_rule != "keep"
    deadlines = [add_duration(report.facts.observed, settings.stale_after) for report in reports if decides]
    return SourceWithFacts(
        source._replace(documents=tuple(documents), other_findings=(*source.other_findings, *findings)),
        max((time for time in deadlines if time <= now), default=EPOCH),
        min((time for time in deadlines if time > now), default=None),
        True,
    )


def _read_reports(
    documents: Iterable[tuple[RawDocument, FactsBranch]], now: datetime, findings: list[Finding]
) -> Iterator[_Report]:
    """Yield the facts of documents. Facts from the future count as observed when they were committed, so that they become stale."""
    for document, branch in documents:
        report = _Report(read_facts(document.body), document)
        limit = min(branch.commit.time, now)
        if report.facts.observed > limit:
            if report.facts.observed > add_duration(limit, MAX_SKEW):
                message = (
                    f"the facts about {report.facts.cluster} were observed at {format_time(report.facts.observed)}, after their commit: "
                    f"they count as observed at {format_time(limit)}; correct the clock of the collector"
                )
                findings.append(report.make_finding("facts-future", message))
            report = report._replace(facts=report.facts._replace(observed=limit))
        yield report


def _restore_facts(
    context: RunContext, facts: Facts, source: SourceTree, found: FactsDocuments, recorded: Mapping[str, str]
) -> list[tuple[RawDocument, FactsBranch]]:
    """Return the facts that broken files had at the commits of the last run."""
    if not found.broken:
        return []
    repository = facts.repository or context.source.repository
    reader = SourceReader(repository, context.caches.files, source.config)
    restored: list[tuple[RawDocument, FactsBranch]] = []
    for path, branch in found.broken:
        oid = recorded.get(branch.name, "")
        commit = repository.commit(oid) if oid and repository.has(oid) else None
        entry = repository.find_entry(commit.tree, path) if commit is not None else None
        if commit is None or entry is None or entry[1] not in REGULAR_FILE_MODES:
            continue
        name = f"{branch.name}:{path}"
        for parsed in reader.read(entry[0], name).documents:
            document = make_raw_document(parsed.body, make_origin(parsed, name, entry[0]))
            is_own = not branch.cluster or document.name == branch.cluster
            if not parsed.broken and (document.group, document.kind) == FACTS_KIND and is_own:
                restored.append((document, branch._replace(commit=commit)))
    return restored


def _report_restored(document: RawDocument) -> Finding:
    location = locate_origin(document.origin) if document.origin else None
    message = f"the facts about {document.name} cannot be used: those that the last run read count instead; collect them again"
    return Finding("warning", "facts-restored", message, location, (document.kind, "", document.name))


def _load_receptions() -> dict[tuple[str, str], ClusterReception]:
    receptions = (api.load_reception() for api in policy_apis.values() if api.load_reception is not None)
    return {(reception.group, reception.kind): reception for reception in receptions}


def _apply_all(
    documents: Iterable[RawDocument], reports: Iterable[_Report], settings: FactsConfig, now: datetime
) -> tuple[list[RawDocument], list[_Report]]:
    """Return the documents, those of clusters with their facts, and the reports about clusters that the source does not have."""
    receptions = _load_receptions()
    by_cluster = {report.facts.cluster: report for report in reports}
    applied: set[str] = set()
    made: list[RawDocument] = []
    for document in documents:
        reception = receptions.get((document.group, document.kind))
        report = by_cluster.get(document.name) if reception is not None and not document.broken else None
        if reception is None or report is None:
            made.append(document)
            continue
        applied.add(document.name)
        body = reception.apply(document.body, report.facts, _find_stale(report, settings, now))
        # Without a blob id, because the blob has another content: decisions are remembered by it.
        origin = document.origin._replace(blob="") if document.origin is not None else None
        made.append(document._replace(body=body, origin=origin))
    return made, [report for name, report in by_cluster.items() if name not in applied]


def _find_stale(report: _Report, settings: FactsConfig, now: datetime) -> StaleFacts | None:
    """Return since when facts are stale; None if they are not."""
    deadline = add_duration(report.facts.observed, settings.stale_after)
    return StaleFacts(deadline, settings.stale_rule) if deadline <= now else None


def _report_unknown(report: _Report) -> Finding:
    message = (
        f"there are facts about {report.facts.cluster}, and the source has no such cluster: they have no effect; commit the document of "
        "the cluster (gitsched collect --write-clusters proposes one), or remove the facts"
    )
    return report.make_finding("facts-unknown-cluster", message)


def _report_stale(reports: Iterable[_Report], settings: FactsConfig, now: datetime) -> list[Finding]:
    """Return one finding for all clusters with stale facts. It names times, not ages, so that a later run repeats it."""
    stale = [report for report in reports if _find_stale(report, settings, now) is not None]
    if not stale:
        return []
    stale.sort(key=lambda report: (report.facts.observed, report.facts.cluster))
    named = format_names([f"{report.facts.cluster} (observed at {format_time(report.facts.observed)})" for report in stale])
    rule = _RULES[settings.stale_rule].replace("the cluster", "the cluster" if len(stale) == 1 else "each cluster")
    message = (
        f"the facts about {format_count(len(stale), 'cluster')} are older than source.facts.staleAfter: {named}; "
        f"source.facts.stale is {settings.stale_rule}, so {rule}; check that gitsched collect runs"
    )
    return [stale[0].make_finding("facts-stale", message)]


def _report_clusters_without(documents: Iterable[RawDocument], reports: Iterable[_Report]) -> list[Finding]:
    """Return one finding about all clusters of the source without facts, where others have some."""
    receptions, known = _load_receptions(), {report.facts.cluster for report in reports}
    without = [one for one in documents if (one.group, one.kind) in receptions and not one.broken and one.name not in known]
    if not without:
        return []
    first = without[0]
    named = format_names([document.name for document in without])
    message = (
        f"{format_count(len(without), 'cluster has', 'clusters have')} no facts, and others have: {named}; the status in the source "
        "counts for them; check that gitsched collect runs for each cluster"
    )
    location = locate_origin(first.origin) if first.origin else None
    return [Finding("info", "facts-incomplete", message, location, (first.kind, first.namespace, first.name))]
