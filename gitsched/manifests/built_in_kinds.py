"""The kinds of Kubernetes with their schemas, and which of its versions and kinds are wrong or removed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gitsched.manifests.object_schema import ObjectSchema, make_object_schema
from gitsched.model.document import get_field
from gitsched.model.finding import Issue, Severity

if TYPE_CHECKING:
    from gitsched.model.document import Body

_SEVERITIES: Mapping[str, Severity] = {"missing-field": "warning"}
_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_KIND_SIMILARITY = 0.85
_REMOVED_GROUPS = frozenset(("extensions",))
_REMOVED_KINDS = {
    "PodSecurityPolicy": "Pod Security Admission, with labels of the Namespace, takes its place",
    "PodPreset": "it has no successor",
}
"""Kinds that no group has any more."""


class BuiltInKinds:
    """The kinds of one version of Kubernetes. Each schema is compiled for the first object of its kind."""

    def __init__(self, version: str, names: Mapping[tuple[str, str, str], str], definitions: Mapping[str, Body]) -> None:
        self._version, self._names, self.definitions = version, names, definitions
        self._versions: dict[tuple[str, str], list[str]] = {}
        self._groups: dict[str, list[str]] = {}
        for group, api_version, kind in names:
            self._versions.setdefault((group, kind), []).append(api_version)
            self._groups.setdefault(kind, []).append(group)
        self.groups = frozenset(group for group, _, _ in names) | _REMOVED_GROUPS
        self._schemas: dict[tuple[str, str, str], ObjectSchema] = {}

    def check_group(self, key: tuple[str, str, str]) -> list[Issue]:
        """Report a misspelled group without a dot, such as `app` of a Deployment; nothing about kinds that Kubernetes does not have."""
        group, version, kind = key
        groups = self._groups.get(kind)
        if not groups or "." in group or group in self.groups:
            return []
        from difflib import get_close_matches  # rarely needed

        if not get_close_matches(group[:100], [name.partition(".")[0] or "core" for name in groups], n=1):
            return []
        right = " or ".join(_join(name, max(self._versions[name, kind], key=_rank_version)) for name in groups)
        message = f"Kubernetes {self._version} has no {kind} in {_join(group, version)[:100]}: write {right}"
        return [Issue("error", "unknown-kind", message, ("apiVersion",))]

    def find_issues(self, key: tuple[str, str, str], body: Body) -> list[Issue]:
        """Return the issues of an object with this group, version and kind."""
        schema = self._schemas.get(key)
        if schema is None:
            name = self._names.get(key)
            if name is None:
                return self._check_kind(*key)
            described = f"is unknown to Kubernetes {self._version}, which refuses or drops it"
            schema = self._schemas[key] = ObjectSchema(make_object_schema(name, self.definitions), described, _SEVERITIES)
        found = schema.find_issues(body)
        return found or _check_pod_labels(body) if key[0] == "apps" else found

    def _check_kind(self, group: str, version: str, kind: str) -> list[Issue]:
        """Report a kind or version that this version of Kubernetes does not have, unless it may be newer."""
        written = f"{group}/{version}" if group else version
        versions = self._versions.get((group, kind))
        if versions is not None:
            newest = max(versions, key=_rank_version)
            if _rank_version(version) > _rank_version(newest):
                return []
            message = f"Kubernetes {self._version} has no {kind} in {written[:100]}: write {_join(group, newest)}"
            return [Issue("warning", "removed-version", message, ("apiVersion",))]
        if kind in _REMOVED_KINDS:
            message = f"Kubernetes {self._version} has no {kind}: {_REMOVED_KINDS[kind]}"
            return [Issue("warning", "removed-version", message, ("kind",))]
        groups = self._groups.get(kind)
        if groups:
            right = " or ".join(_join(name, max(self._versions[name, kind], key=_rank_version)) for name in groups)
            message = f"Kubernetes {self._version} has no {kind} in {written[:100]}: write {right}"
            if group in _REMOVED_GROUPS:
                return [Issue("warning", "removed-version", message, ("apiVersion",))]
            return [Issue("error", "unknown-kind", message, ("apiVersion",))]
        known = [name for known_group, known_version, name in self._names if (known_group, known_version) == (group, version)]
        from difflib import get_close_matches  # rarely needed

        matches = get_close_matches(kind[:100], known, n=1, cutoff=_KIND_SIMILARITY)
        if not matches:
            return []
        message = f"Kubernetes {self._version} has no kind {kind[:60]!r} in {written[:100]}; did you mean {matches[0]}?"
        return [Issue("error", "unknown-kind", message, ("kind",))]


def _check_pod_labels(body: Body) -> list[Issue]:
    """Report a workload whose selector does not select its own pods, which API servers refuse; nothing without labels of the pods."""
    labels, selected = get_field(body, "spec", "template", "metadata", "labels"), get_field(body, "spec", "selector", "matchLabels")
    if not (isinstance(labels, dict) and labels and isinstance(selected, dict)):
        return []
    for name, value in selected.items():
        if labels.get(name) != value:
            shown = f"{name}={labels[name]}"[:100] if name in labels else f"no label {name[:60]!r}"
            message = (
                f"the selector has {f'{name}={value}'[:100]}, and the pods of the template have {shown}: give both the same labels"
            )
            return [Issue("error", "invalid-field", message, ("spec", "selector", "matchLabels", name))]
    return []


def _join(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _rank_version(version: str) -> tuple[int, int, int]:
    """Return the rank of a version as Kubernetes orders them: stable ones before beta before alpha; any other text comes first."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (4, 0, 0)
    major, stage, minor = match.groups()
    return ({"alpha": 1, "beta": 2}.get(stage or "", 3), int(major), int(minor or 0))
