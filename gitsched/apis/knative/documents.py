"""Documents of the vreplica scheduler: read StatefulSet, sources, policies and previous records from a snapshot, and make the next
records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from gitsched.apis.gitsched.config import FILE
from gitsched.apis.knative.consumer_wishes import ConsumerWish, read_consumer_wishes
from gitsched.apis.knative.names import (
    ADAPTER,
    COMPACTED_AT,
    DESCHEDULER,
    RENDERED_TO,
    SCHEDULER,
    SOURCE_REPLICAS,
    SURPLUS_SINCE,
    UNSCHEDULABLE,
    is_true,
    make_pod_key,
    read_ordinal,
)
from gitsched.apis.knative.scheduler import AdapterState, SourcePlacements, VpodSchedulingInput
from gitsched.apis.knative.scheduler_policies import read_profile
from gitsched.apis.knative.settings import KnativeConfig
from gitsched.apis.knative.vpods import (
    AdapterPods,
    VreplicaPaths,
    make_placements,
    read_adapter_pods,
    read_desired_vreplicas,
    read_placements,
    read_replicas,
    validate_source,
)
from gitsched.apis.snapshot import Snapshot, list_previous_records
from gitsched.model.document import Body, Document, Key, get_field, read_annotations
from gitsched.model.finding import Finding, Location, format_names, locate_document
from gitsched.model.known_values import find_near
from gitsched.model.preferred_clusters import read_preferred_clusters
from gitsched.model.time import format_time, parse_time
from gitsched.named_tuples import NamedTuple
from gitsched.schedule.vreplicas.plugins import DEFAULT_DESCHEDULER_PROFILE, DEFAULT_SCHEDULER_PROFILE, Profile
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy
from gitsched.schedule.vreplicas.state import VreplicasByOrdinal


class AdapterRendering(NamedTuple):
    """The cluster that the StatefulSet was rendered for, and its replicas there."""

    cluster: str
    replicas: int


def read_adapter_state(adapter: Document, adapter_pods: AdapterPods, previous: Mapping[Key, Body]) -> AdapterState:
    """Return the state that the previous run recorded. A changed spec.replicas in the source takes precedence over the record."""
    source_replicas = read_replicas(adapter.body)
    record = previous.get(adapter.key)
    pod_records = ((ordinal, previous.get(make_pod_key(adapter.key, ordinal))) for ordinal in adapter_pods.pods)
    recorded_marks = {ordinal: _is_marked(record) for ordinal, record in pod_records if record is not None}
    marked = frozenset(ordinal for ordinal, is_marked in recorded_marks.items() if is_marked)
    unmarked = adapter_pods.marked & (recorded_marks.keys() - marked)
    if record is None:
        return AdapterState(source_replicas, marked, unmarked)
    annotations = read_annotations(record)
    recorded_source_replicas = annotations.get(SOURCE_REPLICAS)
    replicas = read_replicas(record) if recorded_source_replicas in (None, str(source_replicas)) else source_replicas
    return AdapterState(
        replicas,
        marked,
        unmarked,
        parse_time(annotations.get(SURPLUS_SINCE)),
        parse_time(annotations.get(COMPACTED_AT)),
    )


def find_previous_adapter(
    snapshot: Snapshot, settings: KnativeConfig, taken: frozenset[Key] = frozenset()
) -> tuple[Key, Body] | None:
    """Return the key and record of the StatefulSet that the previous run scaled; None if the source does not contain it any more.

    If the settings name a StatefulSet that the previous run scaled, it is that one; it is none of those that are `taken`.
    """
    found = [
        (key, record)
        for key, record in list_previous_records(snapshot.previous, "apps", "StatefulSet")
        if SOURCE_REPLICAS in read_annotations(record)
        and key not in taken
        and (key in snapshot.templates or key in snapshot.quarantined)
    ]
    named = [entry for entry in found if settings.stateful_set and is_named(entry[0], settings.stateful_set)]
    return next(iter(named or ([] if settings.kinds or settings.path else found)), None)


def list_previous_pods(adapter: Key, snapshot: Snapshot) -> list[tuple[Key, Body]]:
    """Return the records that the previous run wrote for the StatefulSet's pods."""
    pods = list_previous_records(snapshot.previous, "", "Pod")
    return [
        (key, body) for key, body in pods if key.namespace == adapter.namespace and read_ordinal(key.name, adapter.name) is not None
    ]


def read_previous_rendering(previous: Body | None) -> AdapterRendering | None:
    """Return where the previous run rendered the StatefulSet."""
    annotations = read_annotations(previous or {})
    cluster = annotations.get(RENDERED_TO) if SOURCE_REPLICAS in annotations else None  # records of sources name the cluster, too
    return AdapterRendering(cluster, read_replicas(previous or {})) if cluster else None


