"""Replicas of manifests: which fields of a kind have the number, and how many replicas a full copy of some manifests runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gitsched.kinds.table import find_kind
from gitsched.model.document import Body, get_field, parse_api_group

if TYPE_CHECKING:
    from gitsched.apis.gitsched.config import Config

FieldPaths = tuple[tuple[str, ...], ...]

REPLICA_PATHS: Mapping[tuple[str, str], FieldPaths] = {
    ("apps", "Deployment"): (("spec", "replicas"),),
    ("apps", "ReplicaSet"): (("spec", "replicas"),),
    ("apps", "StatefulSet"): (("spec", "replicas"),),
    ("batch", "Job"): (("spec", "parallelism"), ("spec", "completions")),
}
"""The fields with the number of replicas of Kubernetes kinds, the first one counts; a missing number is 1."""
_POD = ("", "Pod")


def list_declared_paths(config: Config) -> dict[tuple[str, str], FieldPaths]:
    """Return the fields with the number of replicas of the kinds that the settings declare."""
    return {
        (parse_api_group(kind.api_version), kind.kind): (tuple(kind.replicas_path.split(".")),)
        for kind in config.workloads
        if kind.replicas_path
    }


def find_replica_paths(kind: tuple[str, str], declared: Mapping[tuple[str, str], FieldPaths]) -> FieldPaths:
    """Return the fields with the number of replicas of a kind: declared ones, those of Kubernetes, those of the table of kinds."""
    paths = declared.get(kind) or REPLICA_PATHS.get(kind)
    if paths is None:
        row = find_kind(*kind)
        path = row.replicas.path if row is not None and row.replicas is not None else ""
        return (tuple(path.split(".")),) if path else ()
    return paths


def count_copy_replicas(manifests: Iterable[Body], config: Config) -> int | None:
    """Return the number of replicas of a full copy of the manifests; None if no manifest has replicas."""
    declared = list_declared_paths(config)
    counts = [count for body in manifests if (count := _count_replicas(body, declared)) is not None]
    return sum(counts) if counts else None


def _count_replicas(body: Body, declared: Mapping[tuple[str, str], FieldPaths]) -> int | None:
    kind = (parse_api_group(str(body.get("apiVersion"))), str(body.get("kind")))
    if kind == _POD:
        return 1
    paths = find_replica_paths(kind, declared)
    if not paths:
        return None
    count = get_field(body, *paths[0])
    return count if type(count) is int and count >= 0 else 1
