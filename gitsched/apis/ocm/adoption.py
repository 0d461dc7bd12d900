"""Adopt a running fleet: read the decisions and ManifestWorks of a hub, and make decisions and rollouts from where workloads run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from gitsched.apis.adoption import HubDelivery, HubObjects
from gitsched.apis.ocm import names
from gitsched.apis.ocm.decisions import MAX_CLUSTER_DECISIONS, list_decision_clusters, write_placement_record
from gitsched.apis.ocm.rollout import ROLLOUT_ANNOTATION, format_rollout
from gitsched.apis.ocm.workloads import OcmWorkload
from gitsched.apis.registered import Registered
from gitsched.model.adoption import AdoptedRecord, ClusterReplicas, RunningObjects
from gitsched.model.document import Body, Key, as_object, get_field, list_objects, read_labels
from gitsched.schedule.rollout import ClusterRevision

MANIFEST_WORK = "ManifestWork"
"""A ManifestWork is in the namespace of its cluster (open-cluster-management-io/api/work/v1/types.go)."""
_DECISION_LABELS = (names.GROUP_INDEX_LABEL, names.GROUP_NAME_LABEL, names.PLACEMENT_LABEL)
_STATUS_MEMBERS = ("conditions", "decisionGroups", "decisions", "numberOfSelectedClusters")


def reduce_record(body: Body) -> Body:
    """Return what decisions depend on, of a Placement or PlacementDecision of a hub."""
    metadata, status = as_object(body.get("metadata")), as_object(body.get("status"))
    labels = {name: text for name, text in read_labels(body).items() if name in _DECISION_LABELS}
    kept = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
    return {
        "apiVersion": f"{names.GROUP}/v1beta1",
        "kind": body.get("kind"),
        "metadata": {**kept, **({"labels": labels} if labels else {})},
        "status": {name: status[name] for name in _STATUS_MEMBERS if name in status},
    }


def read_manifest_work(body: Body) -> HubDelivery | None:
    """Return what a ManifestWork applies in its cluster."""
    namespace = str(get_field(body, "metadata", "namespace") or "")
    manifests = list_objects(get_field(body, "spec", "workload", "manifests"))
    return HubDelivery(namespace, tuple(manifests)) if namespace else None


HUB_OBJECTS = HubObjects(
    frozenset({(names.GROUP, names.PLACEMENT), (names.GROUP, names.PLACEMENT_DECISION)}),
    frozenset({(names.WORK_GROUP, MANIFEST_WORK)}),
    reduce_record,
    lambda _: None,
    read_manifest_work,
    Registered("gitsched.apis.ocm.hub_comparison", "HUB_COMPARISON").load,
)


class OcmAdoption:
    """The records of all Placements and of the workloads that follow them. `at` is the time that rollouts get."""

    def __init__(self, placements: Iterable[Key], workloads: Sequence[OcmWorkload], running: RunningObjects, at: datetime) -> None:
        self._workloads, self._running, self._at = workloads, running, at
        self._decisions: dict[Key, list[tuple[Key, Body]]] = {key: [] for key in placements}
        for key, body in sorted(running.records.items()):
            owner = names.placement_key(key.namespace, read_labels(body).get(names.PLACEMENT_LABEL, ""))
            if key.kind == names.PLACEMENT_DECISION and owner in self._decisions:
                self._decisions[owner].append((key, body))
        self._clusters = {
            placement: list(dict.fromkeys(name for _, body in decisions for name in list_decision_clusters(body)))
            for placement, decisions in self._decisions.items()
        }

    def adopt(self) -> Iterator[AdoptedRecord]:
        """Yield the records."""
        followers = self._list_followers()
        for placement in sorted(self._decisions):
            yield from self._adopt_placement(placement, followers.get(placement, []))
        for workload in self._workloads:
            clusters = self._find_clusters(workload)
            if clusters:
                yield AdoptedRecord(workload.record, self._make_rollout(workload, clusters), workload.document.key, clusters)

    def _list_followers(self) -> Mapping[Key, list[OcmWorkload]]:
        found: dict[Key, list[OcmWorkload]] = {}
        for workload in self._workloads:
            for placement, _ in workload.references:
                found.setdefault(placement, []).append(workload)
        return found

    def _adopt_placement(self, placement: Key, followers: Sequence[OcmWorkload]) -> Iterator[AdoptedRecord]:
        decisions, missing = self._decisions[placement], list[str]()
        clusters = self._clusters[placement]
        if decisions and not all("decisions" in body["status"] for _, body in decisions):
            missing.append("its PlacementDecisions have no status")
        elif not decisions and "ocm" not in self._running.complete and not self._is_recorded_empty(placement):
            missing.append("its PlacementDecisions are not known")
        if not clusters:
            alone = [workload for workload in followers if len(workload.references) == 1]
            clusters = list(dict.fromkeys(name for workload in alone for name in sorted(self._find_running(workload))))
            decisions = _make_decisions(placement, clusters) if clusters else decisions
        if not clusters and not missing:
            return
        known = self._running.records.get(placement)
        status = {**as_object(known.get("status"))} if known is not None else {}
        record = write_placement_record(placement, {"numberOfSelectedClusters": len(clusters), **status})
        where = dict.fromkeys(clusters)
        yield AdoptedRecord(placement, record, placement, where, tuple(missing))
        for key, body in decisions:
            yield AdoptedRecord(key, body, placement, where, tuple(missing))

    def _is_recorded_empty(self, placement: Key) -> bool:
        """Return whether the hub says that a Placement has no clusters."""
        known = self._running.records.get(placement)
        return known is not None and get_field(known, "status", "numberOfSelectedClusters") == 0

    def _find_running(self, workload: OcmWorkload) -> ClusterReplicas:
        """Return the clusters that have an object of a workload."""
        return dict.fromkeys(sorted({name for key in workload.objects for name in self._running.clusters.get(key, {})}))

    def _find_clusters(self, workload: OcmWorkload) -> ClusterReplicas:
        """Return where a workload runs: where its objects are; if they are not all known, also the clusters of its Placements."""
        found = self._find_running(workload)
        if found and (names.WORK_GROUP, MANIFEST_WORK) in self._running.complete_kinds:
            return found
        chosen = {name for placement, _ in workload.references for name in self._clusters.get(placement, ())}
        return dict.fromkeys(sorted(chosen | found.keys()))

    def _make_rollout(self, workload: OcmWorkload, clusters: ClusterReplicas) -> Body:
        """Return the record of a workload whose clusters have the present manifests."""
        key, revision = workload.record, ClusterRevision(workload.revision, self._at)
        annotation = format_rollout(dict.fromkeys(clusters, revision), workload.objects)
        metadata = {"name": key.name, "namespace": key.namespace, "annotations": {ROLLOUT_ANNOTATION: annotation}}
        return {"apiVersion": f"{key.group}/v1alpha1", "kind": key.kind, "metadata": metadata, "status": {}}


def _make_decisions(placement: Key, clusters: Sequence[str]) -> list[tuple[Key, Body]]:
    """Return PlacementDecisions in one decision group for the clusters in which the workloads of a Placement run."""
    found: list[tuple[Key, Body]] = []
    for start in range(0, len(clusters), MAX_CLUSTER_DECISIONS):
        key = names.decision_key(placement.namespace, f"{placement.name}-decision-{len(found) + 1}")
        labels = {names.GROUP_INDEX_LABEL: "0", names.GROUP_NAME_LABEL: "", names.PLACEMENT_LABEL: placement.name}
        metadata = {"name": key.name, "namespace": key.namespace, "labels": labels}
        decisions = [{"clusterName": name, "reason": ""} for name in clusters[start : start + MAX_CLUSTER_DECISIONS]]
        body = {"apiVersion": f"{key.group}/v1beta1", "kind": key.kind, "metadata": metadata, "status": {"decisions": decisions}}
        found.append((key, body))
    return found