def make_adapter_record(adapter: Document, adapter_state: AdapterState, cluster: str) -> Body:
    """Return the record of the StatefulSet, with the state for the next run in annotations."""
    annotations = {
        RENDERED_TO: cluster,
        COMPACTED_AT: _format_optional_time(adapter_state.compacted_at),
        SOURCE_REPLICAS: str(read_replicas(adapter.body)),
        SURPLUS_SINCE: _format_optional_time(adapter_state.surplus_since),
    }
    metadata = {"name": adapter.key.name, "namespace": adapter.key.namespace}
    return {
        "apiVersion": adapter.api_version,
        "kind": adapter.key.kind,
        "metadata": {**metadata, "annotations": {name: text for name, text in annotations.items() if text}},
        "spec": {"replicas": adapter_state.replicas},
    }


def make_source_record(document: Document, adapter: Key, vreplicas: VreplicasByOrdinal, cluster: str) -> Body:
    """Return the record of a source with its placements, and with the cluster of the pods in an annotation."""
    metadata: Body = {"name": document.key.name, "namespace": document.key.namespace}
    if cluster:
        metadata["annotations"] = {RENDERED_TO: cluster}
    status = {"placements": make_placements(vreplicas, adapter)}
    return {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata, "status": status}


def make_pod_record(key: Key, marked: bool) -> Body:
    """Return the record of a pod whose unschedulable mark is set or removed."""
    metadata = {"name": key.name, "namespace": key.namespace, "annotations": {UNSCHEDULABLE: str(marked).lower()}}
    return {"apiVersion": "v1", "kind": key.kind, "metadata": metadata}


def _is_marked(record: Body) -> bool:
    return is_true(read_annotations(record).get(UNSCHEDULABLE))


def _format_optional_time(time: datetime | None) -> str:
    return format_time(time) if time is not None else ""


