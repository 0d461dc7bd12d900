"""Clusters that are to be made because a cloud suits an application better than any cluster does."""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256

from gitsched.apis.krake import names
from gitsched.model.document import Body, Document, Key, member

_NUMBERS = 10_000


def name_cluster(identity: str, taken: Collection[str]) -> str:
    """`cluster-` and four digits: the first free one from a number that the application's identity gives; five digits where none is."""
    first = int.from_bytes(sha256(identity.encode()).digest()[:8], "big") % _NUMBERS
    numbers = (f"cluster-{(first + step) % _NUMBERS:04}" for step in range(_NUMBERS))
    return next((name for name in numbers if name not in taken), f"cluster-{_NUMBERS + len(taken)}")


def create_cluster(application: Document, name: str) -> Document:
    """The document of a cluster for an application: it wants of its cloud what the application wants of its cluster."""
    wanted = member(application.body, "spec", "constraints", "cluster") or {}
    cloud = {part: wanted[part] for part in ("labels", "metrics") if wanted.get(part)}
    group, kind = names.CLUSTER
    body: Body = {
        "api": group,
        "kind": kind,
        "metadata": {"name": name, "namespace": application.key.namespace, "inherit_labels": True},
        "spec": {"auto_generated": True, "inherit_metrics": True, "constraints": {"cloud": cloud}},
    }
    return Document(Key(group, kind, application.key.namespace, name), group, body)
