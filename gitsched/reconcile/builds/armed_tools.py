"""Find the objects of Flux and Argo CD in a source that would delete from clusters what another object takes over."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from gitsched.decide.catalog import make_raw_document
from gitsched.manifests.parser import parse_file
from gitsched.model.document import get_field
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
    that deliver objects of tools, such as the Kustomization flux-system."""
    bodies = [*_list_bodies(repository, tree)]
    directories = {posixpath.dirname(path) for path, _ in bodies}
    found = (tool for path, body in bodies if not _delivers(body, directories) and (tool := _find_armed(path, body)) is not None)
    return tuple(dict.fromkeys(tool for tool in found if tool.name not in own))


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
