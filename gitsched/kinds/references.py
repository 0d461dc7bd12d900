"""Read from a manifest which objects it refers to, and which Secret its controller writes, by the table of kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gitsched.kinds.kind import Kind, Reference, find_values
from gitsched.kinds.table import is_namespaced
from gitsched.model.document import Body, parse_api_group
from gitsched.named_tuples import NamedTuple


class ReferencedObject(NamedTuple):
    """An object that a manifest refers to; `namespace` is "" for a cluster-scoped one. The manifest says what is `optional`."""

    api_version: str
    kind: str
    namespace: str
    name: str
    optional: bool = False


def list_references(body: Body, kind: Kind, namespace: str) -> list[ReferencedObject]:
    """Return the objects that the fields of a manifest refer to, without those of its pod specs, in the order of the table.

    `namespace` is that of the manifest, "" for a cluster-scoped one: what such an object refers to without a namespace is left out.
    """
    return list(dict.fromkeys(found for field in kind.references for found in _read_field(body, field, namespace)))


def list_pod_specs(body: Body, kind: Kind) -> list[Any]:
    """Return the pod specs of a manifest."""
    paths = (*(f"{path}.spec" for path in kind.pod_templates), *kind.pod_specs)
    return [spec for path in paths for spec in find_values(body, path)]


def find_written_secret(body: Body, kind: Kind) -> str:
    """Return the name of the Secret that the controller of an object writes into its namespace; "" for none."""
    names = (value for path in kind.secrets for value in find_values(body, path))
    return next((name for name in names if isinstance(name, str) and name), "")


def _read_field(body: Body, field: Reference, namespace: str) -> Iterator[ReferencedObject]:
    exact = "**" not in field.path
    for value in find_values(body, field.path):
        if isinstance(value, dict):
            # caProvider of External Secrets calls the kind `type`; Gateway API leaves out the group of core kinds.
            wanted = value.get("kind") or value.get("type")
            name, space, optional = value.get("name"), value.get("namespace"), value.get("optional") is True
        elif exact and isinstance(value, str):
            wanted, optional, space, name = None, False, *_split_name(value)
        else:
            continue
        target = next((target for target in field.kinds if wanted in (None, "", target[1])), None)
        if target is None or (field.kind_required and not wanted) or not isinstance(name, str) or not name or name in field.ignored:
            continue
        api_version, kind = target
        if is_namespaced(parse_api_group(api_version), kind) is False:
            yield ReferencedObject(api_version, kind, "", name, optional)
        elif where := (space if isinstance(space, str) and space else field.namespace or namespace):
            yield ReferencedObject(api_version, kind, where, name, optional)


def _split_name(text: str) -> tuple[str, str]:
    namespace, _, name = text.rpartition("/")
    return namespace, name
