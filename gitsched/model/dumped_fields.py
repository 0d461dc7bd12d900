"""Fields that the API server and the controllers of one cluster set in an object, so that it cannot be delivered to another one with them.

They are removed as Karmada removes them, and only from documents that show that a server wrote them: people write finalizers and TTLs in
Git on purpose. Source: karmada/pkg/resourceinterpreter/default/native/prune; for volumes
kubernetes/pkg/controller/volume/persistentvolume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

Body = Mapping[str, Any]
FieldPath = tuple[str | int, ...]
"""The names of members and the indices of entries that lead to a value."""

_EVIDENCE = ("uid", "resourceVersion", "managedFields", "creationTimestamp", "selfLink")
"""Members of metadata that only a server sets to a value; generators write `creationTimestamp: null`."""
_REVISIONS = ("deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history")
_BOUND = ("pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
_ANNOTATIONS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Endpoints"): ("endpoints.kubernetes.io/last-change-trigger-time",),
    ("", "Namespace"): ("openshift.io/sa.scc.mcs", "openshift.io/sa.scc.supplemental-groups", "openshift.io/sa.scc.uid-range"),
    ("", "PersistentVolume"): _BOUND,
    ("", "PersistentVolumeClaim"): (
        *_BOUND,
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/selected-node",
        "volume.kubernetes.io/storage-provisioner",
    ),
    ("", "Secret"): ("kubernetes.io/service-account.uid",),
    ("apps", "DaemonSet"): ("deprecated.daemonset.template.generation",),
    ("apps", "Deployment"): _REVISIONS,
    ("apps", "ReplicaSet"): (
        *_REVISIONS,
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        "autoscaling.alpha.kubernetes.io/conditions",
        "autoscaling.alpha.kubernetes.io/current-metrics",
    ),
    ("batch", "Job"): ("batch.kubernetes.io/job-tracking",),
}
"""Annotations by which controllers record the state of an object, by group and kind."""
_LEADER = "control-plane.alpha.kubernetes.io/leader"
_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_JOB_LABELS = (*_UID_LABELS, "job-name", "batch.kubernetes.io/job-name")
_ACCOUNT_TYPE = "kubernetes.io/service-account-token"


def list_dumped_fields(group: str, body: Body, *, is_annotated: bool) -> list[FieldPath]:
    """Return the paths of these fields in an object of an API group; [] if nothing shows that a server wrote it. It `is_annotated` with
    an annotation that only kubectl or controllers set."""
    metadata = _read(body, "metadata")
    kind = (group, str(body.get("kind")))
    if not (is_annotated or any(metadata.get(name) for name in _EVIDENCE) or _shows_server(kind, body)):
        return []
    found: list[FieldPath] = [("metadata", name) for name in ("finalizers", "ownerReferences") if name in metadata]
    found += _list_annotations(body, _LEADER, *_ANNOTATIONS.get(kind, ()))
    list_own = _FIELDS.get(kind)
    return [*found, *(list_own(body) if list_own is not None else ())]


def join_paths(body: Body, paths: Iterable[FieldPath]) -> list[FieldPath]:
    """Return paths of a body with the path of an object or list in place of the paths of all its parts, but not that of the metadata."""
    removed = dict.fromkeys(paths)
    parents = {path[:-1]: None for path in removed}
    for parent in sorted(parents, key=len, reverse=True):
        while parent not in ((), ("metadata",)):
            value: Any = body
            for step in parent:
                value = value[step]
            parts = [(*parent, step) for step in (value if isinstance(value, dict) else range(len(value)))]
            if not all(part in removed for part in parts):
                break
            removed = {**dict.fromkeys(path for path in removed if path not in parts), parent: None}
            parent = parent[:-1]
    return list(removed)


def _shows_server(kind: tuple[str, str], body: Body) -> bool:
    """Return whether an object has a uid that a server gave: that of an owner, of a Job's selector or Pods, or of a volume's claim."""
    if any(owner.get("uid") for _, owner in _list_entries(_read(body, "metadata"), "ownerReferences")):
        return True
    if kind == ("batch", "Job"):
        paths = (("spec", "selector", "matchLabels"), ("spec", "template", "metadata", "labels"))
        return any(name in _read(body, *path) for path in paths for name in _UID_LABELS)
    return kind == ("", "PersistentVolume") and bool(_read(body, "spec", "claimRef").get("uid"))


def _list_annotations(body: Body, *names: str) -> Iterator[FieldPath]:
    annotations = _read(body, "metadata", "annotations")
    return (("metadata", "annotations", name) for name in names if name in annotations)


def _list_stateful_set_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the status that the API server adds to templates of claims."""
    templates = _read(body, "spec").get("volumeClaimTemplates")
    for index, template in enumerate(templates if isinstance(templates, list) else ()):
        if isinstance(template, dict) and "status" in template:
            yield ("spec", "volumeClaimTemplates", index, "status")


