"""Recognize directories of plain YAML, without a kustomization or a chart, of which the user says the cluster."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from typing import Final

from gitsched.layouts.layout import DeployedPath, Findings, LeftOut, Recognition, Target
from gitsched.layouts.repository_files import RepositoryFiles
from gitsched.model.finding import format_count

_BESIDE: Final = (
    "its plain YAML may be for a cluster, as that of a directory beside it: if a cluster gets it, say so with --cluster DIR=NAME, or add a "
    "Bundle"
)


def recognize_plain_directories(files: RepositoryFiles, _known_clusters: Collection[str]) -> Findings:
    """Return the directories of plain YAML that a cluster gets, as the user says; those in one directory are variants of each other."""
    chosen = [directory for directory in sorted(files.clusters) if _is_plain(files, directory)]
    empty = (directory for directory in sorted(files.clusters) if files.find_kind(directory) is None)
    files.notes |= {f"--cluster {one}={files.clusters[one]}: {one} has no kustomization, chart or YAML file": None for one in empty}
    if not chosen:
        return Findings()
    outermost = [directory for directory in chosen if "/" not in directory]
    bundles = {one: posixpath.dirname(one) or (one if len(outermost) == 1 else ".") for one in chosen}
    deployed = tuple(DeployedPath(one, Target((files.clusters[one],)), bundle, "plain") for one, bundle in bundles.items())
    parents = {posixpath.dirname(directory) for directory in chosen} - {""}
    beside = (one for one in sorted(files.directories) if posixpath.dirname(one) in parents and one not in files.clusters)
    text = f"--cluster says the cluster of {format_count(len(chosen), 'directory', 'directories')}, such as {chosen[0]}"
    return Findings(
        (Recognition("plain YAML", text),),
        deployed,
        left_out=tuple(LeftOut(one, _BESIDE) for one in beside if _is_plain(files, one)),
    )


def _is_plain(files: RepositoryFiles, directory: str) -> bool:
    """Return whether a directory has YAML, of which nothing else says how it is deployed."""
    others = (
        *files.kustomizations,
        *files.charts,
        *files.included,
        *(document.path for document in files.documents),
        *(files.clusters.keys() - {directory}),
    )
    return files.find_kind(directory) == "plain" and not any(_is_below(path, directory) for path in others)


def _is_below(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory}/")
