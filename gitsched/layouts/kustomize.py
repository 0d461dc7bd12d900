"""Recognize overlays of kustomize: kustomizations that no other one includes, for an environment or a cluster each."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Collection
from typing import Final

from gitsched.layouts.layout import DeployedPath, Findings, LeftOut, Recognition, Target
from gitsched.layouts.overlay_names import (
    ENVIRONMENTS,
    OverlayName,
    find_ambiguous_part,
    find_cluster_names,
    has_container,
    is_base,
    is_version,
    names_place,
    split_path,
)
from gitsched.layouts.repository_files import RepositoryFiles
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.finding import format_count

_AMBIGUOUS: Final = (
    "it may be for an environment, or for tests, as its name is that of both: if it is for a cluster, say so with --cluster DIR=NAME, or "
    "add a Bundle"
)
_UNUSED_BASE: Final = (
    "it is a base that no overlay includes: if it is for a cluster, say so with --cluster DIR=NAME, or add a Bundle"
)
_UNCLEAR: Final = (
    "it may be for a cluster of this name, or for another purpose: if it is for a cluster, say so with --cluster DIR=NAME, or add a "
    "Bundle"
)
_DELIVERY_KINDS: Final = frozenset(("Kustomization", "Application", "ApplicationSet", "AppProject"))
"""Kinds that say what Flux and Argo CD deploy. A HelmRelease or a source is an object that a directory may have."""


def recognize_overlays(files: RepositoryFiles, known_clusters: Collection[str]) -> Findings:
    """Return the kustomizations that no other one includes. Those in directories of environments or clusters are variants; others are a
    bundle of their own. Kustomizations of objects of Flux and Argo CD are left out, and so are overlays of which it is not clear whether
    they are for a cluster."""
    roots, left_out = _list_roots(files)
    names, unclear = _name_roots(files, roots, known_clusters)
    left_out += unclear
    if not any(name.is_variant for name in names.values()):
        return Findings(deployed=tuple(DeployedPath(root, Target(), root) for root in names), left_out=tuple(left_out))
    deployed = tuple(
        DeployedPath(root, Target((name.cluster,) if name.cluster else (), "" if name.cluster else name.environment), name.bundle)
        for root, name in names.items()
    )
    environments = _assign_environments(names.values())
    variants = [root for root, name in names.items() if name.is_variant]
    bundles = {name.bundle for name in names.values() if name.is_variant}
    counts = f"{format_count(len(variants), 'overlay')} of {format_count(len(bundles), 'directory', 'directories')}"
    text = f"{counts}, such as {variants[0]}; no other kustomization includes them"
    return Findings((Recognition("kustomize overlays", text),), deployed, environments, tuple(left_out))


def _name_roots(
    files: RepositoryFiles, roots: list[str], known_clusters: Collection[str]
) -> tuple[dict[str, OverlayName], list[LeftOut]]:
    """Return the names of overlays by their directories, and those that are left out because they may be for a cluster or not."""
    clusters = {*known_clusters, *find_cluster_names(roots)}
    names = {root: _drop_part(root, split_path(root, clusters), clusters) for root in roots}
    names |= _find_siblings(files, [root for root, name in names.items() if not name.is_variant], clusters)
    for root in roots:
        directory, cluster = files.find_cluster(root)
        if cluster:
            names[root] = _name_cluster(root, names[root], directory, cluster)
            clusters.add(cluster)
    unclear = [root for root, name in names.items() if name.cluster not in ("", *clusters) and not is_version(name.cluster)]
    return {root: name for root, name in names.items() if root not in unclear}, [LeftOut(root, _UNCLEAR) for root in unclear]


def _drop_part(root: str, name: OverlayName, clusters: Collection[str]) -> OverlayName:
    """Return the name of an overlay. What an environment has, such as production/web, is a part of the bundle unless it is a cluster."""
    if name.cluster in ("", *clusters) or not name.environment or has_container(root) or names_place(name.cluster):
        return name
    return OverlayName("/".join(part for part in root.split("/") if part not in ENVIRONMENTS), name.environment)


def _name_cluster(root: str, name: OverlayName, directory: str, cluster: str) -> OverlayName:
    """Return the name of an overlay in a directory of which the user says the cluster."""
    inside = posixpath.normpath(posixpath.join(posixpath.dirname(directory), root[len(directory) + 1 :]))
    return name._replace(bundle=name.bundle if name.is_variant else inside, cluster=cluster)


def _list_roots(files: RepositoryFiles) -> tuple[list[str], list[LeftOut]]:
    delivery = {document.path for document in files.documents if document.kind in _DELIVERY_KINDS}
    roots, left_out = [], []
    for directory, (_, kustomization) in sorted(files.kustomizations.items()):
        if directory in files.included or kustomization.is_component or not (kustomization.references or kustomization.charts):
            continue
        _, reached = files.list_reached(directory)
        if reached & delivery:
            left_out.append(LeftOut(directory, "objects of Flux or Argo CD say what is deployed there"))
        elif files.find_cluster(directory)[1]:
            roots.append(directory)
        elif is_base(directory):
            left_out.append(LeftOut(directory, _UNUSED_BASE))
        elif find_ambiguous_part(directory, files.directories):
            left_out.append(LeftOut(directory, _AMBIGUOUS))
        else:
            roots.append(directory)
    return roots, left_out


def _find_siblings(files: RepositoryFiles, roots: list[str], clusters: set[str]) -> dict[str, OverlayName]:
    """Return the roots in one directory that include the same base and are named like clusters, which are added to `clusters`."""
    groups: dict[tuple[str, str], list[str]] = {}
    for root in roots:
        parent = posixpath.dirname(root)
        for reference in files.kustomizations[root][1].references:
            target = resolve_path(root, reference.path)
            if reference.role == "resource" and target in files.kustomizations and not f"{target}/".startswith(f"{root}/"):
                groups.setdefault((parent, target), []).append(root)
    found = {
        root: OverlayName(parent or ".", cluster=posixpath.basename(root))
        for (parent, _), siblings in groups.items()
        if len(siblings) > 1
        for root in siblings
        if posixpath.basename(root) in clusters or names_place(posixpath.basename(root))
    }
    clusters |= {name.cluster for name in found.values()}
    return found


def _assign_environments(names: Collection[OverlayName]) -> dict[str, str]:
    """Return the clusters that paths name, each with the environment that most of its paths have."""
    counts: dict[str, Counter[str]] = {}
    for name in names:
        if name.cluster:
            counts.setdefault(name.cluster, Counter())[name.environment] += 1
    return {
        cluster: max(sorted(found), key=lambda environment: (bool(environment), found[environment]))
        for cluster, found in sorted(counts.items())
    }
