"""Read Clusters into scheduling candidates with labels, taints, API enablements and free capacity.

A process that keeps its state reads each document once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from gitsched.apis.added_taints import TAINTS_ADDED, TAINTS_FIRST_SEEN, AddedTaint, read_first_seen, write_added_taints
from gitsched.apis.karmada.cluster.taints import (
    NO_TAINT_CHANGES,
    ClusterTaintPolicies,
    TaintChanges,
    apply_taints,
    derive_cluster_taints,
    find_unready_reason,
    read_conditions,
    report_taint_changes,
)
from gitsched.apis.karmada.names import CLUSTER, CLUSTER_GROUP
from gitsched.apis.snapshot import RecordsByKind
from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.model.finding import Finding, format_names, locate_document
from gitsched.model.planned_files import ClusterInfo
from gitsched.model.quantity import count_quantity, get_unit, parse_quantity
from gitsched.model.taints import NO_EXECUTE, Taint, parse_taint
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple
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


class ClusterReading(NamedTuple):
    """What a document says at any time and whatever its record is. `total` is the capacity of the Cluster without what is in use, `undated`
    are the NoExecute taints without timeAdded, `unready` says why it is not ready, or is "", and `has_facts` whether it has
    status.apiEnablements and status.resourceSummary. `observed` is when its resources were observed, None if nothing says so."""

    document: Document
    candidate: Candidate
    total: Capacity | None
    undated: tuple[Taint, ...]
    conditions: Mapping[str, str]
    reports_conditions: bool
    unready: str
    info: ClusterInfo
    has_facts: tuple[bool, bool]
    observed: datetime | None


class ClusterReadings:
    """The Clusters that a process has read last. It is stored without them."""

    __slots__ = ("_allocatable", "_assume_facts", "_fleet", "_known", "_shared")

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._allocatable: Mapping[str, Capacity] = {}
        self._known: dict[str, ClusterReading] = {}
        self._shared, self._assume_facts = _SharedApis(), True

    def __reduce__(self) -> tuple[type[ClusterReadings], tuple[()]]:
        return ClusterReadings, ()

    def read(self, documents: Iterable[Document], assume_facts: bool) -> list[ClusterReading]:
        """Read Clusters. A document that is the same object as for the last call is not read again.

        With `assume_facts` a Cluster without status.apiEnablements supports every API, else none.
        """
        known = self._known if self._assume_facts == assume_facts else {}
        found = []
        for document in documents:
            reading = known.get(document.key.name)
            if reading is None or reading.document is not document:
                reading = _read_cluster(document, assume_facts, self._shared)
            found.append(reading)
        self._known, self._assume_facts = {reading.document.key.name: reading for reading in found}, assume_facts
        return found

    def make_fleet(
        self, candidates: Iterable[Candidate], allocatable: Mapping[str, Capacity]
    ) -> tuple[Fleet, Mapping[str, Capacity]]:
        """Return the fleet of candidates and what they have in total. Both take over what they have in common with the last ones."""
        self._fleet = Fleet(candidates, self._fleet)
        self._allocatable = self._allocatable if self._allocatable == allocatable else allocatable
        return self._fleet, self._allocatable


def _read_cluster(document: Document, assume_facts: bool, shared: _SharedApis) -> ClusterReading:
    body = document.body
    free, total = _read_capacity(body, assume_facts)
    candidate, status = _parse_cluster(document, assume_facts, free, shared), _read_status(body)
    spec, conditions = body.get("spec") or {}, read_conditions(body) if status.get("conditions") else {}
    return ClusterReading(
        document,
        candidate,
        total,
        tuple(taint for taint in candidate.taints if taint.effect == NO_EXECUTE and taint.since is None)
        if candidate.taints
        else (),
        conditions,
        bool(status.get("conditions")),
        find_unready_reason(conditions) if conditions else "",
        ClusterInfo(document.key.name, candidate.labels, str(spec.get("region") or ""), str(spec.get("provider") or "")),
        (bool(status.get("apiEnablements")), bool(status.get("resourceSummary"))),
        _read_observation_time(body),
    )


def _read_observation_time(body: Body) -> datetime | None:
    """Return when the resources of a Cluster were observed; None if nothing says so."""
    annotations = body["metadata"].get("annotations")
    return parse_time(annotations.get(OBSERVED_AT)) if annotations else None


def _parse_cluster(document: Document, assume_facts: bool, capacity: Capacity | None, shared: _SharedApis) -> Candidate:
    """Read a Cluster with a free capacity into a scheduling candidate."""
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
        tuple(map(parse_taint, taints)) if taints else (),
        shared.read(enablements) if enablements or not assume_facts else None,
        bool(metadata.get("deletionTimestamp")),
        capacity=capacity,
    )


def _read_status(body: Body) -> Body:
    status = body.get("status")
    return status if isinstance(status, dict) else {}


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
    binary = set[str]()
    for name, text in allocatable.items() if isinstance(allocatable, dict) else ():
        quantity = parse_quantity(text)
        if quantity is None:
            continue
        nano, unit = quantity.nano, get_unit(name)
        total[name] = -(-nano // unit)
        if quantity.binary and nano:
            binary.add(name)
        for use in used:
            if name in use and (part := parse_quantity(use[name])) is not None:
                nano -= part.nano
        free[name] = -(-nano // unit)
    return Capacity(free, _read_resource_models(body, summary), frozenset(binary)), Capacity(total)


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
    """Return a taint with the time at which it was first seen, by its text, if it is an undated NoExecute taint."""
    return taint if taint.since or taint.effect != NO_EXECUTE else taint._replace(since=since.get(str(taint)))


def _as_values(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and value else ()


def _read_api_enablements(enablements: list[Body]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (str(entry.get("groupVersion")), str(resource.get("kind")))
        for entry in enablements
        for resource in entry.get("resources") or ()
    )


OBSERVED_AT = "gitsched.io/observed-at"
"""On a Cluster: when its resources were observed."""
_CLUSTER_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?")
"""Valid names of clusters in Karmada."""


class ClusterInventory(NamedTuple):
    """All Clusters of a commit.

    `records` are status documents of Clusters with undated NoExecute taints or with `added_taints`, which are by cluster. `unready` are
    the Clusters that report that they are not ready. `allocatable` is what the Clusters with a summary of resources have in total, and
    `observed` when that was observed, for those of which it is known.
    """

    fleet: Fleet
    facts: Mapping[str, ClusterInfo]
    findings: tuple[Finding, ...]
    records: tuple[tuple[Key, Body], ...]
    added_taints: Mapping[str, tuple[AddedTaint, ...]]
    unready: tuple[Document, ...] = ()
    allocatable: Mapping[str, Capacity] = {}
    observed: Mapping[str, datetime] = {}


def _list_cluster_records(previous: Mapping[Key, Body]) -> Mapping[Key, Body]:
    """Return the previous records, {} without one of a Cluster: then they are not searched for each one."""
    by_kind = previous.of_kind(CLUSTER_GROUP, CLUSTER) if isinstance(previous, RecordsByKind) else None
    return {} if by_kind is not None and next(iter(by_kind), None) is None else previous


def _list_quarantined(quarantined: Iterable[Key], known: Container[str]) -> dict[str, Key]:
    """Return the quarantined Clusters with a valid name that no other document has."""
    found: dict[str, Key] = {}
    for key in sorted(quarantined):
        if key[:2] == (CLUSTER_GROUP, CLUSTER) and key.name not in known and _CLUSTER_NAME.fullmatch(key.name):
            found.setdefault(key.name, key)
    return found


def _derive_taints(
    clusters: Sequence[ClusterReading],
    candidates: Sequence[Candidate],
    known: Mapping[Key, Body],
    assume_facts: bool,
    time: datetime,
    policies: ClusterTaintPolicies,
    evict: bool,
) -> Mapping[str, TaintChanges]:
    """Return how conditions and policies change the taints of Clusters; {} where no Cluster has any reason for that."""
    has_reasons = any(one.reports_conditions or one.document.key in known for one in clusters)
    if assume_facts and not (policies.policies or has_reasons):
        return {}
    derived = [(one.document.key, candidate, one.conditions) for one, candidate in zip(clusters, candidates, strict=True)]
    return derive_cluster_taints(derived, known, assume_facts, time, policies, evict)


class _AssumedFact(NamedTuple):
    """A fact that Clusters may lack, what is assumed then, and the code of the finding about that."""

    code: str
    fact: str
    assumption: str


_ASSUMED_FACTS = (
    _AssumedFact("cluster-apis-assumed", "status.apiEnablements", "support for every API"),
    _AssumedFact("cluster-room-assumed", "status.resourceSummary", "unlimited capacity"),
)
"""In the order of `ClusterReading.has_facts`."""


def _report_missing_facts(clusters: Sequence[ClusterReading]) -> Iterator[Finding]:
    """Yield one finding for all Clusters without a fact, located at the first of them."""
    first: Document | None = None
    for part, (code, fact, assumption) in enumerate(_ASSUMED_FACTS):
        documents = [one.document for one in clusters if not one.has_facts[part]]
        if not documents:
            continue
        if documents[0] is not first:
            first = documents[0]
            place = locate_document(first), first.key.resource
        message = f"Cluster {first.key.name} has no {fact}: assuming {assumption}"
        if len(documents) > 1:
            named = format_names([document.key.name for document in documents])
            message = f"{len(documents)} Clusters have no {fact}: assuming {assumption} ({named})"
        yield Finding("info", code, message, *place)


def _taint(candidate: Candidate, change: TaintChanges) -> Candidate:
    return candidate if change == NO_TAINT_CHANGES else candidate._replace(taints=apply_taints(candidate.taints, change))


def read_clusters(
    documents: Iterable[Document],
    quarantined: Iterable[Key],
    previous: Mapping[Key, Body],
    assume_facts: bool,
    time: datetime,
    policies: ClusterTaintPolicies,
    evict: bool,
    readings: ClusterReadings,
) -> ClusterInventory:
    """Read every Cluster. A quarantined one is a candidate that keeps its workloads and gets no new ones. With `evict` a cluster that is
    not ready has a NoExecute taint. `readings` has the Clusters that need not be read again."""
    clusters, known = readings.read(documents, assume_facts), _list_cluster_records(previous)
    since = [_read_first_seen(one, known.get(one.document.key), time) if one.undated else {} for one in clusters]
    candidates = [_add_times(one.candidate, times) if times else one.candidate for one, times in zip(clusters, since, strict=True)]
    tainted = _derive_taints(clusters, candidates, known, assume_facts, time, policies, evict)
    candidates = [_taint(candidate, tainted.get(candidate.name, NO_TAINT_CHANGES)) for candidate in candidates]
    facts = {candidate.name: one.info for one, candidate in zip(clusters, candidates, strict=True)}
    records: list[tuple[Key, Body]] = []
    for one, times, candidate in zip(clusters, since, candidates, strict=True):
        added = tainted.get(candidate.name, NO_TAINT_CHANGES).added
        if times or added:
            records.append((one.document.key, _write_cluster_record(one.document, times, added)))
    for name, key in _list_quarantined(quarantined, facts).items():
        candidates.append(Candidate(name, {}, {}, frozen=True))
        facts[name] = ClusterInfo(name, {})
        if key in previous:
            records.append((key, previous[key]))  # keep its timers until it is valid again
    findings = tuple(_report_missing_facts(clusters)) if assume_facts else ()
    findings = (*findings, *_report_tainted_clusters([one.document for one in clusters], tainted, policies))
    added_taints = {name: change.added for name, change in tainted.items() if change.added}
    unready = tuple(one.document for one in clusters if one.unready)
    totals = {one.document.key.name: one.total for one in clusters if one.total is not None}
    fleet, allocatable = readings.make_fleet(candidates, totals)
    observed = _list_observation_times(clusters)
    return ClusterInventory(fleet, facts, findings, tuple(records), added_taints, unready, allocatable, observed)


def _list_observation_times(clusters: Iterable[ClusterReading]) -> dict[str, datetime]:
    """Return when the resources of Clusters were observed, for those that say so."""
    return {one.document.key.name: one.observed for one in clusters if one.observed is not None}


def _add_times(candidate: Candidate, since: Mapping[str, datetime]) -> Candidate:
    return candidate._replace(taints=tuple(_set_time_added(taint, since) for taint in candidate.taints))


def _report_tainted_clusters(
    documents: Iterable[Document], tainted: Mapping[str, TaintChanges], policies: ClusterTaintPolicies
) -> list[Finding]:
    if not tainted:
        return []
    changed = ((document.key, locate_document(document), tainted.get(document.key.name)) for document in documents)
    return report_taint_changes([(key, where, change) for key, where, change in changed if change is not None], policies)


def _read_first_seen(reading: ClusterReading, previous: Body | None, time: datetime) -> dict[str, datetime]:
    """Return when the undated taints of a Cluster were first seen, by their text."""
    first_seen = read_first_seen(previous or {})
    return {str(taint): first_seen.get(str(taint), time) for taint in reading.undated}


def _write_cluster_record(document: Document, since: Mapping[str, datetime], added_taints: tuple[AddedTaint, ...]) -> Body:
    annotations: dict[str, str] = {}
    if added_taints:
        annotations[TAINTS_ADDED] = write_added_taints(added_taints)
    if since:
        times = {text: format_time(time) for text, time in sorted(since.items())}
        annotations[TAINTS_FIRST_SEEN] = json.dumps(times, separators=(",", ":"))
    metadata = {"name": document.key.name, "annotations": annotations}
    return {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata}
