"""List the files of the objects of a root by kind and name, so that its build need not say where they come from."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from gitsched.build.closure import Closure
from gitsched.build.object_origins import ObjectSources
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.document import get_field
from gitsched.reconcile.source.commit_tree import CommitTree

MAX_REFERENCES = 100_000
"""References that are followed to find out the namespaces of the objects of one root."""


def list_object_sources(closure: Closure, commit: CommitTree) -> ObjectSources | None:
    """Return the file of each object that a root builds; None if it is not known before the build."""
    if closure.charts or closure.remotes or closure.links:
        return None
    places: dict[tuple[str, str, str], dict[str, str]] = {}
    for path in sorted(closure.resources):
        file = commit.read_file(closure.files[path], path)
        if file.unreadable or not file.documents:
            return None
        for parsed in file.documents:
            body = parsed.body
            identity = str(body.get("apiVersion")), str(body.get("kind")), str(get_field(body, "metadata", "name"))
            places.setdefault(identity, {})[path] = str(get_field(body, "metadata", "namespace") or "")
    sources: dict[tuple[str, ...], str] = {}
    namespaces: Mapping[str, frozenset[str]] | None = None
    for identity, written in places.items():
        if len(written) == 1:
            sources[identity] = next(iter(written))
            continue
        namespaces = _list_namespaces(closure, commit) if namespaces is None else namespaces
        for path, namespace in written.items():
            for name in namespaces.get(path, ()):
                if sources.setdefault((*identity, name or namespace), path) != path:
                    return None
    return sources


def _list_namespaces(closure: Closure, commit: CommitTree) -> Mapping[str, frozenset[str]]:
    """Return the namespaces that kustomizations set for the objects of each file, "" for none; nothing if that is not known.

    The kustomization nearest to the root sets it last. A component sets it for objects of others, too.
    """
    kustomizations: dict[str, Kustomization] = {}
    for path, blob in closure.files.items():
        if posixpath.basename(path) in KUSTOMIZATION_NAMES and path not in closure.resources:
            kustomizations[posixpath.dirname(path) or "."] = commit.read_kustomization(blob, path) or Kustomization()
    found: dict[str, set[str]] = {}
    rest, visited, count = [(closure.root, "")], {(closure.root, "")}, 0
    for directory, outer in rest:
        kustomization = kustomizations.get(directory, Kustomization())
        own = next((change.value for change in kustomization.changes if change.kind == "namespace"), "")
        if own and kustomization.is_component:
            return {}
        count += len(kustomization.references)
        if count > MAX_REFERENCES:
            return {}
        for reference in kustomization.references:
            place = resolve_path(directory, reference.path), outer or own
            if place[0] not in kustomizations:
                found.setdefault(place[0], set()).add(place[1])
            elif reference.role != "input" and place not in visited:
                visited.add(place)
                rest.append(place)
    return {path: frozenset(names) for path, names in found.items()}
