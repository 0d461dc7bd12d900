"""What a world says to the vreplica scheduler: which StatefulSet, which sources, by which policies, and what they have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from gitsched.apis.knative import names
from gitsched.apis.knative.memory import recall, recall_adapter
from gitsched.apis.knative.pods import Cluster, read_cluster
from gitsched.apis.knative.policies import read_profile
from gitsched.apis.knative.settling import Held, Memory, Question
from gitsched.apis.knative.source import Paths, check_source, find_kinds, read_placements, read_wanted
from gitsched.apis.world import World
from gitsched.model.document import Body, Document, Key, member
from gitsched.model.finding import Finding, locate
from gitsched.schedule.vreplicas.adapter import Shares
from gitsched.schedule.vreplicas.placing import Strategy
from gitsched.schedule.vreplicas.profile import ADDING, REMOVING, Profile


class Stuck(Exception):
    """Nothing can be decided; `finding` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class Reading(NamedTuple):
    """`sources` are by the text of their key, in the order in which they are placed; `held` is what they have. `configured` says whether
    there is a config-scheduler; `cluster_name` is where the StatefulSet is rendered, or ""."""

    adapter: Document
    cluster: Cluster
    question: Question
    memory: Memory
    sources: Mapping[str, Document]
    held: Held
    configured: bool
    cluster_name: str


class Sources(NamedTuple):
    """`sound` are in the order in which they are placed, each with where it says what it wants; `broken` cannot be read now."""

    sound: Mapping[str, tuple[Document, tuple[str, ...]]]
    broken: tuple[Key, ...]
    findings: tuple[Finding, ...]


def read_sources(world: World) -> Sources:
    """The event sources of a world."""
    paths = find_kinds(world.config)
    sound: dict[str, tuple[Document, tuple[str, ...]]] = {}
    broken = [key for key in world.broken if (key.group, key.kind) in paths]
    findings: list[Finding] = []
    for document in _in_order(world, paths):
        path = paths[document.key.group, document.key.kind]
        mistakes = list(check_source(document.body, path))
        if mistakes:
            broken.append(document.key)
            findings += [Finding("error", issue.code, issue.message, locate(document), document.key.resource) for issue in mistakes]
        else:
            sound[str(document.key)] = document, path
    return Sources(sound, tuple(sorted(broken)), tuple(findings))


def _in_order(world: World, paths: Paths) -> list[Document]:
    """By path and position where they are files, else as they were handed over."""
    documents = [world.templates[key] for key in world.arrival if (key.group, key.kind) in paths and key in world.templates]
    # What a broken file last said comes after all files, and has its place among them.
    return sorted(documents, key=lambda d: (d.origin.path, d.origin.index, d.origin.item) if d.origin else ("", 0, 0))


def read_world(world: World, sources: Sources) -> Reading:
    """Everything a run needs. Raises Stuck."""
    settings = world.config.knative
    adapter = find_adapter(world)
    if settings.capacity is None:
        message = "nobody said how many vreplicas a pod holds: set knative.capacity in gitsched.yaml"
        raise Stuck(Finding("error", "knative-capacity", message, locate(adapter), adapter.key.resource))
    cluster = read_cluster(world.templates, adapter.key)
    strategy = _read_strategy(world, adapter.key)
    held = {name: _read_held(document, adapter.key, world) for name, (document, _) in sources.sound.items()}
    wanted = {name: read_wanted(document.body, path) for name, (document, path) in sources.sound.items()}
    others = [read_placements(world.previous.get(key, {}), adapter.key) for key in sources.broken]
    others += _apply_reserved(settings.reserved, sources, held, adapter.key)
    question = Question(cluster, settings.capacity, strategy, settings.autoscaler, wanted, tuple(filter(None, others)))
    memory = recall(adapter, cluster, world.previous)
    documents = {name: document for name, (document, _) in sources.sound.items()}
    configured = _find_policy(world, adapter.key, names.SCHEDULER) is not None
    return Reading(adapter, cluster, question, memory, documents, held, configured, settings.cluster)


def find_adapter(world: World) -> Document:
    """The StatefulSet whose pods hold vreplicas: the one that the settings name, Kafka's, the only one beside config-scheduler, or the
    only one. Raises Stuck."""
    known = recall_adapter(world)
    if known is not None and known[0] in world.broken:
        message = f"{known[0]} cannot be used, so vreplicas stay where they are"
        raise Stuck(Finding("warning", "stale-decision", message, None, known[0].resource))
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
    raise Stuck(Finding("error", "knative-adapter", message))


def _read_strategy(world: World, adapter: Key) -> Strategy:
    """How to place. Without config-scheduler both profiles are gitsched's own."""
    settings = world.config.knative
    strict = settings.scale_up == "replace"
    scheduler = _find_policy(world, adapter, names.SCHEDULER)
    descheduler = _find_policy(world, adapter, names.DESCHEDULER)
    packs = bool(settings.policy)
    unconfigured = Profile((), ()) if packs else ADDING  # not even the pods that go at a time depend on a profile that nobody asks
    adding = read_profile(scheduler, strict)[0] if scheduler is not None else unconfigured
    removing = read_profile(descheduler, strict)[0] if descheduler is not None else None
    if removing is None and not (strict and scheduler is not None):
        removing = REMOVING
    return Strategy(adding, removing, packs=packs, replaces=strict)


def _find_policy(world: World, adapter: Key, name: str) -> Body | None:
    """A ConfigMap beside the StatefulSet. Raises Stuck where it is there and cannot be used."""
    key = Key("", "ConfigMap", adapter.namespace, name)
    if key in world.broken:
        raise Stuck(
            Finding("warning", "stale-decision", f"{key} cannot be used, so vreplicas stay where they are", None, key.resource)
        )
    document = world.templates.get(key)
    return document.body if document is not None else None


def _read_held(document: Document, adapter: Key, world: World) -> Shares:
    """The placements that the last run wrote; the source's own where there was none."""
    record = world.previous.get(document.key)
    mine = record is not None and member(record, "status", "placements") is not None
    return read_placements(record if mine and record is not None else document.body, adapter)


def _apply_reserved(reserved: Mapping[str, Mapping[str, int]], sources: Sources, held: Held, adapter: Key) -> list[Shares]:
    """What is promised counts as held, and stands for what a status says about the same pod; what nobody here was promised is held by
    others."""
    called = {f"{document.key.namespace}/{document.key.name}": name for name, (document, _) in sources.sound.items()}
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
