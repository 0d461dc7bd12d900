"""Add the facts that `gitsched collect` observed to the documents of the clusters, as their status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from gitsched.apis.cluster_format import ClusterFormat, StaleFacts
from gitsched.apis.gitsched.facts_document import read_facts
from gitsched.apis.gitsched.source_config import FactsConfig
from gitsched.decide.catalog import RawDocument, make_raw_documents
from gitsched.decide.plan_input import SourceTree
from gitsched.decide.registry import load_cluster_formats
from gitsched.git import FactsBranch
from gitsched.model.cluster_facts import FACTS_KIND, MAX_SKEW, AppliedFacts, ClusterFacts
from gitsched.model.cluster_report import CLUSTER_REPORT
from gitsched.model.finding import FACTS_STALE, Finding, Location, format_count, format_names, locate_origin
from gitsched.model.time import EPOCH, add_duration, format_time
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.facts.facts_branches import FactsDocuments, list_score_kinds, read_facts_documents
from gitsched.reconcile.run import Facts, RunContext
from gitsched.reconcile.source.source_reader import SourceReader
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

_RULES = {
    "keep": "the cluster is treated as before",
    "noNewPlacements": "the cluster gets no new workloads",
    "evict": "workloads leave the cluster",
}


class SourceWithFacts(NamedTuple):
    """A source with the facts in the documents of its clusters."""

    source: SourceTree
    applied: AppliedFacts


class _ObservedFacts(NamedTuple):
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
    observed = list(_read_all_facts(found.list_kinds(FACTS_KIND), now, findings))
    known = {one.facts.cluster for one in observed}
    restored = [one for one in _restore_facts(context, facts, source, found, recorded) if one[0].name not in known]
    findings += (_report_restored(document) for document, _ in restored)
    observed += _read_all_facts(restored, now, findings)
    source = source._replace(documents=(*source.documents, *others))
    is_repeated = facts.time <= now and not found.broken  # else a later run may read other times, or restore other facts
    if not observed:
        applied = AppliedFacts(facts.digest, tuple(findings), valid_until=None if is_repeated else EPOCH)
        return SourceWithFacts(source._replace(other_findings=(*source.other_findings, *findings)), applied)
    settings = source.config.source.facts
    documents, unknown = _apply_all(source.documents, observed, settings, now)
    findings += (_report_unknown(one) for one in unknown)
    findings += _report_stale(observed, settings, now)
    findings += _report_clusters_without(documents, observed)
    decides = settings.stale_rule != "keep"
    deadlines = [add_duration(one.facts.observed, settings.stale_after) for one in observed]
    next_deadline = min((time for time in deadlines if time > now), default=None)
    applied = AppliedFacts(
        facts.digest,
        tuple(findings),
        max((time for time in deadlines if time <= now and decides), default=EPOCH),
        next_deadline if decides else None,
        next_deadline if is_repeated else EPOCH,
        are_timed=True,
    )
    source = source._replace(documents=tuple(documents), other_findings=(*source.other_findings, *findings))
    return SourceWithFacts(source, applied)


def _read_all_facts(
    documents: Iterable[tuple[RawDocument, FactsBranch]], now: datetime, findings: list[Finding]
) -> Iterator[_ObservedFacts]:
    """Yield the facts of documents. Facts from the future count as observed when they were committed, so that they become stale."""
    for document, branch in documents:
        one = _ObservedFacts(read_facts(document.body), document)
        limit = min(branch.commit.time, now)
        if one.facts.observed > limit:
            if one.facts.observed > add_duration(limit, MAX_SKEW):
                message = (
                    f"the facts about {one.facts.cluster} were observed at {format_time(one.facts.observed)}, after their commit: "
                    f"they count as observed at {format_time(limit)}; correct the clock of the collector"
                )
                findings.append(one.make_finding("facts-future", message))
            one = one._replace(facts=one.facts._replace(observed=limit))
        yield one


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
        for document in make_raw_documents(reader.read(entry[0], name), name, entry[0]):
            is_own = not branch.cluster or document.name == branch.cluster
            if not document.broken and (document.group, document.kind) == FACTS_KIND and is_own:
                restored.append((document, branch._replace(commit=commit)))
    return restored


def _report_restored(document: RawDocument) -> Finding:
    location = locate_origin(document.origin) if document.origin else None
    message = f"the facts about {document.name} cannot be used: those that the last run read count instead; collect them again"
    return Finding("warning", "facts-restored", message, location, (document.kind, "", document.name))


def _index_formats() -> dict[tuple[str, str], ClusterFormat]:
    return {(one.group, one.kind): one for one in load_cluster_formats().values()}


def _apply_all(
    documents: Iterable[RawDocument], observed: Iterable[_ObservedFacts], settings: FactsConfig, now: datetime
) -> tuple[list[RawDocument], list[_ObservedFacts]]:
    """Return the documents, those of clusters with their facts, and the facts about clusters that the source does not have."""
    formats = _index_formats()
    by_cluster = {one.facts.cluster: one for one in observed}
    applied: set[str] = set()
    made: list[RawDocument] = []
    for document in documents:
        cluster_format = formats.get((document.group, document.kind))
        one = by_cluster.get(document.name) if cluster_format is not None and not document.broken else None
        if cluster_format is None or one is None:
            made.append(document)
            continue
        applied.add(document.name)
        body = cluster_format.apply(document.body, one.facts, _find_stale(one, settings, now))
        # Without a blob id, because the blob has another content: decisions are remembered by it.
        origin = document.origin._replace(blob="") if document.origin is not None else None
        made.append(document._replace(body=body, origin=origin))
    return made, [one for name, one in by_cluster.items() if name not in applied]


def _find_stale(one: _ObservedFacts, settings: FactsConfig, now: datetime) -> StaleFacts | None:
    """Return since when facts are stale; None if they are not."""
    deadline = add_duration(one.facts.observed, settings.stale_after)
    return StaleFacts(deadline, settings.stale_rule) if deadline <= now else None


def _report_unknown(one: _ObservedFacts) -> Finding:
    message = (
        f"there are facts about {one.facts.cluster}, and the source has no such cluster: they have no effect; commit the document of "
        "the cluster (gitsched collect --write-clusters proposes one), or remove the facts"
    )
    return one.make_finding("facts-unknown-cluster", message)


def _report_stale(observed: Iterable[_ObservedFacts], settings: FactsConfig, now: datetime) -> list[Finding]:
    """Return one finding for all clusters with stale facts. It names times, not ages, so that a later run repeats it."""
    stale = [one for one in observed if _find_stale(one, settings, now) is not None]
    if not stale:
        return []
    stale.sort(key=lambda one: (one.facts.observed, one.facts.cluster))
    named = format_names([f"{one.facts.cluster} (observed at {format_time(one.facts.observed)})" for one in stale])
    rule = _RULES[settings.stale_rule].replace("the cluster", "the cluster" if len(stale) == 1 else "each cluster")
    message = (
        f"the facts about {format_count(len(stale), 'cluster')} are older than source.facts.staleAfter: {named}; "
        f"source.facts.stale is {settings.stale_rule}, so {rule}; check that gitsched collect runs"
    )
    return [stale[0].make_finding(FACTS_STALE, message)]


def _report_clusters_without(documents: Iterable[RawDocument], observed: Iterable[_ObservedFacts]) -> list[Finding]:
    """Return one finding about all clusters of the source without facts, where others have some."""
    formats, known = _index_formats(), {one.facts.cluster for one in observed}
    without = [one for one in documents if (one.group, one.kind) in formats and not one.broken and one.name not in known]
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
