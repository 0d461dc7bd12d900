"""The files of the commit that the directories of Bundles read: kustomize roots, Helm charts and plain YAML files."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from gitsched.build.chart_files import ChartRequest, resolve_chart
from gitsched.build.closure import resolve_closure
from gitsched.build.commit_files import SYMLINK_MODE
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.model.variants import HelmOptions, VariantFormat, VariantSource
from gitsched.reconcile.commit_tree import CommitTree
from gitsched.reconcile.manifest_paths import is_manifest_path

MAX_FILES = 10_000
"""Files of one directory of plain YAML."""
_REGULAR = 0o100000
"""The bits of a regular file in the mode of an entry."""


class DirectoryRequest(NamedTuple):
    """A directory to build; `helm` is set for a chart."""

    path: str
    helm: HelmOptions | None = None

    @property
    def digest(self) -> str:
        """A text that is equal for equal requests."""
        return json.dumps([self.path, self.helm], sort_keys=True, default=str)


class DirectoryFiles(NamedTuple):
    """The files of the commit that a directory reads. `resources` are those whose documents are built; `inputs` contain no documents of
    their own. `missing` says that the directory is none that can be built, or is ""."""

    format: VariantFormat
    files: Mapping[str, str] = {}
    resources: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()
    missing: str = ""

    def make_source(self, commit: CommitTree, helm: HelmOptions | None) -> VariantSource:
        """Return what a delivery tool needs to build the directory."""
        links = frozenset(path for path in self.files if commit.entries.get(path, ("", 0))[1] == SYMLINK_MODE)
        return VariantSource(self.format, frozenset(self.files), links, helm)

    @property
    def digest(self) -> str:
        """A digest of the paths and contents of all files."""
        rows = (f"{blob} {path}" for path, blob in sorted(self.files.items()))
        return sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


class PrintedDocument(NamedTuple):
    """A file of documents as helm prints it, or of the commit, which has its `blob` then."""

    text: bytes
    path: str
    blob: str = ""


def list_directory_files(request: DirectoryRequest, commit: CommitTree) -> DirectoryFiles:
    """Return the files that a directory reads, without building it."""
    path, prefix = request.path, _make_prefix(request.path)
    if path not in commit.directories:
        reason = f"{path} is a file: name a directory" if path in commit.entries else f"{path} does not exist in this commit"
        return DirectoryFiles("helm" if request.helm is not None else "yaml", missing=reason)
    if request.helm is not None:
        chart = resolve_chart(make_chart_request(request), commit)
        inputs = frozenset((*chart.files, *(entry for entry in commit.entries if entry.startswith(prefix))))
        return DirectoryFiles("helm", chart.files, frozenset(), inputs)
    if any(f"{prefix}{name}" in commit.entries for name in KUSTOMIZATION_NAMES):
        closure = resolve_closure(path, commit)
        return DirectoryFiles("kustomize", closure.files, closure.resources)
    return _list_plain_files(path, prefix, commit)


def make_chart_request(request: DirectoryRequest) -> ChartRequest:
    """Return the request to render a chart."""
    helm = request.helm or HelmOptions()
    return ChartRequest(request.path, helm.release_name, helm.namespace or "default", helm.values_files, helm.values)


def _list_plain_files(path: str, prefix: str, commit: CommitTree) -> DirectoryFiles:
    """List the manifests below a directory without kustomization. One further below would be built in parts, so that it is an error."""
    below = sorted(entry for entry in commit.entries if entry.startswith(prefix))
    inner = next((entry for entry in below if posixpath.basename(entry) in KUSTOMIZATION_NAMES), None)
    if inner is not None:
        return DirectoryFiles(
            "yaml", missing=f"{path} has no kustomization.yaml, but there is {inner}: name the directory of an overlay"
        )
    chart = next((entry for entry in below if posixpath.basename(entry) == "Chart.yaml"), None)
    if chart is not None:
        return DirectoryFiles("yaml", missing=f"{path} has the chart {chart}: name its directory, and set spec.helm")
    regular = (entry for entry in below if is_manifest_path(entry) and commit.entries[entry][1] & 0o170000 == _REGULAR)
    files = {entry: commit.entries[entry][0] for entry in regular}
    if not files or len(files) > MAX_FILES:
        return DirectoryFiles("yaml", missing=f"{path} has {f'more than {MAX_FILES}' if files else 'no'} YAML files")
    return DirectoryFiles("yaml", files, frozenset(files))


def _make_prefix(path: str) -> str:
    return "" if path == "." else f"{path}/"
