"""The Applications that an ApplicationSet makes. Source: argoproj/argo-cd/applicationset/generators and applicationset/utils.

Values that only the hub knows stay in the text as `{{name}}`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gitsched.build.commit_files import CommitFiles, list_directories
from gitsched.manifests.glob import matches_glob, parse_glob
from gitsched.manifests.kustomization import parse_values
from gitsched.model.document import Body, as_object, get_field, list_objects, read_labels
from gitsched.model.labels import parse_selector

APPLICATION_SET = "ApplicationSet"
CLUSTER_LABEL = ("argocd.argoproj.io/secret-type", "cluster")
"""The label of Secrets that describe the clusters of Argo CD."""
MAX_APPLICATIONS = 1_000
"""Applications of one ApplicationSet."""

_EXPRESSION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_FIELD = re.compile(r"\.?([\w/.-]+(?:\[\d+\])?)")
_INDEX = re.compile(r'index\s+\.?([\w.]+)\s+(?:"([^"]+)"|(\d+))')
_UNSAFE = re.compile(r"[^a-z0-9.-]+")

Parameters = Mapping[str, Any]


class GeneratorInput(NamedTuple):
    """What generators read: the files of the repository, the Secrets of clusters, and whether a URL is that of the repository."""

    commit: CommitFiles
    clusters: tuple[Body, ...]
    is_own_url: Callable[[str], bool]


UNKNOWN_PATCH = "{{templatePatch}}"
"""An option of a source that a template patch may change in a way that is not known."""


def list_applications(body: Body, source: GeneratorInput) -> list[Body]:
    """Return the Applications of an ApplicationSet, with `{{name}}` where a value is not known; at most one more than the limit."""
    spec = as_object(body.get("spec"))
    found: list[Body] = []
    for generator in list_objects(spec.get("generators")):
        for parameters in _generate(generator, source, 0):
            template = _merge(as_object(spec.get("template")), _find_template(generator))
            application = _render(template, parameters)
            namespace = get_field(body, "metadata", "namespace")
            metadata = {"namespace": namespace, **as_object(application.get("metadata"))}
            known = {"apiVersion": body.get("apiVersion"), "kind": "Application", **application, "metadata": metadata}
            if spec.get("templatePatch"):
                known = _apply_patch(known, _render(str(spec["templatePatch"]), parameters))
            if known not in found:
                found.append(known)
            if len(found) > MAX_APPLICATIONS:
                return found
    return found


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


def _generate(generator: Body, source: GeneratorInput, depth: int) -> list[Parameters]:
    """Return the parameters that a generator gives; one unknown set for a generator that asks other servers."""
    found: list[Parameters] = []
    for kind, body in generator.items():
        if kind == "selector" or not isinstance(body, dict):
            continue
        values = as_object(body.get("values"))
        if kind == "list":
            elements = [*list_objects(body.get("elements")), *_parse_elements(body.get("elementsYaml"))]
            found += [_flatten(entry) | {"element": entry} for entry in elements]
        elif kind == "git":
            found += [entry | _read_values(values, entry) for entry in _read_git(body, source)]
        elif kind == "clusters":
            found += [entry | _read_values(values, entry) for entry in _read_clusters(body, source)]
        elif kind in ("matrix", "merge") and depth < 2:
            generators = list_objects(body.get("generators"))
            if kind == "matrix":
                found += _combine(generators, source, depth)
            else:
                found += _join([_generate(entry, source, depth + 1) for entry in generators], body.get("mergeKeys"))
        else:
            found.append(_read_values(values, {}))
    selector = generator.get("selector")
    parsed = parse_selector(selector) if isinstance(selector, dict) else None
    return [entry for entry in found if parsed is None or parsed.matches({k: str(v) for k, v in entry.items()})]


def _combine(generators: list[Body], source: GeneratorInput, depth: int) -> Sequence[Parameters]:
    """Return the combinations of a matrix. Later generators may have expressions with the parameters of earlier ones."""
    rows: Sequence[Parameters] = [{}]
    for generator in generators:
        rows = [
            {**row, **entry}
            for row in rows
            for entry in _generate(_render(generator, row) if row else generator, source, depth + 1)
        ][: MAX_APPLICATIONS + 1]
    return rows


def _parse_elements(text: Any) -> list[Body]:
    """Return the elements of a list generator that are written as text; one unknown element for expressions."""
    if not isinstance(text, str) or not text.strip():
        return []
    if "{{" in text:
        return [{}]
    return [entry for value in parse_values(text.encode()) for entry in list_objects(value)]


def _join(inner: list[list[Parameters]], keys: Any) -> Sequence[Parameters]:
    """Return the parameters of the first generator, each with those of the others that have the same values of the keys."""
    if not inner:
        return []
    names = [str(name) for name in keys] if isinstance(keys, list) else []
    joined = [dict(entry) for entry in inner[0]]
    for others in inner[1:]:
        for other in others:
            for entry in joined:
                if all(entry.get(name) == other.get(name) for name in names):
                    entry.update(other)
    return joined


def _read_git(body: Body, source: GeneratorInput) -> Iterator[dict[str, Any]]:
    if not source.is_own_url(str(body.get("repoURL") or "")):
        yield {}
        return
    prefix = f"{body['pathParamPrefix']}." if body.get("pathParamPrefix") else ""
    if body.get("files"):
        patterns = [str(entry.get("path") or "") for entry in list_objects(body.get("files"))]
        for path in _select(patterns, (), sorted(source.commit.entries)):
            described = _describe_path(posixpath.dirname(path) or ".", posixpath.basename(path), prefix)
            for value in parse_values(source.commit.read_blob(source.commit.entries[path][0])):
                yield from (_flatten(entry) | described for entry in ([value] if isinstance(value, dict) else list_objects(value)))
        return
    entries = list_objects(body.get("directories"))
    included = [str(entry.get("path") or "") for entry in entries if entry.get("exclude") is not True]
    excluded = [str(entry.get("path") or "") for entry in entries if entry.get("exclude") is True]
    for path in _select(included, excluded, sorted(list_directories(source.commit.entries) - {"."})):
        if not any(part.startswith(".") for part in path.split("/")):
            yield _describe_path(path, "", prefix)


def _select(included: Iterable[str], excluded: Iterable[str], paths: list[str]) -> Iterator[str]:
    wanted, others = [_compile(pattern) for pattern in included], [_compile(pattern) for pattern in excluded]
    for path in paths:
        if any(match(path) for match in wanted) and not any(match(path) for match in others):
            yield path


def _compile(pattern: str) -> Callable[[str], bool]:
    """Return a test for a path; `*` stands for any part of one name, `**` for any directories."""
    parts = [part for part in pattern.strip("/").split("/") if part not in ("", ".")]

    def matches(path: str, at: int = 0, names: list[str] | None = None) -> bool:
        rest = path.split("/") if names is None else names
        if at == len(parts):
            return not rest
        if parts[at] == "**":
            return any(matches(path, at + 1, rest[count:]) for count in range(len(rest) + 1))
        tokens = parse_glob(parts[at])
        return bool(rest) and tokens is not None and matches_glob(tokens, rest[0]) and matches(path, at + 1, rest[1:])

    return matches if parts.count("**") <= 3 else lambda _: False


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


def _read_values(values: Body, parameters: Parameters) -> dict[str, Any]:
    return {f"values.{name}": _render(value, parameters) for name, value in values.items()}


def _flatten(body: Body, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in body.items():
        found[f"{prefix}{name}"] = value
        if isinstance(value, dict):
            found |= _flatten(value, f"{prefix}{name}.")
    return found


def _normalize(name: str) -> str:
    return _UNSAFE.sub("-", name.lower()).strip("-.")


def _render(value: Any, parameters: Parameters) -> Any:
    if isinstance(value, dict):
        return {_render(name, parameters): _render(inner, parameters) for name, inner in value.items()}
    if isinstance(value, list):
        return [_render(inner, parameters) for inner in value]
    return _EXPRESSION.sub(lambda found: _evaluate(found, parameters), value) if isinstance(value, str) and "{{" in value else value


def _evaluate(found: re.Match[str], parameters: Parameters) -> str:
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
