"""The files of the commit that the directories of Bundles read: kustomize roots, Helm charts and plain YAML files."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256

from gitsched.build.chart_files import ChartRequest, resolve_chart
from gitsched.build.closure import Closure
from gitsched.build.commit_files import SYMLINK_MODE
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES
from gitsched.model.variants import HelmOptions, VariantFormat, VariantSource
from gitsched.named_tuples import NamedTuple
from gitsched.reconcile.source.commit_tree import CommitTree, resolve_closures
from gitsched.reconcile.source.source_reader import is_manifest_path
from gitsched.render.bundle_delivery.source_reference import list_directories

MAX_FILES = 10_000
"""Files of one directory of plain YAML."""
_REGULAR = 0o100000
"""The bits of a regular file in the mode of an entry."""


class DirectoryRequest(NamedTuple):
    """A directory to build; `helm` is set for a chart. `tool` identifies what a delivery tool changes, "" for nothing."""

    path: str
    helm: HelmOptions | None = None
    tool: str = ""

    @property
    def digest(self) -> str:
        """A text that is equal for equal requests."""
        return json.dumps([self.path, self.helm, self.tool], sort_keys=True, default=str)


class DirectoryFiles(NamedTuple):
    """The files of the commit that a directory reads. `resources` are those whose documents are built; `inputs` contain no documents of
    their own. `roots` are the kustomizations to build, `plain` the files that are read as they are. `missing` says that the directory is
    none that can be built, or is "", and `is_hidden` that others own it. `charts` are the directories of charts that kustomizations render,
    `outside` the files that kustomizations read from outside of their directories."""

    format: VariantFormat
    files: Mapping[str, str] = {}
    resources: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()
    missing: str = ""
    roots: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    charts: tuple[str, ...] = ()
    outside: frozenset[str] = frozenset()
    is_hidden: bool = False

    @property
    def program(self) -> VariantFormat:
        """The program that builds the directory; "yaml" for none."""
        return "kustomize" if self.roots else "helm" if self.format == "helm" else "yaml"

    def make_source(self, commit: CommitTree, helm: HelmOptions | None, omitted: Iterable[str] = ()) -> VariantSource:
        """Return what a delivery tool needs to build the directory. `omitted` are files with documents that gitsched does not deliver."""
        files = frozenset(path for path in self.files if path in commit.entries)  # without those of other repositories
        links = frozenset(path for path in files if commit.entries[path][1] == SYMLINK_MODE)
        outside, directories = self.outside & files, tuple(list_directories(files))
        return VariantSource(self.format, files, links, helm, self.charts, outside, tuple(sorted(set(omitted))), directories)

    @property
    def digest(self) -> str:
        """A digest of the paths and contents of all files."""
        rows = (f"{blob} {path}" for path, blob in sorted(self.files.items()))
        return sha256("\0".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


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
        is_hidden = commit.is_hidden(path)
        reason = f"{path} belongs to others and is not readable here" if is_hidden else reason
        return DirectoryFiles("helm" if request.helm is not None else "yaml", missing=reason, is_hidden=is_hidden)
    if request.helm is not None:
        chart = resolve_chart(make_chart_request(request), commit)
        values = {
            file for file, blob in chart.files.items() if not file.startswith(prefix) and not _has_objects(file, blob, commit)
        }
        inputs = frozenset((*values, *(entry for entry in commit.entries if entry.startswith(prefix))))
        links = {link: commit.entries[link][0] for link in chart.links if link in commit.entries}
        return DirectoryFiles("helm", {**chart.files, **links}, frozenset(), inputs)
    if any(f"{prefix}{name}" in commit.entries for name in KUSTOMIZATION_NAMES):
        (closure,) = resolve_closures([path], commit)
        return DirectoryFiles(
            "kustomize",
            closure.files,
            closure.resources,
            frozenset(closure.list_chart_files()),
            roots=(path,),
            charts=closure.charts,
            outside=closure.outside,
        )
    return _list_plain_files(path, prefix, commit)


def _has_objects(path: str, blob: str, commit: CommitTree) -> bool:
    """Return whether a values file outside of the chart has an object, which stays one: a Bundle does not remove objects of others."""
    documents = commit.read_file(blob, path).documents
    return any(not document.broken and document.body.get("apiVersion") and document.body.get("kind") for document in documents)


def make_chart_request(request: DirectoryRequest) -> ChartRequest:
    """Return the request to render a chart."""
    helm = request.helm or HelmOptions()
    return ChartRequest(request.path, helm.release_name, helm.namespace or "default", helm.values_files, helm.values)


def _list_plain_files(path: str, prefix: str, commit: CommitTree) -> DirectoryFiles:
    """List the manifests below a directory without a kustomization, and the kustomizations further below, as Flux builds such a directory.

    It is an error if these depend on each other: the directory has a base and its overlays then.
    """
    below = sorted(entry for entry in commit.entries if entry.startswith(prefix))
    roots = _list_inner_roots(below)
    closures = resolve_closures(roots, commit)
    unusable = _explain_unusable(path, below, closures)
    if unusable:
        return DirectoryFiles("yaml", missing=unusable)
    inside = tuple(map(_make_prefix, roots))
    regular = (entry for entry in below if is_manifest_path(entry) and commit.entries[entry][1] & 0o170000 == _REGULAR)
    plain = {entry: commit.entries[entry][0] for entry in regular if not entry.startswith(inside)}
    files = {**plain, **{file: blob for closure in closures for file, blob in closure.files.items()}}
    if not files or len(files) > MAX_FILES:
        return DirectoryFiles("yaml", missing=f"{path} has {f'more than {MAX_FILES}' if files else 'no'} YAML files")
    resources = _unite(closures, lambda closure: closure.resources).union(plain)
    charts = tuple(chart for closure in closures for chart in closure.charts)
    inputs, outside = _unite(closures, Closure.list_chart_files), _unite(closures, lambda closure: closure.outside)
    return DirectoryFiles("yaml", files, resources, inputs, roots=roots, plain=tuple(plain), charts=charts, outside=outside)


def _unite(closures: Iterable[Closure], list_files: Callable[[Closure], Iterable[str]]) -> frozenset[str]:
    return frozenset(file for closure in closures for file in list_files(closure))


def _list_inner_roots(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the directories with a kustomization that are in no other such directory."""
    found = sorted(posixpath.dirname(path) for path in paths if posixpath.basename(path) in KUSTOMIZATION_NAMES)
    roots: list[str] = []
    for directory in dict.fromkeys(found):
        if not any(directory.startswith(f"{root}/") for root in roots):
            roots.append(directory)
    return tuple(roots)


def _explain_unusable(path: str, below: Iterable[str], closures: Sequence[Closure]) -> str:
    """Return why the kustomizations below a directory are not built together; "" if they are."""
    chart = next((entry for entry in below if posixpath.basename(entry) == "Chart.yaml"), None)
    if chart is not None:
        return f"{path} has the chart {chart}: name its directory, and set spec.helm"
    for outer in closures:
        inner = next((one.root for one in closures if one.root != outer.root and _reads(outer, one.root)), None)
        if inner is not None:
            return f"{path} has no kustomization.yaml, and {outer.root} builds on {inner}: name the directory of an overlay"
    return ""


def _reads(closure: Closure, directory: str) -> bool:
    return any(file.startswith(f"{directory}/") for file in closure.files)


def _make_prefix(path: str) -> str:
    return "" if path == "." else f"{path}/"
