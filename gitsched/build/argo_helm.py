"""How Argo CD renders the chart of a source. Source: helmTemplate of argoproj/argo-cd/reposerver/repository, and util/helm."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gitsched.build.argo_environment import expand_variables, find_variable
from gitsched.build.chart_files import ChartRequest
from gitsched.build.commit_files import CommitFiles
from gitsched.build.go_templates import describe_unknown, find_unknown
from gitsched.build.path_recipe import list_strings
from gitsched.manifests.glob import GlobToken, matches_glob, parse_glob
from gitsched.manifests.kustomization import parse_values
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.document import Body, list_objects

FindReference = Callable[[str], str | None]
"""Return the path in this repository of `$name/...` in the values files of a chart; None if it is in another repository."""

_COMMA = re.compile(r"(?<!\\),")
_ROOT = "{root}"


def make_chart_request(
    helm: Body,
    directory: str,
    name: str,
    namespace: str,
    commit: CommitFiles,
    find_reference: FindReference,
    environment: Mapping[str, str],
) -> ChartRequest | str:
    """Return the request to render the chart in a directory; a text says why that is not possible."""
    if "\ufdd0" in repr(helm):
        unknown = find_unknown(helm)
        return describe_unknown(unknown) if unknown is not None else ""
    find_file = _FileFinder(directory, commit, find_reference, environment)
    texts = [str(entry.get("path") or "") for entry in list_objects(helm.get("fileParameters"))]
    try:
        values_files = find_file.list_values_files(
            list_strings(helm.get("valueFiles")), helm.get("ignoreMissingValueFiles") is True
        )
        files = [find_file.resolve(text) for text in texts]
    except FileNotFoundError as error:
        return str(error)
    values = _read_values(helm)
    if isinstance(values, str):
        return values
    parameters = {
        (entry.get("forceString") is True, str(entry.get("name") or "")): expand_variables(
            "" if entry.get("value") is None else str(entry["value"]), environment
        )
        for entry in list_objects(helm.get("parameters"))
    }
    if find_variable([parameters, values_files, files]) is not None:
        return f"it uses {find_variable([parameters, values_files, files])}, which changes with each commit: write the value"
    if any(_ROOT in text for key, value in parameters.items() for text in (key[1], value)):
        return f"a parameter has {_ROOT}, which gitsched cannot pass to helm: write it in values"
    settings = {
        is_text: [f"{name}={_escape(value)}" for (also, name), value in sorted(parameters.items()) if also is is_text]
        for is_text in (False, True)
    }
    named = [str(entry.get("name") or "") for entry in list_objects(helm.get("fileParameters"))]
    return ChartRequest(
        directory,
        str(helm.get("releaseName") or name),
        str(helm.get("namespace") or namespace or "default"),
        tuple(values_files),
        values,
        str(helm.get("kubeVersion") or ""),
        tuple(list_strings(helm.get("apiVersions"))),
        helm.get("skipCrds") is not True,
        sets=tuple(settings[False]),
        text_sets=tuple(settings[True]),
        file_sets=tuple(zip(named, files, strict=True)),
        checks_schema=helm.get("skipSchemaValidation") is not True,
    )


def _read_values(helm: Body) -> dict[str, Any] | str:
    """Return the inline values, of which an object overrules a text."""
    own = helm.get("valuesObject")
    if isinstance(own, dict):
        return own
    text = str(helm.get("values") or "")
    found = parse_values(text.encode("utf-8", "surrogatepass"))
    if not text.strip() or (found and found[0] is None):
        return {}
    return found[0] if found and isinstance(found[0], dict) else "its values are not a mapping in YAML: correct them"


def _escape(value: str) -> str:
    """Return a value for `helm --set`: a list in braces as it is, else with its commas escaped. Source: cleanSetParameters."""
    return value if value.startswith("{") and value.endswith("}") else _COMMA.sub(r"\\,", value)


class _FileFinder:
    """Finds the files that a source names: relative to its directory, to the repository, or to another source."""

    def __init__(self, directory: str, commit: CommitFiles, find_reference: FindReference, environment: Mapping[str, str]) -> None:
        self._directory, self._commit, self._find_reference = directory, commit, find_reference
        self._environment = environment

    def resolve(self, text: str) -> str:
        """Return the path of a file. Raises FileNotFoundError with the reason if it is not in this repository."""
        if "://" in text:
            raise FileNotFoundError(f"its values file {text} is on another server: commit it")
        path = self._find_reference(text) if text.startswith("$") else None
        if text.startswith("$") and path is None and not text.startswith(("$ARGOCD_", "${")):
            raise FileNotFoundError(f"its values file {text} is in another repository: commit it here")
        if path is None:
            text = expand_variables(text, self._environment)
            path = resolve_path("." if text.startswith("/") else self._directory, text.lstrip("/"))
        else:
            path = expand_variables(path, self._environment)
        if path is None:
            raise FileNotFoundError(f"its values file {text} is outside of this repository: commit it here")
        return path

    def list_values_files(self, texts: list[str], ignores_missing: bool) -> list[str]:
        """Return the values files in order, each once. A pattern is all that match it but those that are named themselves."""
        paths = [(text, self.resolve(text)) for text in texts]
        named = {path for _, path in paths if not _is_pattern(path)}
        found: dict[str, None] = {}
        for text, path in paths:
            if not _is_pattern(path):
                if path in self._commit.entries or not ignores_missing:
                    found[path] = None
                continue
            matching = [other for other in sorted(self._commit.entries, key=_sort_key) if _matches_path(path, other)]
            if not matching and not ignores_missing:
                raise FileNotFoundError(
                    f"no file matches its values files {text}: correct the pattern, or set ignoreMissingValueFiles"
                )
            found |= dict.fromkeys(other for other in matching if other not in named)
        return list(found)


def _is_pattern(path: str) -> bool:
    return any(character in path for character in "*?[")


def _sort_key(path: str) -> list[str]:
    return path.split("/")


def _matches_path(pattern: str, path: str) -> bool:
    """Return whether a path matches a pattern of doublestar: `**` is any directories, braces have alternatives."""
    start = pattern.find("{")
    end = pattern.find("}", start)
    if 0 <= start < end:
        choices = pattern[start + 1 : end].split(",")[:100]
        return any(_matches_path(pattern[:start] + choice + pattern[end + 1 :], path) for choice in choices)
    parts = [None if part == "**" else parse_glob(part.replace("[!", "[^")) or [] for part in pattern.split("/")]
    return _matches_names(parts, path.split("/"))


def _matches_names(parts: list[list[GlobToken] | None], names: list[str]) -> bool:
    reached = {0}
    for name in names:
        reached = _skip_directories(parts, reached)
        following: set[int] = set()
        for at in reached:
            if at < len(parts) and parts[at] is None:
                following.add(at)
            elif at < len(parts) and matches_glob(parts[at] or [], name):
                following.add(at + 1)
        reached = following
    return len(parts) in _skip_directories(parts, reached)


def _skip_directories(parts: list[list[GlobToken] | None], reached: set[int]) -> set[int]:
    found = set(reached)
    for at in sorted(reached):
        while at < len(parts) and parts[at] is None:
            at += 1
            found.add(at)
    return found
