"""The Applications that an ApplicationSet makes. Source: argoproj/argo-cd/applicationset/generators and applicationset/utils.

Values that only the hub knows stay in the text as `{{name}}`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from gitsched.build.commit_files import CommitFiles, list_directories
from gitsched.build.generator_steps import Steps, TooManySteps, count_values
from gitsched.manifests.glob import GlobToken, matches_glob, parse_glob
from gitsched.manifests.kustomization import parse_values
from gitsched.model.document import Body, as_object, get_field, list_objects, read_labels
from gitsched.model.labels import parse_selector

APPLICATION_SET = "ApplicationSet"
CLUSTER_LABEL = ("argocd.argoproj.io/secret-type", "cluster")
"""The label of Secrets that describe the clusters of Argo CD."""
MAX_APPLICATIONS = 1_000
"""Applications of one ApplicationSet."""
MAX_STEPS = 1_000_000
"""Values that are read, combined and written for one ApplicationSet."""
MAX_STEPS_OF_ALL = 20_000_000
"""The same for all of a commit; those after it have `MIN_STEPS` each."""
MIN_STEPS = 20_000
MAX_COMBINED = 10
"""Generators of one matrix; Argo CD accepts two."""

_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_FIELD = re.compile(r"\.?([\w/.-]+(?:\[\d+\])?)")
_INDEX = re.compile(r'index\s+\.?([\w.]+)\s+(?:"([^"]+)"|(\d+))')
_UNSAFE = re.compile(r"[^a-z0-9.-]+")

Parameters = Mapping[str, Any]
_Pattern = list[list[GlobToken] | None]
"""The names of a path, each parsed; None is one that is not valid and matches nothing."""
_DIRECTORIES: list[GlobToken] = []
"""Stands for `**`."""


class GeneratorInput:
    """What generators read: the files of the repository, the Secrets of clusters, and whether a URL is that of the repository. `steps` are
    those that the ApplicationSets of a commit have taken."""

    def __init__(self, commit: CommitFiles, clusters: tuple[Body, ...], is_own_url: Callable[[str], bool]) -> None:
        self.commit, self.clusters, self.is_own_url = commit, clusters, is_own_url
        self.steps = 0

    @cached_property
    def files(self) -> list[str]:
        """The paths of all files."""
        return sorted(self.commit.entries)

    @cached_property
    def directories(self) -> list[str]:
        """The paths of all directories but the root."""
        return sorted(list_directories(self.commit.entries) - {"."})


class GeneratedApplications(NamedTuple):
    """The Applications of an ApplicationSet; `is_complete` is False if a limit leaves some out."""

    applications: list[Body]
    is_complete: bool


UNKNOWN_PATCH = "{{templatePatch}}"
"""An option of a source that a template patch may change in a way that is not known."""


def list_applications(body: Body, source: GeneratorInput) -> GeneratedApplications:
    """Return the Applications of an ApplicationSet, with `{{name}}` where a value is not known."""
    steps = Steps(min(MAX_STEPS, max(MIN_STEPS, MAX_STEPS_OF_ALL - source.steps)))
    found: dict[str, Body] = {}
    try:
        for application in _Generation(source, steps).list_applications(body):
            if len(found) == MAX_APPLICATIONS:
                return GeneratedApplications(list(found.values()), is_complete=False)
            found.setdefault(repr(application), application)
    except TooManySteps:
        return GeneratedApplications(list(found.values()), is_complete=False)
    finally:
        source.steps += steps.taken
    return GeneratedApplications(list(found.values()), is_complete=True)


def list_unread_generators(body: Body, source: GeneratorInput) -> list[str]:
    """Describe the generators of an ApplicationSet that read what the repository does not have."""
    found: dict[str, None] = {}
    rest = list_objects(as_object(body.get("spec")).get("generators"))
    for generator in rest:
        for kind, inner in generator.items():
            if kind in ("matrix", "merge") and isinstance(inner, dict):
                rest += list_objects(inner.get("generators"))[: MAX_APPLICATIONS - len(rest)]
            elif kind == "clusters" and not source.clusters:
                found["its generator clusters reads clusters that no Secret here describes"] = None
            elif kind == "git" and not source.is_own_url(str(as_object(inner).get("repoURL") or "")):
                found["its generator git reads another repository"] = None
            elif kind not in ("clusters", "git", "list", "selector", "template"):
                found[f"its generator {kind} reads what only Argo CD has"] = None
    return list(found)


def _apply_patch(application: Body, patch: str) -> Body:
    """Return an Application after the template patch of its ApplicationSet, which is a strategic merge patch: lists are replaced. If it
    has expressions that are not known, so are the options of all sources."""
    if "{{" not in patch:
        values = parse_values(patch.encode())
        if len(values) == 1 and isinstance(values[0], dict):
            project = get_field(application, "spec", "project")
            patched = _remove_nulls(_merge(application, values[0]))
            return {**patched, "spec": {**as_object(patched.get("spec")), "project": project}}
    spec = as_object(application.get("spec"))
    known = {"source": _hide_options(spec["source"])} if isinstance(spec.get("source"), dict) else {}
    several = {"sources": list(map(_hide_options, list_objects(spec["sources"])))} if spec.get("sources") else {}
    return {**application, "spec": {**spec, **known, **several}}


def _hide_options(source: Body) -> Body:
    """Return a source with an option that is not known."""
    if source.get("helm"):
        return {**source, "helm": {**as_object(source["helm"]), "releaseName": UNKNOWN_PATCH}}
    return {**source, "kustomize": {"namePrefix": UNKNOWN_PATCH}}


def _remove_nulls(body: Body) -> Body:
    return {name: _remove_nulls(value) if isinstance(value, dict) else value for name, value in body.items() if value is not None}


def _find_template(generator: Body) -> Body:
    inner = next((value for value in generator.values() if isinstance(value, dict) and "template" in value), {})
    return as_object(inner.get("template"))


def _merge(base: Body, patch: Body) -> dict[str, Any]:
    merged = dict(base)
    for name, value in patch.items():
        inner = merged.get(name)
        merged[name] = _merge(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged


class _Generation:
    """Makes the Applications of one ApplicationSet, one by one, in a limited number of steps."""

    def __init__(self, source: GeneratorInput, steps: Steps) -> None:
        self._source, self._steps = source, steps

    def list_applications(self, body: Body) -> Iterator[Body]:
        spec = as_object(body.get("spec"))
        patch = spec.get("templatePatch")
        for generator in list_objects(spec.get("generators")):
            template = _merge(as_object(spec.get("template")), _find_template(generator))
            size = count_values(template) + (len(str(patch)) if patch else 0)
            for parameters in self._generate(generator, 0):
                self._steps.take(size)
                application = self._render(template, parameters)
                namespace = get_field(body, "metadata", "namespace")
                metadata = {"namespace": namespace, **as_object(application.get("metadata"))}
                known = {"apiVersion": body.get("apiVersion"), "kind": "Application", **application, "metadata": metadata}
                yield _apply_patch(known, self._render(str(patch), parameters)) if patch else known

    def _generate(self, generator: Body, depth: int) -> Iterator[Parameters]:
        """Yield the parameters that a generator gives; one unknown set for a generator that asks other servers."""
        selector = generator.get("selector")
        parsed = parse_selector(selector) if isinstance(selector, dict) else None
        self._steps.take(count_values(generator))
        for kind, body in generator.items():
            if kind == "selector" or not isinstance(body, dict):
                continue
            for entry in self._read_generator(kind, body, depth):
                self._steps.take(1 + len(entry))
                if parsed is None or parsed.matches({name: str(value) for name, value in entry.items()}):
                    yield entry

    def _read_generator(self, kind: str, body: Body, depth: int) -> Iterator[Parameters]:
        values = as_object(body.get("values"))
        if kind == "list":
            for element in chain(list_objects(body.get("elements")), self._parse_elements(body.get("elementsYaml"))):
                yield _flatten(element) | {"element": element}
        elif kind in ("git", "clusters"):
            for entry in self._read_git(body) if kind == "git" else _read_clusters(body, self._source):
                yield entry | self._read_values(values, entry)
        elif kind in ("matrix", "merge") and depth < 2:
            generators = list_objects(body.get("generators"))
            yield from (
                self._combine(generators, depth) if kind == "matrix" else self._join(generators, body.get("mergeKeys"), depth)
            )
        else:
            yield self._read_values(values, {})

    def _combine(self, generators: list[Body], depth: int) -> Iterator[Parameters]:
        """Yield the combinations of a matrix. Later generators may have expressions with the parameters of earlier ones."""
        if len(generators) > MAX_COMBINED:
            raise TooManySteps
        if not generators:
            yield {}
            return
        *first, last = generators
        size = count_values(last)
        for row in self._combine(first, depth):
            self._steps.take(size)
            for entry in self._generate(self._render(last, row) if row else last, depth + 1):
                yield {**row, **entry}

    def _join(self, generators: list[Body], keys: Any, depth: int) -> Iterator[Parameters]:
        """Yield the parameters of the first generator, each with those of the others that have the same values of the keys."""
        names = [str(name) for name in keys] if isinstance(keys, list) else []
        joined: list[dict[str, Any]] = []
        by_keys: dict[str, list[dict[str, Any]]] = {}
        for position, generator in enumerate(generators):
            for entry in self._generate(generator, depth + 1):
                value = repr([entry.get(name) for name in names])
                if position == 0:
                    joined.append(dict(entry))
                    by_keys.setdefault(value, []).append(joined[-1])
                    continue
                for first in by_keys.get(value, ()):
                    self._steps.take(len(entry))
                    first.update(entry)
        yield from joined

    def _parse_elements(self, text: Any) -> Iterator[Body]:
        """Yield the elements of a list generator that are written as text; one unknown element for expressions."""
        if isinstance(text, str) and "{{" in text:
            yield {}
        elif isinstance(text, str) and text.strip():
            self._steps.take(len(text))
            for value in parse_values(text.encode()):
                yield from list_objects(value)

    def _read_git(self, body: Body) -> Iterator[dict[str, Any]]:
        source = self._source
        if not source.is_own_url(str(body.get("repoURL") or "")):
            yield {}
            return
        prefix = f"{body['pathParamPrefix']}." if body.get("pathParamPrefix") else ""
        if body.get("files"):
            patterns = [str(entry.get("path") or "") for entry in list_objects(body.get("files"))]
            for path in self._select(patterns, (), source.files):
                described = _describe_path(posixpath.dirname(path) or ".", posixpath.basename(path), prefix)
                data = source.commit.read_blob(source.commit.entries[path][0])
                self._steps.take(len(data))
                for value in parse_values(data):
                    yield from (
                        _flatten(entry) | described for entry in ([value] if isinstance(value, dict) else list_objects(value))
                    )
            return
        entries = list_objects(body.get("directories"))
        included = [str(entry.get("path") or "") for entry in entries if entry.get("exclude") is not True]
        excluded = [str(entry.get("path") or "") for entry in entries if entry.get("exclude") is True]
        for path in self._select(included, excluded, source.directories):
            if not any(part.startswith(".") for part in path.split("/")):
                yield _describe_path(path, "", prefix)

    def _select(self, included: Iterable[str], excluded: Iterable[str], paths: list[str]) -> Iterator[str]:
        wanted, others = list(map(_parse_pattern, included)), list(map(_parse_pattern, excluded))
        for path in paths:
            names = path.split("/")
            if any(self._matches(pattern, names) for pattern in wanted) and not any(
                self._matches(pattern, names) for pattern in others
            ):
                yield path

    def _matches(self, pattern: _Pattern, names: list[str]) -> bool:
        """Return whether a pattern matches a path; `*` stands for any part of one name, `**` for any directories."""
        reached = {0}  # the positions in the pattern after the names so far
        for name in [*names, None]:
            self._steps.take(1 + len(reached))
            for at in sorted(reached):
                while at < len(pattern) and pattern[at] is _DIRECTORIES:
                    at += 1
                    reached.add(at)
            if name is None:
                break
            reached = {
                at if pattern[at] is _DIRECTORIES else at + 1
                for at in reached
                if at < len(pattern) and (pattern[at] is _DIRECTORIES or self._matches_name(pattern[at], name))
            }
            if not reached:
                return False
        return len(pattern) in reached

    def _matches_name(self, tokens: list[GlobToken] | None, name: str) -> bool:
        if tokens is None:
            return False
        self._steps.take(len(tokens) >> 3)
        return matches_glob(tokens, name)

    def _read_values(self, values: Body, parameters: Parameters) -> dict[str, Any]:
        return {f"values.{name}": self._render(value, parameters) for name, value in values.items()}

    def _render(self, value: Any, parameters: Parameters) -> Any:
        if isinstance(value, dict):
            return {self._render(name, parameters): self._render(inner, parameters) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._render(inner, parameters) for inner in value]
        if not isinstance(value, str) or "{{" not in value:
            return value
        return _EXPRESSION.sub(lambda found: self._evaluate(found, parameters), value)

    def _evaluate(self, found: re.Match[str], parameters: Parameters) -> str:
        """Return the value of an expression, or the expression itself if it is not known."""
        text = _find_value(found, parameters)
        self._steps.take(1 + (len(text) >> 6))
        return text


def _describe_path(path: str, filename: str, prefix: str) -> dict[str, Any]:
    segments = path.split("/")
    names: dict[str, Any] = {
        "path": path,
        "path.path": path,
        "path.basename": segments[-1],
        "path.basenameNormalized": _normalize(segments[-1]),
        "path.filename": filename,
        "path.filenameNormalized": _normalize(filename),
        "path.segments": segments,
    }
    names |= {f"path[{index}]": segment for index, segment in enumerate(segments)}
    return {f"{prefix}{name}": value for name, value in names.items()}


def _read_clusters(body: Body, source: GeneratorInput) -> Iterator[dict[str, Any]]:
    """Yield the parameters of the clusters that the commit describes; one unknown cluster if it has none, as they are on the hub."""
    selector = body.get("selector")
    parsed = parse_selector(selector) if isinstance(selector, dict) else None
    if not source.clusters:
        yield {}
    for secret in source.clusters:
        labels = read_labels(secret)
        data = as_object(secret.get("stringData"))
        name = str(data.get("name") or get_field(secret, "metadata", "name") or "")
        if parsed is None or parsed.matches(labels):
            metadata = {f"metadata.labels.{key}": value for key, value in labels.items()}
            yield {"name": name, "nameNormalized": _normalize(name), "server": str(data.get("server") or "{{server}}"), **metadata}


def _parse_pattern(pattern: str) -> _Pattern:
    parts = [part for part in pattern.strip("/").split("/") if part not in ("", ".")]
    return [_DIRECTORIES if part == "**" else parse_glob(part) for part in parts]


def _flatten(body: Body, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in body.items():
        found[f"{prefix}{name}"] = value
        if isinstance(value, dict):
            found |= _flatten(value, f"{prefix}{name}.")
    return found


def _normalize(name: str) -> str:
    return _UNSAFE.sub("-", name.lower()).strip("-.")


def _find_value(found: re.Match[str], parameters: Parameters) -> str:
    """Return the value of an expression, or the expression itself if it is not known."""
    text = found[1]
    index = _INDEX.fullmatch(text)
    if index is not None:
        holder = parameters.get(index[1])
        if isinstance(holder, list) and index[3] and int(index[3]) < len(holder):
            return str(holder[int(index[3])])
        return _format(parameters.get(f"{index[1]}.{index[2]}"), found[0])
    field = _FIELD.fullmatch(text)
    return _format(parameters.get(field[1]), found[0]) if field is not None else found[0]


def _format(value: Any, unknown: str) -> str:
    if value is None or isinstance(value, (dict, list)):
        return unknown
    return str(value).lower() if isinstance(value, bool) else str(value)
