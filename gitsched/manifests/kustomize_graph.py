"""Which kustomizations build each file of a commit, through bases, overlays and components, and which of them change an object of it."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Container, Iterator, Mapping
from functools import lru_cache
from typing import Any

from gitsched.manifests.kustomize import Kustomization, KustomizeChange, KustomizeReference
from gitsched.model.document import Body, is_namespaced
from gitsched.model.finding import format_names
from gitsched.named_tuples import NamedTuple

MAX_VISITS = 2_000_000
"""Pairs of a directory and a kustomization above it that are visited for one commit. Beyond it, objects count as changed."""


PatchTargets = Callable[[str, str], tuple[str, ...] | None]
"""Return the selectors of the objects that a patch file names, given the path of the kustomization and that of the patch as written; None
if it cannot be read."""


class SourceObject(NamedTuple):
    """An object as a file has it, before a kustomization changes it."""

    group: str
    kind: str
    namespace: str
    name: str
    body: Body


class AppliedChange(NamedTuple):
    """A change that the kustomization at `path` makes to an object."""

    path: str
    change: KustomizeChange


class ReferenceProblem(NamedTuple):
    """A reference that leads out of the repository (`escape`), or that closes a `cycle`. `path` is that of the kustomization."""

    kind: str
    path: str
    reference: KustomizeReference


class KustomizeGraph:
    """The kustomizations of a commit by directory, as (path, kustomization).

    `files` are the paths of all files of the commit. `inputs` are files that kustomizations read and that are no objects, unless another
    one has them as a resource. `resources` maps a file to the directories of the kustomizations that list it.
    """

    def __init__(self, kustomizations: Mapping[str, tuple[str, Kustomization]], files: Container[str]) -> None:
        self._kustomizations = kustomizations
        self.inputs: dict[str, tuple[str, str]] = {}
        self.resources: dict[str, list[str]] = {}
        self.problems: list[ReferenceProblem] = []
        self._parents: dict[str, list[str]] = {}
        self._components: dict[str, list[str]] = {}
        self._visits = MAX_VISITS
        for directory, (path, kustomization) in kustomizations.items():
            for reference in kustomization.references:
                self._add(directory, path, reference, files)
        for path in self.resources.keys() & self.inputs.keys():
            del self.inputs[path]
        self._effective = {directory: tuple(self._list_effective(directory)) for directory in kustomizations}
        self._always_changed = self._find_always_changed()
        self._applied: dict[str, tuple[AppliedChange, ...] | None] = {}
        self._find_cycles()

    def _add(self, directory: str, path: str, reference: KustomizeReference, files: Container[str]) -> None:
        target = resolve_path(directory, reference.path)
        if target in files and reference.role != "component":
            if reference.role == "resource":
                self.resources.setdefault(target, []).append(directory)
            else:
                self.inputs.setdefault(target, (path, reference.field))
        elif target in self._kustomizations:
            if reference.role == "component":
                self._components.setdefault(directory, []).append(target)
            if reference.role != "input":
                self._parents.setdefault(target, []).append(directory)
        elif target.startswith(("../", "/")) or target == "..":
            self.problems.append(ReferenceProblem("escape", path, reference))

    def _list_effective(self, directory: str) -> Iterator[AppliedChange]:
        """Yield the changes of a kustomization and of its components."""
        seen, rest = {directory}, [directory]
        while rest:
            current = rest.pop()
            path, kustomization = self._kustomizations[current]
            yield from (AppliedChange(path, change) for change in kustomization.changes)
            for component in self._components.get(current, ()):
                self._visits -= 1
                if component not in seen and self._visits > 0:
                    seen.add(component)
                    rest.append(component)

    def _find_always_changed(self) -> frozenset[str]:
        """Return the directories whose objects are all changed, by their kustomization or one above it."""
        rest = [
            directory for directory, changes in self._effective.items() if any(applied.change.kind == "all" for applied in changes)
        ]
        children: dict[str, list[str]] = {}
        for child, parents in self._parents.items():
            for parent in parents:
                children.setdefault(parent, []).append(child)
        found = set(rest)
        while rest:
            for child in children.get(rest.pop(), ()):
                if child not in found:
                    found.add(child)
                    rest.append(child)
        return frozenset(found)

    def _find_cycles(self) -> None:
        """Record each reference that closes a cycle."""
        state: dict[str, int] = {}
        for start in self._kustomizations:
            stack = [(start, iter(self._parents.get(start, ())))] if start not in state else []
            state.setdefault(start, 1)
            while stack:
                directory, parents = stack[-1]
                for parent in parents:
                    if state.get(parent) == 1:
                        self._add_cycle(parent, directory)
                    elif parent not in state:
                        state[parent] = 1
                        stack.append((parent, iter(self._parents.get(parent, ()))))
                        break
                else:
                    state[directory] = 2
                    stack.pop()

    def _add_cycle(self, directory: str, target: str) -> None:
        path, kustomization = self._kustomizations[directory]
        for reference in kustomization.references:
            if reference.role != "input" and resolve_path(directory, reference.path) == target:
                self.problems.append(ReferenceProblem("cycle", path, reference))
                return

    @property
    def is_exhausted(self) -> bool:
        """Return whether kustomizations include each other more often than are visited, so that each object counts as changed."""
        return self._visits <= 0

    def find_kustomization(self, directory: str) -> Kustomization | None:
        """Return the kustomization in a directory."""
        return self._kustomizations[directory][1] if directory in self._kustomizations else None

    def list_ancestors(self, directories: list[str]) -> Iterator[str]:
        """Yield the given directories and those whose kustomizations include them, the nearest first."""
        seen = dict.fromkeys(directories)
        rest = list(seen)
        for current in rest:
            yield current
            for parent in self._parents.get(current, ()):
                self._visits -= 1
                if parent not in seen and self._visits > 0:
                    seen[parent] = None
                    rest.append(parent)

    def may_change(self, path: str) -> bool:
        """Return whether a kustomization that builds this file makes a change to any of its objects, or may do so once it is edited."""
        directories = self.resources.get(path, ())
        changed = any(directory in self._always_changed or self._list_applied(directory) for directory in directories)
        return changed or (bool(directories) and self.is_exhausted)

    def is_changed(self, path: str, built: SourceObject, patched: PatchTargets) -> bool:
        """Return whether any kustomization changes an object of a file. `patched` returns the objects that a patch file names."""
        directories = self.resources.get(path, ())
        if any(directory in self._always_changed for directory in directories):
            return True
        if self.is_exhausted:
            return True
        matcher = ChangeMatcher(built, patched)
        changed = any(matcher.matches(applied) for directory in directories for applied in self._list_applied(directory))
        return changed or self.is_exhausted

    def list_changes(self, path: str, built: SourceObject, patched: PatchTargets) -> Iterator[AppliedChange]:
        """Yield the changes of all kustomizations to an object of a file, the nearest kustomization first."""
        matcher = ChangeMatcher(built, patched)
        for directory in self.list_ancestors(self.resources.get(path, [])):
            yield from filter(matcher.matches, self._effective[directory])

    def _list_applied(self, directory: str) -> tuple[AppliedChange, ...]:
        """Return the changes of a kustomization and of those above it."""
        found = self._applied.get(directory)
        if found is None:
            changes = (applied for ancestor in self.list_ancestors([directory]) for applied in self._effective[ancestor])
            found = self._applied[directory] = tuple(dict.fromkeys(changes))
        return found


_REFERRING_KINDS = frozenset(("APIService", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"))
"""Cluster-scoped kinds that name a namespace, which kustomize replaces."""


class ChangeMatcher:
    """Says which changes concern one object."""

    def __init__(self, built: SourceObject, patched: PatchTargets) -> None:
        self._built, self._patched = built, patched
        self._strings: frozenset[str] | None = None

    def matches(self, applied: AppliedChange) -> bool:
        """Return whether a change concerns the object; True where it cannot be known."""
        kind, value = applied.change.kind, applied.change.value
        if kind == "name":
            return value == self._built.name
        if kind == "namespace":
            return self._is_moved(value)
        if kind == "image":
            names = (value, f"image={value}") if "/" in value else (f"image={value}",)
            return any(text in names or text.startswith((f"{value}:", f"{value}@")) for text in self._list_strings())
        if kind == "mention":
            strings = self._list_strings()
            return any(value in text for text in strings) if value.startswith("$(") else value in strings
        if kind == "target":
            return self._is_selected(_parse_selector(value))
        if kind == "patch":
            selectors = self._patched(applied.path, value)
            return selectors is None or any(self._is_selected(_parse_selector(selector)) for selector in selectors)
        return True

    def _is_moved(self, namespace: str) -> bool:
        built = self._built
        if (built.group, built.kind) == ("", "Namespace"):
            return built.name != namespace
        if is_namespaced(built.group, built.kind) is False:
            return built.kind in _REFERRING_KINDS
        return built.namespace != namespace

    def _is_selected(self, selector: Mapping[str, str]) -> bool:
        built = self._built
        exact = (("exactName", built.name), ("exactNamespace", built.namespace or selector.get("exactNamespace", "")))
        if any(field in selector and selector[field] != text for field, text in exact):
            return False
        patterns = (("kind", built.kind), ("name", built.name), ("group", built.group), ("namespace", built.namespace or "default"))
        return all(field not in selector or _matches_pattern(selector[field], text) for field, text in patterns)

    def _list_strings(self) -> frozenset[str]:
        """Return the strings of the object, and those of members `image` once more as `image=...`."""
        if self._strings is None:
            found: set[str] = set()
            rest: list[Any] = [self._built.body]
            while rest:
                value = rest.pop()
                if isinstance(value, str):
                    found.add(value)
                elif isinstance(value, dict):
                    rest.extend(value.values())
                    if isinstance(value.get("image"), str):
                        found.add(f"image={value['image']}")
                elif isinstance(value, list):
                    rest.extend(value)
            self._strings = frozenset(found)
        return self._strings


@lru_cache(maxsize=4096)
def _parse_selector(text: str) -> Mapping[str, str]:
    selector: dict[str, str] = json.loads(text)
    return selector


def _matches_pattern(pattern: str, text: str) -> bool:
    """Return whether a regular expression of Go matches the complete text; True for an invalid one."""
    if pattern == text or pattern in (".*", ""):
        return True
    if pattern.replace("-", "").isalnum():
        return False
    import re2  # type: ignore[import-untyped]  # patterns come from the source, so they must not take exponential time

    try:
        return re2.fullmatch(pattern, text) is not None
    except re2.error:
        return True


def resolve_path(directory: str, path: str) -> str:
    """Return the path of a reference from the root of the repository; it begins with `../` or `/` if it leads out of it."""
    return posixpath.normpath(posixpath.join(directory, path)).removeprefix("./")


def describe_changes(changes: list[AppliedChange], limit: int = 3) -> str:
    """Describe changes by kustomization: `apps/prod/kustomization.yaml (namespace shop, images web)`."""
    by_path: dict[str, dict[str, None]] = {}
    for applied in changes:
        by_path.setdefault(applied.path, {})[applied.change.text] = None
    shown = [f"{path} ({', '.join(list(texts)[:4])}{', ...' if len(texts) > 4 else ''})" for path, texts in by_path.items()]
    return format_names(shown, limit)
