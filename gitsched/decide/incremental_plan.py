"""Update the last plan when only the content of known templates changed; anything else requires a complete plan.

Whatever could make a difference elsewhere (other settings, a workload that comes or goes, a namespace, a finding that would have to move)
is not amended: the caller plans everything anew, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple, TypeVar

from gitsched.apis.engine import PolicyEngine, Snapshot
from gitsched.decide.decisions import decide_workload, is_unchanged, list_dependency_trackers
from gitsched.decide.plan import Plan, check_removal_guard, list_moves
from gitsched.decide.plan_state import (
    ClusterRow,
    PlanRows,
    StoredOutcomes,
    Totals,
    WorkloadRow,
    list_engine_records,
    make_workload_row,
    strip_outcome,
)
from gitsched.decide.rendered_tree import (
    BlobLookup,
    RenderCache,
    WorkloadFiles,
    add_namespace_manifests,
    count_replicas,
    render_workload,
)
from gitsched.model.document import Document, Key
from gitsched.model.finding import Finding, finding_sort_key
from gitsched.model.planned_files import ExistingBlob, PlannedFile
from gitsched.model.scheduling import Outcome
from gitsched.render.cluster_directory import complete_directory, write_cluster_json
from gitsched.render.layout import CLUSTER_JSON, cluster_path

K = TypeVar("K")
V = TypeVar("V")
_UNCHANGED = ExistingBlob("")
"""Stands for a file of a directory that nobody touches."""


class PlanState(NamedTuple):
    """What an earlier plan left: its sums, its rows and its sessions."""

    totals: Totals
    rows: PlanRows
    engines: tuple[PolicyEngine, ...]


class SourceDiff(NamedTuple):
    """What is new in the source: the templates that have to be decided again, by identity, and the findings of each changed file."""

    documents: Mapping[Key, Document]
    findings: Mapping[str, tuple[Finding, ...]]


class IncrementalPlan(NamedTuple):
    """A plan that says only what changes, and what changes of the ledger with it."""

    plan: Plan
    totals: Totals
    workloads: Mapping[Key, WorkloadRow]
    clusters: Mapping[str, ClusterRow]


def make_incremental_plan(
    ledger: PlanState, edition: SourceDiff, world: Snapshot, lookup: BlobLookup, canvas: RenderCache
) -> IncrementalPlan | None:
    """The next plan; None where the whole is due."""
    sums = ledger.totals
    told = (finding for found in (sums.other_findings, sums.engine_findings) for finding in found)
    if world.at < sums.source_time or any(_is_about(finding, edition.findings) for finding in told):
        return None
    ends = [since + sums.config.output.retire_after for since in sums.retiring.values()]
    if any(end <= world.now for end in ends) or not _update_engines(ledger, world):
        return None
    shares: dict[Key, WorkloadFiles] = {}
    restless = set(sums.unstable)
    documents = _list_affected_documents(ledger, edition, world)
    if documents is None:
        return None
    for key, document in documents.items():
        outcome, trace = decide_workload(document, ledger.engines), ledger.rows.read_workload(key)
        if (outcome is None) != (trace is None) or key.kind == "Namespace":
            return None
        if outcome is None:
            continue
        if outcome.manifests is not None:
            return None  # what it renders may lie where another workload's manifests do
        shares[key] = render_workload(outcome, document, False, lookup, canvas)
        (restless.discard if is_unchanged(outcome, world.previous) else restless.add)(key)
    held = (finding for key, found in sums.findings_by_workload.items() if key not in shares for finding in found)
    if any(_is_about(finding, edition.findings) for finding in held) or _has_record_conflict(ledger.rows, shares, lookup):
        return None
    traces = {key: make_workload_row(share, _read_source_path(documents[key])) for key, share in shares.items()}
    outcomes = {key: share.outcome for key, share in shares.items()}
    places = _update_cluster_rows(ledger.rows, traces)
    after = _update_totals(sums, ledger.rows, outcomes, places, edition, world)._replace(unstable=frozenset(restless))
    wakeups = [*after.wakeups.values(), *ends, *(session.wakeup for session in ledger.engines if session.wakeup is not None)]

    def lived(cluster: str) -> bool:
        return cluster not in sums.retiring and ledger.rows.read_cluster(cluster) is not None

    plan = Plan(
        outcomes=StoredOutcomes(ledger.rows, sums.workload_count, outcomes),
        findings=sort_findings(after),
        moves=tuple(list_moves(outcomes.values(), lived)),
        unclaimed=sums.unclaimed,
        next_wakeup=min(wakeups, default=None),
        time=max((world.at, *(outcome.time for outcome in outcomes.values()))),
        files=dict(_list_changed_files(ledger, shares, places)),
        first_outcomes=after.first_outcomes,
        first_clusters=after.first_clusters,
        cluster_count=after.cluster_count,
        state_counts=after.state_counts,
        retiring=sums.retiring,
        refusal=check_removal_guard(outcomes.values(), lived, sums.workload_count, sums.config),
    )
    return IncrementalPlan(plan, after, traces, places)


def sort_findings(sums: Totals) -> tuple[Finding, ...]:
    """All findings, in the order in which they are shown."""
    by = (*sums.findings_by_file.values(), *sums.findings_by_workload.values())
    return tuple(
        sorted(
            {*sums.other_findings, *sums.engine_findings, *(finding for findings in by for finding in findings)},
            key=finding_sort_key,
        )
    )


def _update_engines(ledger: PlanState, world: Snapshot) -> bool:
    """Whether the sessions go on, and say of everything but workloads what they said before."""
    sums, sessions = ledger.totals, ledger.engines
    return (
        all(session.update(world) for session in sessions)
        and tuple(finding for session in sessions for finding in session.findings) == sums.engine_findings
        and list_engine_records(sessions) == sums.records
        and all(session.time is None and (session.wakeup is None or session.wakeup > world.now) for session in sessions)
    )


def _list_affected_documents(ledger: PlanState, edition: SourceDiff, world: Snapshot) -> dict[Key, Document] | None:
    """What has to be decided, by (namespace, name): what is new, and what depends on it. None where something of that is not there."""
    dirty = frozenset(edition.documents)
    for session in list_dependency_trackers(ledger.engines):
        dirty |= session.affected_by(dirty)
    found: dict[Key, Document] = {}
    for key in sorted(dirty, key=lambda key: (key.namespace, key.name, key)):
        document = edition.documents.get(key) or world.templates.get(key)
        if document is None:
            return None
        found[key] = document
    return found


def _is_about(finding: Finding, paths: Container[str]) -> bool:
    """Whether a finding stands in one of these files, or would point there."""
    by_rule = finding.field is not None and finding.field.origin.path in paths
    return by_rule or (finding.location is not None and finding.location.path in paths)


def _has_record_conflict(rows: PlanRows, shares: Mapping[Key, WorkloadFiles], lookup: BlobLookup) -> bool:
    """Whether a workload would write a record where one of somebody else's is, or two of them the same one."""
    fresh: list[str] = []
    for key, share in shares.items():
        trace = rows.read_workload(key)
        fresh += (path for path in share.records if trace is None or path not in trace.record_paths)
    return len(set(fresh)) < len(fresh) or any(lookup(path) is not None for path in fresh)