class VpodSchedulingError(Exception):
    """No decision is possible; `finding` has the reason."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class KnativeInputs(NamedTuple):
    """All inputs of a run.

    `sources` and their current `placements` are keyed by str(document key), in the order in which sources are scheduled.
    `has_scheduler_policy` means that config-scheduler exists. `cluster_name` is the cluster that runs the StatefulSet, or "".
    `wishes` are the numbers of consumers that another autoscaler wants, by source.
    """

    adapter: Document
    adapter_pods: AdapterPods
    scheduling_input: VpodSchedulingInput
    adapter_state: AdapterState
    sources: Mapping[str, Document]
    placements: SourcePlacements
    has_scheduler_policy: bool
    cluster_name: str
    wishes: Mapping[str, ConsumerWish]


class EventSources(NamedTuple):
    """Event sources. `valid` are in scheduling order, each with the path of its vreplicas; `quarantined` are sources that are invalid;
    `removed` are sources with a record of the previous run, but without a document."""

    valid: Mapping[str, tuple[Document, tuple[str, ...]]]
    quarantined: tuple[Key, ...]
    findings: tuple[Finding, ...]
    removed: tuple[Key, ...] = ()


def read_event_sources(snapshot: Snapshot, paths: VreplicaPaths) -> EventSources:
    """Read the event sources of a snapshot; `paths` are their kinds."""
    valid: dict[str, tuple[Document, tuple[str, ...]]] = {}
    quarantined = [key for key in snapshot.quarantined if (key.group, key.kind) in paths]
    findings: list[Finding] = []
    for document in _list_in_order(snapshot, paths):
        path = paths[document.key.group, document.key.kind]
        issues = list(validate_source(document.body, path))
        if issues:
            quarantined.append(document.key)
            findings += [
                Finding("error", issue.code, issue.message, locate_document(document), document.key.resource) for issue in issues
            ]
        else:
            valid[str(document.key)] = document, path
    present = {*(document.key for document, _ in valid.values()), *quarantined}
    recorded = (key for group, kind in sorted(paths) for key, _ in list_previous_records(snapshot.previous, group, kind))
    removed = tuple(key for key in recorded if key not in present)
    return EventSources(valid, tuple(sorted(quarantined)), tuple(findings), removed)


def _list_in_order(snapshot: Snapshot, paths: VreplicaPaths) -> list[Document]:
    """Sort sources by file path and position; documents without a file keep their input order."""
    documents = [
        snapshot.templates[key] for key in snapshot.input_order if (key.group, key.kind) in paths and key in snapshot.templates
    ]
    # The last valid version of an invalid file is read after all files but keeps the file's position.
    return sorted(documents, key=lambda d: (d.origin.path, d.origin.index, d.origin.item) if d.origin else ("", 0, 0))


def read_inputs(snapshot: Snapshot, settings: KnativeConfig, sources: EventSources, taken: frozenset[Key]) -> KnativeInputs:
    """Read the inputs of a run for one StatefulSet; `taken` are the StatefulSets of others. Raises VpodSchedulingError."""
    adapter = find_adapter(snapshot, settings, taken)
    if settings.capacity is None:
        message = "knative.capacity is not set: set the number of vreplicas per pod in gitsched.yaml"
        raise VpodSchedulingError(Finding("error", "knative-capacity", message, locate_document(adapter), adapter.key.resource))
    adapter_pods = read_adapter_pods(snapshot.templates, adapter.key)
    strategy = _read_strategy(snapshot, settings, adapter.key)
    placements = {name: _read_current_placements(document, adapter.key, snapshot) for name, (document, _) in sources.valid.items()}
    wishes = read_consumer_wishes(snapshot.templates)
    desired = {name: read_desired_vreplicas(document.body, path) for name, (document, path) in sources.valid.items()}
    desired |= {
        name: wish.consumers
        for name, (document, _) in sources.valid.items()
        if (wish := wishes.get(document.key)) is not None and wish.consumers is not None
    }
    others = [read_placements(snapshot.previous.get(key, {}), adapter.key) for key in sources.quarantined]
    others += _apply_reserved(settings.reserved, sources, placements, adapter.key)
    removed = {str(key): read_placements(snapshot.previous[key], adapter.key) for key in sources.removed}
    scheduling_input = VpodSchedulingInput(
        adapter_pods,
        settings.capacity,
        strategy,
        settings.autoscaler,
        desired,
        tuple(filter(None, others)),
        removed={name: vreplicas for name, vreplicas in removed.items() if vreplicas},
        preferred=_read_preferred(sources, adapter.key),
    )
    adapter_state = read_adapter_state(adapter, adapter_pods, snapshot.previous)
    documents = {name: document for name, (document, _) in sources.valid.items()}
    has_scheduler_policy = _find_policy(snapshot, adapter.key, SCHEDULER) is not None
    own_wishes = {name: wish for name, document in documents.items() if (wish := wishes.get(document.key)) is not None}
    return KnativeInputs(
        adapter,
        adapter_pods,
        scheduling_input,
        adapter_state,
        documents,
        placements,
        has_scheduler_policy,
        settings.cluster,
        own_wishes,
    )


def _list_adapter_candidates(snapshot: Snapshot, sets: Mapping[Key, Document], named: str) -> list[list[Document]]:
    """Return StatefulSets, the ones to choose first before others, of which the only one of a list counts."""
    if named:
        return [[document for key, document in sets.items() if is_named(key, named)]]
    policies = (key for key in snapshot.templates if (key.group, key.kind, key.name) == ("", "ConfigMap", SCHEDULER))
    namespaces = {key.namespace for key in policies}
    return [
        [document for key, document in sets.items() if key.name == ADAPTER],
        [document for key, document in sets.items() if key.namespace in namespaces],
        list(sets.values()),
    ]


def find_adapter(snapshot: Snapshot, settings: KnativeConfig, taken: frozenset[Key] = frozenset()) -> Document:
    """Return the StatefulSet whose pods run the vreplicas; `taken` are those of other sources. Raises VpodSchedulingError.

    It is the one in the settings, else Kafka's, else the only one in config-scheduler's namespace, else the only one in the source.
    """
    previous = find_previous_adapter(snapshot, settings, taken)
    if previous is not None and previous[0] in snapshot.quarantined:
        message = f"{previous[0]} is invalid, so vreplicas keep their placements"
        raise VpodSchedulingError(Finding("warning", "stale-decision", message, None, previous[0].resource))
    named = settings.stateful_set
    sets = {key: d for key, d in snapshot.templates.items() if key[:2] == ("apps", "StatefulSet") and key not in taken}
    candidate_sets = _list_adapter_candidates(snapshot, sets, named)
    for found in candidate_sets:
        if len(found) == 1:
            return found[0]
    if named and any(is_named(key, named) for key in taken):
        message = f"StatefulSet {named} is in two entries of knative.adapters: list all kinds of its sources in one entry"
        raise VpodSchedulingError(Finding("error", "knative-adapter", message))
    problem = f"found no unique StatefulSet {named}" if named else "found no unique StatefulSet that runs the vreplicas"
    where = "knative.adapters" if settings.kinds or settings.path else "knative.statefulSet"
    message = f"{problem}: commit it, and name it as NAMESPACE/NAME in {where}{_suggest_adapter(named, sets)}"
    raise VpodSchedulingError(Finding("error", "knative-adapter", message, Location(FILE, 1, 1) if named else None))


def _suggest_adapter(named: str, sets: Iterable[Key]) -> str:
    """Return which StatefulSet the settings probably mean: one with a similar name or in another namespace; else those that exist."""
    names = sorted(f"{key.namespace}/{key.name}" for key in sets)
    same_name = [name for name in names if named and name.rpartition("/")[2] == named.rpartition("/")[2]]
    near = " or ".join(same_name[:3]) or (find_near(named, names) if named else "")
    return f"; did you mean {near}?" if near else f"; the source has {format_names(names, 5)}" if names else ""


def is_named(key: Key, name: str) -> bool:
    """Return whether a name, or NAMESPACE/NAME, is that of an object."""
    namespace, _, own_name = name.rpartition("/")
    return key.name == own_name and namespace in ("", key.namespace)


def _read_preferred(sources: EventSources, adapter: Key) -> dict[str, tuple[int, ...]]:
    """Return the ordinals of the pods that sources prefer. Names of other pods are left out: they are findings."""
    found: dict[str, tuple[int, ...]] = {}
    for name, (document, _) in sources.valid.items():
        read = read_preferred_clusters(document.body)
        ordinals = (read_ordinal(pod, adapter.name) for pod in read.names) if read is not None else ()
        if preferred := tuple(ordinal for ordinal in ordinals if ordinal is not None):
            found[name] = preferred
    return found


def _read_strategy(snapshot: Snapshot, settings: KnativeConfig, adapter: Key) -> SchedulingStrategy:
    """Return the scheduling strategy. Without config-scheduler both profiles are gitsched's defaults."""
    strict = settings.scale_up == "replace"
    scheduler = _find_policy(snapshot, adapter, SCHEDULER)
    descheduler = _find_policy(snapshot, adapter, DESCHEDULER)
    max_fill_up = bool(settings.policy)
    unconfigured = (
        Profile((), ()) if max_fill_up else DEFAULT_SCHEDULER_PROFILE
    )  # MAXFILLUP uses no profile, not even for the scale factor
    scheduler_profile = read_profile(scheduler, strict)[0] if scheduler is not None else unconfigured
    if settings.strict_spread:
        scheduler_profile = replace(scheduler_profile, strict_spread=True)
    descheduler_profile = read_profile(descheduler, strict)[0] if descheduler is not None else None
    if descheduler_profile is None and not (strict and scheduler is not None):
        descheduler_profile = DEFAULT_DESCHEDULER_PROFILE
    return SchedulingStrategy(scheduler_profile, descheduler_profile, max_fill_up=max_fill_up, reschedules_all=strict)


