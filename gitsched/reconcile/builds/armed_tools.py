"""Find the objects of Flux and Argo CD in a source that would delete from clusters what another object takes over."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from gitsched.build import argo_cd
from gitsched.build.commit_files import list_directories
from gitsched.build.flux import KIND as FLUX_KIND
from gitsched.decide.catalog import make_raw_document
from gitsched.manifests.parser import parse_file
from gitsched.model.document import as_object, get_field
from gitsched.model.errors import GitschedError
from gitsched.model.tool_groups import ARGO_GROUP, KUSTOMIZE_GROUP
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.source.unread_entries import REGULAR_FILE_MODES

if TYPE_CHECKING:
    from gitsched.git import Repository
    from gitsched.model.document import Body

MAX_FILES: Final = 20_000
"""Files of a source that are searched."""
_MAX_SIZE: Final = 1 << 20
"""Bytes of one of them."""
_MARKS: Final = (KUSTOMIZE_GROUP.encode(), ARGO_GROUP.encode())
_FINALIZER: Final = "resources-finalizer.argocd.argoproj.io"


class ArmedTool(NamedTuple):
    """An object of a delivery tool that deletes what leaves its source, or everything if it is deleted: its kind and name, and its file."""

    kind: str
    name: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.path})"


def list_armed_tools(repository: Repository, tree: str, own: Collection[str] = ()) -> tuple[ArmedTool, ...]:
    """Return these objects of a tree, by path. Objects with the `own` names deliver the output branch and are left out, as are those
    that deliver objects of tools, such as the Kustomization flux-system, and those that deliver only what comes from elsewhere."""
    bodies = [*_list_bodies(repository, tree)]
    directories = {posixpath.dirname(path) for path, _ in bodies}
    armed = ((tool, body) for path, body in bodies if not _delivers(body, directories) and (tool := _find_armed(path, body)))
    found = [(tool, body) for tool, body in armed if tool.name not in own]
    known = _list_directories(repository, tree) if found else ()
    return tuple(dict.fromkeys(tool for tool, body in found if _may_build(body, known)))


def _list_directories(repository: Repository, tree: str) -> set[str]:
    """Return the directories of a tree, each also from those above it: an artifact may have one of these."""
    directories = list_directories(entry.path for entry in repository.entries(tree))
    return {"/".join(path.split("/")[start:]) for path in directories for start in range(path.count("/") + 1)}


def _may_build(body: Body, directories: Collection[str]) -> bool:
    """Return whether an object may deliver a directory of the repository: it names one of these, or what only its tool knows."""
    spec = as_object(body.get("spec"))
    if get_field(spec, "sourceRef", "kind") == "ExternalArtifact":
        return True
    paths = [spec.get("path") or "."]
    if body.get("kind") != FLUX_KIND:
        sources = argo_cd.list_sources(as_object(spec.get("template")) or body)
        paths = [source.get("path") or "" for source in sources if not source.get("chart")]
    starts = [posixpath.normpath(str(path).lstrip("/") or ".") for path in paths if path]
    return any("{{" in start or start in directories for start in starts)


def _delivers(body: Body, directories: Iterable[str]) -> bool:
    """Return whether an object delivers objects of tools from one of these directories, so that it has to stay until they are gone."""
    path = get_field(body, "spec", "path") or get_field(body, "spec", "source", "path")
    if not isinstance(path, str):
        return False
    start = posixpath.normpath(path.lstrip("/") or ".")
    return any(start in (".", one) or one.startswith(f"{start}/") for one in directories)


def _list_bodies(repository: Repository, tree: str) -> Iterator[tuple[str, Body]]:
    files = (
        entry for entry in repository.entries(tree) if entry.path.endswith((".yaml", ".yml")) and entry.mode in REGULAR_FILE_MODES
    )
    for entry in islice(files, MAX_FILES):
        try:
            data = repository.read_small_blob(entry.blob, _MAX_SIZE)
            if data is not None and any(mark in data for mark in _MARKS):
                yield from ((entry.path, document.body) for document in parse_file(data, path=entry.path, validate=None).documents)
        except GitschedError:
            continue  # the plan reports files that cannot be read


def _find_armed(path: str, body: Body) -> ArmedTool | None:
    document = make_raw_document(body)
    kind = document.group, document.kind
    if kind == (KUSTOMIZE_GROUP, "Kustomization"):
        armed = get_field(body, "spec", "prune") is True and get_field(body, "spec", "suspend") is not True
    elif kind == (ARGO_GROUP, "Application"):
        finalizers = get_field(body, "metadata", "finalizers")
        prunes = get_field(body, "spec", "syncPolicy", "automated", "prune") is True
        armed = prunes or (isinstance(finalizers, list) and any(str(one).startswith(_FINALIZER) for one in finalizers))
    elif kind == (ARGO_GROUP, "ApplicationSet"):
        armed = get_field(body, "spec", "syncPolicy", "preserveResourcesOnDeletion") is not True
    else:
        return None
    return ArmedTool(document.kind, document.name, path) if armed and document.name else None
