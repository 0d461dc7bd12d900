"""Read Clusters into scheduling candidates with labels, taints, API enablements and free capacity."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from gitsched.apis.karmada.cluster.taints import (
    NO_TAINT_CHANGES,
    NO_TAINT_POLICIES,
    TAINTS_ADDED,
    AddedTaint,
    ClusterTaintPolicies,
    TaintChanges,
    apply_taints,
    derive_cluster_taints,
    report_taint_changes,
    write_added_taints,
)
from gitsched.apis.karmada.names import CLUSTER, CLUSTER_GROUP
from gitsched.model.document import Body, Document, Key, as_string_map, get_field, read_annotations, read_json
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.quantity import count_quantity, get_unit, parse_quantity
from gitsched.model.taints import NO_EXECUTE, Taint, parse_taint
from gitsched.model.time import format_time, parse_time
from gitsched.schedule.estimator import Capacity, ModelGrade
from gitsched.schedule.fleet import Candidate, Fleet


class _SharedApis:
    """The APIs of clusters. Most clusters serve the same ones, so a list that equals the last one is not read again, and clusters with
    equal APIs share one set."""

    __slots__ = ("_last", "_sets")

    def __init__(self) -> None:
        self._last: tuple[list[Body], frozenset[tuple[str, str]]] = ([], frozenset())
        self._sets: dict[frozenset[tuple[str, str]], frozenset[tuple[str, str]]] = {}

    def read(self, enablements: list[Body]) -> frozenset[tuple[str, str]]:
        """Return what status.apiEnablements says."""
        known, apis = self._last
        if enablements != known:
            apis = _read_api_enablements(enablements)
            apis = self._sets.setdefault(apis, apis)
            self._last = enablements, apis
        return apis


def parse_cluster(
    document: Document, assume_facts: bool, since: Mapping[str, datetime], capacity: Capacity | None, shared: _SharedApis
) -> Candidate:
    """Read a Cluster with a free capacity into a scheduling candidate.

    With `assume_facts` a Cluster without status.apiEnablements supports every API, else none. `since` says when a NoExecute taint
    without timeAdded was first seen, by its text.
    """
    body = document.body
    spec = body.get("spec") or {}
    metadata = body["metadata"]
    enablements = _read_status(body).get("apiEnablements") or []
    taints = spec.get("taints") or ()
    return Candidate(
        document.key.name,
        as_string_map(metadata.get("labels")),
        {
            "provider": _as_values(spec.get("provider")),
            "region": _as_values(spec.get("region")),
            "zone": tuple(spec.get("zones") or _as_values(spec.get("zone"))),
        },
        tuple(_set_time_added(parse_taint(entry), since) for entry in taints) if taints else (),
        shared.read(enablements) if enablements or not assume_facts else None,
        bool(metadata.get("deletionTimestamp")),
        capacity=capacity,
    )


def has_status_facts(body: Body) -> tuple[bool, bool]:
    """Return whether a Cluster has status.apiEnablements, and whether it has status.resourceSummary."""
    status = _read_status(body)
    return bool(status.get("apiEnablements")), bool(status.get("resourceSummary"))


def _read_status(body: Body) -> Body:
    status = body.get("status")
    return status if isinstance(status, dict) else {}


def list_undated_taints(body: Body) -> list[Taint]:
    """Return the NoExecute taints without timeAdded; their time is when they were first seen."""
    entries = (body.get("spec") or {}).get("taints")
    taints = map(parse_taint, entries) if entries else ()
    return [taint for taint in taints if taint.effect == NO_EXECUTE and taint.since is None]


def _read_capacity(body: Body, assume_facts: bool) -> tuple[Capacity | None, Capacity | None]:
    """Return the free capacity, which is allocatable minus allocated and allocating, and what the Cluster has in total.

    A Cluster without a summary has no capacity, or with `assume_facts` unlimited capacity (None); its total is None.
    """
    summary = _read_status(body).get("resourceSummary")
    if not isinstance(summary, dict):
        return None if assume_facts else Capacity({}), None
    allocatable = summary.get("allocatable")
    used = [use for use in (summary.get("allocated"), summary.get("allocating")) if isinstance(use, dict)]
    total: dict[str, int] = {}
    free: dict[str, int] = {}
    for name, text in allocatable.items() if isinstance(allocatable, dict) else ():
        quantity = parse_quantity(text)
        if quantity is None:
            continue
        nano, unit = quantity.nano, get_unit(name)
        total[name] = -(-nano // unit)
        for use in used:
            if name in use and (part := parse_quantity(use[name])) is not None:
                nano -= part.nano
        free[name] = -(-nano // unit)
    return Capacity(free, _read_resource_models(body, summary)), Capacity(total)


def _read_resource_models(body: Body, summary: Body) -> tuple[ModelGrade, ...]:
    """Return the modelled nodes by grade; none when the counts are invalid."""
    modelled = summary.get("allocatableModelings")
    if not modelled:
        return ()
    counts = {entry.get("grade"): entry.get("count") for entry in modelled}
    if any(not isinstance(count, int) or count < 0 for count in counts.values()):
        return ()
    models = get_field(body, "spec", "resourceModels") or ()
    return tuple(ModelGrade(counts.get(model.get("grade"), 0), _read_minimum(model)) for model in models)


def _read_minimum(model: Body) -> tuple[tuple[str, int], ...]:
    minima = {str(entry.get("name")): parse_quantity(entry.get("min")) for entry in model.get("ranges") or ()}
    return tuple((name, count_quantity(name, minimum)) for name, minimum in minima.items() if minimum is not None)


def _set_time_added(taint: Taint, since: Mapping[str, datetime]) -> Taint:
    return taint if taint.since or taint.effect != NO_EXECUTE else taint._replace(since=since.get(str(taint)))


def _as_values(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and value else ()


def _read_api_enablements(enablements: list[Body]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (str(entry.get("groupVersion")), str(resource.get("kind")))
        for entry in enablements
        for resource in entry.get("resources") or ()
    )


TAINTS_FIRST_SEEN = "gitsched.io/taints-first-seen"
"""On the record of a Cluster: when each NoExecute taint without timeAdded was first seen, as JSON."""
_CLUSTER_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
"""Valid names of clusters in Karmada."""


class ClusterInventory(NamedTuple):
    """All Clusters of a commit.

    `records` are status documents of Clusters with undated NoExecute taints or with `added_taints`, which are by cluster. `reporting` are
    the Clusters that report conditions, such as Ready. `allocatable` is what the Clusters with a summary of resources have in total.
    """

    fleet: Fleet
    facts: Mapping[str, ClusterInfo]
    findings: tuple[Finding, ...]
    records: tuple[tuple[Key, Body], ...]
    added_taints: Mapping[str, tuple[AddedTaint, ...]]
    reporting: tuple[Document, ...] = ()
    allocatable: Mapping[str, Capacity] = {}


def read_clusters(
    documents: Iterable[Document],
    quarantined: Iterable[Key],
    previous: Mapping[Key, Body],
    assume_facts: bool,
    time: datetime,
    policies: ClusterTaintPolicies = NO_TAINT_POLICIES,
    evict: bool = False,
) -> ClusterInventory:
    """Read every Cluster. A quarantined one is a candidate that keeps its workloads and gets no new ones. With `evict` a cluster that is
    not ready has a NoExecute taint."""
    candidates: list[Candidate] = []
    facts: dict[str, ClusterInfo] = {}
    without_apis: list[Document] = []
    without_capacity: list[Document] = []
    records: list[tuple[Key, Body]] = []
    clusters = [(d, _read_first_seen(d, previous.get(d.key), time)) for d in documents]
    capacities = [_read_capacity(document.body, assume_facts) for document, _ in clusters]
    shared = _SharedApis()
    parsed = [
        parse_cluster(document, assume_facts, since, free, shared)
        for (document, since), (free, _) in zip(clusters, capacities, strict=True)
    ]
    reporting = tuple(document for document, _ in clusters if _read_status(document.body).get("conditions"))
    tainted: Mapping[str, TaintChanges] = {}
    if reporting or policies.policies or not assume_facts or any(document.key in previous for document, _ in clusters):
        documents_and_candidates = list(zip((document for document, _ in clusters), parsed, strict=True))
        tainted = derive_cluster_taints(documents_and_candidates, previous, assume_facts, time, policies, evict)
    for (document, since), candidate in zip(clusters, parsed, strict=True):
        change = tainted.get(candidate.name, NO_TAINT_CHANGES)
        candidates.append(
            candidate._replace(taints=apply_taints(candidate.taints, change)) if change != NO_TAINT_CHANGES else candidate
        )
        spec = document.body.get("spec") or {}
        facts[document.key.name] = ClusterInfo(
            document.key.name, candidate.labels, str(spec.get("region") or ""), str(spec.get("provider") or "")
        )
        if since or change.added:
            records.append((document.key, _write_cluster_record(document, since, change.added)))
        if assume_facts:
            for documents_without, first_seen in zip(
                (without_apis, without_capacity), has_status_facts(document.body), strict=True
            ):
                if not first_seen:
                    documents_without.append(document)
    for key in sorted(quarantined):
        if (key.group, key.kind) == (CLUSTER_GROUP, CLUSTER) and key.name not in facts and _CLUSTER_NAME.fullmatch(key.name):
            candidates.append(Candidate(key.name, {}, {}, frozen=True))
            facts[key.name] = ClusterInfo(key.name, {})
            if key in previous:
                records.append((key, previous[key]))  # keep its timers until it is valid again
    findings = (
        *_report_assumed_facts("cluster-apis-assumed", "status.apiEnablements", "support for every API", without_apis),
        *_report_assumed_facts("cluster-room-assumed", "status.resourceSummary", "unlimited capacity", without_capacity),
        *(_report_tainted_clusters([document for document, _ in clusters], tainted, policies) if tainted else ()),
    )
    added_taints = {name: change.added for name, change in tainted.items() if change.added}
    totals = zip((document.key.name for document, _ in clusters), (total for _, total in capacities), strict=True)
    allocatable = {name: total for name, total in totals if total is not None}
    return ClusterInventory(Fleet(candidates), facts, findings, tuple(records), added_taints, reporting, allocatable)


def _report_tainted_clusters(
    documents: Iterable[Document], tainted: Mapping[str, TaintChanges], policies: ClusterTaintPolicies
) -> list[Finding]:
    changed = ((document.key, locate_document(document), tainted.get(document.key.name)) for document in documents)
    return report_taint_changes([(key, where, change) for key, where, change in changed if change is not None], policies)


def _read_first_seen(document: Document, previous: Body | None, time: datetime) -> dict[str, datetime]:
    taints = list_undated_taints(document.body)
    if not taints:
        return {}
    try:
        value = read_json(read_annotations(previous or {}).get(TAINTS_FIRST_SEEN, "{}"))
    except ValueError:
        value = {}
    first_seen = value if isinstance(value, dict) else {}
    return {str(taint): parse_time(first_seen.get(str(taint))) or time for taint in taints}


def _write_cluster_record(document: Document, since: Mapping[str, datetime], added_taints: tuple[AddedTaint, ...]) -> Body:
    annotations: dict[str, str] = {}
    if added_taints:
        annotations[TAINTS_ADDED] = write_added_taints(added_taints)
    if since:
        times = {text: format_time(time) for text, time in sorted(since.items())}
        annotations[TAINTS_FIRST_SEEN] = json.dumps(times, separators=(",", ":"))
    metadata = {"name": document.key.name, "annotations": annotations}
    return {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata}


def _report_assumed_facts(code: str, fact: str, assumption: str, documents: list[Document]) -> list[Finding]:
    """Return one finding for all Clusters without a fact, located at the first of them."""
    if not documents:
        return []
    first, *others = documents
    if not others:
        message = f"Cluster {first.key.name} has no {fact}: assuming {assumption}"
        return [Finding("info", code, message, locate_document(first), first.key.resource)]
    named = format_names([document.key.name for document in documents])
    message = f"{len(documents)} Clusters have no {fact}: assuming {assumption} ({named})"
    return [Finding("info", code, message, locate_document(first), first.key.resource)]
