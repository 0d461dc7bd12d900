"""Paths of the output branch, built from escaped segments so that no name can leave its directory.

Paths are unique per identity also on case-insensitive file systems: they are lower-case ASCII, and other characters are escaped.
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
# A name that looks like the shortened form of a longer name is shortened itself, so that the two paths cannot collide.
_SHORTENED = re.compile(r".{180}-[0-9a-f]{16}")
_APPS_KINDS = frozenset(("controllerrevision", "daemonset", "deployment", "replicaset", "statefulset"))
_TOP_LEVEL_DOMAINS = frozenset(("app", "cloud", "com", "dev", "io", "net", "org", "sh"))


@lru_cache(maxsize=1 << 17)
def escape_segment(text: str) -> str:
    """Return a path segment of at most 200 bytes: [a-z0-9.-], other bytes as `_xx`, "" as `_`, a leading dot escaped."""
    return _shorten(_UNSAFE.sub(_escape, text)) if text else "_"


def object_name(key: Key) -> str:
    """Return `<kind>[.<group>]-<name>` as one segment, without the group for core and apps."""
    return _object_name(key.group, key.kind, key.name)


def object_path(cluster: str, key: Key) -> str:
    """Return the path of a manifest: `clusters/<cluster>/<namespace or _>/<kind>[.<group>]-<name>.yaml`."""
    return f"{CLUSTERS}/{escape_segment(cluster)}/{relative_path(key)}"


def relative_path(key: Key) -> str:
    """Return `object_path` relative to the directory of the cluster."""
    return f"{escape_segment(key.namespace)}/{_object_name(key.group, key.kind, key.name)}.yaml"


def cluster_path(cluster: str, relative: str) -> str:
    """Return the path of a file in the directory of a cluster."""
    return f"{CLUSTERS}/{escape_segment(cluster)}/{relative}"


def status_path(key: Key) -> str:
    """Return the path of a record: `status/<group or core>/<kind>/<namespace or _>/<name>.yaml`."""
    group = key.group.lower()
    # A document may use "core" as its group; its record must not collide with those of the core group "".
    head = "core" if not group else "_63ore" if group == "core" else escape_segment(group)
    return f"{STATUS}/{head}/{escape_segment(key.kind.lower())}/{escape_segment(key.namespace)}/{escape_segment(key.name)}.yaml"


def placement_path(key: Key) -> str:
    """Return the path of a PlacementDecision: `placements/<namespace or _>/<kind>[.<group>]-<name>.yaml`."""
    return f"{PLACEMENTS}/{relative_path(key)}"


def kept_path(path: str) -> str:
    """Return the path of the last valid version of a broken source file: `kept/<path>`, each segment escaped."""
    return f"{KEPT}/{'/'.join(map(escape_segment, path.split('/')))}"


def _escape(match: re.Match[str]) -> str:
    # Python decodes a byte that is not UTF-8 as a lone surrogate.
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
    # `apiVersion: v1, kind: Deployment` is a frequent mistake and must not get the path of the Deployment in apps.
    if group == ("apps" if kind in _APPS_KINDS else ""):
        return _shorten(f"{kind}-{name}")
    tail = f"{group or '_'}-{name}"
    if tail.count("-") > 1 and _find_group_end(tail) != len(group or "_"):
        tail = f"{group.replace('-', '_2d')}-{name.replace('-', '_2d')}"
    return _shorten(f"{kind}.{tail}")


def _find_group_end(tail: str) -> int:
    """Return where the group of `<group>-<name>` ends: at the first dash after a well-known domain, else at the first dash.

    Groups and names may contain dots and dashes, so `a.b-c.io-d` is ambiguous. If this rule does not find the actual group, the dashes
    of both parts are escaped. Common groups such as cert-manager.io and open-cluster-management.io need no escaping.
    """
    index = tail.find("-")
    first = index
    while index >= 0:
        head, dot, label = tail[:index].rpartition(".")
        if dot and head and label in _TOP_LEVEL_DOMAINS:
            return index
        index = tail.find("-", index + 1)
    return first
