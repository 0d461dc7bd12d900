"""How Argo CD builds a source of an Application. Source: argoproj/argo-cd/reposerver/repository and util/app/discovery."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from typing import Any

from gitsched.apis.built_in_schemas import find_wrong_types
from gitsched.build.application_sets import APPLICATION_KEY, UNKNOWN_PATCH
from gitsched.build.argo_environment import find_commit_variable, read_environment
from gitsched.build.argo_helm import FindReference, make_chart_request
from gitsched.build.argo_kustomize import EditError, edit_kustomization, list_substituted
from gitsched.build.argo_patterns import ManifestPattern
from gitsched.build.chart_files import ChartRequest
from gitsched.build.commit_files import CommitFiles, find_blob, is_outside, join_path
from gitsched.build.go_templates import describe_unknown, find_unknown, hide_marks
from gitsched.build.path_recipe import (
    PathRecipe,
    describe_unreadable,
    find_kustomization,
    read_kustomization_body,
    read_mapping,
    write_kustomization,
)
from gitsched.manifests.kustomization import parse_values
from gitsched.model.document import Body, as_object, get_field, get_text, list_objects

APPLICATION = "Application"
SKIPPED_MARK = b"+argocd:skip-file-rendering"
"""A text in files that Argo CD does not read as manifests."""

_MANIFEST = re.compile(r".*\.(?:yaml|yml|json|jsonnet)")
_OVERRIDES = (".argocd-source.yaml", ".argocd-source-{name}.yaml")
_KEPT = ("chart", "path", "repoURL", "targetRevision")
"""The fields of a source that no file beside its manifests overrules."""
_KINDS = ("kustomize", "helm", "directory", "plugin")
_NO_KIND = frozenset(
    ("forceCommonLabels", "forceCommonAnnotations", "commonAnnotationsEnvsubst", "labelWithoutSelector", "labelIncludeTemplates")
)
"""Options that do not make a source one of kustomize without others."""
_MARKS = (b"apiVersion:", b"kind:", b"metadata:")
"""A file that has all of them and cannot be read is a mistake, not a file about something else."""
_TYPE_FIELDS = frozenset(("apiVersion", "kind"))
"""The fields of a kustomization that say nothing about what it builds."""
_NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


def list_sources(application: Body) -> list[Body]:
    """Return the sources of an Application: what its hydrator renders, else `sources`, else `source`."""
    spec = as_object(application.get("spec"))
    if isinstance(spec.get("sourceHydrator"), dict):
        return list_objects([spec["sourceHydrator"].get("drySource")])
    return list_objects(spec.get("sources")) or list_objects([spec.get("source")])


def read_directory(source: Body) -> str:
    """Return the directory that a source of an Application names; the root if it names none."""
    return posixpath.normpath(get_text(source, "path").strip("/") or ".")


def list_directories(application: Body, url: str) -> list[str]:
    """Return the directories that an Application reads of the repository with a URL."""
    sources = (source for source in list_sources(application) if source.get("repoURL") == url)
    return [read_directory(source) for source in sources if get_text(source, "path")]


def find_reference(sources: Sequence[Body], text: str, is_own: Callable[[str, str], bool]) -> str | None:
    """Return the path of `$name/...` in this repository, where a source of the Application has the name; None in any other.

    `is_own` says of a URL and a directory ("" for none) whether they are of this repository.
    """
    name, _, path = text.removeprefix("$").partition("/")
    url = next((get_text(source, "repoURL") for source in sources if source.get("ref") == name), None)
    if url is None:
        return None
    own = (source for source in sources if get_text(source, "repoURL") == url and get_text(source, "path"))
    known = any(is_own(url, directory) for directory in ("", *map(read_directory, own)))
    return posixpath.normpath(path) if known else None


def make_argo_recipe(application: Body, source: Body, commit: CommitFiles, find_reference: FindReference) -> PathRecipe:
    """Return how Argo CD builds a source of an Application, which is in this repository."""
    directory = read_directory(source)
    name = get_text(application, "metadata", "name")
    namespace = str(get_field(application, "spec", "destination", "namespace") or "")
    source, problem = _apply_overrides(source, directory, name, commit)
    environment = read_environment(application, source)
    default = "" if namespace == "default" else hide_marks(namespace)
    problem = problem or _find_namespace_problem(namespace)
    kinds = [kind for kind in _KINDS if _is_set(kind, source.get(kind))]
    if len(kinds) > 1:
        problem = problem or f"it is of several kinds ({', '.join(kinds)}), and Argo CD applies nothing of it: leave one"
    problem = problem or _find_problem(source)
    kustomization = find_kustomization(directory, commit)
    natural = "kustomize" if kustomization else "helm" if join_path(directory, "Chart.yaml") in commit.entries else "directory"
    kind = kinds[0] if kinds else natural
    if kind == "helm":
        helm = as_object(source.get("helm"))
        request = make_chart_request(helm, directory, name, namespace, commit, find_reference, environment)
        problem = problem or (request if isinstance(request, str) else "")
        if not problem and find_unknown(name) is not None and not helm.get("releaseName"):
            problem = describe_unknown(find_unknown(name) or "")
        chart = ChartRequest(directory, name) if isinstance(request, str) else request
        return PathRecipe(directory, "", b"", ("helm",), None, default, problem, chart)
    if kind == "kustomize":
        content = read_kustomization_body(kustomization, commit)
        problem = problem or (describe_unreadable(kustomization) if content is None else "")
        merged, options = content or {}, as_object(source.get("kustomize"))
        changes: tuple[str, ...] = ()
        try:
            changes = edit_kustomization(options, merged, directory, commit, environment)
        except EditError as error:
            problem = problem or f"{error}: Argo CD applies nothing of it"
        variable = find_commit_variable(list_substituted(options))
        if variable is not None:
            problem = problem or f"it uses {variable}, which changes with each commit: write the value"
        if not kustomization:
            problem = problem or f"{directory} has no kustomization.yaml"
        if merged.keys() <= _TYPE_FIELDS:
            problem = (
                problem or f"{kustomization} is empty, which kustomize refuses: name what it builds, or remove the Application"
            )
        path = kustomization or join_path(directory, "kustomization.yaml")
        return PathRecipe(directory, path, write_kustomization(merged), changes, None, default, problem)
    path = join_path(directory, "kustomization.yaml")
    files, other = _list_files(as_object(source.get("directory")), directory, commit)
    if posixpath.basename(path) in files:
        other = other or f"{path} is an object for Argo CD here, and no cluster has its kind: leave it out with directory.exclude"
    listed = write_kustomization({"resources": files})
    return PathRecipe(directory, path, listed, (), None, default, problem or other)


def _is_set(kind: str, options: Any) -> bool:
    """Return whether the options of a source make it one of a kind; Argo CD removes those that say nothing. Source: IsZero."""
    if not isinstance(options, dict):
        return False
    return kind == "plugin" or any(_has_value(value) for name, value in options.items() if name not in _NO_KIND)


def _has_value(value: Any) -> bool:
    return any(map(_has_value, value.values())) if isinstance(value, dict) else bool(value)


def _find_namespace_problem(namespace: str) -> str:
    unknown = find_unknown(namespace)
    if unknown is not None:
        return describe_unknown(unknown)
    if namespace and not _NAMESPACE.fullmatch(namespace):
        return f"{namespace!r} is not a valid namespace: correct spec.destination.namespace"
    return ""


def _apply_overrides(source: Body, directory: str, name: str, commit: CommitFiles) -> tuple[Body, str]:
    """Return the source after the files beside the manifests that overrule it, and why Argo CD cannot read one, or ""."""
    merged = source
    for pattern in _OVERRIDES:
        path = join_path(directory, pattern.format(name=name))
        blob, _ = find_blob(commit, path)
        if not blob:
            continue
        override = read_mapping(commit.read_blob(blob))
        if override is None:
            return source, describe_unreadable(path)
        merged = _merge(merged, override)
        wrong = next(iter(find_wrong_types(APPLICATION_KEY, {"spec": {"source": merged}})), None)
        if wrong is not None:
            return source, f"{path} changes it to what Argo CD cannot read: {wrong.message}"
    kept = {field: source[field] for field in _KEPT if field in source}
    return {**{field: value for field, value in merged.items() if field not in _KEPT}, **kept}, ""


def _merge(base: Any, patch: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(patch, dict):
        return patch
    kept = {name: value for name, value in base.items() if name not in patch}
    return kept | {name: _merge(base.get(name), value) for name, value in patch.items() if value is not None}


def _find_problem(source: Body) -> str:
    if isinstance(source.get("plugin"), dict):
        return "it is built by a plugin, which gitsched does not run: commit what it prints"
    unknown = find_unknown([source.get(field) for field in ("path", "kustomize", "directory", "helm")])
    if unknown is not None and unknown in UNKNOWN_PATCH:
        return "the templatePatch of its ApplicationSet has expressions that gitsched does not evaluate: write it without them"
    return describe_unknown(unknown) if unknown is not None else ""


def _list_files(options: Body, directory: str, commit: CommitFiles) -> tuple[list[str], str]:
    """Return the manifests that Argo CD reads in a directory, and why gitsched cannot build them, or ""."""
    prefix = "" if directory == "." else f"{directory}/"
    found: list[str] = []
    problem = ""
    is_manifest = _make_filter(options)
    for path in sorted(commit.entries):
        inside = path[len(prefix) :]
        if not path.startswith(prefix) or not is_manifest(inside):
            continue
        if path.endswith(".jsonnet"):
            problem = problem or f"{path} is Jsonnet, which gitsched does not run: commit what it prints"
            continue
        blob, target = find_blob(commit, path)
        if not blob:
            problem = problem or (f"{path} is a link that leads out of the repository: commit a file" if is_outside(target) else "")
            continue
        data = commit.read_blob(blob)
        if SKIPPED_MARK in data:
            continue
        if path.endswith(".json") or _has_objects(data):
            found.append(inside)
    return found, problem


def _make_filter(options: Body) -> Callable[[str], bool]:
    """Return what says whether Argo CD reads a file, by its path in the directory."""
    include, exclude = (ManifestPattern(text) if (text := get_text(options, name)) else None for name in ("include", "exclude"))
    has_any_name, is_recursive = options.get("disableExtensionFilter") is True, options.get("recurse") is True

    def is_manifest(path: str) -> bool:
        is_named = (is_recursive or "/" not in path) and (has_any_name or _MANIFEST.fullmatch(path) is not None)
        return is_named and not (exclude and exclude.matches(path)) and (include is None or include.matches(path))

    return is_manifest


def _has_objects(data: bytes) -> bool:
    """Return whether Argo CD reads objects in a YAML file; it ignores one about something else, whose first document is no object."""
    if all(mark in data for mark in _MARKS):
        return True
    first = next((value for value in parse_values(data) if value is not None), None)
    return isinstance(first, dict) and isinstance(first.get("kind"), str) and bool(first["kind"])
