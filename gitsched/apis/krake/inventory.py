"""Clusters, clouds and projects as candidates: with what they inherit, what their metrics say, and what that makes of their state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from gitsched.apis.krake import names
from gitsched.apis.krake.arena import Site
from gitsched.apis.krake.metrics import MetricBook, Reading, Readings, combine
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

    @property
    def cloud_namespaces(self) -> set[str]:
        """The namespaces in which there are clouds, "" for the global ones."""
        return {key.namespace for key in self._clouds}

    def clouds(self, namespace: str) -> Iterator[Site]:
        """The clouds of a namespace; the global ones for "". A cloud's state is not looked at."""
        for key, document in self._clouds.items():
            if key.namespace == namespace:
                readings = self.book.read(member(document.body, "spec", "openstack", "metrics"), key.namespace, key.name)
                yield _site(document, key.name, combine(readings))

    def projects(self) -> Iterator[tuple[Document, Readings]]:
        """The projects of all namespaces, with their metrics."""
        for document in self._world.documents.get(names.PROJECT, ()):
            key = document.key
            yield document, combine(self.book.read(member(document.body, "spec", "metrics"), key.namespace, key.name))

    def clusters(self, documents: Iterable[Document], bound: Mapping[Key, Ref | None]) -> Iterator[Cluster]:
        """Clusters as applications see them."""
        for document in documents:
            key, body = document.key, document.body
            metadata, spec = body["metadata"], body["spec"]
            labels, readings = text_map(metadata.get("labels")), self.book.read(spec.get("metrics"), key.namespace, key.name)
            ref = bound.get(key)
            if ref is None:
                yield Cluster(document, _cluster_site(document, labels, combine(readings)), None, False, False)
            else:
                yield self._bound_cluster(document, ref, labels, readings)

    def _bound_cluster(self, document: Document, ref: Ref, labels: Mapping[str, str], readings: tuple[Reading, ...]) -> Cluster:
        key, body, cloud = document.key, document.body, self._clouds.get(Key(*ref))
        heir = body["metadata"].get("inherit_labels") is True, body["spec"].get("inherit_metrics") is True
        if cloud is not None and heir[0]:
            labels = {**labels, **text_map(member(cloud.body, "metadata", "labels"))}
        if cloud is not None and heir[1]:
            inherited = self.book.read(member(cloud.body, "spec", "openstack", "metrics"), key.namespace, key.name)
            readings = (*readings, *(reading for reading in dict.fromkeys(inherited) if reading not in readings))
        unsure = cloud is None and True in heir and Key(*ref) in self._world.broken
        site = _cluster_site(document, labels, combine(readings))
        if unsure and site.open:
            site = site._replace(open=False, why="the document of its cloud is broken")
        return Cluster(document, site, ref, cloud is None, unsure)


def project_site(document: Document, readings: Readings, namespace: str) -> Site:
    """A project as a Magnum cluster of `namespace` sees it: one of another namespace is called <namespace>/<name>."""
    key = document.key
    return _site(document, key.name if key.namespace == namespace else f"{key.namespace}/{key.name}", readings)


def _site(document: Document, name: str, readings: Readings) -> Site:
    labels = text_map(member(document.body, "metadata", "labels"))
    return Site(name, ref_of(document.key), labels, readings, *_alive(document))


def state_of(body: Body) -> str:
    """The state that a document says its resource is in."""
    status = body.get("status")
    return str(status.get("state") or "PENDING") if isinstance(status, dict) else "PENDING"


def is_deleted(body: Body) -> bool:
    """Whether a resource is on its way out."""
    return bool(body["metadata"].get("deleted"))


def _alive(document: Document) -> tuple[bool, str]:
    return (False, "it is being deleted") if is_deleted(document.body) else (True, "")


def _cluster_site(document: Document, labels: Mapping[str, str], readings: Readings) -> Site:
    said = state = state_of(document.body)
    if readings.reasons and (said in (ONLINE, FAILING) or member(document.body, "spec", "kubeconfig")):
        state = FAILING
    elif readings.declared and said == FAILING:
        state = ONLINE
    alive, why = _alive(document)
    if alive and readings.reasons:
        metric, reason = readings.reasons[0]
        why = f"its metric {metric} cannot be used: {reason.told or reason.message}"
    elif alive and state != ONLINE:
        why = f"its state is {state}, not {ONLINE}"
    # That metrics fail is found out anew in each run, so of a cluster that is there a document may say one or the other.
    there = alive and (state == ONLINE or (bool(readings.reasons) and said in (ONLINE, FAILING)))
    resources = document.body["spec"].get("custom_resources")
    return Site(
        document.key.name,
        ref_of(document.key),
        labels,
        readings,
        open=alive and state == ONLINE,
        why=why,
        resources=tuple(map(str, resources)) if resources else (),
        state=state,
        online=there,
        said=said,
    )
