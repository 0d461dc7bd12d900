"""The types of the fields that are read of kinds of other projects, as JSON Schema: what an API server with their definition refuses.

The fields of most kinds follow from the table of kinds and from the kinds of companions; `read_fields.py` has the others. A field that is
read nowhere has no type here, and null is the absence of a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from gitsched.kinds.companion_kinds import COMPANION_KINDS
from gitsched.kinds.read_fields import READ_FIELDS
from gitsched.kinds.table import find_kind
from gitsched.kinds.value_limits import QUANTITY as AMOUNT
from gitsched.kinds.value_limits import text
from gitsched.kinds.written_objects import WRITERS

if TYPE_CHECKING:
    from gitsched.kinds.companion_kinds import CompanionKind
    from gitsched.kinds.kind import Kind, Replicas
    from gitsched.model.document import Body

_Field = tuple[str, tuple[str, ...]]
"""The path of a field, as in `gitsched.kinds.kind`, and the JSON types that it may have."""
_TEXT, _NUMBER, _FLAG, _OBJECT = ("string",), ("integer",), ("boolean",), ("object",)
_NAME: Final = ("string", "object")
"""A reference is the name itself, or an object with a name."""
_AMOUNT = ("string", "integer", "number")
_TYPES: Final = {
    "text": _TEXT,
    "number": _NUMBER,
    "flag": _FLAG,
    "object": _OBJECT,
    "amount": _AMOUNT,
    "duration": _TEXT,
    "timeout": _TEXT,
}
_DURATIONS: Final = {
    "duration": text(r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$|\$\{", "a duration such as 10m or 1h30m"),
    "timeout": text(r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$|\$\{", "a duration such as 90s or 2m, without hours"),
}
"""The durations of Flux, as its definitions have them; it may substitute variables in them."""
_POD_FIELDS: Final = {
    "text": (
        "serviceAccountName serviceAccount priorityClassName runtimeClassName imagePullSecrets[].name {c}[].name {c}[].image "
        "{c}[].envFrom[].configMapRef.name {c}[].envFrom[].secretRef.name {c}[].env[].name {c}[].env[].valueFrom.configMapKeyRef.name "
        "{c}[].env[].valueFrom.secretKeyRef.name {v}.configMap.name {v}.secret.secretName {v}.projected.sources[].configMap.name "
        "{v}.projected.sources[].secret.name {v}.persistentVolumeClaim.claimName"
    ),
    "amount": "{c}[].resources.requests.* {c}[].resources.limits.*",
}
"""What is read of a pod spec; `{c}` are its lists of containers, `{v}` is a volume."""


@cache
def make_field_schema(group: str, kind: str) -> Body | None:
    """Return a schema of the fields that are read of objects of a kind; None for a kind of which nothing is read."""
    fields = list(_list_fields(group, kind))
    if not fields:
        return None
    schema: Body = {}
    for path, types in fields:
        _add(schema, path, types)
    for name, limit in _DURATIONS.items():
        for path in READ_FIELDS.get((group, kind), {}).get(name, "").split():
            _add(schema, path, _TEXT, limit)
    return schema


def _list_fields(group: str, kind: str) -> Iterator[_Field]:
    row = find_kind(group, kind)
    if row is not None:
        yield from _list_row_fields(row)
    companion = COMPANION_KINDS.get((group, kind))
    if companion is not None:
        yield from _list_companion_fields(companion)
    for _, _, paths in WRITERS.get((group, kind), ()):
        yield from ((path, _TEXT) for path in paths if not path.startswith("metadata."))
    for name, paths_of_type in READ_FIELDS.get((group, kind), {}).items():
        yield from ((path, _TYPES[name]) for path in paths_of_type.split())


def _list_row_fields(row: Kind) -> Iterator[_Field]:
    for reference in row.references:
        yield reference.path, _NAME
        if "**" not in reference.path:
            yield from ((f"{reference.path}.{member}", _TEXT) for member in ("name", "namespace", "kind"))
    for template in row.pod_templates:
        yield f"{template}.metadata.labels.*", _TEXT
        yield from _list_pod_fields(f"{template}.spec")
    for pod in row.pod_specs:
        yield from _list_pod_fields(pod)
    yield from ((path, _TEXT) for path in row.secrets if not path.startswith("metadata."))
    if row.destination:
        yield from ((f"{row.destination}.{member}", _TEXT) for member in ("name", "namespace", "server"))
    if row.replicas is not None:
        yield from _list_replica_fields(row.replicas)


def _list_replica_fields(replicas: Replicas) -> Iterator[_Field]:
    if replicas.path:
        yield replicas.path, _NUMBER
    if replicas.pod_template:
        yield f"{replicas.pod_template}.spec", _OBJECT
    for component in replicas.components:
        prefix = f"{component.path}." if component.path else ""
        if component.replicas:
            yield f"{prefix}{component.replicas}", _NUMBER
        if component.pod_template:
            yield f"{prefix}{component.pod_template}.spec", _OBJECT
        if component.resources:
            yield f"{prefix}{component.resources}", _OBJECT


def _list_companion_fields(kind: CompanionKind) -> Iterator[_Field]:
    for selector in filter(None, (kind.pods, kind.services)):
        if kind.plain:
            yield f"{selector}.*", _TEXT
            continue
        yield f"{selector}.matchLabels.*", _TEXT
        yield from ((f"{selector}.matchExpressions[].{member}", _TEXT) for member in ("key", "operator", "values[]"))
    if kind.namespaces:
        yield f"{kind.namespaces}.matchNames[]", _TEXT
        yield f"{kind.namespaces}.any", _FLAG
    for backend in kind.backends:
        yield backend, _NAME
        yield from ((f"{backend}.{member}", _TEXT) for member in ("name", "namespace", "kind"))
    yield from ((host, _TEXT) for host in kind.hosts)
    if kind.any_kind:
        yield from ((f"{kind.any_kind}.{member}", _TEXT) for member in ("apiVersion", "kind", "name"))


def _list_pod_fields(pod: str) -> Iterator[_Field]:
    for name, paths in _POD_FIELDS.items():
        for path in paths.split():
            lists = ("containers", "initContainers") if "{c}" in path else ("",)
            yield from ((f"{pod}.{path.format(c=containers, v='volumes[]')}", _TYPES[name]) for containers in lists)


def _add(schema: Body, path: str, types: tuple[str, ...], limit: Mapping[str, Any] | None = None) -> None:
    """Add a field to a schema, with the objects and lists that lead to it, and with a `limit` of its values."""
    node: Any = schema
    for part in path.split("."):
        _allow(node, ("object",), only_missing=True)
        if part == "**":
            return  # it may be anywhere below
        name = part.removesuffix("[]")
        if name.startswith("*"):
            node = node.setdefault("patternProperties", {}).setdefault(f"{name[1:]}$", {})
        else:
            node = node.setdefault("properties", {}).setdefault(name, {})
        if part.endswith("[]"):
            _allow(node, ("array",), only_missing=True)
            node = node.setdefault("items", {})
    _allow(node, types)
    node.update(AMOUNT if types == _AMOUNT else limit or {})


def _allow(node: Body, types: tuple[str, ...], *, only_missing: bool = False) -> None:
    """Add types to those that a value may have; with `only_missing`, if it has none yet."""
    known = node.setdefault("type", [])
    if not (only_missing and known):
        known += [name for name in (*types, "null") if name not in known]
    if "object" in known:
        node["additionalProperties"] = True
