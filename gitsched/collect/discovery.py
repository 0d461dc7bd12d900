"""Read which kinds a cluster serves: by aggregated discovery, or group by group from servers that do not have it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gitsched.kubectl.proxy import ClusterReader
from gitsched.model.document import Body, as_object, get_field, list_objects
from gitsched.model.errors import GitschedError

MAX_VERSIONS: Final = 1_000
MAX_KINDS: Final = 5_000
"""Groups and versions, and kinds of all of them, that are read of one cluster."""
_AGGREGATED: Final = ",".join(
    (
        *(f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")),
        "application/json",
    )
)
_GROUP: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_VERSION: Final = re.compile(r"[a-z][a-z0-9]{0,62}")
_KIND: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")

Kinds = dict[str, tuple[str, ...]]


def read_apis(reader: ClusterReader, before: Mapping[str, tuple[str, ...]], note: Callable[[str], None]) -> Kinds:
    """Return the kinds by group and version. A group whose own server does not answer now keeps the kinds of `before`."""
    found: Kinds = {}
    unknown: list[str] = []
    count = 0
    for path in ("/api", "/apis"):
        root = reader.get(path, _AGGREGATED)
        rows = _read_aggregated(root) if root.get("kind") == "APIGroupDiscoveryList" else _read_each(reader, path, root, note)
        for version, kinds in rows:
            if kinds is None:
                unknown.append(version)
            elif kinds and len(found) < MAX_VERSIONS and count + len(kinds) <= MAX_KINDS:
                count += len(kinds) - len(found.get(version, ()))
                found[version] = kinds
            elif kinds:
                note(
                    f"the kinds of {version} are ignored: the cluster serves more than {MAX_KINDS} kinds or {MAX_VERSIONS} versions"
                )
    for version in unknown:
        note(f"the server of {version} does not answer: its kinds are those of the last time")
        if version in before and version not in found:
            found[version] = before[version]
    return dict(sorted(found.items()))


def _read_aggregated(root: Body) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield groups and versions with their kinds; None for kinds that are not known at present."""
    for group in list_objects(root.get("items")):
        for version in list_objects(group.get("versions")):
            name = _join(get_field(group, "metadata", "name") or "", version.get("version"))
            if name:
                kinds = (as_object(resource.get("responseKind")).get("kind") for resource in list_objects(version.get("resources")))
                yield name, None if version.get("freshness") == "Stale" else _select_kinds(kinds)


def _read_each(
    reader: ClusterReader, path: str, root: Body, note: Callable[[str], None]
) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield the same of a server without aggregated discovery."""
    if path == "/api":
        versions = root.get("versions")
        names = [_join("", version) for version in versions] if isinstance(versions, list) else []
    else:
        entries = (
            (group, version) for group in list_objects(root.get("groups")) for version in list_objects(group.get("versions"))
        )
        names = [_join(group.get("name"), version.get("version")) for group, version in entries]
    if len(names) > MAX_VERSIONS:
        note(f"the cluster serves {len(names)} versions of APIs: the kinds of the first {MAX_VERSIONS} are read")
    for name in names[:MAX_VERSIONS]:
        if not name:
            continue
        try:
            listed = reader.get(f"{path}/{name}")
        except GitschedError:
            yield name, None
            continue
        resources = (one for one in list_objects(listed.get("resources")) if "/" not in str(one.get("name")))
        yield name, _select_kinds(resource.get("kind") for resource in resources)


def _join(group: object, version: object) -> str:
    """Return a group and version as apiVersion has them; "" for names that Kubernetes does not have."""
    if not (isinstance(version, str) and _VERSION.fullmatch(version)):
        return ""
    if group == "":
        return version
    return f"{group}/{version}" if isinstance(group, str) and _GROUP.fullmatch(group) else ""


def _select_kinds(kinds: Iterator[object]) -> tuple[str, ...]:
    return tuple(sorted({kind for kind in kinds if isinstance(kind, str) and _KIND.fullmatch(kind)}))