def _read_source_path(document: Document) -> str:
    return document.origin.path if document.origin else ""


def _update_cluster_rows(rows: PlanRows, traces: Mapping[Key, WorkloadRow]) -> dict[str, ClusterRow]:
    """The clusters that workloads leave, reach, or have otherwise many replicas in."""
    counts: dict[str, tuple[int, int]] = {}
    gone: dict[str, set[str]] = {}
    come: dict[str, set[str]] = {}
    for key, trace in traces.items():
        before = rows.read_workload(key)
        if before is None:
            continue
        count_replicas(counts, before.outcome, -1)
        count_replicas(counts, trace.outcome, 1)
        for paths, manifests in ((gone, before.manifest_paths), (come, trace.manifest_paths)):
            for cluster, files in manifests.items():
                paths.setdefault(cluster, set()).update(files)
    places = {}
    for name in sorted({*counts, *gone, *come}):
        place = rows.read_cluster(name)
        if place is None:
            continue  # bound to a cluster that has no document, and so no directory
        workloads, replicas = counts.get(name, (0, 0))
        facts = place.facts._replace(workloads=place.facts.workloads + workloads, replicas=place.facts.replicas + replicas)
        places[name] = ClusterRow(facts, place.manifest_paths - gone.get(name, set()) | come.get(name, set()))
    return places


