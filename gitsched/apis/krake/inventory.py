"""Clusters, clouds and projects as candidates: with what they inherit, what their metrics say, and what that makes of their state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gitsched.apis.krake import names
from gitsched.apis.krake.arena import Site
from gitsched.apis.krake.metrics import MetricBook, MetricRef, Readings, parse_refs
from gitsched.apis.krake.names import Ref, ref_of
from gitsched.apis.world import World
from gitsched.model.document import Body, Document, Key, member, text_map

ONLINE, FAILING = "ONLINE", "FAILING_METRICS"
STATES = (
    *("PENDING", ONLINE, "CONNECTING", "OFFLINE", "UNHEALTHY", "NOTREADY", FAILING),
    *("CREATING", "RECONCILING", "DELETING", "FAILING_RECONCILIATION", "FAILED", "DEGRADED"),
)
"""Of clusters; what is not ONLINE takes no application."""


class Cluster(NamedTuple):
    """A cluster with the cloud that it is bound to. `missing` says that this cloud is not there, `unsure` that nobody knows what the
    cluster inherits, because the document of its cloud is broken."""

    document: Document
    site: Site
    cloud: Ref | None
    missing: bool
    unsure: bool


class Inventory:
    """All candidates of a world. `bound` are the clouds of clusters: from an earlier run, or decided in this one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.book = MetricBook(world)
        self._clouds = {
            document.key: document for kind in (names.CLOUD, names.GLOBAL_CLOUD) for document in world.documents.get(kind, ())
        }

    def clouds(self, namespace: str) -> Iterator[Site]:
        """The clouds of a namespace; the global ones for "". A cloud's state is not looked at."""
        for key, document in self._clouds.items():
            if key.namespace == namespace:
                refs = parse_refs(member(document.body, "spec", "openstack", "metrics"))
                yield self._site(document, key.name, refs)

    def projects(self) -> Iterator[tuple[Document, tuple[MetricRef, ...], Readings]]:
        """The projects of all namespaces, with their metrics."""
        for document in self._world.documents.get(names.PROJECT, ()):
            refs = parse_refs(member(document.body, "spec", "metrics"))
            yield document, refs, self.book.read(refs, document.key.namespace, document.key.name)

    def clusters(self, documents: Iterable[Document], bound: Mapping[Key, Ref | None]) -> Iterator[Cluster]:
        """Clusters as applications see them."""
        for document in documents:
            ref = bound.get(document.key)
            cloud = self._clouds.get(Key(*ref)) if ref is not None else None
            labels = text_map(member(document.body, "metadata", "labels"))
            refs = parse_refs(member(document.body, "spec", "metrics"))
            heir = (member(document.body, "metadata", "inherit_labels"), member(document.body, "spec", "inherit_metrics"))
            unsure = ref is not None and cloud is None and True in heir and Key(*ref) in self._world.broken
            if cloud is not None and heir[0] is True:
                labels = {**labels, **text_map(member(cloud.body, "metadata", "labels"))}
            if cloud is not None and heir[1] is True:
                refs = tuple(dict.fromkeys((*refs, *parse_refs(member(cloud.body, "spec", "openstack", "metrics")))))
            readings = self.book.read(refs, document.key.namespace, document.key.name)
            site = _cluster_site(document, labels, refs, readings)
            if unsure and site.open:
                site = site._replace(open=False, why="the document of its cloud is broken")
            yield Cluster(document, site, ref, ref is not None and cloud is None, unsure)

    def _site(self, document: Document, name: str, refs: tuple[MetricRef, ...]) -> Site:
        readings = self.book.read(refs, document.key.namespace, document.key.name)
        labels = text_map(member(document.body, "metadata", "labels"))
        return Site(name, ref_of(document.key), labels, readings, bool(refs), *_alive(document))


def project_site(document: Document, refs: tuple[MetricRef, ...], readings: Readings, namespace: str) -> Site:
    """A project as a Magnum cluster of `namespace` sees it: one of another namespace is called <namespace>/<name>."""
    name = document.key.name if document.key.namespace == namespace else f"{document.key.namespace}/{document.key.name}"
    labels = text_map(member(document.body, "metadata", "labels"))
    return Site(name, ref_of(document.key), labels, readings, bool(refs), *_alive(document))


def state_of(body: Body) -> str:
    """The state that a document says its resource is in."""
    return str(member(body, "status", "state") or "PENDING")


def is_deleted(body: Body) -> bool:
    """Whether a resource is on its way out."""
    return bool(member(body, "metadata", "deleted"))


def _alive(document: Document) -> tuple[bool, str]:
    return (False, "it is being deleted") if is_deleted(document.body) else (True, "")


def _cluster_site(document: Document, labels: Mapping[str, str], refs: tuple[MetricRef, ...], readings: Readings) -> Site:
    said = state = state_of(document.body)
    if readings.reasons:
        state = FAILING
    elif refs and said == FAILING:
        state = ONLINE
    alive, why = _alive(document)
    if alive and readings.reasons:
        metric, reason = readings.reasons[0]
        why = f"its metric {metric} cannot be used: {reason.told or reason.message}"
    elif alive and state != ONLINE:
        why = f"its state is {state}, not {ONLINE}"
    standby = alive and readings.failed and said in (ONLINE, FAILING)
    resources = tuple(str(name) for name in member(document.body, "spec", "custom_resources") or ())
    online = alive and state == ONLINE
    ref = ref_of(document.key)
    return Site(document.key.name, ref, labels, readings, bool(refs), online, why, resources, state, standby)
