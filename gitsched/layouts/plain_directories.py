"""Recognize directories of plain YAML, without a kustomization or a chart, that are for clusters: as the user says, or because they define
the same objects differently."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from typing import Final

from gitsched.layouts.cluster_directories import separate_clusters
from gitsched.layouts.layout import DeployedPath, Findings, LeftOut, Recognition, Target
from gitsched.layouts.overlay_names import CONTAINERS, ENVIRONMENTS, is_base, is_unused, names_cluster, names_place
from gitsched.layouts.repository_files import MANIFEST_SUFFIXES, DeliveryDocument, RepositoryFiles, is_below, parse_documents
from gitsched.model.finding import format_count

_BESIDE: Final = (
    "its plain YAML may be for a cluster, as that of a directory beside it: if a cluster gets it, say so with --cluster DIR=NAME, or add a "
    "Bundle"
)


def recognize_plain_directories(files: RepositoryFiles, _known_clusters: Collection[str]) -> Findings:
    """Return the directories of plain YAML that a cluster gets; those in one directory are variants of each other."""
    chosen, text = _choose_directories(files)
    if not chosen:
        return Findings()
    outermost = [directory for directory in chosen if "/" not in directory]
    bundles = {one: posixpath.dirname(one) or (one if len(outermost) == 1 else ".") for one in chosen}
    deployed = tuple(DeployedPath(one, Target((chosen[one],)), bundle, "plain") for one, bundle in bundles.items())
    parents = {posixpath.dirname(directory) for directory in chosen} - {""}
    beside = (one for one in sorted(files.directories) if posixpath.dirname(one) in parents and one not in chosen)
    return Findings(
        (Recognition("plain YAML", text),),
        deployed,
        {} if files.clusters else dict.fromkeys(chosen.values(), ""),
        left_out=tuple(LeftOut(one, _BESIDE) for one in beside if _is_plain(files, one)),
    )


def _choose_directories(files: RepositoryFiles) -> tuple[dict[str, str], str]:
    """Return the directories of clusters, with their names, and what says so: the user, or else their objects."""
    if not files.clusters:
        found = _separate_clusters(files)
        return (
            found,
            f"{len(found)} directories beside each other, such as {next(iter(found), '')}, define the same objects differently",
        )
    empty = (directory for directory in sorted(files.clusters) if files.find_kind(directory) is None)
    files.notes |= {f"--cluster {one}={files.clusters[one]}: {one} has no kustomization, chart or YAML file": None for one in empty}
    chosen = {directory: files.clusters[directory] for directory in sorted(files.clusters) if _is_plain(files, directory)}
    count = format_count(len(chosen), "directory", "directories")
    return chosen, f"--cluster says the cluster of {count}, such as {next(iter(chosen), '')}"


def _separate_clusters(files: RepositoryFiles) -> dict[str, str]:
    """Return the directories of clusters, with their names, where directories of plain YAML define the same objects differently: those in a
    directory such as `clusters`, or with the names of places or environments."""
    if files.documents or files.templates:
        return {}  # delivery tools say what goes where
    found = separate_clusters(list(_list_documents(files)))
    parents = {posixpath.dirname(one) for one in found if one != "."}
    if not parents:
        return {}
    beside = {one: posixpath.basename(one) for one in sorted(files.directories - {"."}) if posixpath.dirname(one) in parents}
    named = {one: name for one, name in beside.items() if _may_be_cluster(one) and _is_plain(files, one)}
    return named if found.keys() <= named.keys() and len(set(named.values())) == len(named) else {}


def _list_documents(files: RepositoryFiles) -> Iterator[DeliveryDocument]:
    """Yield the documents of files that no kustomization or chart has."""
    manifests = [path for path in files.files if path.endswith(MANIFEST_SUFFIXES)]
    plain = {one for one in {posixpath.dirname(path) or "." for path in manifests} if _is_plain(files, one)}
    for path in manifests:
        if (posixpath.dirname(path) or ".") in plain:
            yield from parse_documents(path, files.files[path])


def _may_be_cluster(directory: str) -> bool:
    """Return whether a directory is named like one of a cluster."""
    parent, _, name = directory.rpartition("/")
    is_named = posixpath.basename(parent) in CONTAINERS or names_place(name) or name in ENVIRONMENTS
    return is_named and names_cluster(name) and not is_base(name) and not is_unused(name)


def _is_plain(files: RepositoryFiles, directory: str) -> bool:
    """Return whether a directory has YAML, of which nothing else says how it is deployed."""
    if files.find_kind(directory) != "plain":
        return False
    others = (
        *files.kustomizations,
        *files.charts,
        *files.included,
        *(document.path for document in files.documents),
        *(files.clusters.keys() - {directory}),
    )
    return not any(is_below(path, directory) for path in others)