def _list_changed_files(
    ledger: PlanState, shares: Mapping[Key, WorkloadFiles], places: Mapping[str, ClusterRow]
) -> Iterable[tuple[str, PlannedFile | None]]:
    """The files of the output tree that are other ones now, None for those that go."""
    for key, share in shares.items():
        before = ledger.rows.read_workload(key)
        yield from ((path, None) for path in (before.record_paths if before else ()) if path not in share.records)
        yield from share.records.items()
    for name, place in places.items():
        earlier = ledger.rows.read_cluster(name)
        fresh = {path: file for share in shares.values() for path, file in share.manifests.get(name, {}).items()}
        if earlier is not None and earlier.manifest_paths == place.manifest_paths:
            yield from ((cluster_path(name, path), file) for path, file in fresh.items())
            if earlier.facts != place.facts:
                yield cluster_path(name, CLUSTER_JSON), write_cluster_json(*place.facts)
            continue
        old = _list_directory_files(earlier, {}, ledger.totals) if earlier else {}
        new = _list_directory_files(place, fresh, ledger.totals)
        yield from ((cluster_path(name, path), None) for path in old if path not in new)
        yield from (
            (cluster_path(name, path), file) for path, file in new.items() if file is not _UNCHANGED and old.get(path) != file
        )


def _list_directory_files(place: ClusterRow, fresh: Mapping[str, PlannedFile], sums: Totals) -> dict[str, PlannedFile]:
    files: dict[str, PlannedFile] = {path: fresh.get(path, _UNCHANGED) for path in place.manifest_paths}
    return complete_directory(place.facts, add_namespace_manifests(files, sums.namespace_manifests))


def _update_totals(
    sums: Totals,
    rows: PlanRows,
    outcomes: Mapping[Key, Outcome],
    places: Mapping[str, ClusterRow],
    edition: SourceDiff,
    world: Snapshot,
) -> Totals:
    states, wakeups = dict(sums.state_counts), dict(sums.wakeups)
    by_workload, by_file = dict(sums.findings_by_workload), dict(sums.findings_by_file)
    front, fleet = dict(sums.first_outcomes), dict(sums.first_clusters)
    for path, findings in edition.findings.items():
        _set_or_remove(by_file, path, findings)
    for key, outcome in outcomes.items():
        before = rows.read_workload(key)
        if before is not None:
            states[before.outcome.state] -= 1
        states[outcome.state] = states.get(outcome.state, 0) + 1
        _set_or_remove(wakeups, key, outcome.wakeup)
        _set_or_remove(by_workload, key, outcome.findings)
        if key in front:
            front[key] = strip_outcome(outcome)
    for name, place in places.items():
        if name in fleet:
            fleet[name] = place.facts
    return sums._replace(
        source_time=world.at,
        now=world.now,
        state_counts=states,
        wakeups=wakeups,
        findings_by_workload=by_workload,
        findings_by_file=by_file,
        first_outcomes=front,
        first_clusters=fleet,
    )


def _set_or_remove(entries: dict[K, V], key: K, value: V | None) -> None:
    """Set an entry, or drop it where there is nothing to keep."""
    if value:
        entries[key] = value
    else:
        entries.pop(key, None)
