"""Find the change that kustomize makes last to an object of a root: the patch or field of the overlay that is nearest to the root."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from functools import cached_property

from gitsched.build.closure import Closure
from gitsched.build.remote_base import REMOTE
from gitsched.decide.catalog import RawDocument
from gitsched.manifests.kustomization import write_identity_selector
from gitsched.manifests.kustomize import KUSTOMIZATION_NAMES, Kustomization
from gitsched.manifests.kustomize_graph import AppliedChange, KustomizeGraph, SourceObject, resolve_path
from gitsched.manifests.parsed_file import ParsedDocument
from gitsched.reconcile.source.commit_tree import CommitTree

_FOR_ALL = ("all", "namespace")
"""Kinds of changes that say little about one object: others count before them."""
_PATCH_FILE = "patch "


class LastChanges:
    """The changes of one root. Those that other repositories make are left out."""

    def __init__(self, closure: Closure, commit: CommitTree) -> None:
        self._closure, self._commit = closure, commit
        self._selectors: dict[str, tuple[tuple[str, int], ...] | None] = {}

    @cached_property
    def _graph(self) -> KustomizeGraph:
        """The kustomizations of this root alone."""
        found: dict[str, tuple[str, Kustomization]] = {}
        for path, blob in self._closure.files.items():
            if posixpath.basename(path) in KUSTOMIZATION_NAMES and path not in self._closure.resources:
                kustomization = self._commit.read_kustomization(blob, path)
                if kustomization is not None:
                    directory = posixpath.dirname(path) or "."
                    found[directory] = (path, self._follow_links(directory, kustomization))
        return KustomizeGraph(found, self._closure.files)

    def _follow_links(self, directory: str, kustomization: Kustomization) -> Kustomization:
        """Return a kustomization whose references pass no symbolic links to directories."""
        if not self._closure.links:
            return kustomization
        targets = (self._closure.follow_links(resolve_path(directory, reference.path)) for reference in kustomization.references)
        paths = zip(kustomization.references, targets, strict=True)
        return kustomization._replace(
            references=tuple(reference._replace(path=posixpath.relpath(target, directory)) for reference, target in paths)
        )

    def find(self, path: str, source: ParsedDocument, built: RawDocument) -> str:
        """Return the file and line of the last change to the object that a file has as `source`; "" if nothing changes it."""
        metadata = source.body["metadata"]
        namespace = metadata.get("namespace")
        names = {(str(metadata["name"]), namespace if isinstance(namespace, str) else ""), (built.name, built.namespace)}
        found: AppliedChange | None = None
        for name, space in sorted(names):
            described = SourceObject(built.group, built.kind, space, name, source.body)
            for applied in self._graph.list_changes(path, described, self._list_patched):
                if not applied.path.startswith(f"{REMOTE}/") and (found is None or self._rank(applied) >= self._rank(found)):
                    found = applied
        return self._locate(found, names) if found is not None else ""

    def _rank(self, applied: AppliedChange) -> tuple[bool, int]:
        """Return a number that grows with the order in which kustomize makes changes: those of the root come last."""
        return applied.change.kind not in _FOR_ALL, -self._depths.get(posixpath.dirname(applied.path) or ".", 0)

    @cached_property
    def _depths(self) -> dict[str, int]:
        """How many kustomizations are between the root and each directory; components count as those that include them."""
        depths = {self._closure.root: 0}
        rest = [self._closure.root]
        for directory in rest:
            for target, own in self._list_included(directory):
                if target not in depths:
                    depths[target] = depths[directory] + own
                    rest.append(target)
        return depths

    def _list_included(self, directory: str) -> Iterator[tuple[str, int]]:
        kustomization = self._graph.find_kustomization(directory)
        for reference in kustomization.references if kustomization is not None else ():
            if reference.role != "input":
                yield resolve_path(directory, reference.path), int(reference.role == "resource")

    def _locate(self, applied: AppliedChange, names: set[tuple[str, str]]) -> str:
        change, directory = applied.change, posixpath.dirname(applied.path)
        name = change.value if change.kind == "patch" else change.text.removeprefix(_PATCH_FILE)
        patch = resolve_path(directory, name)
        if (change.kind == "patch" or change.text.startswith(_PATCH_FILE)) and patch in self._closure.files:
            lines = (line for selector, line in self._read_patch(patch) or () if json.loads(selector)["exactName"] in dict(names))
            return f"{patch}:{next(lines, 1)}"
        return f"{applied.path}:{change.line}"

    def _list_patched(self, kustomization: str, patch: str) -> tuple[str, ...] | None:
        rows = self._read_patch(resolve_path(posixpath.dirname(kustomization), patch))
        return tuple(selector for selector, _ in rows) if rows else None

    def _read_patch(self, path: str) -> tuple[tuple[str, int], ...] | None:
        """Return the selectors of the objects that a patch file names, with the lines of its documents."""
        if path not in self._selectors:
            blob = self._closure.files.get(path)
            name = path if path.endswith(".json") else f"{path}.yaml"
            documents = self._commit.read_file(blob, name).documents if blob else ()
            self._selectors[path] = tuple((write_identity_selector(parsed.body), parsed.line) for parsed in documents) or None
        return self._selectors[path]
