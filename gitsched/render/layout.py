"""Paths of the output branch, built from escaped segments so that no name can leave its directory.

Paths are unique per identity also where a file system folds case: they are ASCII and in lower case, and what is not is escaped.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

from gitsched.model.document import Key

README, RUN_METADATA, HYDRATOR_METADATA, GITATTRIBUTES_FILE = "README.md", "gitsched.json", "hydrator.metadata", ".gitattributes"
CLUSTERS, STATUS, PLACEMENTS, KEPT = "clusters", "status", "placements", "kept"
CLUSTER_JSON, KUSTOMIZATION, STUB_FILE = "cluster.json", "kustomization.yaml", "gitsched-placement.yaml"

_LIMIT, _SHORTENED_LENGTH, _DIGEST_LENGTH = 200, 180, 16
_UNSAFE = re.compile(r"[^a-z0-9.-]|^\.")
# Looks like the shortened form of a longer name, and so is shortened itself: nobody can claim a longer name's path.
_SHORTENED = re.compile(r".{180}-[0-9a-f]{16}")
_APPS_KINDS = frozenset(("controllerrevision", "daemonset", "deployment", "replicaset", "statefulset"))
_TOP_LEVEL_DOMAINS = frozenset(("app", "cloud", "com", "dev", "io", "net", "org", "sh"))


@lru_cache(maxsize=1 << 17)
def escape_segment(text: str) -> str:
    """One path segment of at most 200 bytes: [a-z0-9.-], other bytes as `_xx`, "" as `_`, a leading dot escaped."""
    return _shorten(_UNSAFE.sub(_escape, text)) if text else "_"


def object_name(key: Key) -> str:
    """`<kind>[.<group>]-<name>`, the group left out for core and apps; one segment."""
    return _object_name(key.group, key.kind, key.name)


def object_path(cluster: str, key: Key) -> str:
    """What to apply in a cluster: `clusters/<cluster>/<namespace or _>/<kind>[.<group>]-<name>.yaml`."""
    return f"{CLUSTERS}/{escape_segment(cluster)}/{relative_path(key)}"


def relative_path(key: Key) -> str:
    """`object_path` seen from the cluster's directory."""
    return f"{escape_segment(key.namespace)}/{_object_name(key.group, key.kind, key.name)}.yaml"


def cluster_path(cluster: str, relative: str) -> str:
    """A file of a cluster's directory."""
    return f"{CLUSTERS}/{escape_segment(cluster)}/{relative}"


def status_path(key: Key) -> str:
    """The record of a scheduled document: `status/<group or core>/<kind>/<namespace or _>/<name>.yaml`."""
    group = key.group.lower()
    # Nobody owns the group "core", but a document may claim it; it must not land on the real one's records.
    head = "core" if not group else "_63ore" if group == "core" else escape_segment(group)
    return f"{STATUS}/{head}/{escape_segment(key.kind.lower())}/{escape_segment(key.namespace)}/{escape_segment(key.name)}.yaml"


def placement_path(key: Key) -> str:
    """A workload's PlacementDecision: `placements/<namespace or _>/<kind>[.<group>]-<name>.yaml`."""
    return f"{PLACEMENTS}/{relative_path(key)}"


def kept_path(path: str) -> str:
    """Last valid bytes of a source file that is broken now: `kept/<path>`, each segment escaped."""
    return f"{KEPT}/{'/'.join(map(escape_segment, path.split('/')))}"


def _escape(match: re.Match[str]) -> str:
    # A lone surrogate is what Python makes of a byte that is no UTF-8.
    return "".join(f"_{byte:02x}" for byte in match[0].encode("utf-8", "surrogatepass"))


def _shorten(escaped: str) -> str:
    if len(escaped) <= _LIMIT and not _SHORTENED.fullmatch(escaped):
        return escaped
    return f"{escaped[:_SHORTENED_LENGTH]}-{hashlib.sha256(escaped.encode()).hexdigest()[:_DIGEST_LENGTH]}"


@lru_cache(maxsize=1 << 17)
def _object_name(group: str, kind: str, name: str) -> str:
    kind = _UNSAFE.sub(_escape, kind.lower()).replace("-", "_2d").replace(".", "_2e")
    group = _UNSAFE.sub(_escape, group.lower())
    name = _UNSAFE.sub(_escape, name)
    # `apiVersion: v1, kind: Deployment` is a frequent mistake, and another object than the one in apps.
    if group == ("apps" if kind in _APPS_KINDS else ""):
        return _shorten(f"{kind}-{name}")
    tail = f"{group or '_'}-{name}"
    if tail.count("-") > 1 and _find_group_end(tail) != len(group or "_"):
        tail = f"{group.replace('-', '_2d')}-{name.replace('-', '_2d')}"
    return _shorten(f"{kind}.{tail}")


def _find_group_end(tail: str) -> int:
    """Where a reader of `<group>-<name>` takes the group to end: the first dash after a well-known domain, else the first dash.

    Groups and names both hold dots and dashes, so `a.b-c.io-d` could be two objects. The one that this rule does not give back has
    its dashes escaped, as the other never has; ordinary groups, cert-manager.io and open-cluster-management.io too, read plain.
    """
    at = tail.find("-")
    first = at
    while at >= 0:
        head, dot, label = tail[:at].rpartition(".")
        if dot and head and label in _TOP_LEVEL_DOMAINS:
            return at
        at = tail.find("-", at + 1)
    return first