def _list_namespace_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the finalizer of the API server."""
    if "finalizers" in _read(body, "spec"):
        yield ("spec", "finalizers")


def _list_role_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the rules that a controller collects from other ClusterRoles."""
    if body.get("aggregationRule") and body.get("rules"):
        yield ("rules",)


def _list_pod_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the node, the number of the priority, and the volume with the token, which the API server adds; and containers for debugging,
    with which no Pod can be created."""
    spec = _read(body, "spec")
    yield from (("spec", name) for name in ("nodeName", "priority", "ephemeralContainers") if name in spec)
    volumes: set[Any] = set()
    for name in ("containers", "initContainers"):
        for index, container in _list_entries(spec, name):
            for number, mount in _list_entries(container, "volumeMounts"):
                if mount.get("mountPath") == _ACCOUNT_PATH:
                    volumes.add(mount.get("name"))
                    yield ("spec", name, index, "volumeMounts", number)
    yield from (("spec", "volumes", index) for index, volume in _list_entries(spec, "volumes") if volume.get("name") in volumes)


def _list_job_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the selector and the labels that the API server generates, unless the Job has a selector of its own, and the TTL: what
    delivers a Job makes it again when its cluster has deleted it."""
    spec = _read(body, "spec")
    if "ttlSecondsAfterFinished" in spec:
        yield ("spec", "ttlSecondsAfterFinished")
    if spec.get("manualSelector") is True:
        return
    for path, names in (
        (("spec", "selector", "matchLabels"), _UID_LABELS),
        (("spec", "template", "metadata", "labels"), _JOB_LABELS),
        (("metadata", "labels"), _JOB_LABELS),
    ):
        labels = _read(body, *path)
        yield from ((*path, name) for name in names if name in labels)


def _list_service_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the addresses, unless the Service is headless. The ports of nodes stay, as in Karmada."""
    spec = _read(body, "spec")
    if spec.get("clusterIP") not in (None, "", "None"):
        yield from (("spec", name) for name in ("clusterIP", "clusterIPs") if name in spec)


def _list_secret_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the token of a service account: the cluster that gets the Secret makes one."""
    if body.get("type") == _ACCOUNT_TYPE and "data" in body:
        yield ("data",)


def _list_account_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the Secrets with tokens that clusters before Kubernetes 1.24 made, and those that OpenShift makes for its registry."""
    name = _read(body, "metadata").get("name")
    prefixes = (f"{name}-token-", f"{name}-dockercfg-")
    for member in ("secrets", "imagePullSecrets"):
        for index, entry in _list_entries(body, member):
            if str(entry.get("name")).startswith(prefixes):
                yield (member, index)


def _list_volume_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the identity of the claim that a volume is bound to: a claim of the same name in another cluster has another one."""
    claim = _read(body, "spec", "claimRef")
    yield from (("spec", "claimRef", name) for name in ("uid", "resourceVersion") if name in claim)


_FIELDS: Final[Mapping[tuple[str, str], Callable[[Body], Iterator[FieldPath]]]] = {
    ("", "Namespace"): _list_namespace_fields,
    ("", "PersistentVolume"): _list_volume_fields,
    ("", "Pod"): _list_pod_fields,
    ("", "Secret"): _list_secret_fields,
    ("", "Service"): _list_service_fields,
    ("", "ServiceAccount"): _list_account_fields,
    ("apps", "StatefulSet"): _list_stateful_set_fields,
    ("batch", "Job"): _list_job_fields,
    ("rbac.authorization.k8s.io", "ClusterRole"): _list_role_fields,
}


def _read(body: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the object at a path; an empty one if there is none."""
    value: Any = body
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _list_entries(value: Mapping[str, Any], name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects in a list with their indices."""
    entries = value.get(name)
    return ((index, entry) for index, entry in enumerate(entries if isinstance(entries, list) else ()) if isinstance(entry, dict))
