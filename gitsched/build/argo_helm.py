"""How Argo CD renders the chart of a source. Source: helmTemplate of argoproj/argo-cd/reposerver/repository, and util/helm."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gitsched.build.argo_environment import expand_variables, find_commit_variable
from gitsched.build.argo_patterns import FileTree, PatternError
from gitsched.build.chart_files import ChartRequest
from gitsched.build.commit_files import CommitFiles, find_blob
from gitsched.build.go_templates import describe_unknown, find_unknown
from gitsched.manifests.kustomization import parse_values
from gitsched.manifests.kustomize_graph import resolve_path
from gitsched.model.document import Body, list_objects, list_texts

FindReference = Callable[[str], str | None]
"""Return the path in this repository of `$name/...` in the values files of a chart; None if it is in another repository."""

_COMMA = re.compile(r"(?<!\\),")
_ROOT = "{root}"
_VERSION = re.compile(r"\s*v?((?:0|[1-9][0-9]*)(?:\.[0-9]+)+)", re.ASCII)


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
        values_files = find_file.list_values_files(list_texts(helm.get("valueFiles")), helm.get("ignoreMissingValueFiles") is True)
        files = [find_file.resolve(text) for text in texts]
    except FileNotFoundError as error:
        return str(error)
    values, version = _read_values(helm), _read_version(str(helm.get("kubeVersion") or ""))
    if isinstance(values, str):
        return values
    if version is None:
        return f"its kubeVersion {helm['kubeVersion']!r} is not a version of Kubernetes: correct it, such as to 1.35.0"
    parameters = _read_parameters(helm, environment)
    variable = find_commit_variable([parameters, values_files, files])
    if variable is not None:
        return f"it uses {variable}, which changes with each commit: write the value"
    if any(_ROOT in text for key, value in parameters.items() for text in (key[1], value)):
        return f"a parameter has {_ROOT}, which gitsched cannot pass to helm: write it in values"
    named = [str(entry.get("name") or "") for entry in list_objects(helm.get("fileParameters"))]
    return ChartRequest(
        directory,
        str(helm.get("releaseName") or name),
        str(helm.get("namespace") or namespace or "default"),
        tuple(values_files),
        values,
        version,
        tuple(list_texts(helm.get("apiVersions"))),
        helm.get("skipCrds") is not True,
        sets=_write_settings(parameters, is_text=False),
        text_sets=_write_settings(parameters, is_text=True),
        file_sets=tuple(zip(named, files, strict=True)),
        checks_schema=helm.get("skipSchemaValidation") is not True,
    )


def _read_parameters(helm: Body, environment: Mapping[str, str]) -> dict[tuple[bool, str], str]:
    """Return the values of parameters, by whether one is a text and its name."""
    return {
        (entry.get("forceString") is True, str(entry.get("name") or "")): expand_variables(
            "" if entry.get("value") is None else str(entry["value"]), environment
        )
        for entry in list_objects(helm.get("parameters"))
    }


def _write_settings(parameters: Mapping[tuple[bool, str], str], *, is_text: bool) -> tuple[str, ...]:
    return tuple(f"{name}={_escape(value)}" for (also, name), value in sorted(parameters.items()) if also is is_text)


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


def _read_version(text: str) -> str | None:
    """Return the numbers of a version, without what a provider adds; None if it is none. Source: ParseGeneric of Kubernetes."""
    found = _VERSION.match(text)
    return ".".join(str(int(number)) for number in found[1].split(".")) if found else None if text else ""


def _escape(value: str) -> str:
    """Return a value for `helm --set`: a list in braces as it is, else with its commas escaped. Source: cleanSetParameters."""
    return value if value.startswith("{") and value.endswith("}") else _COMMA.sub(r"\\,", value)


class _FileFinder:
    """Finds the files that a source names: relative to its directory, to the repository, or to another source."""

    def __init__(self, directory: str, commit: CommitFiles, find_reference: FindReference, environment: Mapping[str, str]) -> None:
        self._directory, self._commit, self._find_reference = directory, commit, find_reference
        self._environment = environment
        self._tree: FileTree | None = None

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
                if find_blob(self._commit, path)[0] or not ignores_missing:
                    found[path] = None
                continue
            matching = self._list_matching(text, path)
            if not matching and not ignores_missing:
                raise FileNotFoundError(
                    f"no file matches its values files {text}: correct the pattern, or set ignoreMissingValueFiles"
                )
            found |= dict.fromkeys(other for other in matching if other not in named)
        return list(found)

    def _list_matching(self, text: str, pattern: str) -> list[str]:
        self._tree = self._tree or FileTree(self._commit.entries)
        try:
            matching = self._tree.list_matching(pattern)
        except PatternError as error:
            raise FileNotFoundError(f"the pattern {text} of its values files {error}: correct it") from None
        directory = next((path for path in matching if self._tree.is_directory(path)), None)
        if directory is not None:
            raise FileNotFoundError(
                f"its values files {text} match the directory {directory}, at which helm fails: name files only, such as *.yaml"
            )
        return matching


def _is_pattern(path: str) -> bool:
    return any(character in path for character in "*?[")
