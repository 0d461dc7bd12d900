"""Adopt a running fleet: read the Applications and Clusters of a Krake API, and make records from where they are bound."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from gitsched.apis.adoption import HubObjects
from gitsched.apis.krake.applications import list_manifests
from gitsched.apis.krake.names import APPLICATION, CLUSTER, MAGNUM_CLUSTER, ResourceRef, cluster_directory, read_ref
from gitsched.model.adoption import AdoptedRecord, ClusterReplicas, RunningObjects
from gitsched.model.document import Body, Document, Key, as_object, get_field, parse_api_group

_METADATA: Final = ("name", "namespace", "created", "modified")
_STATUS: Final = ("scheduled", "kube_controller_triggered", "auto_cluster_create_started")
_TARGETS: Final = ("scheduled_to", "running_on", "project")
"""Members of a status with a reference to where a resource is bound. `running_on` counts for an Application without `scheduled_to`."""


def reduce_record(body: Body) -> Body:
    """Return what decisions depend on, of a resource of Krake: no manifest and no kubeconfig."""
    metadata, status = as_object(body.get("metadata")), as_object(body.get("status"))
    kept = {name: status[name] for name in _STATUS if isinstance(status.get(name), str)}
    for name in _TARGETS:
        target = read_ref(status.get(name))
        if target is not None:
            kept.setdefault("project" if name == "project" else "scheduled_to", target.body)
    return {
        "api": body.get("api"),
        "kind": body.get("kind"),
        "metadata": {name: metadata[name] for name in _METADATA if isinstance(metadata.get(name), str)},
        "status": kept,
    }


def read_placement(body: Body) -> tuple[Key, ClusterReplicas] | None:
    """Return an Application and its cluster; None for another record, and for one without a cluster."""
    target = read_ref(get_field(body, "status", "scheduled_to"))
    if target is None or (target.group, target.kind) != CLUSTER or body.get("kind") != APPLICATION[1]:
        return None
    metadata = as_object(body.get("metadata"))
    key = Key(
        parse_api_group(str(body.get("api"))), APPLICATION[1], str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    )
    return key, {cluster_directory(target.namespace, target.name): None}


HUB_OBJECTS = HubObjects(
    frozenset({APPLICATION, CLUSTER, MAGNUM_CLUSTER}), frozenset(), reduce_record, read_placement, lambda _: None
)


def adopt(
    applications: Iterable[Document], resources: Iterable[Key], clusters: Collection[Key], running: RunningObjects
) -> Iterator[AdoptedRecord]:
    """Yield the records of applications, and of the Clusters that are bound to a cloud or project."""
    for document in applications:
        record = running.records.get(document.key)
        target = read_ref(get_field(record, "status", "scheduled_to")) if record is not None else None
        if record is None:
            target = _find_cluster(document, clusters, running)
            record = _make_record(document.key, target) if target is not None else None
        if record is not None and target is not None:
            where: ClusterReplicas = {cluster_directory(target.namespace, target.name): None}
            yield AdoptedRecord(document.key, record, document.key, where)
    for key in resources:
        record = running.records.get(key)
        if record is not None and {"scheduled_to", "project"} & as_object(record.get("status")).keys():
            yield AdoptedRecord(key, record, key, {})


def _find_cluster(document: Document, clusters: Collection[Key], running: RunningObjects) -> ResourceRef | None:
    """Return the cluster that has the objects of an application; None if none or several have them."""
    objects = [(parse_api_group(str(body.get("apiVersion") or "")), body) for body in list_manifests(document)]
    keys = [
        Key(group, str(body.get("kind")), _read_namespace(body), str(get_field(body, "metadata", "name")))
        for group, body in objects
    ]
    found = {name for key in keys for name in running.clusters.get(key, {})}
    chosen = [key for key in sorted(clusters) if cluster_directory(key.namespace, key.name) in found]
    return ResourceRef(*chosen[0]) if len(chosen) == len(found) == 1 else None


def _read_namespace(body: Body) -> str:
    return str(get_field(body, "metadata", "namespace") or "default")


def _make_record(key: Key, target: ResourceRef) -> Body:
    return {
        "api": key.group,
        "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "status": {"scheduled_to": target.body},
    }
