"""Documents: one Kubernetes-style object each, with its identity and where it came from."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

Body = dict[str, Any]
"""A JSON object: str keys; values are None, bool, int, float, str, list or another Body. Never mutated once read."""


class Key(NamedTuple):
    """The identity of an object. `group` is "" for Kubernetes' core; `namespace` is "" for what is cluster-scoped."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        return f"{kind}/{self.namespace}/{self.name}" if self.namespace else f"{kind}/{self.name}"

    @property
    def title(self) -> str:
        """As people name it where the group goes without saying: kind, namespace and name."""
        return f"{self.kind}/{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"

    @property
    def resource(self) -> tuple[str, str, str]:
        """What `Finding.resource` holds."""
        return (self.kind, self.namespace, self.name)


class Text(NamedTuple):
    """What rendering must know of a document's source text. Offsets count characters of the decoded file, byte order mark included.

    `whole` says that the file holds this document and nothing else worth cutting away (comments around it stay). `start` and `end` are
    the document's extent in a file of several, without its `---` line. `cuts` are the extents of members that a server owns, or None
    when they cannot be cut out of the text (flow style, an item of a List): such a document is written anew. `marks` are the extents of
    the scalars that scheduling may change, each with its path ("spec.replicas").
    """

    whole: bool
    start: int
    end: int
    cuts: tuple[tuple[int, int], ...] | None
    marks: tuple[tuple[str, int, int], ...]


class Origin(NamedTuple):
    """Where a document was read.

    `blob` is the Git object id (hex) of the file, `index` counts the YAML documents of the file from 0, `item` is the position in a
    `kind: List` or -1, `line` and `column` count from 1 and point at the document's first key.
    """

    path: str
    blob: str
    index: int  # type: ignore[assignment]  # the document number; a tuple's own index() is not wanted here
    item: int
    line: int
    column: int
    text: Text | None = None


class Document(NamedTuple):
    """An object with its identity resolved: a namespaced one without a namespace is in `default`."""

    key: Key
    api_version: str
    body: Body
    origin: Origin | None = None


UNVERSIONED: Final = frozenset(("core", "infrastructure", "kubernetes", "openstack"))
"""Krake's API groups: what its documents have under `api`, without a version."""

SECRET: Final = frozenset(("auth", "kubeconfig", "password", "token"))
"""Members of Krake's documents that say how something is reached. What lies under them is never written or told anywhere."""


@lru_cache(maxsize=1024)
def group_of(api_version: str) -> str:
    """The API group of an apiVersion: "" for "v1", "apps" for "apps/v1"; of Krake's `api`, the whole."""
    group, slash, version = api_version.rpartition("/")
    return group if slash or version not in UNVERSIONED else version


def member(body: Body, *path: str) -> Any:
    """The value at a path of object members, or None as soon as something on the way is missing or no object."""
    value: Any = body
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def as_object(value: Any) -> Body:
    """A value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_objects(value: Any) -> list[Body]:
    """The objects of a list; what has not that shape is left out."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text_map(value: Any) -> dict[str, str]:
    """Labels or annotations as Kubernetes sees them: entries that are no strings are left out."""
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if isinstance(k, str) and isinstance(v, str)}