def _find_policy(snapshot: Snapshot, adapter: Key, name: str) -> Body | None:
    """Return a ConfigMap in the StatefulSet's namespace, or None. Raises VpodSchedulingError if it is invalid."""
    key = Key("", "ConfigMap", adapter.namespace, name)
    if key in snapshot.quarantined:
        raise VpodSchedulingError(
            Finding("warning", "stale-decision", f"{key} is invalid, so vreplicas keep their placements", None, key.resource)
        )
    document = snapshot.templates.get(key)
    return document.body if document is not None else None


def _read_current_placements(document: Document, adapter: Key, snapshot: Snapshot) -> VreplicasByOrdinal:
    """Return the placements in the previous record; without one, those in the source document."""
    record = snapshot.previous.get(document.key)
    own_placements = record is not None and get_field(record, "status", "placements") is not None
    return read_placements(record if own_placements and record is not None else document.body, adapter)


def _apply_reserved(
    reserved: Mapping[str, Mapping[str, int]], sources: EventSources, placements: SourcePlacements, adapter: Key
) -> list[VreplicasByOrdinal]:
    """Apply `knative.reserved`: a reservation replaces the source's placement on that pod.

    Return the reservations of unknown sources, which only take capacity.
    """
    sources_by_name = {f"{document.key.namespace}/{document.key.name}": name for name, (document, _) in sources.valid.items()}
    others = []
    for name, reservation in reserved.items():
        ordinals = ((read_ordinal(pod, adapter.name), number) for pod, number in reservation.items())
        vreplicas = {ordinal: number for ordinal, number in ordinals if ordinal is not None}
        if name in sources_by_name:
            own_placements = {**placements[sources_by_name[name]], **vreplicas}
            placements[sources_by_name[name]] = {ordinal: number for ordinal, number in own_placements.items() if number}
        else:
            others.append({ordinal: number for ordinal, number in vreplicas.items() if number})
    return others
