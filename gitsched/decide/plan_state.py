"""The state of a plan that the next incremental plan starts from: one row for each workload and cluster, and totals.

A ledger describes one output tree exactly. Whoever has lost it plans everything anew and gets the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple, Protocol

from gitsched.apis.engine import PolicyEngine
from gitsched.apis.gitsched.config import Config
from gitsched.decide.decisions import DecisionSet
from gitsched.decide.plan import PlanInput, PreviousOutput
from gitsched.decide.rendered_tree import RenderedTree, WorkloadFiles, list_namespace_manifests
from gitsched.model.document import Body, Key, parse_api_group
from gitsched.model.finding import Finding
from gitsched.model.planned_files import ClusterInfo, PlannedFile
from gitsched.model.scheduling import Outcome
from gitsched.render.layout import status_path
from gitsched.render.readme import MAX_ROWS


class WorkloadRow(NamedTuple):
    """One workload: its outcome without documents and bodies, the source file it was read from, the paths of its records, and by
    cluster the paths of its manifests, relative to the cluster's directory."""

    outcome: Outcome
    source_path: str
    record_paths: tuple[str, ...]
    manifest_paths: Mapping[str, tuple[str, ...]]


class ClusterRow(NamedTuple):
    """One cluster: its facts, and the relative paths of what is placed there."""

    facts: ClusterInfo
    manifest_paths: frozenset[str]


class Totals(NamedTuple):
    """What is known of a plan without its rows.

    `at` and `now` are the moments of the plan. `states` counts workloads by state, `unclaimed` the objects that no policy selects.
    Findings are by source file, by workload, those of the sessions, and all `others`. `restless` are workloads that may be decided
    otherwise next time. `front` are the first outcomes and `fleet` the first clusters; `clusters` counts all. `records` are those of no
    workload. `scopes` says of kinds that are not built in whether they have namespaces.
    """

    config: Config
    source_time: datetime
    now: datetime
    state_counts: Mapping[str, int]
    unclaimed: int
    findings_by_file: Mapping[str, tuple[Finding, ...]]
    findings_by_workload: Mapping[Key, tuple[Finding, ...]]
    engine_findings: tuple[Finding, ...]
    other_findings: tuple[Finding, ...]
    wakeups: Mapping[Key, datetime]
    unstable: frozenset[Key]
    first_outcomes: Mapping[Key, Outcome]
    first_clusters: Mapping[str, ClusterInfo]
    cluster_count: int
    retiring: Mapping[str, datetime]
    namespace_manifests: Mapping[str, tuple[str, PlannedFile]]
    records: tuple[tuple[Key, Body], ...]
    kind_scopes: Mapping[tuple[str, str], bool]

    @property
    def workload_count(self) -> int:
        return sum(self.state_counts.values())


class PlanRows(Protocol):
    """Where the rows of a ledger lie."""

    def read_workload(self, key: Key) -> WorkloadRow | None:
        """What is known of a workload; None when no policy selects it."""
        ...

    def read_cluster(self, name: str) -> ClusterRow | None:
        """What is known of a cluster; None when it has no directory."""
        ...

    def list_workloads(self) -> Iterator[WorkloadRow]:
        """Every workload, by (namespace, name)."""
        ...


class StoredOutcomes(Mapping[Key, Outcome]):
    """The outcomes of a ledger, some of them changed since; read when they are asked for."""

    def __init__(self, rows: PlanRows, count: int, changed: Mapping[Key, Outcome]) -> None:
        self._rows, self._count, self._changed = rows, count, changed

    def __getitem__(self, key: Key) -> Outcome:
        if key in self._changed:
            return self._changed[key]
        trace = self._rows.read_workload(key)
        if trace is None:
            raise KeyError(key)
        return trace.outcome

    def __iter__(self) -> Iterator[Key]:
        return (trace.outcome.key for trace in self._rows.list_workloads())

    def __len__(self) -> int:
        return self._count


def make_workload_row(share: WorkloadFiles, source: str) -> WorkloadRow:
    """The row of a workload."""
    return WorkloadRow(
        strip_outcome(share.outcome),
        source,
        tuple(share.records),
        {cluster: tuple(files) for cluster, files in share.manifests.items()},
    )


