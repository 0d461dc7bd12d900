"""How Argo CD builds a source of an Application. Source: argoproj/argo-cd/reposerver/repository, util/kustomize and util/app/discovery."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gitsched.build.application_sets import UNKNOWN_PATCH
from gitsched.build.chart_files import ChartRequest
from gitsched.build.commit_files import CommitFiles, join_path
from gitsched.build.path_recipe import (
    PathRecipe,
    append_entries,
    describe_unreadable,
    find_kustomization,
    list_strings,
    merge_images,
    parse_mapping,
    read_kustomization_body,
    write_kustomization,
)
from gitsched.manifests.glob import matches_glob, parse_glob
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.document import Body, as_object, as_string_map, get_field, list_objects

APPLICATION = "Application"
SKIPPED_MARK = b"+argocd:skip-file-rendering"
"""A text in files that Argo CD does not read as manifests."""

_MANIFEST = re.compile(r".*\.(?:yaml|yml|json|jsonnet)")
_IMAGE = re.compile(r"(?:(?P<name>[^=]+)=)?(?P<new>[^@:]*(?::\d+/[^@:]*)?)(?::(?P<tag>[^@]*))?(?:@(?P<digest>.+))?")
_OVERRIDES = (".argocd-source.yaml", ".argocd-source-{name}.yaml")
_UNKNOWN_VALUE = "its ApplicationSet takes a value from clusters or servers that this repository does not describe: write the value"

FindReference = Callable[[str], str | None]
"""Return the path in this repository of `$name/...` in the values files of a chart; None if it is in another repository."""


def list_sources(application: Body) -> list[Body]:
    """Return the sources of an Application."""
    spec = as_object(application.get("spec"))
    return list_objects(spec.get("sources")) or list_objects([spec.get("source")])


def make_argo_recipe(application: Body, source: Body, commit: CommitFiles, find_reference: FindReference) -> PathRecipe:
    """Return how Argo CD builds a source of an Application, which is in this repository."""
    directory = posixpath.normpath(str(source.get("path") or ".").strip("/") or ".")
    name = str(get_field(application, "metadata", "name") or "")
    namespace = str(get_field(application, "spec", "destination", "namespace") or "")
    source = _apply_overrides(source, directory, name, commit)
    problem = _UNKNOWN_VALUE if "{{" in namespace else _find_problem(source)
    default = "" if namespace == "default" else namespace
    kustomization = find_kustomization(directory, commit)
    if source.get("helm") or (join_path(directory, "Chart.yaml") in commit.entries and not source.get("kustomize")):
        request = _make_chart_request(source, directory, name, namespace, commit, find_reference)
        problem = problem or (request if isinstance(request, str) else "")
        chart = ChartRequest(directory, name) if isinstance(request, str) else request
        return PathRecipe(directory, "", b"", ("helm",), None, default, problem, chart)
    if source.get("kustomize") or (kustomization and not source.get("directory")):
        content = read_kustomization_body(kustomization, commit)
        problem = problem or (describe_unreadable(kustomization) if content is None else "")
        merged = content or {}
        changes = tuple(_apply_kustomize(as_object(source.get("kustomize")), merged, directory, commit))
        if not kustomization:
            problem = problem or f"{directory} has no kustomization.yaml"
        path = kustomization or join_path(directory, "kustomization.yaml")
        return PathRecipe(directory, path, write_kustomization(merged), changes, None, default, problem)
    files, other = _list_files(as_object(source.get("directory")), directory, commit)
    problem = problem or (f"{other} is Jsonnet, which gitsched does not run: commit what it prints" if other else "")
    listed = write_kustomization({"resources": files})
    return PathRecipe(
        directory, join_path(directory, "kustomization.yaml"), listed, (), None, default, problem, has_resources=bool(files)
    )


def _apply_overrides(source: Body, directory: str, name: str, commit: CommitFiles) -> Body:
    """Return the source after the files beside the manifests that overrule it."""
    merged = source
    for pattern in _OVERRIDES:
        path = join_path(directory, pattern.format(name=name))
        if path in commit.entries:
            merged = _merge(merged, parse_mapping(commit.read_blob(commit.entries[path][0])))
    return merged


def _merge(base: Any, patch: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    kept = {name: value for name, value in base.items() if name not in patch}
    return kept | {name: _merge(base.get(name), value) for name, value in patch.items() if value is not None}


def _find_problem(source: Body) -> str:
    if source.get("plugin"):
        return "it is built by a plugin, which gitsched does not run: commit what it prints"
    values = [source.get("path"), source.get("kustomize"), source.get("directory"), source.get("helm")]
    text = repr([value for value in values if value])
    if UNKNOWN_PATCH in text:
        return "the templatePatch of its ApplicationSet has expressions that gitsched does not evaluate: write it without them"
    if "{{" in text and not source.get("helm"):
        return _UNKNOWN_VALUE
    if "$ARGOCD_" in text or "${ARGOCD_" in text:
        return "it uses the build environment of Argo CD, which gitsched does not know: write the values"
    return ""


def _apply_kustomize(options: Body, merged: dict[str, Any], directory: str, commit: CommitFiles) -> Iterator[str]:
    for field in ("namePrefix", "nameSuffix", "namespace"):
        value = options.get(field)
        if isinstance(value, str) and value:
            merged[field] = value
            yield f"{'targetNamespace' if field == 'namespace' else field} {value}"
    images = list(map(_parse_image, list_strings(options.get("images"))))
    if images:
        merged["images"] = merge_images(merged.get("images"), images)
        yield "images"
    replicas = {str(entry.get("name")): entry for entry in list_objects(options.get("replicas"))}
    if replicas:
        before = [entry for entry in list_objects(merged.get("replicas")) if entry.get("name") not in replicas]
        merged["replicas"] = [*before, *({"name": name, "count": _read_count(entry)} for name, entry in replicas.items())]
        yield "replicas"
    labels = as_string_map(options.get("commonLabels"))
    if labels and options.get("labelWithoutSelector") is True:
        templates = {"includeTemplates": True} if options.get("labelIncludeTemplates") is True else {}
        append_entries(merged, "labels", [{"pairs": labels, **templates}])
    elif labels:
        merged["commonLabels"] = {**as_object(merged.get("commonLabels")), **labels}
    annotations = as_string_map(options.get("commonAnnotations"))
    if annotations:
        merged["commonAnnotations"] = {**as_object(merged.get("commonAnnotations")), **annotations}
    yield from (field for field, values in (("commonLabels", labels), ("commonAnnotations", annotations)) if values)
    patches = list_objects(options.get("patches"))
    append_entries(merged, "patches", patches)
    components = list_strings(options.get("components"))
    if options.get("ignoreMissingComponents") is True:
        components = [name for name in components if resolve_path(directory, name) in commit.directories]
    append_entries(merged, "components", components)
    yield from (field for field, values in (("patches", patches), ("components", components)) if values)


def _read_count(entry: Body) -> Any:
    """Return the number of replicas, which may be a text; kustomize reports any other value."""
    text = str(entry.get("count"))
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else text


def _parse_image(text: str) -> Body:
    """Return an image of a kustomization for `name=new:tag`, `name:tag` or `name@digest`."""
    found = _IMAGE.fullmatch(text)
    if found is None:
        return {"name": text}
    name, new = found["name"] or found["new"], found["new"] if found["name"] else ""
    return {"name": name, "newName": new, "newTag": found["tag"] or "", "digest": found["digest"] or ""}


def _list_files(options: Body, directory: str, commit: CommitFiles) -> tuple[list[str], str]:
    """Return the manifests that Argo CD reads in a directory, and one that is not YAML or JSON, or ""."""
    prefix = "" if directory == "." else f"{directory}/"
    found: list[str] = []
    for path in sorted(commit.entries):
        inside = path[len(prefix) :]
        if not path.startswith(prefix) or ("/" in inside and options.get("recurse") is not True):
            continue
        if not _MANIFEST.fullmatch(inside) or not _is_included(options, inside):
            continue
        if path.endswith(".jsonnet"):
            return [], path
        if SKIPPED_MARK not in commit.read_blob(commit.entries[path][0]):
            found.append(inside)
    return found, ""


def _is_included(options: Body, path: str) -> bool:
    include, exclude = options.get("include"), options.get("exclude")
    if isinstance(exclude, str) and exclude and _matches(exclude, path):
        return False
    return not isinstance(include, str) or not include or _matches(include, path)


def _matches(pattern: str, path: str) -> bool:
    """Return whether a path matches a pattern with alternatives in braces."""
    start, end = pattern.find("{"), pattern.find("}")
    if 0 <= start < end:
        choices = pattern[start + 1 : end].split(",")[:100]
        return any(_matches(pattern[:start] + choice + pattern[end + 1 :], path) for choice in choices)
    tokens = parse_glob(pattern)
    return tokens is not None and matches_glob(tokens, path)


def _make_chart_request(
    source: Body, directory: str, name: str, namespace: str, commit: CommitFiles, find_reference: FindReference
) -> ChartRequest | str:
    """Return the request to render the chart of a source; a text says why that is not possible."""
    helm = as_object(source.get("helm"))
    release = str(helm.get("releaseName") or name)
    files: list[str] = []
    for text in list_strings(helm.get("valueFiles")):
        if "://" in text:
            return f"its values file {text} is on another server: commit it"
        path = (
            find_reference(text)
            if text.startswith("$")
            else resolve_path("." if text.startswith("/") else directory, text.lstrip("/"))
        )
        if path is None:
            return f"its values file {text} is in another repository: commit it here"
        if path in commit.entries or helm.get("ignoreMissingValueFiles") is not True:
            files.append(path)
    if helm.get("fileParameters"):
        return "it has fileParameters, which gitsched does not pass on: write the values"
    own = helm.get("valuesObject")
    values = dict(own) if isinstance(own, dict) else parse_mapping(str(helm.get("values") or "").encode())
    for parameter in list_objects(helm.get("parameters")):
        if not _set_value(values, str(parameter.get("name")), _read_parameter(parameter)):
            return f"its parameter {parameter.get('name')} names an entry of a list: write it in values"
    if "{{" in repr([release, values, files]):
        return _UNKNOWN_VALUE
    versions = tuple(list_strings(helm.get("apiVersions")))
    crds = helm.get("skipCrds") is not True
    space = str(helm.get("namespace") or namespace or "default")
    return ChartRequest(directory, release, space, tuple(files), values, str(helm.get("kubeVersion") or ""), versions, crds)


def _read_parameter(parameter: Body) -> Any:
    """Return the value of a parameter as `helm --set` reads it, or `--set-string`."""
    text = str(parameter.get("value") if parameter.get("value") is not None else "")
    if parameter.get("forceString") is True:
        return text
    constants: Mapping[str, Any] = {"true": True, "false": False, "null": None}
    if text in constants:
        return constants[text]
    return int(text) if re.fullmatch(r"-?(?:0|[1-9][0-9]{0,17})", text) else text


def _set_value(values: dict[str, Any], name: str, value: Any) -> bool:
    parts = [part.replace("\\.", ".") for part in re.split(r"(?<!\\)\.", name)]
    if any("[" in part for part in parts):
        return False
    for part in parts[:-1]:
        inner = values.get(part)
        values[part] = dict(inner) if isinstance(inner, dict) else {}
        values = values[part]
    values[parts[-1]] = value
    return True
