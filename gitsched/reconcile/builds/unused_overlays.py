"""Find the overlays that nothing builds, beside others of the same bases that something does."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping
from typing import TYPE_CHECKING

from gitsched.apis.gitsched.config import Config
from gitsched.decide.pod_amounts import runs_pods
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.document import Document, Key, parse_api_group
from gitsched.model.finding import Finding, Location, format_names
from gitsched.report.lines import format_key

if TYPE_CHECKING:
    from gitsched.manifests.kustomize import Kustomization
    from gitsched.model.document import Body
    from gitsched.reconcile.cache.caches import SourceFile

Kustomizations = Mapping[str, tuple[str, "Kustomization"]]
"""Kustomizations by directory, each with its path."""


def find_unused_overlays(
    kustomizations: Kustomizations,
    files: Mapping[str, SourceFile],
    built: Collection[str],
    owners: Mapping[str, tuple[Key, ...]],
    is_used: Container[str],
    config: Config,
) -> Iterator[Finding]:
    """Yield a warning about each overlay that nothing builds, of objects with pods that others build.

    `built` are the files whose objects are built, `owners` the Bundles that read files, and `is_used` contains the directories and the
    kustomizations that something builds or that settings ignore.
    """
    for directory, (path, kustomization) in _list_roots(kustomizations):
        if directory in is_used or path in is_used or kustomization.is_component:
            continue
        read = [file for file in _list_files(directory, kustomizations) if file in built and file in files]
        names = [name for file in read for name in _list_workloads(files[file], config)]
        if names:
            bundles = dict.fromkeys(format_key(key) for file in read for key in owners.get(file, ()))
            yield Finding("warning", "overlay-unused", _describe(directory, names, list(bundles)), Location(path, 1, 1))


def _describe(directory: str, names: list[str], bundles: list[str]) -> str:
    cure = "name it in source.variants or source.kustomize.build"
    if bundles:
        cure = f"add a variant with this path to {format_names(bundles)} (spec.variants)"
    return (
        f"no cluster gets what {directory} builds of {format_names(names)}, because nothing builds this overlay: {cure}, or name the "
        "overlay in source.kustomize.ignore"
    )


def _list_roots(kustomizations: Kustomizations) -> Iterator[tuple[str, tuple[str, Kustomization]]]:
    """Yield the kustomizations that no other one includes."""
    included = {target for directory, (_, one) in kustomizations.items() for target in _list_targets(directory, one)}
    return ((directory, found) for directory, found in kustomizations.items() if directory not in included)


def _list_targets(directory: str, kustomization: Kustomization) -> Iterator[str]:
    """Yield the files and directories whose objects a kustomization builds."""
    return (resolve_path(directory, one.path) for one in kustomization.references if one.role != "input")


def _list_files(directory: str, kustomizations: Kustomizations) -> Iterator[str]:
    """Yield the files whose objects a kustomization and those that it includes build, each once."""
    seen, rest = {directory}, [directory]
    while rest:
        current = rest.pop()
        for target in _list_targets(current, kustomizations[current][1]):
            if target in seen:
                continue
            seen.add(target)
            if target in kustomizations:
                rest.append(target)
            else:
                yield target


def _list_workloads(file: SourceFile, config: Config) -> Iterator[str]:
    """Yield the names of the objects of a file that run pods."""
    return (format_key(key) for parsed in file.file.documents if (key := _find_workload(parsed.body, config)) is not None)


def _find_workload(body: Body, config: Config) -> Key | None:
    """Return the identity of an object that runs pods; None for others."""
    version, metadata = str(body.get("apiVersion") or ""), body.get("metadata")
    entries = metadata if isinstance(metadata, dict) else {}
    key = Key(parse_api_group(version), str(body.get("kind") or ""), str(entries.get("namespace") or ""), str(entries.get("name")))
    return key if runs_pods(Document(key, version, body), config) else None
