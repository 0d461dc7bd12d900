"""Find the data of a manifest that stays in a cluster when the workload leaves it: claims for volumes and templates of claims.

The search needs no list of kinds: custom resources have the members of Kubernetes (volumeClaimTemplates, persistentVolumeClaim) under
the same names. Volumes of a pod that end with it (`ephemeral`) are no such data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.kinds.databases import STORAGE
from gitsched.kinds.kind import VOLUME_CLAIM, find_values
from gitsched.model.document import Body, Key, as_object, get_field, list_objects, parse_api_group, read_labels
from gitsched.model.holds import STATEFUL_LABEL
from gitsched.named_tuples import NamedTuple

_CLAIM_KIND = VOLUME_CLAIM[1]
_TEMPLATE, _TEMPLATES, _REFERENCE = "volumeclaimtemplate", "volumeClaimTemplates", "persistentVolumeClaim"
_SKIPPED = frozenset(("ephemeral", "status", "data", "stringData", "managedFields"))
_STORAGE_CLASSES = ("storageClassName", "storageClass", "class")
_SIZES = (("resources", "requests", "storage"), ("size",), ("storage",))


class DataVolume(NamedTuple):
    """Data of a workload: `kind` is what it is in, such as "claim template", with the name, the size and the storage class if known."""

    kind: str
    name: str = ""
    size: str = ""
    storage_class: str = ""

    def __str__(self) -> str:
        title = f"{self.kind} {self.name}".rstrip()
        facts = [self.size, f"storage class {self.storage_class}" if self.storage_class else ""]
        text = ", ".join(filter(None, facts))
        return f"{title} ({text})" if text else title


def is_claim(key: Key) -> bool:
    """Return whether an object is a PersistentVolumeClaim."""
    return (key.group, key.kind) == ("", _CLAIM_KIND)


def claim_key(namespace: str, name: str) -> Key:
    """Return the key of a PersistentVolumeClaim."""
    return Key("", _CLAIM_KIND, namespace, name)


def describe_claim(body: Body) -> DataVolume:
    """Return the data of a PersistentVolumeClaim."""
    return _describe_claim("claim", str(get_field(body, "metadata", "name") or ""), as_object(body.get("spec")))


def list_claim_names(body: Body) -> list[str]:
    """Return the names of the claims that the pods of a manifest mount, each once, in the order of the manifest."""
    names = [volume.name for volume in _walk(as_object(body.get("spec"))) if volume.kind == "claim"]
    return list(dict.fromkeys(filter(None, names)))


def list_data(body: Body) -> list[DataVolume]:
    """Return the data of a workload; [] for one without, or with a label that says so.

    A label with any other value than "false" makes a workload stateful that has no volumes.
    """
    label = read_labels(body).get(STATEFUL_LABEL, "").strip().lower()
    if label == "false":
        return []
    kind, group = str(body.get("kind")), parse_api_group(str(body.get("apiVersion") or body.get("api") or ""))
    spec = as_object(body.get("spec"))
    if (group, kind) == ("", _CLAIM_KIND):
        return [describe_claim(body)]
    found = list(_walk(spec))
    if (group, kind) in STORAGE:
        found += _list_storage(body, kind, STORAGE[group, kind])
    if not found and label:
        found = [DataVolume(f"label {STATEFUL_LABEL}")]
    return list(dict.fromkeys(found))


def _read_reference(reference: Body) -> Iterator[DataVolume]:
    """Yield the claim that a volume refers to, or the template of one that it has itself."""
    claim = reference.get("claimName")
    if isinstance(claim, str):
        yield DataVolume("claim", claim)
    elif _is_template(reference):
        yield _describe_claim("claim template", "", reference)


def _walk(spec: Body) -> Iterator[DataVolume]:
    """Yield the claims and templates of claims below a value, in the order of the manifest."""
    pending: list[Any] = [spec]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += reversed(value)
            continue
        if not isinstance(value, dict):
            continue
        if value.get("kind") == _CLAIM_KIND and isinstance(value.get("metadata"), dict):
            yield _describe_claim("claim", str(value["metadata"].get("name") or ""), as_object(value.get("spec")))
            continue
        if "kind" in value and read_labels(value).get(STATEFUL_LABEL, "false").lower() != "false":
            yield DataVolume(f"label {STATEFUL_LABEL} of {value['kind']}", str(get_field(value, "metadata", "name") or ""))
        for name, member in reversed(value.items()):
            if name == _TEMPLATES:
                for entry in list_objects(member):
                    yield _describe_template(entry, "")
            elif isinstance(name, str) and name.lower().endswith(_TEMPLATE) and _is_template(member):
                yield _describe_template(member, "" if name.lower() == _TEMPLATE else name)
            elif name == _REFERENCE and isinstance(member, dict):
                yield from _read_reference(member)
            elif name not in _SKIPPED:
                pending.append(member)


def _list_storage(body: Body, kind: str, paths: tuple[str, ...]) -> Iterator[DataVolume]:
    """Yield the storage of an object of a database operator, as its own fields describe it."""
    values = [value for path in paths for value in find_values(body, path) if isinstance(value, dict)]
    volumes = [volume for value in values for volume in list_objects(value.get("volumes")) or [value]]
    for volume in volumes:
        if volume.get("type") != "ephemeral" and volume.get("ephemeral") is not True:
            yield _describe_claim(f"storage of {kind}", "", volume)
    if not volumes and kind != "Kafka":  # the storage of Kafka may be that of its node pools
        yield DataVolume(f"data of {kind}")


def _is_template(value: Any) -> bool:
    """Return whether a value has the members of a claim, unlike the schema of one in a CustomResourceDefinition."""
    spec = as_object(as_object(value).get("spec") or value)
    return isinstance(spec.get("accessModes"), list) or isinstance(get_field(spec, "resources", "requests"), dict)


def _describe_template(entry: Body, name: str) -> DataVolume:
    return _describe_claim(
        "claim template", str(get_field(entry, "metadata", "name") or name), as_object(entry.get("spec") or entry)
    )


def _describe_claim(kind: str, name: str, spec: Body) -> DataVolume:
    size = next((value for path in _SIZES if isinstance(value := get_field(spec, *path), str | int)), "")
    storage_class = next((value for member in _STORAGE_CLASSES if isinstance(value := spec.get(member), str)), "")
    return DataVolume(kind, name, str(size), storage_class)
