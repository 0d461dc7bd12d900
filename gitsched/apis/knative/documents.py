"""Documents of the vreplica scheduler: read StatefulSet, sources, policies and previous records from a snapshot, and make the next
records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.engine import Snapshot, list_previous_records
from gitsched.apis.knative import names
from gitsched.apis.knative.scheduler import AdapterState, SourcePlacements, VpodSchedulingInput
from gitsched.apis.knative.scheduler_policies import read_profile
from gitsched.apis.knative.vpods import (
    AdapterPods,
    VreplicaPaths,
    find_source_kinds,
    make_placements,
    read_adapter_pods,
    read_desired_vreplicas,
    read_placements,
    read_replicas,
    validate_source,
)
from gitsched.model.document import Body, Document, Key, as_string_map, get_field
from gitsched.model.finding import Finding, locate_document
from gitsched.model.time import format_time, parse_time
from gitsched.schedule.vreplicas.plugins import DEFAULT_DESCHEDULER_PROFILE, DEFAULT_SCHEDULER_PROFILE, Profile
from gitsched.schedule.vreplicas.scheduler import SchedulingStrategy
from gitsched.schedule.vreplicas.state import VreplicasByOrdinal


class AdapterRendering(NamedTuple):
    """Where the StatefulSet was rendered: cluster and replicas."""

    cluster: str
    replicas: int


def read_adapter_state(adapter: Document, cluster: AdapterPods, previous: Mapping[Key, Body]) -> AdapterState:
    """What the last run decided, unless the StatefulSet in the source says another number than it did then."""
    said = read_replicas(adapter.body)
    record = previous.get(adapter.key)
    recorded = ((ordinal, previous.get(names.make_pod_key(adapter.key, ordinal))) for ordinal in cluster.pods)
    known = {ordinal: _is_marked(mark) for ordinal, mark in recorded if mark is not None}
    marks = frozenset(ordinal for ordinal, marked in known.items() if marked)
    lifted = cluster.marked & (known.keys() - marks)
    if record is None:
        return AdapterState(said, marks, lifted)
    notes = _read_annotations(record)
    heard = notes.get(names.SOURCE_REPLICAS)
    replicas = read_replicas(record) if heard in (None, str(said)) else said
    return AdapterState(
        replicas, marks, lifted, parse_time(notes.get(names.SURPLUS_SINCE)), parse_time(notes.get(names.COMPACTED_AT))
    )


def find_previous_adapter(world: Snapshot) -> tuple[Key, Body] | None:
    """The StatefulSet that the last run decided about, and what it left there; None when the source has it no more."""
    for key, record in list_previous_records(world.previous, "apps", "StatefulSet"):
        if names.SOURCE_REPLICAS in _read_annotations(record) and (key in world.templates or key in world.quarantined):
            return key, record
    return None


def list_previous_pods(adapter: Key, world: Snapshot) -> list[tuple[Key, Body]]:
    """What the last run left about pods."""
    pods = list_previous_records(world.previous, "", "Pod")
    return [
        (key, body)
        for key, body in pods
        if key.namespace == adapter.namespace and names.read_ordinal(key.name, adapter.name) is not None
    ]


def read_previous_rendering(previous: Body | None) -> AdapterRendering | None:
    """Where the last run rendered the StatefulSet."""
    cluster = _read_annotations(previous or {}).get(names.RENDERED_TO)
    return AdapterRendering(cluster, read_replicas(previous or {})) if cluster else None


def make_adapter_record(adapter: Document, memory: AdapterState, cluster: str) -> Body:
    """The StatefulSet as its API server would show it, with what the next run has to know."""
    notes = {
        names.RENDERED_TO: cluster,
        names.COMPACTED_AT: _format_optional_time(memory.compacted_at),
        names.SOURCE_REPLICAS: str(read_replicas(adapter.body)),
        names.SURPLUS_SINCE: _format_optional_time(memory.surplus_since),
    }
    metadata = {"name": adapter.key.name, "namespace": adapter.key.namespace}
    return {
        "apiVersion": adapter.api_version,
        "kind": adapter.key.kind,
        "metadata": {**metadata, "annotations": {name: text for name, text in notes.items() if text}},
        "spec": {"replicas": memory.replicas},
    }


def make_source_record(document: Document, adapter: Key, shares: VreplicasByOrdinal) -> Body:
    """A source with its placements."""
    metadata = {"name": document.key.name, "namespace": document.key.namespace}
    status = {"placements": make_placements(shares, adapter)}
    return {"apiVersion": document.api_version, "kind": document.key.kind, "metadata": metadata, "status": status}


def make_pod_record(key: Key, marked: bool) -> Body:
    """A pod that is to be emptied, or not any more although the source says so."""
    metadata = {"name": key.name, "namespace": key.namespace, "annotations": {names.UNSCHEDULABLE: str(marked).lower()}}
    return {"apiVersion": "v1", "kind": key.kind, "metadata": metadata}


def _read_annotations(body: Body) -> Mapping[str, str]:
    return as_string_map(get_field(body, "metadata", "annotations"))


def _is_marked(record: Body) -> bool:
    return names.is_true(_read_annotations(record).get(names.UNSCHEDULABLE))


def _format_optional_time(moment: datetime | None) -> str:
    return format_time(moment) if moment is not None else ""


class VpodSchedulingError(Exception):
    """Nothing can be decided; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class KnativeInputs(NamedTuple):
    """`sources` are by the text of their key, in the order in which they are placed; `held` is what they have. `configured` says whether
    there is a config-scheduler; `cluster_name` is where the StatefulSet is rendered, or ""."""

    adapter: Document
    adapter_pods: AdapterPods
    scheduling_input: VpodSchedulingInput
    adapter_state: AdapterState
    sources: Mapping[str, Document]
    placements: SourcePlacements
    has_scheduler_policy: bool
    cluster_name: str


