"""Copies that the output has only for an overlap, and what was placed since facts were observed, as entries of gitsched.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from gitsched.model.capacity_use import PlacedRequests
from gitsched.model.changes import RetainedCopy
from gitsched.model.document import Body, Key, as_object, list_objects
from gitsched.model.quantity import count_quantity, format_resource_amount, parse_quantity
from gitsched.model.scheduling import decode_replicas, encode_replicas
from gitsched.model.time import format_time, parse_time
from gitsched.render.output_files import CLUSTERS, HUB, cluster_path, escape_segment, relative_path

_KEY_MEMBERS = ("group", "kind", "namespace", "name")
_SEGMENT = re.compile(r"[a-z0-9_-][a-z0-9._-]*")
_MANIFEST_NAME = re.compile(rf"{_SEGMENT.pattern}\.yaml")


def write_retained_copy(copy: RetainedCopy) -> Body:
    """Return the entry. `paths` is left out for the one manifest that a workload has by default."""
    entry: dict[str, Any] = {"cluster": copy.cluster, "workload": write_key(copy.workload)}
    if copy.replicas is not None:
        entry["replicas"] = encode_replicas(copy.replicas)
    if copy.paths != _list_default_paths(copy.workload, copy.cluster):
        entry["paths"] = list(copy.paths)
    times = {"start": copy.start, "countedFrom": copy.counted_from, "until": copy.until}
    entry |= {name: format_time(time) for name, time in times.items() if time is not None}
    if copy.follows is not None:
        entry["follows"] = write_key(copy.follows)
    if copy.preserved:
        entry["preserved"] = True
    if copy.release:
        entry["release"] = copy.release
    return entry


def read_retained_copy(entry: Body) -> RetainedCopy | None:
    """Return the copy of an entry, without paths that cannot be those of its objects; None for one that is not complete."""
    workload, cluster, replicas = read_key(entry.get("workload")), entry.get("cluster"), entry.get("replicas")
    if workload is None or not isinstance(cluster, str):
        return None
    listed = entry.get("paths")
    paths = (
        tuple(path for path in listed if _is_delivered_path(path, cluster))
        if isinstance(listed, list)
        else _list_default_paths(workload, cluster)
    )
    if not paths:
        return None
    return RetainedCopy(
        workload,
        cluster,
        decode_replicas(replicas),
        paths,
        parse_time(entry.get("start")),
        parse_time(entry.get("countedFrom")),
        parse_time(entry.get("until")),
        read_key(entry.get("follows")),
        entry.get("preserved") is True,
        str(entry.get("release") or ""),
    )


def _is_delivered_path(path: Any, cluster: str) -> bool:
    """Return whether a path may be that of an object for a cluster, not that of a directory or of a file about the cluster."""
    if not isinstance(path, str):
        return False
    directory, _, name = path.rpartition("/")
    above, _, namespace = directory.rpartition("/")
    if not _MANIFEST_NAME.fullmatch(name):
        return False
    return directory == f"{HUB}/{escape_segment(cluster)}" or (
        above == f"{CLUSTERS}/{escape_segment(cluster)}" and _SEGMENT.fullmatch(namespace) is not None
    )


def _list_default_paths(workload: Key, cluster: str) -> tuple[str, ...]:
    return (cluster_path(cluster, relative_path(workload)),)


def write_key(key: Key) -> Body:
    """Return the members of a key that are not empty."""
    return {name: value for name, value in zip(_KEY_MEMBERS, key, strict=True) if value}


def read_key(value: Any) -> Key | None:
    """Return the key of members that `write_key` returned; None for anything else."""
    members = as_object(value)
    if not isinstance(members.get("kind"), str) or not isinstance(members.get("name"), str):
        return None
    return Key(*(str(members.get(name) or "") for name in _KEY_MEMBERS))


def write_placed(entries: Iterable[PlacedRequests]) -> list[dict[str, Any]]:
    """Return what was placed on one cluster as JSON."""
    return [
        {
            "at": format_time(one.at),
            "requests": {name: format_resource_amount(name, amount, binary=False) for name, amount in sorted(one.requests.items())},
        }
        for one in entries
    ]


def read_placed(value: object) -> Mapping[str, tuple[PlacedRequests, ...]]:
    """Return what was placed by cluster; malformed entries are left out."""
    return {name: tuple(_read_entries(entries)) for name, entries in as_object(value).items()}


def _read_entries(entries: object) -> Iterable[PlacedRequests]:
    for entry in list_objects(entries):
        at = parse_time(entry.get("at"))
        if at is None:
            continue
        quantities = ((name, parse_quantity(text)) for name, text in as_object(entry.get("requests")).items())
        yield PlacedRequests(at, {name: count_quantity(name, one) for name, one in quantities if one is not None and one.nano > 0})
