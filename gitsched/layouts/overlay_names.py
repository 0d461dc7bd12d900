"""Read the names of directories: which part of a path is the bundle, which the environment, and which the cluster."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from gitsched.named_tuples import NamedTuple

ENVIRONMENTS: Final = frozenset(
    (
        *("dev", "devel", "development", "test", "testing", "qa", "uat", "sandbox", "integration"),
        *("stage", "stg", "staging", "preprod", "pre-production", "canary", "prd", "prod", "production"),
    )
)
"""Names of directories that stand for an environment of several clusters."""

_TESTS: Final = frozenset(("test", "testing", "integration", "sandbox"))
"""Names of environments that are those of directories with tests or trials as well."""

CONTAINERS: Final = frozenset(
    ("overlays", "overlay", "environments", "environment", "envs", "env", "clusters", "cluster", "variants", "rings")
)
"""Names of directories whose directories are variants."""

_SHARED: Final = frozenset(("base", "bases", "common", "shared"))
"""Words in the names of directories that overlays share."""

_UNNAMED: Final = frozenset(("base", "common", "components", "manifests", "kubernetes", "k8s", "deploy", "kustomize"))
"""Names of directories at the top of a repository that say nothing about what is below."""

_PURPOSES: Final = frozenset(
    (
        *_SHARED,
        *_UNNAMED,
        *CONTAINERS,
        *("app", "applications", "apps", "argocd", "config", "configs", "configuration", "controllers", "core", "crds", "default"),
        *("examples", "flux", "flux-system", "infrastructure", "platform", "resources", "services", "system", "test", "tests"),
    )
)
"""Names of directories that say what they have, and not for which cluster."""


_CLUSTER_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,46}[a-z0-9])?")
"""What Karmada accepts as the name of a cluster."""
_PLACE: Final = re.compile(
    r"(?:.*-)?(?:eu|us|uk|ap|apac|emea|amer|asia|africa|america|australia|europe|east|west|north|south|central|region|zone|site|edge)\d*(?:-.*)?"
    r"|(?:[a-z]{2,4}|cluster|region|zone|site|edge)-\d{1,3}[a-z]?"
)
"""Names of regions, and those with a number as clusters have them: eu, us-east-1, fra-1, cluster-2."""
_UNUSED: Final = frozenset(
    ("archive", "archived", "archives", "attic", "deprecated", "disabled", "obsolete", "old", "retired", "unused")
)
"""Names of directories whose content is not in use."""
_VERSION: Final = re.compile(
    r"v?\d+(?:[.-]?(?:x|\d+|alpha|beta|rc)\d*)*|(?:release|stable|version|channel|candidate|fast|latest|eus|preview)(?:-.*\d.*)?|.*-v?\d+[.-](?:x|\d+)"
)
"""Names of versions and of the channels of operators, which overlays may be for as well."""


def is_cluster_name(name: str) -> bool:
    """Return whether a cluster may have a name."""
    return _CLUSTER_NAME.fullmatch(name) is not None


def names_cluster(name: str) -> bool:
    """Return whether the name of a directory may be that of a cluster: others say what the directory has."""
    return name not in _PURPOSES


def is_version(name: str) -> bool:
    """Return whether a name is that of a version or channel."""
    return _VERSION.fullmatch(name) is not None


def names_place(name: str) -> bool:
    """Return whether a name is that of a region, or has a number as names of clusters have, so that it is hardly anything else."""
    return _PLACE.fullmatch(name) is not None


def is_unused(path: str) -> bool:
    """Return whether a directory in a path is named like one whose content is not in use, such as `_archive`."""
    return not _UNUSED.isdisjoint(part.strip("_.") for part in path.lower().split("/"))


class OverlayName(NamedTuple):
    """The parts of a path. `bundle` is the same for all variants; `cluster` and `environment` are "" where the path has none."""

    bundle: str
    environment: str = ""
    cluster: str = ""

    @property
    def is_variant(self) -> bool:
        return bool(self.environment or self.cluster)


def find_ambiguous_part(path: str, directories: Collection[str]) -> str:
    """Return the directory in a path whose name is that of an environment, or says that it has tests: nothing beside it and above it is an
    environment or a container. "" if there is none. `directories` are all of the repository."""
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part not in _TESTS or any(name in CONTAINERS for name in parts[:index]):
            continue
        parent = "".join(f"{name}/" for name in parts[:index])
        if not any(f"{parent}{name}" in directories for name in ENVIRONMENTS - _TESTS):
            return parent + part
    return ""


def is_base(path: str) -> bool:
    """Return whether a path has the name of a directory that overlays share."""
    return any(word in _SHARED for part in path.lower().split("/") for word in part.split("-"))


def split_path(path: str, clusters: Collection[str] = ()) -> OverlayName:
    """Split a path such as apps/web/overlays/production/eu-1 into its bundle, environment and cluster.

    The variant is what follows a directory such as `overlays`, or begins with an environment or a known cluster. In it, a known cluster
    is the cluster, else the last part that is no environment; parts after the cluster belong to the bundle.
    """
    parts = path.split("/")
    start = _find_variant(parts, clusters)
    if start is None:
        return OverlayName(path)
    variant = parts[start + (parts[start] in CONTAINERS) :]
    environment = next((part for part in variant if part in ENVIRONMENTS), "")
    others = [index for index, part in enumerate(variant) if part in clusters or (part not in ENVIRONMENTS and names_cluster(part))]
    known = [index for index in others if variant[index] in clusters]
    position = known[0] if known else others[-1] if others else len(variant)
    cluster = variant[position] if others else ""
    rest = variant[position + 1 :] if others else [part for part in variant if part not in ENVIRONMENTS]
    return OverlayName("/".join([*parts[:start], *rest]) or ".", environment, cluster)


def has_container(path: str) -> bool:
    """Return whether a directory such as `overlays` is in a path."""
    return not CONTAINERS.isdisjoint(path.split("/"))


def _find_variant(parts: list[str], clusters: Collection[str]) -> int | None:
    """Return the position at which the variant begins: the first directory such as `overlays`, else the last environment or the first
    cluster, whichever is earlier."""
    containers = [index for index, part in enumerate(parts) if part in CONTAINERS]
    if containers:
        return containers[0]
    environments = [index for index, part in enumerate(parts) if part in ENVIRONMENTS]
    named = [index for index, part in enumerate(parts) if part in clusters]
    return min([*environments[-1:], *named[:1]], default=None)


def find_cluster_names(paths: Collection[str]) -> set[str]:
    """Return the names of clusters in the paths of overlays: a single part after an environment or a directory such as `overlays`.

    That two readings do not exist shows in its name, in the directory `clusters` above it, or in overlays of several bundles. What several
    environments have is a part of bundles, and so is a part of an overlay, or the name of a bundle.
    """
    found: dict[str, set[str]] = {}
    environments: dict[str, set[str]] = {}
    certain: set[str] = set()
    bundles: set[str] = set()
    for path in paths:
        parts = path.split("/")
        start = _find_variant(parts, ())
        if start is None:
            continue
        bundles.update(parts[:start])
        others = [part for part in parts[start:] if part not in ENVIRONMENTS and names_cluster(part)]
        if len(others) == 1 and path.rpartition("/")[0] not in paths:
            found.setdefault(others[0], set()).add("/".join(parts[:start]))
            environments.setdefault(others[0], set()).update(ENVIRONMENTS.intersection(parts[start:]))
            if parts[start : start + 2] == ["clusters", others[0]] or names_place(others[0]):
                certain.add(others[0])
    return {
        name
        for name, own in found.items()
        if name not in bundles and len(environments[name]) < 2 and (name in certain or len(own - {""}) > 1)
    }


def make_bundle_name(bundle: str, taken: Collection[str]) -> str:
    """Return a name for a bundle: its path with dashes, without a first directory that says nothing, and without
    repetitions."""
    parts = [part for part in bundle.split("/") if part not in (".", "")]
    while len(parts) > 1 and parts[0] in _UNNAMED:
        parts = parts[1:]
    parts = [part for index, part in enumerate(parts) if part not in parts[index - 1 : index]]
    text = "".join(char if char.isascii() and char.isalnum() else "-" for char in "-".join(parts).lower()).strip("-") or "all"
    name = text = text[:58].strip("-")
    number = 2
    while name in taken:
        name, number = f"{text}-{number}", number + 1
    return name