class EventSources(NamedTuple):
    """`sound` are in the order in which they are placed, each with where it says what it wants; `broken` cannot be read now."""

    valid: Mapping[str, tuple[Document, tuple[str, ...]]]
    quarantined: tuple[Key, ...]
    findings: tuple[Finding, ...]


def read_event_sources(world: Snapshot) -> EventSources:
    """The event sources of a world."""
    paths = find_source_kinds(world.config)
    sound: dict[str, tuple[Document, tuple[str, ...]]] = {}
    broken = [key for key in world.quarantined if (key.group, key.kind) in paths]
    findings: list[Finding] = []
    for document in _list_in_order(world, paths):
        path = paths[document.key.group, document.key.kind]
        mistakes = list(validate_source(document.body, path))
        if mistakes:
            broken.append(document.key)
            findings += [
                Finding("error", issue.code, issue.message, locate_document(document), document.key.resource) for issue in mistakes
            ]
        else:
            sound[str(document.key)] = document, path
    return EventSources(sound, tuple(sorted(broken)), tuple(findings))


def _list_in_order(world: Snapshot, paths: VreplicaPaths) -> list[Document]:
    """By path and position where they are files, else as they were handed over."""
    documents = [world.templates[key] for key in world.input_order if (key.group, key.kind) in paths and key in world.templates]
    # What a broken file last said comes after all files, and has its place among them.
    return sorted(documents, key=lambda d: (d.origin.path, d.origin.index, d.origin.item) if d.origin else ("", 0, 0))


def read_inputs(world: Snapshot, sources: EventSources) -> KnativeInputs:
    """Everything a run needs. Raises Stuck."""
    settings = world.config.knative
    adapter = find_adapter(world)
    if settings.capacity is None:
        message = "nobody said how many vreplicas a pod holds: set knative.capacity in gitsched.yaml"
        raise VpodSchedulingError(Finding("error", "knative-capacity", message, locate_document(adapter), adapter.key.resource))
    cluster = read_adapter_pods(world.templates, adapter.key)
    strategy = _read_strategy(world, adapter.key)
    held = {name: _read_current_placements(document, adapter.key, world) for name, (document, _) in sources.valid.items()}
    wanted = {name: read_desired_vreplicas(document.body, path) for name, (document, path) in sources.valid.items()}
    others = [read_placements(world.previous.get(key, {}), adapter.key) for key in sources.quarantined]
    others += _apply_reserved(settings.reserved, sources, held, adapter.key)
    question = VpodSchedulingInput(cluster, settings.capacity, strategy, settings.autoscaler, wanted, tuple(filter(None, others)))
    memory = read_adapter_state(adapter, cluster, world.previous)
    documents = {name: document for name, (document, _) in sources.valid.items()}
    configured = _find_policy(world, adapter.key, names.SCHEDULER) is not None
    return KnativeInputs(adapter, cluster, question, memory, documents, held, configured, settings.cluster)


