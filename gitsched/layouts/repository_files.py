"""The files of a repository as far as a layout shows in them: kustomizations, charts, and documents of Flux and Argo CD."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Set
from functools import cached_property

from gitsched.layouts.layout import DirectoryKind
from gitsched.manifests.charts import ChartIndex
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.manifests.parser import parse_file
from gitsched.model.document import Body, as_object, parse_api_group
from gitsched.named_tuples import NamedTuple

MAX_FILES = 50_000
"""Files of a repository that are considered; a repository with more is recognized by the first ones in the order of their paths."""
MAX_VISITS = 500_000
"""References that are followed for one repository."""

_DELIVERY_GROUPS = {
    *("helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io", "source.toolkit.fluxcd.io", "source.extensions.fluxcd.io"),
    "argoproj.io",
}
_MENTIONS_DELIVERY = re.compile(rb"(?:helm|kustomize|source)\.toolkit\.fluxcd\.io|source\.extensions\.fluxcd\.io|argoproj\.io")
NAMES_DIRECTORY = re.compile(
    rb"apiVersion:\s*[\"']?(?:kustomize\.toolkit\.fluxcd\.io/\S+\s+kind:\s*[\"']?Kustomization|argoproj\.io/\S+\s+kind:\s*[\"']?Application)"
)
"""The beginning of a document of Flux or Argo CD that names a directory."""
MANIFEST_SUFFIXES = (".yaml", ".yml", ".json")
CHART = "Chart.yaml"


class DeliveryDocument(NamedTuple):
    """A document of a repository, mostly one of Flux or Argo CD."""

    path: str
    line: int
    group: str
    kind: str
    name: str
    body: Body

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def parse_documents(path: str, data: bytes) -> Iterator[DeliveryDocument]:
    """Yield the documents of a file."""
    for parsed in parse_file(data, path=path, validate=None).documents:
        group, kind = parse_api_group(str(parsed.body.get("apiVersion"))), str(parsed.body.get("kind"))
        name = str(as_object(parsed.body.get("metadata")).get("name"))
        yield DeliveryDocument(path, parsed.line, group, kind, name, parsed.body)


class RepositoryFiles:
    """The files of a repository by path. Files below directories whose name starts with a dot are not considered.

    `clusters` are the directories of which the user says the cluster, with its name. `notes` name the limits that the repository exceeds,
    and such directories that have nothing to deploy.
    """

    def __init__(self, files: Mapping[str, bytes], clusters: Mapping[str, str] | None = None) -> None:
        self.clusters = clusters or {}
        self._visits = MAX_VISITS
        self._reached: dict[str, tuple[set[str], set[str]]] = {}
        self.notes: dict[str, None] = {}
        if len(files) > MAX_FILES:
            self.notes[f"the repository has {len(files):,} manifests: only the first {MAX_FILES:,} by path are considered"] = None
        self.files = {path: files[path] for path in sorted(files)[:MAX_FILES] if "/." not in f"/{path}"}
        self.directories = {"."} | {parent for path in self.files for parent in list_parents(path)}
        self.kustomizations: dict[str, tuple[str, Kustomization]] = {}
        for path in self.files:
            if posixpath.basename(path) in KUSTOMIZATION_NAMES:
                kustomization = parse_file(self.files[path], path=path, validate=None).kustomization
                self.kustomizations[posixpath.dirname(path) or "."] = path, kustomization or Kustomization()

    @cached_property
    def entries(self) -> Mapping[str, tuple[str, int]]:
        """The files as `gitsched.build.commit_files.ReadableFiles`: the path stands for the blob."""
        return {path: (path, 0o100644) for path in self.files}

    def read_blob(self, blob: str, /) -> bytes:
        """Return the content of a file."""
        return self.files[blob]

    @cached_property
    def included(self) -> frozenset[str]:
        """The files and directories that kustomizations include."""
        return frozenset(
            resolve_path(directory, reference.path)
            for directory, (_, kustomization) in self.kustomizations.items()
            for reference in kustomization.references
            if reference.role != "input"
        )

    @cached_property
    def charts(self) -> tuple[str, ...]:
        """The directories of the charts that are not dependencies of another chart."""
        found = {posixpath.dirname(path) or "." for path in self.files if posixpath.basename(path) == CHART}
        inner = {directory for directory in found if any(parent in found for parent in list_parents(directory))}
        return tuple(sorted(found - inner))

    @cached_property
    def documents(self) -> tuple[DeliveryDocument, ...]:
        """The documents of Flux and Argo CD, in the order of their paths, without those of `templates`."""
        return tuple(self._list_documents())

    @cached_property
    def templates(self) -> tuple[str, ...]:
        """The files with documents of Flux or Argo CD that a chart renders with its values."""
        charts = ChartIndex(self.files)
        return tuple(path for path in self._delivery_files if b"{{" in self.files[path] and charts.find_chart(path) is not None)

    @cached_property
    def _delivery_files(self) -> list[str]:
        """The files that mention an API group of Flux or Argo CD."""
        manifests = (path for path in self.files if path.endswith(MANIFEST_SUFFIXES))
        return [
            path
            for path in manifests
            if _MENTIONS_DELIVERY.search(self.files[path]) and posixpath.basename(path) not in KUSTOMIZATION_NAMES
        ]

    def _list_documents(self) -> Iterator[DeliveryDocument]:
        templates = frozenset(self.templates)
        for path in self._delivery_files:
            data = self.files[path]
            if path in templates:
                continue
            yield from (one for one in parse_documents(path, data) if one.group in _DELIVERY_GROUPS)

    def list_documents(self, group: str, kind: str) -> Iterator[DeliveryDocument]:
        """Yield the documents of a kind."""
        return (document for document in self.documents if (document.group, document.kind) == (group, kind))

    def find_cluster(self, path: str) -> tuple[str, str]:
        """Return the directory of a cluster, as the user says it, that a path is or is in, and the name of the cluster; "" if none is."""
        found = max((directory for directory in self.clusters if f"{path}/".startswith(f"{directory}/")), key=len, default="")
        return found, self.clusters.get(found, "")

    def find_kind(self, path: str) -> DirectoryKind | None:
        """Return how a directory is rendered: kustomize, helm or plain; None if it has nothing to render."""
        if path in self.kustomizations:
            return "kustomize"
        if path in self.charts:
            return "helm"
        return "plain" if path in self._with_manifests else None

    @cached_property
    def _with_manifests(self) -> frozenset[str]:
        """The directories with YAML or JSON files in them or below."""
        manifests = [path for path in self.files if path.endswith(MANIFEST_SUFFIXES)]
        return frozenset((".", *(parent for path in manifests for parent in list_parents(path))))

    def list_files(self, directory: str) -> list[str]:
        """Return the files in a directory, without those in directories below it."""
        return self._files_by_directory.get(directory, [])

    @cached_property
    def _files_by_directory(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.files:
            found.setdefault(posixpath.dirname(path) or ".", []).append(path)
        return found

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for directory in sorted(self.directories - {"."}):
            found.setdefault(posixpath.dirname(directory) or ".", []).append(directory)
        return found

    def list_reached(self, start: str) -> tuple[Set[str], Set[str]]:
        """Return the directories and files that a directory builds: through its kustomizations, or, where it has none, all files below it
        as Flux does."""
        if start not in self._reached:
            self._reached[start] = self._follow(start)
        return self._reached[start]

    def _follow(self, start: str) -> tuple[set[str], set[str]]:
        directories, files, rest = {start}, set[str](), [start]
        while rest and self._visits > 0:
            directory = rest.pop()
            self._visits -= 1
            if directory in self.kustomizations:
                for reference in self.kustomizations[directory][1].references:
                    target = resolve_path(directory, reference.path)
                    if reference.role == "resource" and target in self.files:
                        files.add(target)
                    elif reference.role != "input" and target in self.kustomizations and target not in directories:
                        directories.add(target)
                        rest.append(target)
            else:
                files.update(path for path in self.list_files(directory) if path.endswith(MANIFEST_SUFFIXES))
                for child in self._children.get(directory, ()):
                    if child not in directories:
                        directories.add(child)
                        rest.append(child)
        if rest:
            self.notes[f"kustomizations have more than {MAX_VISITS:,} references: the further ones are not followed"] = None
        return directories, files


def normalize_path(path: str) -> str:
    """Return a path as Flux and Argo CD write it, such as ./apps/production/, from the root of the repository."""
    return posixpath.normpath(path.lstrip("/") or ".")


def list_parents(path: str) -> list[str]:
    """Return the directories above a path but for the root, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def is_below(path: str, directory: str) -> bool:
    """Return whether a path is a directory or below it."""
    return f"{path}/".startswith(f"{directory}/")
