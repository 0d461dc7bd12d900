"""How a delivery tool builds a directory: the kustomization that it builds with, and what it does to each object afterwards."""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from gitsched.build.chart_files import ChartRequest
from gitsched.build.commit_files import CommitFiles, join_path
from gitsched.manifests.kustomization import parse_plugins
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.model.document import Body
from gitsched.named_tuples import NamedTuple

ToolName = Literal["Flux Kustomization", "Argo CD Application", "kustomization"]

_NO_CONTENT = re.compile(rb"\s*(?:#.*|---\s*)?")
"""A line of a YAML file without a value."""
_FIELD = re.compile(r"[A-Za-z][A-Za-z0-9]*")


class ValueSource(NamedTuple):
    """A ConfigMap or Secret with values of variables, in the namespace of the Flux Kustomization that names it."""

    kind: str
    name: str


class Substitution(NamedTuple):
    """The variables of a build: `values` overrule those of `sources`. `always`: substitute even if there is no value at all."""

    values: Mapping[str, str] = {}
    sources: tuple[ValueSource, ...] = ()
    always: bool = False


class PathRecipe(NamedTuple):
    """How a tool builds a directory.

    `kustomization` is the content of the file at `path` with which kustomize builds the directory. `changes` names what the tool changes
    besides the kustomization of the repository, none if nothing. `default_namespace` is that of objects without one. `problem` says why
    gitsched cannot build this, and what to do; "" if it can. A `chart` is rendered in place of a kustomization.
    """

    directory: str
    path: str
    kustomization: bytes
    changes: tuple[str, ...] = ()
    substitution: Substitution | None = None
    default_namespace: str = ""
    problem: str = ""
    chart: ChartRequest | None = None


def find_kustomization(directory: str, commit: CommitFiles) -> str:
    """Return the path of the kustomization of a directory; "" if it has none."""
    paths = (join_path(directory, name) for name in ("kustomization.yaml", "kustomization.yml", "Kustomization"))
    return next((path for path in paths if path in commit.entries), "")


def read_kustomization_body(path: str, commit: CommitFiles) -> dict[str, Any] | None:
    """Return the content of a kustomization, empty if there is none or nothing in it; None if it is not a mapping."""
    return read_mapping(commit.read_blob(commit.entries[path][0]) if path else b"")


def read_mapping(data: bytes) -> dict[str, Any] | None:
    """Return the first document of a YAML file, empty if there is nothing in it; None if it is not a mapping."""
    if all(_NO_CONTENT.fullmatch(line) for line in data.splitlines()):
        return {}
    found = parse_plugins(data)
    return dict(found[0]) if found else None


def describe_unreadable(path: str) -> str:
    """Say that a file is no mapping."""
    return f"{path} is not a mapping in YAML: correct it"


def list_manifests(directory: str, commit: CommitFiles, is_excluded: Callable[[str], bool]) -> list[str]:
    """Return what Flux lists in the kustomization that it generates for a directory without one: its YAML files and those of its
    subdirectories, and in place of a subdirectory with a kustomization the subdirectory. Paths are relative.

    Source: scanManifests of fluxcd/pkg/kustomize.
    """
    prefix = "" if directory == "." else f"{directory}/"
    below = [path for path in commit.entries if path.startswith(prefix)]
    roots = {
        posixpath.dirname(path)
        for path in below
        if posixpath.basename(path) in KUSTOMIZATION_NAMES and (posixpath.dirname(path) or ".") != directory
    }
    found: set[str] = set()
    for path in below:
        root = next((parent for parent in _list_parents(path, prefix) if parent in roots), None)
        if root is not None:
            found.add(root)
        elif path.endswith((".yaml", ".yml")) and not is_excluded(path):
            found.add(path)
    return sorted((path[len(prefix) :] for path in found), key=lambda path: path.split("/"))


def _list_parents(path: str, prefix: str) -> Iterator[str]:
    """Yield the directories of a file below a prefix, the outermost first."""
    position = len(prefix)
    while (position := path.find("/", position) + 1) > 0:
        yield path[: position - 1]


def write_kustomization(body: Mapping[str, Any]) -> bytes:
    """Return a kustomization as YAML with one line a field."""
    lines = (f"{name if _FIELD.fullmatch(name) else json.dumps(name)}: {_write_value(value)}\n" for name, value in body.items())
    return "".join(lines).encode("utf-8", "surrogatepass")


def _write_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def merge_images(images: Any, overrides: Iterable[Body]) -> list[Any]:
    """Return the images of a kustomization after those of a tool: a new tag or digest replaces both."""
    merged = [dict(image) if isinstance(image, dict) else image for image in images] if isinstance(images, list) else []
    for override in overrides:
        known = next((image for image in merged if isinstance(image, dict) and image.get("name") == override.get("name")), None)
        if known is None:
            merged.append({name: value for name, value in override.items() if value})
            continue
        if override.get("newName"):
            known["newName"] = override["newName"]
        if override.get("newTag") or override.get("digest"):
            for name in ("newTag", "digest"):
                known.pop(name, None)
            known.update({name: override[name] for name in ("newTag", "digest") if override.get(name)})
    return merged


def append_entries(body: dict[str, Any], field: str, entries: Iterable[Any]) -> None:
    """Append entries to a list of a kustomization; without entries nothing changes."""
    added = list(entries)
    if added:
        before = body.get(field)
        body[field] = [*(before if isinstance(before, list) else []), *added]


def decode_value(text: str) -> str:
    """Return a value of a Secret as text; "" if it is not base64."""
    try:
        return base64.b64decode(text).decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return ""
