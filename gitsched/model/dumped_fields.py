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
_ACCOUNT_UID = "kubernetes.io/service-account.uid"
_BOUND = ("pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller")
_PROVISIONED = (
    "volume.beta.kubernetes.io/storage-provisioner",
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
)
_UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_JOB_LABELS = (*_UID_LABELS, "job-name", "batch.kubernetes.io/job-name")
_ACCOUNT_TYPE = "kubernetes.io/service-account-token"


def list_dumped_fields(group: str, body: Body, *, is_annotated: bool) -> list[FieldPath]:
    """Return the paths of these fields in an object of an API group; [] if nothing shows that a server wrote it. It `is_annotated` with
    an annotation that only controllers set."""
    metadata = _read(body, "metadata")
    kind = (group, str(body.get("kind")))
    if not (is_annotated or any(metadata.get(name) for name in _EVIDENCE) or _shows_server(kind, body)):
        return []
    found: list[FieldPath] = [("metadata", name) for name in ("finalizers", "ownerReferences") if name in metadata]
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
    """Return whether an object has a uid that a server gave, outside of its metadata."""
    if kind == ("batch", "Job"):
        return not frozenset(_UID_LABELS).isdisjoint(_read(body, "spec", "selector", "matchLabels"))
    return kind == ("", "PersistentVolume") and bool(_read(body, "spec", "claimRef").get("uid"))


def _list_annotations(body: Body, *names: str) -> Iterator[FieldPath]:
    annotations = _read(body, "metadata", "annotations")
    return (("metadata", "annotations", name) for name in names if name in annotations)


def _list_deployment_fields(body: Body) -> Iterator[FieldPath]:
    return _list_annotations(body, *_REVISIONS)


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
    if body.get("type") == _ACCOUNT_TYPE:
        yield from _list_annotations(body, _ACCOUNT_UID)
        if "data" in body:
            yield ("data",)


def _list_account_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the Secrets with tokens that clusters before Kubernetes 1.24 made."""
    secrets = body.get("secrets")
    prefix = f"{_read(body, 'metadata').get('name')}-token-"
    for index, entry in enumerate(secrets if isinstance(secrets, list) else ()):
        if isinstance(entry, dict) and str(entry.get("name")).startswith(prefix):
            yield ("secrets", index)


def _list_claim_fields(body: Body) -> Iterator[FieldPath]:
    return _list_annotations(body, *_BOUND, *_PROVISIONED)


def _list_volume_fields(body: Body) -> Iterator[FieldPath]:
    """Yield the identity of the claim that a volume is bound to: a claim of the same name in another cluster has another one."""
    yield from _list_annotations(body, *_BOUND)
    claim = _read(body, "spec", "claimRef")
    yield from (("spec", "claimRef", name) for name in ("uid", "resourceVersion") if name in claim)


_FIELDS: Final[Mapping[tuple[str, str], Callable[[Body], Iterator[FieldPath]]]] = {
    ("", "PersistentVolume"): _list_volume_fields,
    ("", "PersistentVolumeClaim"): _list_claim_fields,
    ("", "Secret"): _list_secret_fields,
    ("", "Service"): _list_service_fields,
    ("", "ServiceAccount"): _list_account_fields,
    ("apps", "Deployment"): _list_deployment_fields,
    ("batch", "Job"): _list_job_fields,
}


def _read(body: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the object at a path; an empty one if there is none."""
    value: Any = body
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