def find_adapter(world: Snapshot) -> Document:
    """The StatefulSet whose pods hold vreplicas: the one that the settings name, Kafka's, the only one beside config-scheduler, or the
    only one. Raises Stuck."""
    known = find_previous_adapter(world)
    if known is not None and known[0] in world.quarantined:
        message = f"{known[0]} cannot be used, so vreplicas stay where they are"
        raise VpodSchedulingError(Finding("warning", "stale-decision", message, None, known[0].resource))
    named = world.config.knative.stateful_set
    sets = {key: document for key, document in world.templates.items() if (key.group, key.kind) == ("apps", "StatefulSet")}
    if named:
        namespace, _, name = named.rpartition("/")
        choices = [[d for key, d in sets.items() if key.name == name and namespace in ("", key.namespace)]]
    else:
        homes = {key.namespace for key in world.templates if (key.group, key.kind, key.name) == ("", "ConfigMap", names.SCHEDULER)}
        choices = [
            [document for key, document in sets.items() if key.name == names.ADAPTER],
            [document for key, document in sets.items() if key.namespace in homes],
            list(sets.values()),
        ]
    for found in choices:
        if len(found) == 1:
            return found[0]
    what = f"there is no one StatefulSet {named}" if named else "it is not clear which StatefulSet holds the vreplicas"
    message = f"{what}: commit it, and name it as NAMESPACE/NAME in knative.statefulSet"
    raise VpodSchedulingError(Finding("error", "knative-adapter", message))


def _read_strategy(world: Snapshot, adapter: Key) -> SchedulingStrategy:
    """How to place. Without config-scheduler both profiles are gitsched's own."""
    settings = world.config.knative
    strict = settings.scale_up == "replace"
    scheduler = _find_policy(world, adapter, names.SCHEDULER)
    descheduler = _find_policy(world, adapter, names.DESCHEDULER)
    packs = bool(settings.policy)
    unconfigured = (
        Profile((), ()) if packs else DEFAULT_SCHEDULER_PROFILE
    )  # not even the pods that go at a time depend on a profile that nobody asks
    adding = read_profile(scheduler, strict)[0] if scheduler is not None else unconfigured
    removing = read_profile(descheduler, strict)[0] if descheduler is not None else None
    if removing is None and not (strict and scheduler is not None):
        removing = DEFAULT_DESCHEDULER_PROFILE
    return SchedulingStrategy(adding, removing, max_fill_up=packs, reschedules_all=strict)


def _find_policy(world: Snapshot, adapter: Key, name: str) -> Body | None:
    """A ConfigMap beside the StatefulSet. Raises Stuck where it is there and cannot be used."""
    key = Key("", "ConfigMap", adapter.namespace, name)
    if key in world.quarantined:
        raise VpodSchedulingError(
            Finding("warning", "stale-decision", f"{key} cannot be used, so vreplicas stay where they are", None, key.resource)
        )
    document = world.templates.get(key)
    return document.body if document is not None else None


def _read_current_placements(document: Document, adapter: Key, world: Snapshot) -> VreplicasByOrdinal:
    """The placements that the last run wrote; the source's own where there was none."""
    record = world.previous.get(document.key)
    mine = record is not None and get_field(record, "status", "placements") is not None
    return read_placements(record if mine and record is not None else document.body, adapter)


def _apply_reserved(
    reserved: Mapping[str, Mapping[str, int]], sources: EventSources, held: SourcePlacements, adapter: Key
) -> list[VreplicasByOrdinal]:
    """What is promised counts as held, and stands for what a status says about the same pod; what nobody here was promised is held by
    others."""
    called = {f"{document.key.namespace}/{document.key.name}": name for name, (document, _) in sources.valid.items()}
    others = []
    for name, promised in reserved.items():
        ordinals = ((names.read_ordinal(pod, adapter.name), number) for pod, number in promised.items())
        shares = {ordinal: number for ordinal, number in ordinals if ordinal is not None}
        if name in called:
            mine = {**held[called[name]], **shares}
            held[called[name]] = {ordinal: number for ordinal, number in mine.items() if number}
        else:
            others.append({ordinal: number for ordinal, number in shares.items() if number})
    return others