def strip_outcome(outcome: Outcome) -> Outcome:
    """An outcome without what only writing it needs."""
    placed = tuple(place._replace(edits=(), body=None) if place.edits or place.body else place for place in outcome.targets)
    return outcome._replace(records=(), manifests=None, previous_targets=(), targets=placed)


def compute_totals(
    decided: DecisionSet,
    picture: RenderedTree,
    source: PlanInput,
    by_file: Mapping[str, tuple[Finding, ...]],
    retiring: Mapping[str, datetime],
) -> Totals | None:
    """The sums of a whole plan.

    None when nobody can go on from a plan like this: a document is broken or stands twice, two objects are in each other's way, an API
    decides about documents of its own, or its sessions would not say the same once more.
    """
    catalog, outcomes = decided.catalog, decided.outcomes
    if (
        catalog.duplicate_templates
        or catalog.broken
        or catalog.duplicate_api_documents
        or decided.quarantined
        or decided.own_workloads
        or picture.findings
    ):
        return None
    records = list_engine_records(decided.engines)
    if _share_record_paths(picture, records) or not _has_stable_records(outcomes, records, source.previous):
        return None
    said = tuple(finding for session in decided.engines for finding in session.findings)
    known = frozenset(said)
    return Totals(
        config=source.config,
        source_time=source.source_time,
        now=source.now,
        state_counts=Counter(outcome.state for outcome in outcomes.values()),
        unclaimed=decided.unclaimed,
        findings_by_file={path: findings for path, findings in by_file.items() if findings},
        findings_by_workload={key: outcome.findings for key, outcome in outcomes.items() if outcome.findings},
        engine_findings=said,
        other_findings=(*source.other_findings, *(finding for finding in decided.findings if finding not in known)),
        wakeups={key: outcome.wakeup for key, outcome in outcomes.items() if outcome.wakeup is not None},
        unstable=decided.unstable,
        first_outcomes={key: strip_outcome(outcome) for key, outcome in islice(outcomes.items(), MAX_ROWS)},
        first_clusters=dict(sorted(picture.cluster_facts.items())[:MAX_ROWS]),
        cluster_count=len(picture.cluster_facts),
        retiring=retiring,
        namespace_manifests=list_namespace_manifests(decided.templates),
        records=records,
        kind_scopes=catalog.kind_scopes,
    )


def _share_record_paths(picture: RenderedTree, records: Iterable[tuple[Key, Body]]) -> bool:
    """Whether two workloads, or a workload and a session, write the same record: then the later one counts."""
    paths = [path for share in picture.workloads.values() for path in share.records]
    paths += [status_path(key) for key, _ in records]
    return len(set(paths)) < len(paths)


def _has_stable_records(outcomes: Mapping[Key, Outcome], records: tuple[tuple[Key, Body], ...], before: PreviousOutput) -> bool:
    """Whether the sessions read the very records that they write: a new session over this output would find what they found."""
    if any(before.records.get(key) != body for key, body in records):
        return False
    held = [key for outcome in outcomes.values() for key, _ in outcome.records]
    kinds = {(key.group, key.kind) for key in held}
    gone = before.list_other_records([*held, *(key for key, _ in records)])
    return all((parse_api_group(str(body.get("apiVersion") or body.get("api") or "")), body.get("kind")) in kinds for body in gone)


def list_engine_records(sessions: tuple[PolicyEngine, ...]) -> tuple[tuple[Key, Body], ...]:
    """The records of all sessions that belong to no workload."""
    return tuple(record for session in sessions for record in session.records())


def make_plan_rows(decided: DecisionSet, picture: RenderedTree) -> tuple[dict[Key, WorkloadRow], dict[str, ClusterRow]]:
    """A row for every workload, in their order, and for every cluster."""
    traces = {}
    for key, share in picture.workloads.items():
        origin = decided.templates[key].origin
        traces[key] = make_workload_row(share, origin.path if origin else "")
    return traces, {
        name: ClusterRow(facts, frozenset(picture.manifests.get(name, ()))) for name, facts in picture.cluster_facts.items()
    }
