"""Find files that had documents in the last run, and that have other content now: this is a mistake more often than a removal."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from gitsched.apis.gitsched.config import FILE
from gitsched.manifests.charts import CHART_FILE
from gitsched.manifests.parsed_file import NOT_YAML
from gitsched.model.finding import Finding, Location
from gitsched.reconcile.cache.caches import SourceFile
from gitsched.reconcile.source_history import SourceHistory
from gitsched.reconcile.source_reader import SourceReader


def has_other_content(file: SourceFile) -> bool:
    """Return whether a file that is not empty has no document, which is no error in itself: as a values file or a JSON patch."""
    return file.file.status == "not-a-resource" and file.file.kustomization is None and file.file.reason != NOT_YAML


def find_lost_documents(files: Mapping[str, SourceFile], reader: SourceReader, history: SourceHistory) -> list[str]:
    """Return the paths of files with other content that had documents in the last run, or whose documents the output branch keeps.

    The settings have findings of their own. A file that a kustomization or a chart reads now as a patch, a values file or a template has
    another purpose, and is left out.
    """
    found = []
    for path in history.list_changed_or_kept([path for path, file in files.items() if path != FILE and has_other_content(file)]):
        for version in history.list_last_versions(path):
            before = reader.read(version.blob, path, version.repository)
            if before.documents:
                found.append(path)
                break
    if not found:
        return []
    inputs = set(_list_inputs(files))
    charts = {posixpath.dirname(path) for path in files if posixpath.basename(path) == CHART_FILE}
    return [path for path in found if path not in inputs and charts.isdisjoint(_list_directories(path))]


def make_lost_finding(path: str, reason: str) -> Finding:
    """Return the error about a file that has no documents any more. `reason` says what its content is."""
    effect = "the documents that it had stay as they were; restore the file, or delete it to remove them"
    if reason == NOT_YAML:
        return Finding("error", "no-longer-yaml", f"{path} is not YAML any more: {effect}", Location(path, 1, 1))
    return Finding("error", "no-longer-manifest", f"{path} has no manifest any more ({reason}): {effect}", Location(path, 1, 1))


def _list_inputs(files: Mapping[str, SourceFile]) -> Iterator[str]:
    """Yield the paths that kustomizations read as anything other than objects."""
    for path, file in files.items():
        for reference in file.file.kustomization.references if file.file.kustomization is not None else ():
            if reference.role == "input":
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), reference.path))


def _list_directories(path: str) -> Iterable[str]:
    """Yield the directories around a file, up to the root."""
    while path:
        path = posixpath.dirname(path)
        yield path
