"""What goes to the clusters that a Placement chooses: ManifestWorkReplicaSets, and templates whose annotation names a Placement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from gitsched.apis.ocm import names
from gitsched.apis.ocm.memory import Memory
from gitsched.apis.ocm.reports import Reports
from gitsched.apis.ocm.rollout import DecisionGroup, Progress, Report, Step, Strategy, advance, parse_strategy
from gitsched.model.document import Body, Document, Key, group_of, member, text_map
from gitsched.model.scope import is_namespaced

MOMENTS = 64
"""Deadlines of a rollout that one run makes up for at most."""


class Workload(NamedTuple):
    """`references` are Placements with how their clusters follow each other. `manifests` are the objects, None for a template, which is
    its own manifest. `revision` names what is in them; a template, which changes everywhere at once, has none."""

    document: Document
    record: Key
    references: tuple[tuple[Key, Body], ...]
    manifests: tuple[tuple[Key, Body], ...] | None
    revision: str

    @property
    def objects(self) -> tuple[Key, ...]:
        return (self.document.key,) if self.manifests is None else tuple(key for key, _ in self.manifests)


def read_replica_set(document: Document) -> Workload:
    """A ManifestWorkReplicaSet; an object that is there twice is rendered as it was said last."""
    spec = document.body["spec"]
    written = member(spec, "manifestWorkTemplate", "workload", "manifests") or ()
    manifests = {identify(body): body for body in written}
    references = tuple(
        (names.placement_key(document.key.namespace, reference["name"]), reference.get("rolloutStrategy") or {})
        for reference in spec.get("placementRefs") or ()
    )
    return Workload(document, document.key, references, tuple(manifests.items()), _digest(list(manifests.values())))


def read_template(template: Document) -> Workload | None:
    """A template whose annotation names a Placement, as `name` in its own namespace or as `namespace/name`; None for any other."""
    wanted = named_placement(template)
    if wanted is None:
        return None
    key = template.key
    record = Key(names.WORK_GROUP, names.REPLICA_SET, wanted.namespace, record_name(key))
    return Workload(template, record, ((wanted, {}),), None, "")


def named_placement(template: Document) -> Key | None:
    """The Placement that a template's annotation names."""
    text = text_map(member(template.body, "metadata", "annotations")).get(names.PLACEMENT_LABEL)
    if not text:
        return None
    namespace, _, name = text.rpartition("/")
    return names.placement_key(namespace or template.key.namespace or "default", name)


def record_name(key: Key) -> str:
    """The name of the record of a template: its own, its kind and group behind, as kubectl writes them together."""
    return f"{key.name}.{key.kind.lower()}{f'.{key.group}' if key.group else ''}"


def identify(body: Body) -> Key:
    """The identity of an object in a ManifestWorkReplicaSet."""
    group, kind, metadata = group_of(str(body["apiVersion"])), str(body["kind"]), body["metadata"]
    namespaced = is_namespaced(group, kind)
    namespace = str(metadata.get("namespace") or ("default" if namespaced else ""))
    return Key(group, kind, "" if namespaced is False else namespace, str(metadata.get("name") or ""))


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Standing(NamedTuple):
    """What stands of a Placement: its decisions, its clustersPerDecisionGroup, and when time alone may change them."""

    decisions: Sequence[tuple[Key, Body]]
    per_group: object = None
    wakeup: datetime | None = None


class Spreading(NamedTuple):
    """`groups` are by the Placement, `progress` where the rollout is, `time` the moment that changed it last, else the source's."""

    groups: Mapping[Key, tuple[DecisionGroup, ...]]
    progress: Progress
    time: datetime


def spread(
    workload: Workload,
    placements: Mapping[Key, Standing],
    memory: Memory,
    reports: Reports,
    known: Mapping[str, object],
    at: datetime,
    now: datetime,
) -> Spreading:
    """Where a workload is to be now. What was observed is an event of its own, as a deadline is.

    `known` are the clusters that there are: nothing is rendered for others."""
    groups: dict[Key, tuple[DecisionGroup, ...]] = {}
    taken: set[str] = set()
    strategies: list[tuple[Strategy, tuple[DecisionGroup, ...]]] = []
    for placement, written in workload.references:
        found = placements.get(placement)
        if found is None or placement in groups:
            continue
        groups[placement] = tuple(_groups(found.decisions, known, taken))
        taken.update(name for group in groups[placement] for name in group.clusters)
        strategies.append((parse_strategy(written, found.per_group), groups[placement]))
    steps: Mapping[str, Step] = memory.steps
    moment = time = at
    for _ in range(MOMENTS):
        progress = _advance(strategies, workload.revision, steps, reports.at(moment), moment)
        if progress.steps != steps and moment > at:
            time = moment
        steps = progress.steps
        coming = [event for event in (progress.wakeup, reports.seen) if event is not None and moment < event <= now]
        if not coming:
            break
        moment = min(coming)
    return Spreading(groups, progress, time)


def _advance(
    strategies: Sequence[tuple[Strategy, tuple[DecisionGroup, ...]]],
    revision: str,
    steps: Mapping[str, Step],
    reports: Mapping[str, Report],
    moment: datetime,
) -> Progress:
    parts = [advance(strategy, groups, revision, steps, reports, moment) for strategy, groups in strategies]
    return Progress(
        {name: step for part in parts for name, step in part.steps.items()},
        frozenset().union(*(part.done for part in parts)),
        frozenset().union(*(part.failed for part in parts)),
        min((part.wakeup for part in parts if part.wakeup is not None), default=None),
    )


def _groups(decisions: Sequence[tuple[Key, Body]], known: Mapping[str, object], taken: set[str]) -> list[DecisionGroup]:
    """The decision groups of a Placement, slices of one group together, without clusters that are gone or another one has taken."""
    clusters: dict[tuple[int, str], list[str]] = {}
    for _, body in decisions:
        labels = text_map(member(body, "metadata", "labels"))
        index = labels.get(names.GROUP_INDEX_LABEL, "0")
        place = int(index) if index.isdecimal() else 0
        group = clusters.setdefault((place, labels.get(names.GROUP_NAME_LABEL, "")), [])
        entries = member(body, "status", "decisions") or ()
        group += [name for entry in entries if (name := entry.get("clusterName")) in known and name not in taken]
    return [DecisionGroup(name, place, tuple(group)) for (place, name), group in clusters.items()]
