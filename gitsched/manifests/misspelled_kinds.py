"""Report documents whose kind, group or version is probably a misspelling of a known one; entered only for documents with a known kind or
group."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gitsched.model.document import find_unversioned_group, is_known_group
from gitsched.model.finding import Issue
from gitsched.model.similar_names import find_similar

_UNRELATED_KINDS = frozenset(("Role", "RoleBinding", "ManifestWork"))
"""Kinds that are unrelated to placement but have names similar to known kinds of the same group."""
_CREATED_CLUSTER = ("cluster.x-k8s.io", "Cluster")
_SEVERAL_WORDS = re.compile(r"[A-Z][a-z]+[A-Z]")
_GROUP_SIMILARITY, _PROJECT_SIMILARITY, _KIND_SIMILARITY, _UNVERSIONED_SIMILARITY = 0.9, 0.85, 0.8, 0.6
_MAX_LENGTH = 100


class KnownKinds:
    """The kinds that policy APIs read, by group, version and kind; version "" stands for any one."""

    def __init__(self, known: Iterable[tuple[str, str, str]]) -> None:
        self._versions: dict[tuple[str, str], list[str]] = {}
        self._groups: dict[str, list[str]] = {}
        self._kinds: dict[str, list[str]] = {}
        for group, version, kind in sorted(known, reverse=True):
            self._versions.setdefault((group, kind), []).append(version)
            self._groups.setdefault(kind, []).append(group)
            self._kinds.setdefault(group, []).append(kind)

    def check(self, group: str, version: str, kind: str, *, has_api: bool) -> tuple[Issue, ...]:
        """Return the issue of a document without a schema; none if its kind is unrelated.

        `has_api` says that the document has the member `api` in place of apiVersion.
        """
        member = "api" if has_api else "apiVersion"
        written = f"{group}/{version}" if group else version
        versions = self._versions.get((group, kind))
        if versions is not None:
            if "" in versions:
                return ()
            message = f"{kind} is read as {self._format_versions(group, kind)}, not as {written[:_MAX_LENGTH]}"
            return (Issue("error", "unknown-version", message, (member,)),)
        if kind in self._groups:
            if (group, kind) == _CREATED_CLUSTER:
                known = self._format_versions(self._groups[kind][-1], kind)
                message = (
                    "this Cluster of Cluster API says how a cluster is created; gitsched places nothing on it: describe the cluster as "
                    f"{known}, as `gitsched init --cluster` writes it"
                )
                return (Issue("info", "unknown-kind", message, (member,)),)
            similar = self._find_group(group, version, kind, has_api=has_api)
            if similar is None:
                return ()
            message = f"{written[:_MAX_LENGTH]!r} has no kind {kind}; did you mean {self._format_versions(similar, kind)}?"
            return (Issue("error", "unknown-kind", message, (member,)),)
        return self._check_kind(group, kind, is_unversioned=find_unversioned_group(group) == version)

    def _check_kind(self, group: str, kind: str, *, is_unversioned: bool) -> tuple[Issue, ...]:
        kinds = self._kinds.get(group)
        if kinds is None or kind in _UNRELATED_KINDS:
            return ()
        by_lower = {known.lower(): known for known in kinds}
        similarity = _UNVERSIONED_SIMILARITY if is_unversioned else _KIND_SIMILARITY
        similar = find_similar(kind.lower(), by_lower, similarity)
        if not similar:
            return ()
        return (
            Issue(
                "error",
                "unknown-kind",
                f"there is no kind {kind[:60]!r} in {group}; did you mean {by_lower[similar]}?",
                ("kind",),
            ),
        )

    def _find_group(self, group: str, version: str, kind: str, *, has_api: bool) -> str | None:
        """Return the group that a document of a known kind probably means; None if it has a kind of another project."""
        groups = self._groups[kind]
        if has_api:
            return next((known for known in groups if find_unversioned_group(known) is not None), None)
        if not group and version in groups:
            return version  # the version is missing
        versioned = [known for known in groups if find_unversioned_group(known) is None]
        projects = {_parse_project(known): known for known in reversed(versioned)}
        found = find_similar(group, versioned, _GROUP_SIMILARITY)
        found = found or projects.get(find_similar(_parse_project(group[:_MAX_LENGTH]), projects, _PROJECT_SIMILARITY), "")
        if not found and group not in self._kinds and is_known_group(group):
            # Files such as a kubeconfig have the version v1 and a kind of one word, which Kubernetes does not have.
            found = versioned[0] if versioned and (group or _SEVERAL_WORDS.match(kind)) else ""
        return found or None

    def _format_versions(self, group: str, kind: str) -> str:
        unversioned = find_unversioned_group(group)
        if unversioned is not None:
            return f"`api: {group}` without apiVersion"
        return " or ".join(f"{group}/{version}" if version else f"a version of {group}" for version in self._versions[group, kind])


def _parse_project(group: str) -> str:
    """Return the last label but one of a group, which is the name of its project; that of `policy.karmada.io` is `karmada`."""
    return group.rsplit(".", 2)[-2:][0]
