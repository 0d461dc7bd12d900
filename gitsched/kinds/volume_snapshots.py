"""Kinds of snapshots of volumes."""

from __future__ import annotations

from gitsched.kinds.kind import CLUSTER, NAMESPACED, Kind, KindTable

KINDS: KindTable = {
    ("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshot"): Kind(
        NAMESPACED, "kubernetes-csi/external-snapshotter/client/config/crd/groupsnapshot.storage.k8s.io_volumegroupsnapshots.yaml"
    ),
    ("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshotClass"): Kind(
        CLUSTER,
        "kubernetes-csi/external-snapshotter/client/config/crd/groupsnapshot.storage.k8s.io_volumegroupsnapshotclasses.yaml",
    ),
    ("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshotContent"): Kind(
        CLUSTER,
        "kubernetes-csi/external-snapshotter/client/config/crd/groupsnapshot.storage.k8s.io_volumegroupsnapshotcontents.yaml",
    ),
    ("snapshot.storage.k8s.io", "VolumeSnapshot"): Kind(
        NAMESPACED, "kubernetes-csi/external-snapshotter/client/config/crd/snapshot.storage.k8s.io_volumesnapshots.yaml"
    ),
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass"): Kind(
        CLUSTER, "kubernetes-csi/external-snapshotter/client/config/crd/snapshot.storage.k8s.io_volumesnapshotclasses.yaml"
    ),
    ("snapshot.storage.k8s.io", "VolumeSnapshotContent"): Kind(
        CLUSTER, "kubernetes-csi/external-snapshotter/client/config/crd/snapshot.storage.k8s.io_volumesnapshotcontents.yaml"
    ),
}
