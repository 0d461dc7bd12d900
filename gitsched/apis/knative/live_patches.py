"""The patches that `gitsched apply knative` applies: placements of sources and replicas of StatefulSets, from records of the output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.apis.knative.names import DOMAIN, RENDERED_TO, SOURCE_REPLICAS
from gitsched.apis.knative.vpods import find_placement_error
from gitsched.model.document import Body, Key, get_field, read_annotations
from gitsched.model.errors import Permanent
from gitsched.model.merge_patch import ApplicablePatches, MergePatch, RefusedRecord

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_API_VERSION = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?v[a-z0-9]{1,62}")
MAX_REPLICAS = 100_000
_ADAPTER_KIND = ("apps", "StatefulSet")


def list_live_patches(records: Iterable[tuple[Key, Body]], cluster: str, groups: frozenset[str]) -> ApplicablePatches:
    """Return the patches for a cluster; "" means the only one.

    Sources are in API groups of knative.dev or in `groups`. A record with an invalid name or value, or with pods of a StatefulSet that
    has no record, is refused. Raise Permanent if the output has several clusters and none is chosen, or does not have the chosen one.
    """
    entries = list(records)
    adapters = {key: body for key, body in entries if key[:2] == _ADAPTER_KIND and SOURCE_REPLICAS in read_annotations(body)}
    _check_cluster(cluster, {_read_cluster(body) for body in adapters.values()})
    names = {key.name for key in adapters}
    updates: list[MergePatch] = []
    replicas: list[MergePatch] = []
    refused: list[RefusedRecord] = []
    for key, body in entries:
        placements = get_field(body, "status", "placements")
        if (key not in adapters and placements is None) or (cluster and _find_cluster(key, body, adapters) != cluster):
            continue
        version = str(body.get("apiVersion"))
        if key in adapters:
            patch = MergePatch(key, version, ("spec", "replicas"), get_field(body, "spec", "replicas"), "scale")
            reason = _find_name_error(key, version) or _find_replicas_error(patch.value)
        else:
            patch = MergePatch(key, version, ("status", "placements"), placements, "status")
            reason = _find_name_error(key, version) or _find_source_error(key, placements, groups, names)
        if reason:
            refused.append(RefusedRecord(key, reason))
        else:
            (replicas if key in adapters else updates).append(patch)
    return ApplicablePatches(_sort(updates), _sort(replicas), tuple(sorted(refused)))


def _sort(patches: list[MergePatch]) -> tuple[MergePatch, ...]:
    return tuple(sorted(patches, key=lambda patch: patch.target))


def _check_cluster(cluster: str, clusters: set[str]) -> None:
    known = ", ".join(sorted(filter(None, clusters))) or "none"
    if cluster and cluster not in clusters:
        raise Permanent(f"the output has no event sources for cluster {cluster!r}: it has {known}")
    if not cluster and len(clusters) > 1:
        raise Permanent(
            f"the output has event sources for several clusters, {known}: choose the one that kubectl reaches with --cluster"
        )


def _find_cluster(key: Key, body: Body, adapters: Mapping[Key, Body]) -> str:
    """Return the cluster of a record. One that does not name it belongs to the cluster of the StatefulSet that its placements name."""
    if key in adapters or RENDERED_TO in read_annotations(body):
        return _read_cluster(body)
    placements = get_field(body, "status", "placements")
    pods = (
        [get_field(entry, "podName") for entry in placements or () if isinstance(entry, dict)]
        if isinstance(placements, list)
        else []
    )
    names = {str(pod).rpartition("-")[0] for pod in pods}
    clusters = {_read_cluster(record) for adapter, record in adapters.items() if adapter.name in names}
    return clusters.pop() if len(clusters) == 1 else ""


def _find_name_error(key: Key, version: str) -> str:
    """Return why a record does not name an object that a cluster can have; "" if it does."""
    if not _API_VERSION.fullmatch(version) or not _IDENTIFIER.fullmatch(key.kind):
        return "invalid apiVersion or kind"
    if not _LABEL.fullmatch(key.namespace) or not _SUBDOMAIN.fullmatch(key.name):
        return "invalid name or namespace"
    return ""


def _find_replicas_error(replicas: Any) -> str:
    if type(replicas) is not int or not 0 <= replicas <= MAX_REPLICAS:
        return f"spec.replicas is not an integer from 0 to {MAX_REPLICAS}"
    return ""


def _find_source_error(key: Key, placements: Any, groups: frozenset[str], adapters: set[str]) -> str:
    """Return why the placements of a source must not be applied; "" if they may."""
    if key.group != DOMAIN and not key.group.endswith(f".{DOMAIN}") and key.group not in groups:
        return (
            f"{key.group or 'the core group'} is no API group of {DOMAIN}: if its kinds are event sources, add --group {key.group}"
        )
    if not isinstance(placements, list):
        return "status.placements is not a list"
    for entry in placements:
        error = find_placement_error(entry)
        if error:
            return f"a placement {error}"
        pod = entry["podName"]
        if pod.rpartition("-")[0] not in adapters:
            return f"Pod {pod} belongs to no StatefulSet that the output has"
    return ""


def _read_cluster(body: Body) -> str:
    return read_annotations(body).get(RENDERED_TO, "")
