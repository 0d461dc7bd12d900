"""Replicas of manifests: which fields of a kind have the number, and how many replicas a full copy of some manifests runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gitsched.apis.gitsched.config import Config
from gitsched.model.document import Body, get_field, parse_api_group

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


def count_copy_replicas(manifests: Iterable[Body], config: Config) -> int | None:
    """Return the number of replicas of a full copy of the manifests; None if no manifest has replicas."""
    paths = {**REPLICA_PATHS, **list_declared_paths(config)}
    counts = [count for body in manifests if (count := _count_replicas(body, paths)) is not None]
    return sum(counts) if counts else None


def _count_replicas(body: Body, paths: Mapping[tuple[str, str], FieldPaths]) -> int | None:
    kind = (parse_api_group(str(body.get("apiVersion"))), str(body.get("kind")))
    if kind == _POD:
        return 1
    if kind not in paths:
        return None
    count = get_field(body, *paths[kind][0])
    return count if type(count) is int and count >= 0 else 1
